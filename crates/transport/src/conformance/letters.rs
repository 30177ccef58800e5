//! Letters, copies between the memory of ranks, and what is known of the run.

use std::thread;

use super::expect::{bytes_between, equal, same, wrong};
use crate::comm::Comm;
use crate::error::Result;

/// The lengths of the letters between two ranks; the long ones go to the next
/// rank only.
const LENGTHS: [usize; 5] = [0, 1, 500, 70_000, 1_000_000];

/// Whether `from` writes letter `round` to `to`.
fn is_written(from: usize, to: usize, round: usize, size: usize) -> bool {
    LENGTHS[round] <= 500 || (from + 1) % size == to
}

pub(super) fn check(comm: &Comm) -> Result<()> {
    letters(comm)?;
    letters_of_groups(comm)?;
    copies(comm)?;
    comm.check()?;
    for rank in 0..comm.size() {
        equal(comm, "nobody has ended", &comm.ended(rank), &false)?;
    }
    comm.barrier()
}

/// Every rank writes to every rank, also to itself, from two threads at once.
fn letters(comm: &Comm) -> Result<()> {
    let (rank, size, transport) = (comm.rank(), comm.size(), comm.transport());
    let write = |parity: usize| {
        for (round, &len) in LENGTHS.iter().enumerate() {
            let written = |to: &usize| is_written(rank, *to, round, size);
            for to in (0..size)
                .filter(|to| (to + round) % 2 == parity)
                .filter(written)
            {
                let mut letter = vec![round as u8];
                letter.extend(bytes_between(rank, to, round, len));
                transport.letter(to, letter)?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| write(1));
        let own = write(0);
        other.join().unwrap_or(Ok(())).and(own)
    })?;
    let mut came = vec![[false; LENGTHS.len()]; size];
    let expected = (0..size * LENGTHS.len())
        .filter(|at| is_written(at / LENGTHS.len(), rank, at % LENGTHS.len(), size));
    for _ in 0..expected.count() {
        let (from, letter) = await_letter(comm)?;
        let round = usize::from(letter[0]);
        let expected = bytes_between(from, rank, round, LENGTHS[round]);
        same(comm, "a letter", &letter[1..], &expected)?;
        equal(comm, "a letter comes once", &came[from][round], &false)?;
        came[from][round] = true;
    }
    comm.barrier()?;
    let more = transport.next_letter()?.is_some();
    equal(comm, "letters that nobody wrote", &more, &false)
}

/// What is written in a group arrives there, though both wait.
fn letters_of_groups(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let part = comm.split(Some(rank as u64 % 2), -(rank as i64))?;
    let part = part.ok_or_else(|| wrong(comm, "no group, though a colour was given"))?;
    let next = |comm: &Comm| (comm.rank() + 1) % comm.size();
    comm.transport().letter(next(comm), vec![1, rank as u8])?;
    part.transport().letter(next(&part), vec![2, rank as u8])?;
    let (_, letter) = await_letter(&part)?;
    let before = (part.rank() + part.size() - 1) % part.size();
    // Ranks of a part descend.
    let members: Vec<usize> = (0..size)
        .rev()
        .filter(|other| other % 2 == rank % 2)
        .collect();
    same(comm, "of the part", &letter, &[2, members[before] as u8])?;
    let (from, letter) = await_letter(comm)?;
    equal(comm, "of the whole", &from, &((rank + size - 1) % size))?;
    same(comm, "of the whole", &letter, &[1, from as u8])?;
    comm.barrier()
}

fn await_letter(comm: &Comm) -> Result<(usize, Vec<u8>)> {
    loop {
        if let Some(letter) = comm.transport().next_letter()? {
            return Ok(letter);
        }
        comm.check()?;
        thread::yield_now();
    }
}

/// Each reads and writes ordinary memory of the next, if it can.
fn copies(comm: &Comm) -> Result<()> {
    const LEN: usize = 300_000;
    let (rank, size, transport) = (comm.rank(), comm.size(), comm.transport());
    let shared = comm.share(0)?;
    let next = (rank + 1) % size;
    let before = (rank + size - 1) % size;
    let readable = bytes_between(rank, 0, 3, LEN);
    let mut writable = vec![0_u8; LEN];
    let own = [readable.as_ptr() as u64, writable.as_mut_ptr() as u64];
    let all = comm.all_gather(&own)?;
    let mut copy = vec![0; LEN - 10];
    let sent = bytes_between(rank, next, 4, LEN - 20);
    // SAFETY: the memory of the next rank stays until the barrier, and only
    // this rank writes there.
    let (possible, copied, written) = unsafe {
        (
            transport.copy_from(next, all[2 * next], &mut [])?,
            transport.copy_from(next, all[2 * next] + 10, &mut copy)?,
            transport.copy_to(next, all[2 * next + 1] + 20, &sent)?,
        )
    };
    comm.barrier()?;
    equal(comm, "copies are possible", &copied, &possible)?;
    equal(comm, "copies are possible", &written, &possible)?;
    let reached = shared.of(next).is_some();
    equal(
        comm,
        "copies only within a node",
        &(possible && !reached),
        &false,
    )?;
    if copied {
        let expected = &bytes_between(next, 0, 3, LEN)[10..];
        same(comm, "what was copied from the next rank", &copy, expected)?;
    }
    let came = comm.all_gather(&[u8::from(written)])?[before] != 0;
    if came {
        let expected = bytes_between(before, rank, 4, LEN - 20);
        same(comm, "what was copied here", &writable[20..], &expected)?;
        same(comm, "what was not", &writable[..20], &[0; 20])?;
    }
    Ok(())
}

/// Rank `failing` fails, and the others learn it though they call nobody.
pub(super) fn check_failure(comm: &Comm, failing: usize) -> Result<()> {
    comm.barrier()?;
    if comm.rank() == failing {
        let text = format!("deliberate failure of rank {failing}");
        return Err(crate::error::Error::Invalid(text));
    }
    loop {
        comm.check()?;
        thread::yield_now();
    }
}

/// Rank `ending` ends, and the others learn it though they call nobody.
pub(super) fn check_end(comm: &Comm, ending: usize) -> Result<()> {
    comm.barrier()?;
    while comm.rank() != ending && !comm.ended(ending) {
        comm.check()?;
        thread::yield_now();
    }
    Ok(())
}
