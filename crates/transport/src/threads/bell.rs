//! [`Bell`]: how a rank waits for something that other ranks do.
//!
//! A bell counts its rings. A waiter notes the count, looks whether what it
//! waits for has happened, and if not sleeps until the count has moved on.
//! Whoever makes something happen rings afterwards. A ring between the look
//! and the sleep changes the count, so it is never missed.

use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// How long a waiter stays on the processor before it sleeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Looks without giving the processor away.
    spins: u32,
    /// Looks that give the processor to another thread in between.
    yields: u32,
}

impl Patience {
    /// For `ranks` threads on this machine: spinning pays only while each
    /// rank has a core of its own.
    pub(crate) fn for_ranks(ranks: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self {
            spins: if ranks <= cores { 200 } else { 0 },
            yields: 2,
        }
    }
}

/// A counter of rings on which threads can sleep.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rings: AtomicU32,
    sleepers: AtomicU32,
}

impl Bell {
    /// How often it has rung so far. What was done before those rings is
    /// visible afterwards.
    pub(crate) fn rings(&self) -> u32 {
        self.rings.load(Ordering::Acquire)
    }

    /// Wakes everybody who waits.
    pub(crate) fn ring(&self) {
        // Sequentially consistent on both sides: either this sees the sleeper
        // that `wait` announces, or that sleeper sees the new count.
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            atomic_wait::wake_all(&self.rings);
        }
    }

    /// Returns when the bell has rung since [`Bell::rings`] gave `seen`;
    /// may return earlier.
    pub(crate) fn wait(&self, seen: u32, patience: Patience) {
        for _ in 0..patience.spins {
            if self.rings() != seen {
                return;
            }
            hint::spin_loop();
        }
        for _ in 0..patience.yields {
            if self.rings() != seen {
                return;
            }
            thread::yield_now();
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        if self.rings.load(Ordering::SeqCst) == seen {
            atomic_wait::wait(&self.rings, seen);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
