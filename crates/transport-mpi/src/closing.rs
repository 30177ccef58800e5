//! The end of a run, and the end of the process.
//!
//! A rank that has ended its part tells everybody, and stays until everybody
//! has ended. If the run has failed, it meanwhile takes and drops what others
//! send to it, because they wait for that ([`crate::operations`]). If another
//! rank waits for a rank that has ended, that other rank fails the run once
//! the message can no longer be on its way. So all ranks get here, whatever
//! happened, and this is the only place where a rank waits without looking
//! for failures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mpi::ffi;
use outcore_transport::Result;

use crate::communicator::is_complete;
use crate::library;
use crate::notice::Notice;
use crate::pause::Pause;
use crate::world::World;

/// How long to wait for messages that should have arrived but do not.
const PATIENCE: Duration = Duration::from_secs(10);

/// Set when the job is being torn down: nothing is to be tidied up.
static ABORTED: AtomicBool = AtomicBool::new(false);

/// Ends all processes of the job at once.
pub(crate) fn abort(code: i32) {
    if !ABORTED.swap(true, Ordering::AcqRel) {
        library::abort(code);
    }
}

/// Collective: ends a run, whether it failed or not.
pub(crate) fn close(world: &World) -> Result<()> {
    world.run.store(0, Ordering::Release);
    // 1. Tell everybody that nothing more is coming from here.
    for to in world.others() {
        let messages = world.messages_to(to);
        world.notify(to, &Notice::Ended { messages });
    }
    // 2. Wait for everybody to say so.
    wait_until(world, || world.board.all_ended(world.rank))?;
    // 3. Take what was sent but never received, so that the next run begins
    //    with nothing.
    take_the_rest(world)?;
    // 4. Forget this run, before anybody can be in the next.
    world.board.clear();
    // 5. Leave together: until the slowest has all its messages, the others
    //    help them along. Who has left the program is not waited for.
    if !world.board.some_left() {
        let mut barrier = world.control.start_barrier()?;
        let mut pause = Pause::new();
        while !is_complete(&mut barrier)? {
            pause.pause();
        }
    }
    Ok(())
}

/// Polls until `done`, receiving in vain what was sent in a failed run.
fn wait_until(world: &World, done: impl Fn() -> bool) -> Result<()> {
    let mut pause = Pause::new();
    loop {
        world.read_notices()?;
        if done() {
            return Ok(());
        }
        if world.board.failure().is_some() {
            world.drain()?;
        }
        pause.pause();
    }
}

/// Takes and drops messages until as many have come from every rank as it has
/// announced, and this rank's own letters are gone.
fn take_the_rest(world: &World) -> Result<()> {
    let mut announced = world.board.announced();
    announced[world.rank] = world.messages_to(world.rank);
    let mut pause = Pause::new();
    loop {
        let all_here = (0..world.size).all(|from| world.messages_from(from) >= announced[from]);
        if (all_here && world.outbox.is_empty()) || pause.elapsed() > PATIENCE {
            return Ok(());
        }
        world.drain()?;
        pause.pause();
    }
}

/// Has MPI finalised when the process ends.
pub(crate) fn finalise_at_exit() {
    extern "C" fn at_exit() {
        leave();
    }
    // SAFETY: the handler is a plain function that does not unwind.
    unsafe {
        libc::atexit(at_exit);
    }
}

/// Finalises MPI once all processes are about to end. A process that ends in
/// the middle of a run ends the job.
fn leave() {
    if ABORTED.load(Ordering::Acquire) {
        return;
    }
    if let Some(world) = World::existing() {
        if world.run.load(Ordering::Acquire) != 0 {
            abort(1);
            return;
        }
        for to in world.others() {
            let messages = world.messages_to(to);
            world.notify(to, &Notice::Left { messages });
        }
        // Errors do not matter any more; MPI_Finalize is all that is left.
        let _ = wait_until(world, || world.board.all_left(world.rank));
        let _ = take_the_rest(world);
        world.outbox.forget();
        let World {
            point,
            internal,
            letters,
            control,
            ..
        } = world;
        for communicator in [point, internal, letters, control] {
            communicator.free();
        }
    }
    // SAFETY: MPI was initialised by this crate, which makes no call after this.
    unsafe {
        ffi::MPI_Finalize();
    }
}
