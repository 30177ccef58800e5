//! Messages between two ranks: order, tags, lengths; and barriers.

use std::thread;
use std::time::{Duration, Instant};

use super::expect::{bytes_between, equal, same, some_ranks, wrong};
use crate::comm::Comm;
use crate::error::{Error, Result};

pub(super) fn check(comm: &Comm) -> Result<()> {
    order(comm)?;
    large(comm)?;
    typed(comm)?;
    barriers(comm)
}

/// Messages of one tag arrive in order, whatever those of others do.
fn order(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut distances = vec![0, 1 % size, size / 2, size - 1];
    distances.sort_unstable();
    distances.dedup();
    let tags = [7, 0, 0xfeff];
    let lengths = [5, 0, 1, 300, 64];
    for distance in &distances {
        let to = (rank + distance) % size;
        for (round, &length) in lengths.iter().enumerate() {
            for tag in tags {
                let message = bytes_between(rank, to, round + usize::from(tag), length);
                comm.send(to, tag, &message)?;
            }
        }
    }
    for distance in distances.iter().rev() {
        let from = (rank + size - distance) % size;
        for &tag in tags.iter().rev() {
            for (round, &length) in lengths.iter().enumerate() {
                let mut message = vec![0; length];
                comm.receive(from, tag, &mut message)?;
                let expected = bytes_between(from, rank, round + usize::from(tag), length);
                let what = format!("message {round} with tag {tag} from rank {from}");
                same(comm, &what, &message, &expected)?;
            }
        }
    }
    comm.barrier()
}

/// A message that is too long to be kept travels round the ring.
fn large(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    if size == 1 {
        return Ok(());
    }
    let length = if size <= 8 { 3 << 20 } else { 200_000 };
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let receive = || {
        let mut message = vec![0; length];
        comm.receive(previous, 3, &mut message)?;
        let expected = bytes_between(previous, rank, 0, length);
        same(comm, "a large message", &message, &expected)
    };
    // Rank 0 receives first: somebody must.
    if rank == 0 {
        receive()?;
    }
    comm.send(next, 3, &bytes_between(rank, next, 0, length))?;
    if rank != 0 {
        receive()?;
    }
    Ok(())
}

/// Numbers travel as well as bytes; the collectives' tags are refused.
fn typed(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    comm.send(next, 1, &[rank as f64 / 3.0, -1.5])?;
    let mut pair = [0.0; 2];
    comm.receive(previous, 1, &mut pair)?;
    equal(comm, "two numbers", &pair, &[previous as f64 / 3.0, -1.5])?;
    let refused = [
        comm.send(next, 0xff00, &[1_u8]),
        comm.receive(previous, 0xffff, &mut [0_u8]),
    ];
    for outcome in refused {
        if !matches!(outcome, Err(Error::Invalid(_))) {
            return Err(wrong(comm, &format!("a reserved tag gave {outcome:?}")));
        }
    }
    Ok(())
}

/// Nobody leaves a barrier before the last one has come.
fn barriers(comm: &Comm) -> Result<()> {
    let delay = Duration::from_millis(5);
    for late in some_ranks(comm) {
        // The late one begins to wait after everybody has read the clock.
        let start = Instant::now();
        comm.barrier()?;
        if comm.rank() == late {
            thread::sleep(delay);
        }
        comm.barrier()?;
        if start.elapsed() < delay {
            let text = format!("left a barrier before rank {late} had come");
            return Err(wrong(comm, &text));
        }
    }
    for _ in 0..50 {
        comm.barrier()?;
    }
    Ok(())
}
