//! [`run`]: one program text, run by every rank.
//!
//! Ranks are threads of this process, unless the program was built with the
//! feature `mpi` and started by an MPI launcher; then this process is one rank.

use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};

use outcore_storage::cores;
use outcore_transport::{Comm, Error, launch};

use crate::collective::ExchangeCost;

/// Runs `program` once on each rank and returns the results of the ranks that
/// live in this process, in rank order: all `ranks` of them on threads; under
/// an MPI launcher this process' own, and the launcher says how many ranks
/// there are.
///
/// If a rank returns an error or panics, every rank that waits for others is
/// released with an error, and the error of the rank that failed first is
/// returned.
///
/// ```
/// let sums = outcore::run(4, |comm| {
///     let sum = comm.all_reduce(&[comm.rank() as u64], outcore::Op::Sum)?;
///     Ok::<u64, outcore::Error>(sum[0])
/// })?;
/// assert!(sums.iter().all(|sum| *sum == 6));
/// # Ok::<(), outcore::Error>(())
/// ```
pub fn run<T, E, F>(ranks: usize, program: F) -> Result<Vec<T>, E>
where
    F: Fn(&Comm) -> Result<T, E> + Sync,
    T: Send,
    E: From<Error> + Display + Send,
{
    if let Some(launcher) = launch::launcher() {
        return as_one_rank(&launcher, program);
    }
    let first_failure = AtomicUsize::new(usize::MAX);
    let outcomes = outcore_transport::threads::run(ranks, |comm| {
        let outcome = with_kept_costs(comm, &program);
        if outcome.is_err() {
            // Later failures are mostly consequences of the first.
            let (free, mine) = (usize::MAX, comm.rank());
            let _ =
                first_failure.compare_exchange(free, mine, Ordering::Relaxed, Ordering::Relaxed);
        }
        outcome
    });
    let first = first_failure.into_inner();
    let mut results = Vec::with_capacity(outcomes.len());
    let mut failure = None;
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(result) => results.push(result),
            Err(error) if failure.is_none() || rank == first => failure = Some(error),
            Err(_) => {}
        }
    }
    failure.map_or(Ok(results), Err)
}

/// Runs `program` on a handle that knows what was measured for such ranks.
fn with_kept_costs<T, E, F>(comm: &Comm, program: &F) -> Result<T, E>
where
    F: Fn(&Comm) -> Result<T, E>,
    E: From<Error>,
{
    program(&ExchangeCost::adopted(comm)?)
}

#[cfg(feature = "mpi")]
fn as_one_rank<T, E, F>(_: &launch::Launcher, program: F) -> Result<Vec<T>, E>
where
    F: Fn(&Comm) -> Result<T, E> + Sync,
    E: From<Error> + Display,
{
    outcore_transport_mpi::run(|comm| with_kept_costs(comm, &program)).map(|result| vec![result])
}

#[cfg(not(feature = "mpi"))]
fn as_one_rank<T, E: From<Error>, F>(launcher: &launch::Launcher, _: F) -> Result<Vec<T>, E> {
    Err(without_mpi(launcher).into())
}

/// Whether an MPI launcher started this program.
pub fn under_launcher() -> bool {
    launch::launcher().is_some()
}

/// Fails if this program was started by an MPI launcher but cannot be a rank
/// of an MPI job: it would run as so many separate copies.
pub fn check_launch() -> Result<(), Error> {
    match launch::launcher() {
        Some(launcher) if !cfg!(feature = "mpi") => Err(without_mpi(&launcher)),
        _ => Ok(()),
    }
}

fn without_mpi(launcher: &launch::Launcher) -> Error {
    Error::Launch(format!(
        "this program was started by {}, but it was built without MPI and would run as separate \
         copies; build it with --features mpi, or start it without the launcher and choose the \
         number of ranks with --ranks",
        launcher.name
    ))
}

/// How many ranks to use when nobody says: the environment variable
/// `OUTCORE_RANKS`, or one for each core.
pub fn default_ranks() -> usize {
    let asked = std::env::var("OUTCORE_RANKS")
        .ok()
        .and_then(|text| text.parse().ok());
    asked.filter(|ranks| *ranks > 0).unwrap_or_else(cores)
}
