//! Groups made by splitting, and agreement.

use super::expect::{equal, same, some_ranks, wrong};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::op::Op;

pub(super) fn check(comm: &Comm) -> Result<()> {
    by_colour(comm)?;
    reversed(comm)?;
    nested(comm)?;
    interleaved(comm)?;
    agreement(comm)
}

/// Several colours; some ranks, and then all, join no group.
fn by_colour(comm: &Comm) -> Result<()> {
    let colour = |rank: usize| (rank % 4 != 3).then_some(u64::MAX - (rank % 3) as u64);
    let part = comm.split(colour(comm.rank()), 0)?;
    let members: Vec<usize> = (0..comm.size())
        .filter(|&rank| colour(rank) == colour(comm.rank()))
        .collect();
    let joined = colour(comm.rank()).is_some();
    equal(comm, "who joins a group", &part.is_some(), &joined)?;
    if let Some(part) = part {
        let found = part.all_gather(&[comm.rank()])?;
        same(comm, "the members of a part", &found, &members)?;
        equal(comm, "the size of a part", &part.size(), &members.len())?;
        equal(
            comm,
            "the rank in a part",
            &members[part.rank()],
            &comm.rank(),
        )?;
    }
    let none = comm.split(None, 0)?.is_none();
    equal(comm, "no group", &none, &true)
}

/// Keys order the ranks of a part, and ranks those with equal keys.
fn reversed(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let part = member(comm.split(Some(1), -(rank as i64))?)?;
    let found = part.all_gather(&[rank])?;
    let expected: Vec<usize> = (0..size).rev().collect();
    same(comm, "the reversed ranks", &found, &expected)?;
    let key = |rank: usize| {
        if rank.is_multiple_of(2) {
            i64::MAX
        } else {
            i64::MIN
        }
    };
    let part = member(comm.split(Some(0), key(rank))?)?;
    let odd = (0..size).filter(|rank| rank % 2 == 1);
    let even = (0..size).filter(|rank| rank % 2 == 0);
    let expected: Vec<usize> = odd.chain(even).collect();
    same(
        comm,
        "odd ranks first",
        &part.all_gather(&[rank])?,
        &expected,
    )
}

/// Parts of parts, down to single ranks, each with its own messages.
fn nested(comm: &Comm) -> Result<()> {
    let mut part = comm.clone();
    while part.size() > 1 {
        let half = part.rank() * 2 / part.size();
        let smaller = member(part.split(Some(half as u64), 0)?)?;
        let sum = smaller.all_reduce_one(1, Op::Sum)?;
        equal(comm, "ranks in half a group", &sum, &smaller.size())?;
        part = smaller;
    }
    part.barrier()?;
    comm.barrier()
}

/// Messages and collectives of a group and of its parts do not mix.
fn interleaved(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let part = member(comm.split(Some((rank % 2) as u64), 0)?)?;
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let part_next = (part.rank() + 1) % part.size();
    let part_previous = (part.rank() + part.size() - 1) % part.size();
    for round in 0..10 {
        part.send(part_next, 5, &[rank, round])?;
        comm.send(next, 5, &[rank, round, 1])?;
        let sum = part.all_reduce_one(round, Op::Sum)?;
        equal(comm, "a sum in a part", &sum, &(round * part.size()))?;
        let sum = comm.all_reduce_one(round, Op::Sum)?;
        equal(comm, "a sum in the whole", &sum, &(round * size))?;
        let mut of_whole = [0; 3];
        comm.receive(previous, 5, &mut of_whole)?;
        equal(comm, "a message", &of_whole, &[previous, round, 1])?;
        let mut of_part = [0; 2];
        part.receive(part_previous, 5, &mut of_part)?;
        let sender = part_previous * 2 + rank % 2;
        equal(comm, "a message in a part", &of_part, &[sender, round])?;
    }
    Ok(())
}

/// All succeed or all fail with the lowest rank's cause, and go on.
fn agreement(comm: &Comm) -> Result<()> {
    let rank = comm.rank();
    let own = comm.agree(Ok::<_, String>(rank * 10))?;
    equal(comm, "the own value", &own, &(rank * 10))?;
    for first in some_ranks(comm) {
        for several in [false, true] {
            let fails = rank == first || several && rank > first;
            let outcome = match fails {
                true => Err(format!("rank {rank} says no")),
                false => Ok(()),
            };
            let expected = Error::Agreed {
                rank: first,
                cause: format!("rank {first} says no"),
            };
            equal(comm, "agreement", &comm.agree(outcome), &Err(expected))?;
            let sum = comm.all_reduce_one(rank + 1, Op::Sum)?;
            let size = comm.size();
            equal(comm, "a sum after failure", &sum, &(size * (size + 1) / 2))?;
        }
    }
    comm.agree(Ok::<_, String>(()))
        .map_err(|error| wrong(comm, &format!("agreement after failures: {error}")))
}

/// The group of a rank that has joined one.
fn member(part: Option<Comm>) -> Result<Comm> {
    part.ok_or_else(|| Error::Invalid("a rank with a colour got no group".into()))
}
