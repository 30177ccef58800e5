//! Numbers that keep the messages of different groups apart.
//!
//! All groups share the communicators of the world. Each rank gives each of
//! its groups a number that none of its other groups has, and tells the other
//! members when the group is made; a message carries, in its tag, the number
//! that its *receiver* gave to the group. So nothing needs to be agreed on
//! beyond telling one's number, and a dropped group leaves nothing behind.
//! Number 0 is that of the group of all ranks.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The numbers that this rank has given to its groups.
#[derive(Debug)]
pub(crate) struct Contexts {
    used: Mutex<BTreeSet<u32>>,
    largest: u32,
}

impl Contexts {
    /// Numbers from 1 up to `largest`.
    pub(crate) fn new(largest: u32) -> Self {
        Self {
            used: Mutex::new(BTreeSet::new()),
            largest,
        }
    }

    /// The lowest number that is free, or `None` if there are too many groups.
    pub(crate) fn acquire(&self) -> Option<u32> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let free = (1..=self.largest).find(|number| !used.contains(number))?;
        used.insert(free);
        Some(free)
    }

    /// Gives a number back.
    pub(crate) fn release(&self, number: u32) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let contexts = Contexts::new(3);
        assert_eq!(
            [0; 4].map(|_| contexts.acquire()),
            [Some(1), Some(2), Some(3), None]
        );
        contexts.release(2);
        assert_eq!(contexts.acquire(), Some(2));
    }
}
