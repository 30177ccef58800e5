//! [`World`]: what all groups of one run share: who has failed and who has
//! finished, and every bell at which a rank may be waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, Weak};

use super::bell::{Bell, Patience};
use super::group::Group;
use crate::error::{Error, Result};

/// The state of a whole run.
pub(crate) struct World {
    /// The first failure; nothing is exchanged after it.
    failure: OnceLock<Error>,
    /// Which ranks have returned.
    finished: Vec<AtomicBool>,
    any_finished: AtomicBool,
    groups: Mutex<Vec<Weak<Group>>>,
    patience: Patience,
}

impl World {
    pub(crate) fn new(ranks: usize) -> Self {
        Self {
            failure: OnceLock::new(),
            finished: (0..ranks).map(|_| AtomicBool::new(false)).collect(),
            any_finished: AtomicBool::new(false),
            groups: Mutex::new(Vec::new()),
            patience: Patience::for_ranks(ranks),
        }
    }

    /// Makes sure that the waiters of `group` hear of failures and ends. Must
    /// happen before any rank can wait in it.
    pub(crate) fn register(&self, group: Weak<Group>) {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|group| group.strong_count() > 0);
        groups.push(group);
    }

    /// The failure of the world, if there was one.
    pub(crate) fn check(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(failure) => Err(failure.clone()),
        }
    }

    /// Fails the world, unless it has failed already, and wakes everybody.
    /// Gives the failure, which is the first one.
    pub(crate) fn fail(&self, rank: usize, cause: String) -> Error {
        let mut first = false;
        let failure = self.failure.get_or_init(|| {
            first = true;
            Error::PeerFailed { rank, cause }
        });
        if first {
            self.ring_all();
        }
        failure.clone()
    }

    /// Fails the world because `waiter` waits for `rank`, which has finished.
    pub(crate) fn fail_by_absence(&self, rank: usize, waiter: usize) -> Error {
        self.fail(
            rank,
            format!("it has already finished, but rank {waiter} is waiting for it"),
        )
    }

    /// Notes that `rank` will do nothing more, and wakes everybody so that
    /// those who wait for it notice.
    pub(crate) fn finish(&self, rank: usize) {
        self.finished[rank].store(true, Ordering::Release);
        self.any_finished.store(true, Ordering::Release);
        self.ring_all();
    }

    /// Whether `rank` has returned; all it did before is then visible.
    pub(crate) fn has_finished(&self, rank: usize) -> bool {
        self.finished[rank].load(Ordering::Acquire)
    }

    /// Whether any rank has returned.
    pub(crate) fn any_finished(&self) -> bool {
        self.any_finished.load(Ordering::Acquire)
    }

    /// Waits at `bell` until `ready` has something, or the world fails. Every
    /// wait of a rank goes through here.
    pub(crate) fn wait_for<T>(
        &self,
        bell: &Bell,
        mut ready: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        loop {
            let seen = bell.rings();
            if let Some(found) = ready()? {
                return Ok(found);
            }
            self.check()?;
            bell.wait(seen, self.patience);
        }
    }

    /// Waits at `bell` for something that comes even in a failed world.
    pub(crate) fn wait_regardless(&self, bell: &Bell, ready: impl Fn() -> bool) {
        loop {
            let seen = bell.rings();
            if ready() {
                return;
            }
            bell.wait(seen, self.patience);
        }
    }

    fn ring_all(&self) {
        // Upgraded under the lock, rung and possibly dropped outside it.
        let groups: Vec<_> = self
            .groups
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for group in groups {
            group.ring_all();
        }
    }
}
