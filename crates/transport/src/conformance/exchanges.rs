//! Exchanges: who sends how much to whom, cut how.

use super::expect::{Numbers, bytes_between, same};
use crate::comm::Comm;
use crate::error::Result;
use crate::transport::Exchange;

pub(super) fn check(comm: &Comm) -> Result<()> {
    let size = comm.size();
    let many = if size <= 16 { 150 } else { 15 };
    // 1. Nothing at all; only to oneself; everybody to everybody.
    exchange(comm, 0, usize::MAX, |_, _| 0)?;
    exchange(comm, 1, 7, |from, to| if from == to { 100 } else { 0 })?;
    exchange(comm, 2, usize::MAX, |from, to| 1 + (from * 3 + to) % 5)?;
    exchange(comm, 3, 50, |from, to| (from * 31 + to * 17) % 200)?;
    // 2. All from one, all to one, in rings, from few to few.
    exchange(comm, 4, 1000, |from, _| if from == 0 { 3000 } else { 0 })?;
    exchange(comm, 5, 1000, |_, to| if to == size - 1 { 3000 } else { 0 })?;
    let ring = |from: usize, to: usize| (from + 1) % size == to;
    exchange(comm, 6, usize::MAX, |f, t| if ring(f, t) { 8 } else { 0 })?;
    let few = |f: usize, t: usize| f.is_multiple_of(3) && t % 4 == 1;
    exchange(comm, 7, 11, |f, t| if few(f, t) { 60 } else { 0 })?;
    // 3. Large pieces, whole and cut, and together with small ones.
    let large = if size <= 8 { 2 << 20 } else { 100_000 };
    exchange(
        comm,
        8,
        usize::MAX,
        |f, t| if ring(f, t) { large } else { 0 },
    )?;
    exchange(comm, 9, 70_001, |f, t| if ring(t, f) { large } else { 1 })?;
    exchange(
        comm,
        10,
        300,
        |from, _| if from % 2 == 1 { 9000 } else { 3 },
    )?;
    // 4. Many small ones in a row, regular and irregular.
    for round in 0..many {
        exchange(comm, 100 + round, usize::MAX, |_, _| 8)?;
        let length = |from, to| {
            let seed = ((round * size + from) * size + to) as u64;
            let mut numbers = Numbers(seed);
            [0, 0, 1, 30, 500][numbers.below(5)]
        };
        exchange(comm, 1000 + round, 100, length)?;
    }
    Ok(())
}

/// One exchange of `length(from, to)` bytes, cut into pieces of random lengths
/// up to `longest`.
fn exchange(
    comm: &Comm,
    round: usize,
    longest: usize,
    length: impl Fn(usize, usize) -> usize,
) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut numbers = Numbers((round * size + rank) as u64);
    let sends: Vec<Vec<u8>> = (0..size)
        .map(|to| bytes_between(rank, to, round, length(rank, to)))
        .collect();
    let mut receives: Vec<Vec<u8>> = (0..size).map(|from| vec![0; length(from, rank)]).collect();
    let mut pieces = Exchange::new();
    let mut rests: Vec<&[u8]> = sends.iter().map(Vec::as_slice).collect();
    while rests.iter().any(|rest| !rest.is_empty()) {
        // A piece for each peer in turn, so that peers alternate in the list.
        for (to, rest) in rests.iter_mut().enumerate() {
            let (piece, later) = rest.split_at(cut(&mut numbers, rest.len(), longest));
            pieces.send(to, piece);
            *rest = later;
        }
    }
    let mut rests: Vec<&mut [u8]> = receives.iter_mut().map(Vec::as_mut_slice).collect();
    while rests.iter().any(|rest| !rest.is_empty()) {
        for (from, rest) in rests.iter_mut().enumerate().rev() {
            let at = cut(&mut numbers, rest.len(), longest);
            let (piece, later) = std::mem::take(rest).split_at_mut(at);
            pieces.receive(from, piece);
            *rest = later;
        }
    }
    comm.exchange(&mut pieces)?;
    for (from, found) in receives.iter().enumerate() {
        let expected = bytes_between(from, rank, round, length(from, rank));
        let what = format!("exchange {round} from rank {from}");
        same(comm, &what, found, &expected)?;
    }
    Ok(())
}

/// The length of the next piece: sometimes nothing, at most `longest`.
fn cut(numbers: &mut Numbers, left: usize, longest: usize) -> usize {
    if longest == usize::MAX {
        return left;
    }
    numbers.below(longest + 1).min(left)
}
