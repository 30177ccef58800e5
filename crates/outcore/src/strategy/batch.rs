//! [`Batch`]: the accesses of a sieving plan that are moved at a time.
//!
//! Invariants: accesses keep their order; those with gaps fit into the buffer
//! together, unless there is only one.

use outcore_geometry::Pass;

use super::sieving::{Access, Accesses, MOST_COPIES};

/// Accesses handed to the store at a time.
pub(crate) const BATCH: usize = 256;

/// Some accesses of a plan, with the copies they need and where each of them
/// stands in the buffer for accesses.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) accesses: Vec<Access>,
    pub(crate) copies: Vec<Pass>,
    /// The access for which there was no room; its copies come last.
    held: Option<Access>,
}

impl Batch {
    /// Takes the next accesses; false if there are none.
    pub(crate) fn fill(&mut self, from: &mut Accesses, room: u64) -> bool {
        // 1. What was held back comes first, and its copies with it.
        let used = self
            .held
            .as_ref()
            .map_or(self.copies.len(), |access| access.copies.start);
        self.copies.drain(..used);
        self.accesses.clear();
        let mut left = room;
        if let Some(mut access) = self.held.take() {
            access.copies = 0..self.copies.len();
            left = left.saturating_sub(self.staged(&access));
            self.accesses.push(access);
        }
        // 2. Then as many as there is room for.
        while self.accesses.len() < BATCH
            && self.copies.len() < MOST_COPIES
            && let Some(access) = from.next(&mut self.copies)
        {
            let staged = self.staged(&access);
            if staged > left && !self.accesses.is_empty() {
                self.held = Some(access);
                break;
            }
            left = left.saturating_sub(staged);
            self.accesses.push(access);
        }
        !self.accesses.is_empty()
    }

    /// From the first byte to the end of the last access.
    pub(crate) fn extent(&self) -> (u64, u64) {
        match (self.accesses.first(), self.accesses.last()) {
            (Some(first), Some(last)) => (first.offset, last.offset + last.len),
            _ => (0, 0),
        }
    }

    /// The bytes that an access takes of the buffer.
    fn staged(&self, access: &Access) -> u64 {
        if access.single(&self.copies).is_some() {
            0
        } else {
            access.len
        }
    }
}
