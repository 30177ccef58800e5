//! Memory that ranks lend one another.

use std::thread;
use std::time::{Duration, Instant};

use super::expect::{bytes_between, equal, same, some_ranks, wrong};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::loan::{Loan, Loans, NodeMemory};

/// How many bytes each visitor writes.
const SHARE: usize = 1000;

pub(super) fn check(comm: &Comm) -> Result<()> {
    let reached = memory(comm)?;
    reading(comm, reached)?;
    writing(comm, reached)?;
    mixed(comm, reached)?;
    ordinary(comm)?;
    many(comm)
}

/// Node memory is there for all or for nobody, cleared, and of any length.
/// Whether it is there.
fn memory(comm: &Comm) -> Result<bool> {
    let mut there = None;
    for len in [0, 1, 5000 * comm.rank(), 100_000] {
        let memory = comm.node_memory(len)?;
        let all = comm.all_gather(&[u8::from(memory.is_some())])?;
        let own = *there.get_or_insert(memory.is_some());
        same(
            comm,
            "who has node memory",
            &all,
            &vec![u8::from(own); all.len()],
        )?;
        if let Some(memory) = memory {
            equal(comm, "the length of node memory", &memory.len(), &len)?;
            equal(
                comm,
                "clean memory",
                &memory.iter().all(|&byte| byte == 0),
                &true,
            )?;
            let aligned = (memory.as_ptr() as usize).is_multiple_of(16);
            equal(comm, "aligned memory", &aligned, &true)?;
        }
    }
    Ok(there.unwrap_or(false))
}

/// Memory that can be lent, if there is any.
fn lendable(comm: &Comm, len: usize) -> Result<NodeMemory> {
    comm.node_memory(len)?
        .ok_or_else(|| wrong(comm, "there was node memory, but now there is none"))
}

/// All read from all, from some, from nobody; each lends another length.
fn reading(comm: &Comm, reached: bool) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let len = |rank: usize| rank * 331 % 5000;
    let of = |rank: usize| bytes_between(rank, 0, 0, len(rank));
    let mut memory = match reached {
        true => lendable(comm, len(rank) + 7)?,
        false => return Ok(()),
    };
    memory[7..].copy_from_slice(&of(rank));
    let everybody: Vec<usize> = (0..size).rev().collect();
    let next = [(rank + 1) % size, rank, (rank + 1) % size];
    for from in [&everybody[..], &next, &[]] {
        let mut seen = vec![None; size];
        let lent = comm.lend(Loan::Read(&memory[7..]), from, |loans| {
            for (peer, seen) in seen.iter_mut().enumerate() {
                *seen = loans.readable(peer).map(|(start, len)| {
                    // SAFETY: lent by the peer, and written by nobody.
                    unsafe { std::slice::from_raw_parts(start, len) }.to_vec()
                });
            }
        })?;
        equal(comm, "whether it was lent", &lent, &true)?;
        for (peer, seen) in seen.iter().enumerate() {
            let expected = from.contains(&peer).then(|| of(peer));
            equal(comm, "what was read", seen, &expected)?;
        }
    }
    Ok(())
}

/// Each writes a part of everybody's memory; nobody returns before all have,
/// not even before a late one has.
fn writing(comm: &Comm, reached: bool) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut memory = match reached {
        true => lendable(comm, size * SHARE)?,
        false => return Ok(()),
    };
    let all: Vec<usize> = (0..size).collect();
    for (round, late) in some_ranks(comm).into_iter().enumerate() {
        let lent = comm.lend(Loan::Write(&mut memory), &all, |loans| {
            if rank == late {
                thread::sleep(Duration::from_millis(5));
            }
            for peer in 0..size {
                write_share(comm, loans, peer, &bytes_between(rank, peer, round, SHARE));
            }
        })?;
        equal(comm, "whether it was lent", &lent, &true)?;
        for (peer, share) in memory.chunks(SHARE).enumerate() {
            let expected = bytes_between(peer, rank, round, SHARE);
            same(comm, &format!("what rank {peer} wrote"), share, &expected)?;
        }
        // Nobody writes the next round before this one has been looked at.
        comm.barrier()?;
    }
    Ok(())
}

/// Writes this rank's share of what `peer` lends.
fn write_share(comm: &Comm, loans: &Loans, peer: usize, share: &[u8]) {
    if let Some((start, len)) = loans.writable(peer)
        && len == comm.size() * SHARE
    {
        // SAFETY: the share is within what is lent, and this rank's alone.
        unsafe {
            let place = start.add(comm.rank() * SHARE);
            std::ptr::copy_nonoverlapping(share.as_ptr(), place, share.len());
        }
    }
}

/// Some lend to be read, others to be written; a part of the memory only.
fn mixed(comm: &Comm, reached: bool) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut memory = match reached {
        true => lendable(comm, 300)?,
        false => return Ok(()),
    };
    let previous = (rank + size - 1) % size;
    let own = match rank.is_multiple_of(2) {
        true => Loan::Write(&mut memory[100..200]),
        false => Loan::Read(&memory[100..150]),
    };
    let mut found = None;
    let lent = comm.lend(own, &[previous], |loans| {
        let lens = |len: Option<usize>| len.unwrap_or(usize::MAX);
        let readable = lens(loans.readable(previous).map(|(_, len)| len));
        let writable = lens(loans.writable(previous).map(|(_, len)| len));
        found = Some((readable, writable));
        if let Some((start, 100)) = loans.writable(previous) {
            // SAFETY: lent to be written, and visited by this rank alone.
            unsafe { start.write_bytes(7, 100) };
        }
    })?;
    equal(comm, "whether it was lent", &lent, &true)?;
    let expected = match previous.is_multiple_of(2) {
        true => (100, 100),
        false => (50, usize::MAX),
    };
    equal(comm, "what may be done", &found, &Some(expected))?;
    let byte = |at| u8::from(rank.is_multiple_of(2) && (100..200).contains(&at)) * 7;
    let expected: Vec<u8> = (0..300).map(byte).collect();
    same(comm, "what was lent in part", &memory, &expected)
}

/// Memory of any kind is lent by all or not at all, also if it is out of reach
/// on one rank only.
fn ordinary(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let all: Vec<usize> = (0..size).collect();
    for only in [None, Some(size - 1)] {
        let mut own = vec![0; size * SHARE];
        let mut node = comm.node_memory(size * SHARE)?;
        let own = match &mut node {
            Some(memory) if only.is_some_and(|only| only != rank) => &mut **memory,
            _ => &mut own[..],
        };
        let within = comm.reaches(own);
        let mut visits = 0;
        let lent = comm.lend(Loan::Write(own), &all, |loans| {
            visits += 1;
            for peer in 0..size {
                write_share(comm, loans, peer, &bytes_between(rank, peer, 1, SHARE));
            }
        })?;
        let outcomes = comm.all_gather(&[u8::from(lent)])?;
        same(
            comm,
            "whether it was lent",
            &outcomes,
            &vec![u8::from(lent); size],
        )?;
        let reached = comm.all_gather(&[u8::from(within)])?;
        let all_reached = reached.iter().all(|&reached| reached != 0);
        equal(comm, "what is reached can be lent", &lent, &all_reached)?;
        equal(comm, "visits", &visits, &usize::from(lent))?;
        for (peer, share) in own.chunks(SHARE).enumerate() {
            let expected = match lent {
                true => bytes_between(peer, rank, 1, SHARE),
                false => vec![0; SHARE],
            };
            same(comm, "what was written", share, &expected)?;
        }
    }
    Ok(())
}

/// Memory comes and goes, and several pieces are held at once.
fn many(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let next = (rank + 1) % size;
    let mut held = Vec::new();
    for round in 0..20 {
        let Some(mut memory) = comm.node_memory(64 + round)? else {
            return Ok(());
        };
        memory.fill((rank + round) as u8);
        let mut seen = None;
        comm.lend(Loan::Read(&memory), &[next], |loans| {
            seen = loans.readable(next).map(|(start, len)| {
                // SAFETY: lent, and at least 64 bytes long.
                (unsafe { *start.add(len - 1) }, len)
            });
        })?;
        equal(
            comm,
            "the last byte",
            &seen,
            &Some(((next + round) as u8, 64 + round)),
        )?;
        held.push(memory);
        if round % 3 == 2 {
            held.remove(0);
        }
    }
    Ok(())
}

/// Collective: lets rank `failing` fail while all visit one another. Like
/// [`check_failure`](super::check_failure); nobody's memory is touched after
/// the call has returned.
pub(super) fn check_failure(comm: &Comm, failing: usize) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let cause = format!("deliberate failure of rank {failing}");
    let Some(mut memory) = comm.node_memory(size * SHARE)? else {
        return super::check_failure(comm, failing);
    };
    let all: Vec<usize> = (0..size).collect();
    let share = vec![1; SHARE];
    for round in 0.. {
        let outcome = comm.lend(Loan::Write(&mut memory), &all, |loans| {
            if round == 3 && rank == failing {
                comm.transport().fail(&cause);
            }
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(500) {
                for peer in 0..size {
                    write_share(comm, loans, peer, &share);
                }
            }
        });
        memory.fill(2);
        if let Err(error) = outcome {
            thread::sleep(Duration::from_millis(1));
            equal(
                comm,
                "memory afterwards",
                &memory.iter().all(|&byte| byte == 2),
                &true,
            )?;
            return match rank == failing {
                true => Err(Error::Invalid(cause)),
                false => Err(error),
            };
        }
        if round == 100 {
            break;
        }
    }
    Err(wrong(
        comm,
        &format!("did not notice that rank {failing} had failed"),
    ))
}
