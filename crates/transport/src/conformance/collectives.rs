//! Broadcast, gather, scatter and all-to-all, for several types and lengths.

use std::fmt::Debug;

use bytemuck::Pod;

use super::expect::{equal, same, some_ranks};
use crate::comm::Comm;
use crate::error::Result;

pub(super) fn check(comm: &Comm) -> Result<()> {
    for length in [0, 1, 3, 500] {
        equal_lengths(comm, length, |rank, i| (rank * 7 + i) as u8)?;
        equal_lengths(comm, length, |rank, i| ((rank << 32) + i) as i64)?;
        equal_lengths(comm, length, |rank, i| [rank as f32, i as f32 / 7.0])?;
    }
    for scale in [0, 1, 40] {
        own_lengths(comm, scale, |rank, i| (rank * 5 + i) as u16)?;
        own_lengths(comm, scale, |rank, i| rank as f64 + i as f64 / 3.0)?;
    }
    strings(comm)
}

/// What has the same length on every rank.
fn equal_lengths<T: Pod + PartialEq + Debug>(
    comm: &Comm,
    length: usize,
    value: impl Fn(usize, usize) -> T,
) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let of = |rank: usize| -> Vec<T> { (0..length).map(|i| value(rank, i)).collect() };
    let all: Vec<T> = (0..size).flat_map(of).collect();
    for root in some_ranks(comm) {
        let mut values = of(rank);
        comm.broadcast(root, &mut values)?;
        same(comm, "broadcast", &values, &of(root))?;
        let gathered = comm.gather(root, &of(rank))?;
        equal(comm, "who gathers", &gathered.is_some(), &(rank == root))?;
        if let Some(gathered) = gathered {
            same(comm, "gather", &gathered, &all)?;
        }
        let mut part = vec![T::zeroed(); length];
        let source = if rank == root { all.as_slice() } else { &[] };
        comm.scatter(root, source, &mut part)?;
        same(comm, "scatter", &part, &of(rank))?;
    }
    same(comm, "all_gather", &comm.all_gather(&of(rank))?, &all)?;
    // Rank r sends to rank p what the rank r * size + p would have.
    let between = |from: usize, to: usize| of(from * size + to);
    let sent: Vec<T> = (0..size).flat_map(|to| between(rank, to)).collect();
    let expected: Vec<T> = (0..size).flat_map(|from| between(from, rank)).collect();
    same(comm, "all_to_all", &comm.all_to_all(&sent)?, &expected)
}

/// What has a length of its own on every rank, some of them none.
fn own_lengths<T: Pod + PartialEq + Debug>(
    comm: &Comm,
    scale: usize,
    value: impl Fn(usize, usize) -> T,
) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let length = |rank: usize| rank * 3 % 4 * scale;
    let of = |rank: usize| -> Vec<T> { (0..length(rank)).map(|i| value(rank, i)).collect() };
    let all: Vec<Vec<T>> = (0..size).map(of).collect();
    for root in some_ranks(comm) {
        let mut values = of(rank);
        comm.broadcast_vec(root, &mut values)?;
        same(comm, "broadcast_vec", &values, &of(root))?;
        let gathered = comm.gatherv(root, &of(rank))?;
        equal(comm, "who gathers", &gathered.is_some(), &(rank == root))?;
        if let Some(gathered) = gathered {
            same(comm, "gatherv", &gathered, &all)?;
        }
        let source = if rank == root { all.as_slice() } else { &[] };
        let part = comm.scatterv(root, source)?;
        same(comm, "scatterv", &part, &of(rank))?;
    }
    same(comm, "all_gatherv", &comm.all_gatherv(&of(rank))?, &all)?;
    let sent: Vec<Vec<T>> = (0..size).map(|to| of(rank * size + to)).collect();
    let expected: Vec<Vec<T>> = (0..size).map(|from| of(from * size + rank)).collect();
    same(comm, "all_to_allv", &comm.all_to_allv(&sent)?, &expected)
}

fn strings(comm: &Comm) -> Result<()> {
    for root in some_ranks(comm) {
        for text in ["", "Grüße"] {
            let mut heard = match comm.rank() == root {
                true => text.to_owned(),
                false => "whatever was here before".to_owned(),
            };
            comm.broadcast_string(root, &mut heard)?;
            equal(comm, "broadcast_string", &heard.as_str(), &text)?;
        }
    }
    Ok(())
}
