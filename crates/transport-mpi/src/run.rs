//! [`run()`]: a program on all processes that the MPI launcher has started.

use std::fmt::Display;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use outcore_transport::launch::launcher;
use outcore_transport::{Comm, Error, panics};

use crate::closing;
use crate::library::{launcher_name, library_version};
use crate::transport::MpiTransport;
use crate::world::World;

/// A launcher passes on what was printed, but not always when the job has ended.
const TO_BE_HEARD: Duration = Duration::from_millis(200);

/// The exit code of a program that panicked.
const PANICKED: i32 = 101;

/// Collective: runs `f` on this process, which is one rank of the program,
/// and gives its outcome.
///
/// The first call initialises MPI; it is finalised when the process ends.
/// There may be several runs in one process, one after the other.
///
/// - An error that `f` returns is reported to all ranks, whose calls then
///   return [`Error::PeerFailed`].
/// - A rank that returns while another still waits for it makes that wait
///   end with an error: after two seconds, as what it sent before may still
///   be on its way.
/// - A panic is printed and ends the whole job at once (also a panic that
///   would be caught, as ranks waiting for the one that panicked cannot be
///   told, unless by [`panics::contain`]), and so does the end of the process
///   within `f`.
/// - Threads that `f` starts must have made their last call when it returns.
///
/// `run` returns when all ranks have ended. If the launcher has started
/// several processes that the MPI library does not connect, because the
/// launcher belongs to another library, it returns [`Error::Launch`] without
/// calling `f`.
pub fn run<T, E, F>(f: F) -> Result<T, E>
where
    E: From<Error> + Display,
    F: FnOnce(&Comm) -> Result<T, E>,
{
    // 1. One world, on every process the same.
    let world = World::get()?;
    check_launch(world)?;
    abort_on_panic(world.rank);
    // 2. One run at a time.
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
    let begun = world
        .run
        .compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
    if begun.is_err() {
        return Err(Error::Invalid("a run is already going on in this process".into()).into());
    }
    // 3. This rank's part.
    let guard = AbortOnUnwind;
    let comm = Comm::new(Arc::new(MpiTransport::whole_world(world)));
    let outcome = f(&comm);
    if let Err(error) = &outcome {
        world.fail(world.rank, &error.to_string());
    }
    drop(comm);
    // 4. Everybody ends together.
    let closed = closing::close(world);
    drop(guard);
    let value = outcome?;
    closed?;
    Ok(value)
}

/// Refuses to run as N programs of one process each where one program of N
/// processes was meant.
fn check_launch(world: &World) -> Result<(), Error> {
    let Some(launcher) = launcher() else {
        return Ok(());
    };
    match launcher.size {
        Some(size) if size > 1 && world.size == 1 => Err(Error::Launch(format!(
            "the launcher of {} has started {size} processes, but each is alone: this program is \
             built for {}; start it with the mpirun of that library (often called {})",
            launcher.name,
            library_version(),
            launcher_name()
        ))),
        _ => Ok(()),
    }
}

/// Lets a panic in a run end the job, after it has been printed.
fn abort_on_panic(rank: usize) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let running = World::existing().is_some_and(|w| w.run.load(Ordering::Acquire) != 0);
            let running = running && !panics::are_contained();
            if running {
                eprintln!("rank {rank} panicked:");
            }
            previous(info);
            if running {
                thread::sleep(TO_BE_HEARD);
                closing::abort(PANICKED);
            }
        }));
    });
}

/// Ends the job when a panic leaves the run though the hook was replaced.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        if thread::panicking() {
            closing::abort(PANICKED);
        }
    }
}
