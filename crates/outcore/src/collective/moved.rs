//! [`Moved`]: what one rank did in a collective call.

use std::time::{Duration, Instant};

use outcore_storage::Store;
use outcore_transport::Comm;

use crate::execute::image::Stretch;

/// What one rank did in a collective call: for itself and, as the one who reads
/// and writes a domain, for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Rounds of input or output and exchange.
    pub rounds: u64,
    /// Accesses to the store.
    pub requests: u64,
    /// Bytes moved between the store and this rank, gaps included.
    pub moved: u64,
    /// Bytes of this rank's section.
    pub useful: u64,
    /// Bytes sent to other ranks.
    pub exchanged: u64,
    /// Time spent in input and output; if it ran beside the exchange, the time
    /// that the exchange waited for it.
    pub io: Duration,
    /// Time spent in exchange, waiting for other ranks included.
    pub exchange: Duration,
    /// Time spent in copies between windows and messages.
    pub copy: Duration,
}

impl Moved {
    /// The share of the time that was spent in exchange: 0.0 to 1.0.
    pub fn exchange_share(&self) -> f64 {
        let all = self.io + self.exchange + self.copy;
        match all.is_zero() {
            true => 0.0,
            false => self.exchange.as_secs_f64() / all.as_secs_f64(),
        }
    }
}

impl Moved {
    /// With what was done to windows; the time of work beside the caller's does
    /// not count, but what the caller has waited for it.
    pub(crate) fn with_work(mut self, work: &Self, is_beside: bool) -> Self {
        self.requests += work.requests;
        self.moved += work.moved;
        if !is_beside {
            self.io += work.io;
            self.copy += work.copy;
        }
        self
    }

    /// Counts a message to a rank.
    pub(crate) fn send(&mut self, comm: &Comm, to: usize, message: &[u8]) {
        if to != comm.rank() {
            self.exchanged += message.len() as u64;
        }
    }

    /// Counts accesses to the store.
    pub(crate) fn count(&mut self, stretches: impl Iterator<Item = Stretch>) {
        for stretch in stretches {
            self.requests += 1;
            self.moved += stretch.len as u64;
        }
    }
}

/// Does `work` and adds its time to `total`: that of the clock on the wall, or
/// of the store if it lives in virtual time.
pub(crate) fn timed<R>(store: &dyn Store, total: &mut Duration, work: impl FnOnce() -> R) -> R {
    let (started, began) = (store.time(), Instant::now());
    let result = work();
    *total += match (started, store.time()) {
        (Some(started), Some(ended)) => ended.saturating_sub(started),
        _ => began.elapsed(),
    };
    result
}
