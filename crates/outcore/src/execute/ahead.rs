//! [`Ahead`]: asks a store for what a plan will need next.

use outcore_storage::Store;

use crate::plan::Plan;
use crate::strategy::fetch::Pieces;

/// How far before its use a byte is asked for.
pub(super) const WINDOW: u64 = 16 << 20;

/// What a plan still has to ask for.
pub(super) struct Ahead<'a> {
    store: &'a dyn Store,
    start: u64,
    pieces: Option<Pieces>,
    next: Option<(u64, u64)>,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(plan: &Plan, store: &'a dyn Store) -> Self {
        let mut pieces = plan.fetch.map(|fetch| Pieces::new(&plan.runs, fetch));
        let next = pieces.as_mut().and_then(Iterator::next);
        Self {
            store,
            start: plan.start,
            pieces,
            next,
        }
    }

    /// Asks for everything before `offset`, and for a window behind it.
    pub(super) fn reach(&mut self, offset: u64) {
        while let Some((start, len)) = self.next
            && start < offset.saturating_add(WINDOW)
        {
            self.store.fetch(self.start + start, len);
            self.next = self.pieces.as_mut().and_then(Iterator::next);
        }
    }
}
