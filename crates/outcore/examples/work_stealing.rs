//! Tasks of very unequal length, done by whichever rank is free: from a common
//! counter, and by stealing. A task that fails or panics is known to all by its
//! number.
//!
//! `OUTCORE_RANKS=4 cargo run --example work_stealing`, or built with
//! `--features mpi`: `mpirun -n 4 work_stealing`. With the argument `apart`, ranks
//! of MPI share no memory, as if each had a node of its own.

use outcore::{Balance, Error, Op, Procedures, TaskPool};

const TASKS: u64 = 400;

fn main() -> Result<(), Error> {
    #[cfg(feature = "mpi")]
    if std::env::args().any(|argument| argument == "apart") {
        outcore_transport_mpi::set_node_memory(false);
    }
    outcore::run(outcore::default_ranks(), |comm| {
        let procedures = Procedures::start(comm)?;
        for balance in [Balance::Counter, Balance::Stealing] {
            let pool = TaskPool::new(comm, Some(&procedures), balance)?;
            let mut own = 0u64;
            let steps = pool.run(comm, TASKS, |task| {
                own += 1;
                Ok(collatz(task + 1))
            })?;
            // Everybody has all results, in the order of the tasks.
            assert!(steps.iter().copied().eq((1..=TASKS).map(collatz)));
            assert_eq!(comm.all_reduce_one(own, Op::Sum)?, TASKS);

            let failed = pool.each(comm, TASKS, |task| match task {
                123 => Err(Error::Invalid("a task that cannot be done".into())),
                _ => Ok(()),
            });
            match failed {
                Err(Error::Task {
                    index: 123, cause, ..
                }) => {
                    assert_eq!(cause, "a task that cannot be done");
                }
                other => panic!("{other:?}"),
            }
            // So is one that panics: it ends neither its rank nor the job.
            let failed = pool.each(comm, TASKS, |task| match task {
                45 => panic!("a task in the middle of which something breaks"),
                _ => Ok(()),
            });
            match failed {
                Err(Error::Task {
                    index: 45, cause, ..
                }) => {
                    assert!(cause.starts_with("panicked: a task"), "{cause}");
                }
                other => panic!("{other:?}"),
            }
            // The pool goes on.
            let longest = pool.run_for(comm, 0, TASKS, |task| Ok(collatz(task + 1)))?;
            if let Some(longest) = longest.and_then(|steps| steps.into_iter().max()) {
                println!(
                    "{balance:?}: {} ranks, the longest task took {longest}",
                    comm.size()
                );
            }
        }
        procedures.close()?;
        Ok::<(), Error>(())
    })?;
    Ok(())
}

/// How many steps until 1 is reached.
fn collatz(mut number: u64) -> u64 {
    let mut steps = 0;
    while number != 1 {
        number = if number.is_multiple_of(2) {
            number / 2
        } else {
            3 * number + 1
        };
        steps += 1;
    }
    steps
}
