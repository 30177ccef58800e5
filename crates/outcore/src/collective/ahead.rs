//! [`Ahead`]: asks the store for the windows that come next, if they are not in
//! the page cache, so that the device works on many requests at once while
//! others are copied.

use outcore_storage::Store;

use super::aggregate::is_full;
use super::coverage::Cover;
use super::schedule::Schedule;
use super::two_phase::TwoPhase;
use crate::array::Array;
use crate::strategy::Direction;
use crate::strategy::choose::{ALL_CACHED, FEW_EDGES};

/// How far before its use a byte is asked for.
const DISTANCE: u64 = 16 << 20;

/// The longest range that is asked for at once.
const PIECE: u64 = 2 << 20;

/// A window of at least so many bytes that is read as a whole, but for a gap,
/// continues a stream.
const STREAM: u64 = 128 << 10;

/// What an aggregator still has to ask for.
#[derive(Debug)]
pub(super) struct Ahead {
    schedule: Schedule,
    cover: Cover,
    direction: Direction,
    /// Whether the system reads long stretches ahead by itself, which is
    /// cheaper than asking.
    streams: bool,
    /// The first window that was not asked for.
    next: u64,
}

impl Ahead {
    /// Nothing was asked for yet.
    pub(super) fn new(plan: &TwoPhase, array: &Array, direction: Direction) -> Self {
        let ahead = array.profile().read_ahead;
        Self {
            streams: ahead >= STREAM && plan.longest() >= 2 * ahead,
            schedule: Schedule::default(),
            cover: Cover::new(array.layout().element_size()),
            direction,
            next: 0,
        }
    }

    /// Asks for the windows of the own domain up to window `k` and some more.
    pub(super) fn reach(&mut self, plan: &TwoPhase, array: &Array, k: u64) {
        let end = k + 1 + DISTANCE / plan.window();
        while self.next < end.min(plan.rounds()) {
            self.schedule.enter(plan, self.next);
            self.next += 1;
            self.ask(plan, array);
        }
    }

    fn ask(&mut self, plan: &TwoPhase, array: &Array) {
        let (store, schedule) = (&**array.store(), &self.schedule);
        let stretches = |place| schedule.stretches(place).iter();
        let mut all = schedule.places.iter().flat_map(stretches);
        let Some(first) = all.next() else {
            return;
        };
        let end = all.next_back().map_or(first.end, |last| last.end);
        let start = array.data_offset() + first.start;
        let cached = store.cached(start, end - first.start);
        if cached.is_none_or(|cached| cached >= ALL_CACHED) {
            return;
        }
        for place in &schedule.places {
            // What is written as a whole is not read before, but for the pages
            // at its ends, which count if there is little between.
            let reads = match self.direction {
                Direction::Read => true,
                Direction::Write => !is_full(schedule, plan, place, &mut self.cover),
            };
            for stretch in stretches(place) {
                let len = stretch.end - stretch.start;
                let left = place.piece.end - place.piece.start - len;
                let whole = left <= plan.gap() && len >= STREAM;
                if (reads && !(whole && self.streams)) || (!reads && len < FEW_EDGES) {
                    fetch(store, array.data_offset() + stretch.start, len);
                }
            }
        }
    }
}

fn fetch(store: &dyn Store, offset: u64, len: u64) {
    for at in (0..len).step_by(PIECE as usize) {
        store.fetch(offset + at, PIECE.min(len - at));
    }
}
