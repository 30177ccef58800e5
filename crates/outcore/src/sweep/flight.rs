//! [`Flights`]: tiles that were given to a writer and have not come back.
//!
//! A tile in flight keeps the memory of its sweep, also after the sweep has
//! ended. Sweeps that follow one another within one budget know of each
//! other's flights, and one that finds too little memory waits for a landing;
//! so what it does follows from the budget, not from how fast the writer is.
//! It never waits for tiles that the caller holds, which would be for ever.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The tiles of some sweeps that are in flight; clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flights {
    shared: Arc<(Mutex<Traffic>, Condvar)>,
}

#[derive(Debug, Default)]
struct Traffic {
    flying: usize,
    landed: u64,
}

/// One tile in flight; it lands by being dropped, after the tile's memory.
#[derive(Debug)]
pub(crate) struct Flight(Flights);

impl Flights {
    /// One tile more.
    pub(crate) fn depart(&self) -> Flight {
        self.traffic().flying += 1;
        Flight(self.clone())
    }

    /// How many have landed.
    pub(crate) fn landed(&self) -> u64 {
        self.traffic().landed
    }

    /// Waits until more than `seen` have landed; false if none is left that
    /// could.
    pub(crate) fn wait_for_more(&self, seen: u64) -> bool {
        let mut traffic = self.traffic();
        while traffic.landed == seen && traffic.flying > 0 {
            let waited = self.shared.1.wait(traffic);
            traffic = waited.unwrap_or_else(PoisonError::into_inner);
        }
        traffic.landed != seen
    }

    // No code that can panic runs while it is locked.
    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut traffic = self.0.traffic();
        traffic.flying -= 1;
        traffic.landed += 1;
        drop(traffic);
        self.0.shared.1.notify_all();
    }
}
