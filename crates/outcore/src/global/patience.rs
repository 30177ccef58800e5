//! [`Patience`]: waiting for a word in shared memory to change.
//!
//! First the processor looks again at once, then others have their turn, then
//! the thread sleeps for moments; now and then it asks whether the run has
//! failed, so that nobody waits for a rank that is no more.

use std::time::Duration;

use outcore_transport::Comm;

use crate::error::Result;

/// Looks before the processor is given away.
const LOOKS: u32 = 100;

/// Turns given away before the thread sleeps.
const TURNS: u32 = 400;

/// Between two looks of one who sleeps.
const NAP: Duration = Duration::from_micros(50);

/// Between two questions whether the run has failed.
const QUESTION: u32 = 64;

/// How long somebody has waited.
#[derive(Debug, Default)]
pub(super) struct Patience {
    waited: u32,
}

impl Patience {
    /// Waits a moment; fails if the run has failed.
    #[cold]
    pub(super) fn pause(&mut self, comm: &Comm) -> Result<()> {
        self.waited = self.waited.saturating_add(1);
        if self.waited < LOOKS {
            std::hint::spin_loop();
            return Ok(());
        }
        if self.waited.is_multiple_of(QUESTION) || self.waited > LOOKS + TURNS {
            comm.check()?;
        }
        match self.waited < LOOKS + TURNS {
            true => std::thread::yield_now(),
            false => std::thread::sleep(NAP),
        }
        Ok(())
    }
}
