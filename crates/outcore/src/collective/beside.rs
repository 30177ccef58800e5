//! [`Beside`]: input and output of windows of one or several arrays, one after the
//! other, on the caller's thread or beside it.
//!
//! Beside the caller it is a thread that takes windows and gives them back in
//! the same order, and never talks to other ranks. In virtual time it is the
//! caller's own thread with a clock of its own: work begins when the window is
//! given, or when the work before it has ended, and the caller's time passes
//! until the work is done when it takes the window back.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::array::Array;

/// What is done with a window, and of which round it is; with the arrays as they
/// are for that work.
pub(crate) type Job<'a, W> = dyn FnMut(&[Array], &mut W, u64) + Send + 'a;

/// Where windows are given, and taken when something is done with them.
pub(crate) struct Beside<'a, W> {
    arrays: &'a [Array],
    work: Work<'a, W>,
    /// How many windows are given and not taken.
    given: usize,
    /// How long the caller has waited for work beside it.
    pub(crate) waited: Duration,
}

enum Work<'a, W> {
    /// On the caller's thread; the windows that are done, since when.
    Here {
        job: &'a mut Job<'a, W>,
        arrays: &'a [Array],
        done: VecDeque<(W, Option<Duration>)>,
    },
    Thread {
        given: Sender<(W, u64)>,
        done: Receiver<W>,
    },
}

/// The latest time of arrays that live in virtual time.
fn time(arrays: &[Array]) -> Option<Duration> {
    arrays.iter().filter_map(|array| array.store().time()).max()
}

fn wait_until(arrays: &[Array], time: Duration) {
    arrays
        .iter()
        .for_each(|array| array.store().wait_until(time));
}

/// Calls `body`, which gives windows to have `job` done with them, beside it if
/// so asked.
pub(crate) fn beside<W: Send, R>(
    is_beside: bool,
    arrays: &[Array],
    job: &mut Job<'_, W>,
    body: impl FnOnce(&mut Beside<'_, W>) -> R,
) -> R {
    let background = is_beside && time(arrays).is_some();
    if background || !is_beside {
        let own = background.then(|| arrays.iter().map(Array::in_background).collect());
        let own: Option<Vec<Array>> = own;
        let work = Work::Here {
            job,
            arrays: own.as_deref().unwrap_or(arrays),
            done: VecDeque::new(),
        };
        return body(&mut Beside::new(arrays, work));
    }
    std::thread::scope(|scope| {
        let (given, windows) = channel::<(W, u64)>();
        let (finished, done) = channel();
        let worker = scope.spawn(move || {
            for (mut window, round) in windows {
                job(arrays, &mut window, round);
                if finished.send(window).is_err() {
                    return;
                }
            }
        });
        let outcome = body(&mut Beside::new(arrays, Work::Thread { given, done }));
        // A panic goes on in the rank, with its own words.
        worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        outcome
    })
}

impl<'a, W> Beside<'a, W> {
    fn new(arrays: &'a [Array], work: Work<'a, W>) -> Self {
        Self {
            arrays,
            work,
            given: 0,
            waited: Duration::ZERO,
        }
    }

    /// Has the work of `round` done with a window.
    pub(crate) fn give(&mut self, mut window: W, round: u64) {
        self.given += 1;
        match &mut self.work {
            Work::Here { job, arrays, done } => {
                if let Some(now) = time(self.arrays) {
                    wait_until(arrays, now);
                }
                job(arrays, &mut window, round);
                done.push_back((window, time(arrays)));
            }
            // A thread that is gone has panicked, which ends the call.
            Work::Thread { given, .. } => drop(given.send((window, round))),
        }
    }

    /// Waits for the window that was given first; `None` if there is none.
    pub(crate) fn take(&mut self) -> Option<W> {
        self.given = self.given.checked_sub(1)?;
        match &mut self.work {
            Work::Here { done, .. } => {
                let (window, ready) = done.pop_front()?;
                if let (Some(ready), Some(now)) = (ready, time(self.arrays)) {
                    self.waited += ready.saturating_sub(now);
                    wait_until(self.arrays, ready);
                }
                Some(window)
            }
            Work::Thread { done, .. } => {
                let started = Instant::now();
                let window = done.recv();
                self.waited += started.elapsed();
                window.ok()
            }
        }
    }
}
