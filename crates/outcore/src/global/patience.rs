//! [`Patience`]: waiting for a word in shared memory to change.
//!
//! First the processor looks again at once, then others have their turn, then
//! the thread sleeps for moments; now and then it asks whether the run has
//! failed, so that nobody waits for a rank that is no more, and whether it has
//! waited for longer than it may ([`Limits`]).

use std::time::{Duration, Instant};

use outcore_transport::Comm;

use crate::error::{Error, Result};

/// Looks before the processor is given away.
const LOOKS: u32 = 100;

/// Turns given away before the thread sleeps.
const TURNS: u32 = 400;

/// Between two looks of one who sleeps.
const NAP: Duration = Duration::from_micros(50);

/// Between two questions whether the run has failed.
const QUESTION: u32 = 64;

/// When waiting has an end though nothing has changed.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// The group that is asked whether the run has failed.
    pub(super) comm: Comm,
    /// How long somebody waits; `None` is for ever.
    pub(super) longest: Option<Duration>,
}

/// How long somebody has waited.
#[derive(Debug, Default)]
pub(super) struct Patience {
    waited: u32,
    /// When it first slept.
    since: Option<Instant>,
}

impl Patience {
    /// Waits a moment for `what`; fails if the run has failed, or if that took too long.
    #[cold]
    pub(super) fn pause(&mut self, what: &str, limits: &Limits) -> Result<()> {
        self.waited = self.waited.saturating_add(1);
        if self.waited < LOOKS {
            std::hint::spin_loop();
            return Ok(());
        }
        if self.waited.is_multiple_of(QUESTION) || self.waited > LOOKS + TURNS {
            limits.comm.check()?;
        }
        if self.waited < LOOKS + TURNS {
            std::thread::yield_now();
            return Ok(());
        }
        std::thread::sleep(NAP);
        if let Some(longest) = limits.longest {
            let since = self.since.get_or_insert_with(Instant::now);
            if since.elapsed() >= longest {
                return Err(Error::Invalid(format!(
                    "{what} did not come for {longest:?}: the rank that has it does not go on"
                )));
            }
        }
        Ok(())
    }
}
