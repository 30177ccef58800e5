//! Messages that nobody expects.

use super::expect::{Numbers, bytes_between, same, wrong};
use crate::comm::Comm;
use crate::error::{Error, Result};

pub(super) fn check(comm: &Comm) -> Result<()> {
    let size = comm.size();
    // 1. Nothing at all; to oneself; everybody to everybody; all to one.
    deliver(comm, 0, |_, _| Vec::new())?;
    deliver(comm, 1, |from, to| vec![5; usize::from(from == to)])?;
    deliver(comm, 2, |from, to| vec![(from + to) % 7])?;
    deliver(comm, 3, |_, to| vec![9; usize::from(to == size - 1)])?;
    // 2. Few to few, several of them, empty ones and long ones among them.
    for round in 4..12 {
        deliver(comm, round, |from, to| {
            let mut numbers = Numbers(((round * size + from) * size + to) as u64);
            let count = [0, 0, 0, 1, 3][numbers.below(5)];
            (0..count)
                .map(|_| [0, 1, 40, 3000][numbers.below(4)])
                .collect()
        })?;
    }
    // 3. To a rank that is not there.
    let outcome = comm.deliver(vec![(size, vec![0u8])]);
    if outcome != Err(Error::NoSuchRank { rank: size, size }) {
        return Err(wrong(comm, &format!("rank {size} got {outcome:?}")));
    }
    Ok(())
}

/// Delivers messages of `lengths(from, to)` bytes.
fn deliver(comm: &Comm, round: usize, lengths: impl Fn(usize, usize) -> Vec<usize>) -> Result<()> {
    let messages = |from: usize, to: usize| {
        let lengths = lengths(from, to).into_iter();
        let message = move |length| bytes_between(from, to, round, length);
        lengths.map(message).collect::<Vec<_>>()
    };
    let rank = comm.rank();
    // The last rank comes first: the order of the targets does not matter.
    let sent = (0..comm.size())
        .rev()
        .flat_map(|to| messages(rank, to).into_iter().map(move |bytes| (to, bytes)));
    let found = comm.deliver(sent.collect())?;
    let expected: Vec<(usize, Vec<u8>)> = (0..comm.size())
        .flat_map(|from| {
            let messages = messages(from, rank).into_iter();
            messages.map(move |bytes| (from, bytes))
        })
        .collect();
    same(comm, &format!("delivery {round}"), &found, &expected)
}
