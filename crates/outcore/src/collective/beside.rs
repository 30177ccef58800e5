//! [`Beside`]: input and output of windows, one after the other, on the caller's
//! thread or beside it.
//!
//! Beside the caller it is a thread that takes windows and gives them back in
//! the same order, and never talks to other ranks. In virtual time it is the
//! caller's own thread with a clock of its own: work begins when the window is
//! given, or when the work before it has ended, and the caller's time passes
//! until the work is done when it takes the window back.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::aggregate::Window;
use super::moved::timed;
use crate::array::Array;

/// What is done with a window, and of which round it is.
pub(super) type Job<'a> = dyn FnMut(&Array, &mut Window, u64) + Send + 'a;

/// Where windows are given, and taken when something is done with them.
pub(super) struct Beside<'a> {
    array: &'a Array,
    work: Work<'a>,
    /// How many windows are given and not taken.
    given: usize,
    /// How long the caller has waited for work beside it.
    pub(super) waited: Duration,
}

enum Work<'a> {
    /// On the caller's thread; the windows that are done, since when.
    Here {
        job: &'a mut Job<'a>,
        array: &'a Array,
        done: VecDeque<(Window, Option<Duration>)>,
    },
    Thread {
        given: Sender<(Window, u64)>,
        done: Receiver<Window>,
    },
}

/// Calls `body`, which gives windows to have `job` done with them, beside it if
/// so asked.
pub(super) fn beside<R>(
    is_beside: bool,
    array: &Array,
    job: &mut Job<'_>,
    body: impl FnOnce(&mut Beside<'_>) -> R,
) -> R {
    let background = is_beside && array.store().time().is_some();
    if background || !is_beside {
        let own = background.then(|| array.in_background());
        let work = Work::Here {
            job,
            array: own.as_ref().unwrap_or(array),
            done: VecDeque::new(),
        };
        return body(&mut Beside::new(array, work));
    }
    std::thread::scope(|scope| {
        let (given, windows) = channel::<(Window, u64)>();
        let (finished, done) = channel();
        let worker = scope.spawn(move || {
            for (mut window, round) in windows {
                job(array, &mut window, round);
                if finished.send(window).is_err() {
                    return;
                }
            }
        });
        let outcome = body(&mut Beside::new(array, Work::Thread { given, done }));
        // A panic goes on in the rank, with its own words.
        worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        outcome
    })
}

impl<'a> Beside<'a> {
    fn new(array: &'a Array, work: Work<'a>) -> Self {
        Self {
            array,
            work,
            given: 0,
            waited: Duration::ZERO,
        }
    }

    /// Has the work of `round` done with a window.
    pub(super) fn give(&mut self, mut window: Window, round: u64) {
        self.given += 1;
        match &mut self.work {
            Work::Here { job, array, done } => {
                if let Some(now) = self.array.store().time() {
                    array.store().wait_until(now);
                }
                job(array, &mut window, round);
                done.push_back((window, array.store().time()));
            }
            // A thread that is gone has panicked, which ends the call.
            Work::Thread { given, .. } => drop(given.send((window, round))),
        }
    }

    /// Waits for the window that was given first; `None` if there is none.
    pub(super) fn take(&mut self) -> Option<Window> {
        self.given = self.given.checked_sub(1)?;
        let store = &**self.array.store();
        match &mut self.work {
            Work::Here { done, .. } => {
                let (window, ready) = done.pop_front()?;
                if let Some(ready) = ready {
                    timed(store, &mut self.waited, || store.wait_until(ready));
                }
                Some(window)
            }
            Work::Thread { done, .. } => timed(store, &mut self.waited, || done.recv()).ok(),
        }
    }
}
