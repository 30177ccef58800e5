//! Memory that ranks share for as long as they like.

use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::expect::{bytes_between, equal, same};
use crate::comm::Comm;
use crate::doorbell::{sleep_on, wake};
use crate::error::Result;
use crate::shared::Shared;

pub(super) fn check(comm: &Comm) -> Result<()> {
    lengths(comm)?;
    everybody_sees_everybody(comm)?;
    kept_by_who_holds_it(comm)?;
    doorbells(comm)
}

/// Each has its own length, also none at all; reaching is mutual.
fn lengths(comm: &Comm) -> Result<()> {
    let len = |rank: usize, round: usize| [0, 1, 5000 * rank, 100_000][(rank + round) % 4];
    for round in 0..4 {
        let shared = comm.share(len(comm.rank(), round))?;
        let reached: Vec<u8> = (0..comm.size())
            .map(|rank| u8::from(shared.of(rank).is_some()))
            .collect();
        let all = comm.all_gather(&reached)?;
        for rank in 0..comm.size() {
            let back = all[rank * comm.size() + comm.rank()];
            equal(comm, "reaching is mutual", &reached[rank], &back)?;
            let Some((start, found)) = shared.of(rank) else {
                continue;
            };
            equal(comm, "the length", &found, &len(rank, round))?;
            let aligned = (start as usize).is_multiple_of(64);
            equal(comm, "aligned memory", &aligned, &true)?;
        }
        let own = usize::from(reached[comm.rank()]);
        equal(comm, "a rank reaches its own memory", &own, &1)?;
        equal(comm, "its own", &shared.own().1, &len(comm.rank(), round))?;
        equal(comm, "no such rank", &shared.of(comm.size()), &None)?;
        let (start, len) = shared.own();
        // SAFETY: nobody writes to it.
        let clean = unsafe { slice::from_raw_parts(start, len) };
        let clean = clean.iter().all(|&byte| byte == 0);
        equal(comm, "clean memory", &clean, &true)?;
    }
    Ok(())
}

/// Each writes a part of everybody's memory, at its own place.
fn everybody_sees_everybody(comm: &Comm) -> Result<()> {
    const SHARE: usize = 1000;
    let (rank, size) = (comm.rank(), comm.size());
    let shared = comm.share(size * SHARE)?;
    for peer in 0..size {
        if let Some((start, _)) = shared.of(peer) {
            let share = bytes_between(rank, peer, 7, SHARE);
            // SAFETY: this rank's place, which nobody reads before the barrier.
            unsafe {
                let place = start.add(rank * SHARE);
                place.copy_from_nonoverlapping(share.as_ptr(), SHARE);
            }
        }
    }
    comm.barrier()?;
    for peer in (0..size).filter(|&peer| shared.of(peer).is_some()) {
        // SAFETY: all have written, and nobody writes again.
        let found = unsafe { slice::from_raw_parts(shared.own().0.add(peer * SHARE), SHARE) };
        let expected = bytes_between(peer, rank, 7, SHARE);
        same(comm, &format!("what rank {peer} wrote"), found, &expected)?;
    }
    Ok(())
}

/// Memory stays with who holds it, though its maker has dropped his.
fn kept_by_who_holds_it(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let shared = comm.share(size_of::<u64>())?;
    word(&shared, rank).store(rank as u64 + 1, Ordering::Release);
    comm.barrier()?;
    let shared = (rank == size / 2).then_some(shared);
    comm.barrier()?;
    // What is made now does not come where the old memory is still held.
    let fresh = comm.share(1 << 16)?;
    if let Some(shared) = &shared {
        let copy = shared.clone();
        for peer in (0..size).filter(|&peer| copy.of(peer).is_some()) {
            let found = word(&copy, peer).load(Ordering::Acquire);
            equal(comm, "memory that is held", &found, &(peer as u64 + 1))?;
        }
    }
    drop(fresh);
    comm.barrier()
}

fn word(shared: &Shared, rank: usize) -> &AtomicU64 {
    let (start, _) = shared.of(rank).expect("asked for ranks that are reached");
    // SAFETY: the memory holds one aligned word, and all use it as an atomic.
    unsafe { AtomicU64::from_ptr(start.cast()) }
}

/// A round of wakings: each sleeps on its own word until the rank before wakes
/// it.
fn doorbells(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let shared = comm.share(size_of::<u32>())?;
    let everybody = (0..size).all(|rank| shared.of(rank).is_some());
    if !comm
        .all_gather(&[u8::from(everybody)])?
        .iter()
        .all(|&all| all != 0)
    {
        return Ok(());
    }
    let bell = |rank: usize| {
        let (start, _) = shared.of(rank)?;
        // SAFETY: one aligned word, which all use as an atomic.
        Some(unsafe { AtomicU32::from_ptr(start.cast()) })
    };
    for round in 1..=20 {
        let (Some(own), Some(next)) = (bell(rank), bell((rank + 1) % size)) else {
            return Ok(());
        };
        if rank == 0 {
            next.store(round, Ordering::Release);
            wake(next, 1);
        }
        while own.load(Ordering::Acquire) != round {
            sleep_on(own, round - 1, Duration::from_secs(3600));
        }
        if rank != 0 {
            next.store(round, Ordering::Release);
            wake(next, 1);
        }
        comm.barrier()?;
    }
    Ok(())
}
