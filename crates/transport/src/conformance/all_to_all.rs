//! All-to-all by every algorithm: equal and unequal lengths, from all to all,
//! from all to a few and from a few to all.

use super::expect::{Numbers, bytes_between, same};
use crate::all_to_all::AllToAll;
use crate::comm::Comm;
use crate::error::Result;

pub(super) fn check(comm: &Comm) -> Result<()> {
    let size = comm.size();
    // The forced ones are the same for many ranks, and have many steps.
    let algorithms = AllToAll::ALL.into_iter().chain([AllToAll::Auto]);
    let algorithms: Vec<AllToAll> = match size <= 16 {
        true => algorithms.collect(),
        false => vec![AllToAll::Bruck, AllToAll::Ipex, AllToAll::Auto],
    };
    let long = if size <= 8 { 300_000 } else { 20_000 };
    for algorithm in algorithms {
        for (round, length) in [0, 1, 8, 500, 9_001, long].into_iter().enumerate() {
            equal(comm, algorithm, 10 * round, length)?;
        }
        let few = |rank: usize| rank.is_multiple_of(3);
        unequal(comm, algorithm, 1, |from, to| 1 + (from * 3 + to) % 5)?;
        unequal(comm, algorithm, 2, |_, to| if few(to) { 700 } else { 0 })?;
        unequal(
            comm,
            algorithm,
            3,
            |from, _| if few(from) { 9_000 } else { 0 },
        )?;
        unequal(comm, algorithm, 4, |_, _| 0)?;
        unequal(comm, algorithm, 5, |from, to| {
            let mut numbers = Numbers((from * size + to) as u64);
            [0, 0, 1, 30, 5_000, long][numbers.below(6)]
        })?;
    }
    // One after the other, so that none can be mistaken for its neighbour.
    for round in 0..40 {
        equal(comm, AllToAll::Auto, 1000 + round, round * 7 % 64)?;
        unequal(comm, AllToAll::Auto, 2000 + round, |from, to| {
            (from + to * round) % 50
        })?;
    }
    Ok(())
}

fn equal(comm: &Comm, algorithm: AllToAll, round: usize, length: usize) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let between = |from: usize, to: usize| bytes_between(from, to, round, length);
    let sent: Vec<u8> = (0..size).flat_map(|to| between(rank, to)).collect();
    let expected: Vec<u8> = (0..size).flat_map(|from| between(from, rank)).collect();
    let mut received = vec![0; size * length];
    comm.all_to_all_into(&sent, &mut received, algorithm)?;
    let what = format!("all_to_all_into by {algorithm}, {length} bytes");
    same(comm, &what, &received, &expected)
}

fn unequal(
    comm: &Comm,
    algorithm: AllToAll,
    round: usize,
    length: impl Fn(usize, usize) -> usize,
) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let between = |from: usize, to: usize| bytes_between(from, to, round, length(from, to));
    let sent: Vec<Vec<u8>> = (0..size).map(|to| between(rank, to)).collect();
    let mut received: Vec<Vec<u8>> = (0..size).map(|from| vec![0; length(from, rank)]).collect();
    let sends: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
    let mut receives: Vec<&mut [u8]> = received.iter_mut().map(Vec::as_mut_slice).collect();
    comm.all_to_allv_into(&sends, &mut receives, algorithm)?;
    for (from, found) in received.iter().enumerate() {
        let what = format!("all_to_allv_into by {algorithm}, lengths {round}, from rank {from}");
        same(comm, &what, found, &between(from, rank))?;
    }
    Ok(())
}
