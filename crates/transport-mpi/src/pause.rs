//! What a rank does between two polls that found nothing.

use std::thread;
use std::time::{Duration, Instant};

/// For so long a waiting rank only yields its core: transfers that move with
/// each poll, and answers from ranks that share the core, lose nothing.
const EAGER: Duration = Duration::from_millis(200);

/// The nap of a rank that has waited for longer. The kernel's timers add
/// about 50 microseconds.
const NAP: Duration = Duration::from_micros(20);

/// A rank polls so often before it yields: some MPI libraries yield in each
/// poll themselves, and twice is too often for short messages.
const POLLS: u32 = 4;

/// The waiting of one call.
#[derive(Debug)]
pub(crate) struct Pause {
    began: Instant,
    last_progress: Instant,
    polls: u32,
}

impl Pause {
    /// Waiting begins now.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            last_progress: now,
            polls: 0,
        }
    }

    /// How long the call has been waiting in all.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Something was completed: be eager again.
    pub(crate) fn progress(&mut self) {
        self.last_progress = Instant::now();
    }

    /// Gives the processor away, if it was not just given away.
    pub(crate) fn pause(&mut self) {
        self.polls = self.polls.wrapping_add(1);
        if !self.polls.is_multiple_of(POLLS) {
            return;
        }
        if self.last_progress.elapsed() < EAGER {
            thread::yield_now();
        } else {
            thread::sleep(NAP);
        }
    }
}
