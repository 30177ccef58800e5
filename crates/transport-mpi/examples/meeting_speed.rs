//! How long ranks need to come to terms: `mpirun -n 4 meeting_speed [ROUNDS]`.
//!
//! Prints the mean microseconds of a barrier, an agreement and all-gathers of
//! 8 and 336 bytes a rank, all ranks doing nothing else.

use std::time::Instant;

use outcore_transport::{Comm, Error, Result};
use outcore_transport_mpi::{library_version, run};

fn main() -> Result<()> {
    let rounds = match std::env::args().nth(1) {
        Some(text) => text
            .parse()
            .map_err(|error| Error::Invalid(format!("{text}: {error}")))?,
        None => 2000,
    };
    run(|comm| {
        let barrier = mean(comm, rounds, |comm| comm.barrier())?;
        let agree = mean(comm, rounds, |comm| comm.agree(Ok::<_, Error>(())))?;
        let small = mean(comm, rounds, |comm| comm.all_gather(&[0_u64]).map(drop))?;
        let large = mean(comm, rounds, |comm| comm.all_gather(&[0_u64; 42]).map(drop))?;
        if comm.rank() == 0 {
            println!(
                "{}, {} ranks: barrier {barrier:.1} us, agree {agree:.1} us, \
                 all_gather of 8 bytes {small:.1} us, of 336 bytes {large:.1} us",
                library_version(),
                comm.size()
            );
        }
        Ok(())
    })
}

/// The mean microseconds of one call of `f`.
fn mean(comm: &Comm, rounds: u32, f: impl Fn(&Comm) -> Result<()>) -> Result<f64> {
    for _ in 0..rounds / 10 {
        f(comm)?;
    }
    let start = Instant::now();
    for _ in 0..rounds {
        f(comm)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds.max(1)))
}
