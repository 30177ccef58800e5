//! Ranks as threads of one process.
//!
//! [`run`] starts the ranks and waits for them. In an exchange each receiver
//! copies straight from the sender's memory, once; a rank that waits gives its
//! core away, so there may be many more ranks than cores.
//!
//! When one rank fails, the world fails: the waiting and the later calls of
//! all ranks, in all groups, return [`Error::PeerFailed`]. A rank fails when
//! its closure returns an error or panics, when it makes a mistake that
//! concerns others ([`Error::LengthMismatch`], [`Error::NoSuchRank`]), or when
//! another rank waits for it though it has finished.
//!
//! The parts, from the bottom: `bell` (waiting), `world` (who has failed, who
//! has finished), `lent` (memory read by another rank), `board` (what a rank
//! sends in an exchange), `inbox` (messages), `group` (the ranks of a group
//! and their meetings), `rank` (the calls), `loans` (memory visited by others),
//! `shares` (memory that all reach for as long as they like).

mod bell;
mod board;
mod by_peer;
mod group;
mod inbox;
mod lent;
mod loans;
mod rank;
mod shares;
mod world;

use std::fmt::Display;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;

use crate::comm::Comm;
use crate::error::Error;
use crate::panics::panic_message;
use group::Group;
use rank::ThreadRank;
use world::World;

/// Runs `f` once for each of `ranks` ranks, each on a thread of its own, and
/// gives the outcomes in the order of the ranks.
///
/// When a rank returns an error or panics, the calls of the other ranks return
/// [`Error::PeerFailed`]; the rank that panicked is reported as
/// [`Error::Panicked`]. Without ranks there is one outcome, [`Error::Invalid`].
///
/// ```
/// use outcore_transport::{Error, threads};
///
/// let outcomes = threads::run(3, |comm| {
///     if comm.rank() == 1 {
///         return Err(Error::Invalid("no luck".into()));
///     }
///     comm.barrier() // would wait for rank 1
/// });
/// assert_eq!(outcomes[2].as_ref().unwrap_err().to_string(), "rank 1 failed: no luck");
/// ```
pub fn run<T, E, F>(ranks: usize, f: F) -> Vec<Result<T, E>>
where
    T: Send,
    E: From<Error> + Display + Send,
    F: Fn(&Comm) -> Result<T, E> + Sync,
{
    if ranks == 0 {
        let error = Error::Invalid("a program needs at least one rank".into());
        return vec![Err(error.into())];
    }
    let world = Arc::new(World::new(ranks));
    let group = Group::new(&world, &(0..ranks).collect::<Vec<_>>());
    let run_rank = |rank: usize| {
        let comm = Comm::new(Arc::new(ThreadRank::new(group.clone(), rank)));
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            let outcome = f(&comm);
            match &outcome {
                Ok(_) => world.finish(rank),
                Err(error) => drop(world.fail(rank, error.to_string())),
            }
            outcome
        }));
        outcome.unwrap_or_else(|payload| {
            let message = panic_message(payload.as_ref());
            world.fail(rank, format!("panicked: {message}"));
            Err(Error::Panicked { rank, message }.into())
        })
    };
    thread::scope(|scope| {
        let run_rank = &run_rank;
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                thread::Builder::new()
                    .name(format!("rank {rank}"))
                    .spawn_scoped(scope, move || run_rank(rank))
                    .inspect_err(|error| drop(world.fail(rank, format!("no thread: {error}"))))
            })
            .collect();
        threads
            .into_iter()
            .enumerate()
            .map(|(rank, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|payload| {
                    // Panics of the closure are caught; this one came later,
                    // for instance from the conversion of its error.
                    let message = panic_message(payload.as_ref());
                    Err(Error::Panicked { rank, message }.into())
                }),
                Err(error) => {
                    Err(Error::Launch(format!("no thread for rank {rank}: {error}")).into())
                }
            })
            .collect()
    })
}

/// A group of one rank, the calling thread: for programs that need a [`Comm`]
/// but no company.
pub fn solo() -> Comm {
    let world = Arc::new(World::new(1));
    Comm::new(Arc::new(ThreadRank::new(Group::new(&world, &[0]), 0)))
}
