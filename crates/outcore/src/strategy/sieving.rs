//! Data sieving: reading a little more than was asked for, in fewer requests
//! (Thakur 1995, section 5.5.1).
//!
//! The mathematics. The passes of a section come in ascending file order. An
//! *access* begins with the first byte that is not yet covered and is extended
//! run by run while the gap to the next run is at most `gap` bytes and the
//! access stays within `largest` bytes; how many runs of a pass fit follows by
//! one division. With a gap without limit and the whole buffer for one access
//! this is the memory-limited sieving of the thesis, apart from what lies before
//! the first and behind the last run (see [`slices`](super::slices)); with a gap
//! of 0 it is the direct method.
//!
//! Invariants: accesses are disjoint and ascending; each run lies in exactly
//! one of them; an access longer than `largest` is a single run, which needs
//! no buffer.

use std::ops::Range;

use outcore_geometry::{Pass, Passes, Runs};

use super::slices::Slices;

/// The longest list of copies of one access, and about that of a batch.
pub(crate) const MOST_COPIES: usize = 1 << 16;

/// What sieving may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sieve {
    /// Gaps of up to so many bytes are moved along.
    pub(crate) gap: u64,
    /// The longest access that has gaps.
    pub(crate) largest: u64,
    /// The bytes of the buffer for all accesses in flight; at least `largest`.
    pub(crate) buffer: u64,
    /// Whole slices instead, whatever the gaps.
    pub(crate) slices: Option<Slices>,
}

impl Sieve {
    /// The bytes of the buffer that accesses between `start` and `end` need.
    pub(crate) fn staging(&self, start: u64, end: u64) -> usize {
        match self.slices {
            Some(slices) => slices.window.min(slices.end - slices.start) as usize,
            None => self.buffer.min(end - start) as usize,
        }
    }
}

/// One stretch of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    /// Where it begins, from the start of the array's data.
    pub(crate) offset: u64,
    /// Its length.
    pub(crate) len: u64,
    /// The bytes of it that belong to the section.
    pub(crate) useful: u64,
    /// The passes in it, as positions of the list that they were put into.
    pub(crate) copies: Range<usize>,
}

impl Access {
    /// The one run that it is, if it is one.
    pub(crate) fn single<'a>(&self, copies: &'a [Pass]) -> Option<&'a Pass> {
        match &copies[self.copies.clone()] {
            [pass] if pass.count == 1 && pass.first.len == self.len => Some(pass),
            _ => None,
        }
    }
}

/// The accesses of a section, in ascending order.
pub(crate) struct Accesses {
    passes: Passes,
    /// What is left of the pass that the last access ended in.
    rest: [Option<Pass>; 2],
    sieve: Sieve,
    /// Where the next window of whole slices begins.
    at: u64,
}

impl Accesses {
    pub(crate) fn new(runs: &Runs, sieve: Sieve) -> Self {
        Self {
            passes: runs.passes(),
            rest: [None, None],
            sieve,
            at: sieve.slices.map_or(0, |slices| slices.start),
        }
    }

    fn next_pass(&mut self) -> Option<Pass> {
        let [first, second] = &mut self.rest;
        first
            .take()
            .or_else(|| second.take())
            .or_else(|| self.passes.next())
    }

    /// The next access; its passes are added to `copies`.
    pub(crate) fn next(&mut self, copies: &mut Vec<Pass>) -> Option<Access> {
        if let Some(slices) = self.sieve.slices {
            return self.next_window(slices, copies);
        }
        let mut pass = self.next_pass()?;
        let start = pass.first.file_offset;
        let from = copies.len();
        let mut end = start;
        let mut useful = 0;
        loop {
            // How many runs of this pass belong to the access: the first one
            // does, by what was looked at before.
            let between = pass.file_step.saturating_sub(pass.first.len);
            let count = if pass.count == 1 || between > self.sieve.gap {
                1
            } else {
                let room = (start + self.sieve.largest)
                    .saturating_sub(pass.first.file_offset + pass.first.len);
                pass.count.min(1 + room / pass.file_step)
            };
            let (taken, left) = pass.split(count);
            end = end.max(taken.first.file_offset + taken.file_extent());
            useful += taken.count * taken.first.len;
            copies.push(taken);
            let following = left.or_else(|| self.passes.next());
            match following {
                Some(next) if self.joins(start, end, &next, copies.len() - from) => pass = next,
                other => {
                    self.rest = [other, None];
                    let copies = from..copies.len();
                    return Some(Access {
                        offset: start,
                        len: end - start,
                        useful,
                        copies,
                    });
                }
            }
        }
    }

    /// The next whole slices; fewer than a window has if they need too many
    /// copies.
    fn next_window(&mut self, slices: Slices, copies: &mut Vec<Pass>) -> Option<Access> {
        let start = self.at;
        let mut end = slices.end.min(start.saturating_add(slices.window));
        let from = copies.len();
        let mut useful = 0;
        while start < end
            && let Some(pass) = self.next_pass()
        {
            if copies.len() - from >= MOST_COPIES {
                end = end.min(pass.first.file_offset);
            }
            if pass.first.file_offset >= end {
                self.rest = [Some(pass), self.rest[1].take()];
                break;
            }
            let (before, rest) = pass.cut(end);
            for pass in before.into_iter().flatten() {
                useful += pass.count * pass.first.len;
                copies.push(pass);
            }
            if let [Some(left), others] = rest {
                let others = others.or(self.rest[1].take());
                self.rest = [Some(left), others];
                break;
            }
        }
        self.at = end;
        (start < end).then(|| Access {
            offset: start,
            len: end - start,
            useful,
            copies: from..copies.len(),
        })
    }

    /// Whether the first run of `next` goes into the access from `start` to
    /// `end`, which has so many copies.
    fn joins(&self, start: u64, end: u64, next: &Pass, copies: usize) -> bool {
        let first = &next.first;
        first.file_offset - end <= self.sieve.gap
            && first.file_offset + first.len - start <= self.sieve.largest
            && copies < MOST_COPIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcore_geometry::{AxisSection, Layout, Order, Section};
    use proptest::prelude::*;

    fn accesses(layout: &Layout, section: &Section, sieve: Sieve) -> Vec<(Access, Vec<Pass>)> {
        let mut accesses = Accesses::new(&layout.runs(section).unwrap(), sieve);
        let mut copies = Vec::new();
        std::iter::from_fn(|| {
            copies.clear();
            accesses
                .next(&mut copies)
                .map(|access| (access, copies.clone()))
        })
        .collect()
    }

    #[test]
    fn the_whole_extent_in_pieces_of_the_buffer() {
        let layout = Layout::new(&[100, 100], 4, &Order::Row, None).unwrap();
        let section = Section::parse("::2, ::5", layout.shape()).unwrap();
        let sieve = Sieve {
            gap: u64::MAX,
            largest: 4000,
            buffer: 4000,
            slices: None,
        };
        let found = accesses(&layout, &section, sieve);
        // From element (0, 0) to (98, 95) there are 98 * 400 + 384 bytes; an
        // access takes ten rows less the tail of its last wanted one.
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|(access, _)| access.len <= 4000));
    }

    proptest! {
        #[test]
        fn accesses_cover_each_run_once_within_the_limits(
            whole_slices in any::<bool>(),
            axes in proptest::collection::vec((1u64..9, 0u64..4, 1u64..4, 1u64..5), 1..4),
            column in any::<bool>(), tiled in any::<bool>(),
            gap in prop_oneof![Just(0u64), 1u64..40, Just(u64::MAX)], largest in 1u64..300,
        ) {
            let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let tile: Vec<u64> = axes.iter().map(|axis| axis.3).collect();
            let order = if column { Order::Column } else { Order::Row };
            let layout = Layout::new(&shape, 4, &order, tiled.then_some(&tile[..])).unwrap();
            let taken = axes.iter().map(|(n, lower, stride, _)| AxisSection::range(*lower.min(n), *n, *stride).unwrap());
            let section = Section::new(taken.collect()).unwrap();
            let slices = (whole_slices && section.count() > 0).then(|| Slices::of(&layout, &section, largest));
            let sieve = Sieve { gap, largest, buffer: largest, slices };
            if let Some(slices) = slices {
                let found = accesses(&layout, &section, sieve);
                prop_assert_eq!(found.len() as u64, slices.accesses());
                prop_assert_eq!(found.iter().map(|(access, _)| access.len).sum::<u64>(), slices.end - slices.start);
                prop_assert!(found.iter().all(|(access, _)| access.offset % 4 == 0 && access.len % 4 == 0));
            }
            let mut covered = Vec::new();
            let mut last_end = 0;
            for (access, copies) in accesses(&layout, &section, sieve) {
                prop_assert!(access.offset >= last_end);
                last_end = access.offset + access.len;
                let mut useful = 0;
                for pass in &copies {
                    for run in (0..pass.count).map(|at| pass.run(at)) {
                        prop_assert!(run.file_offset >= access.offset);
                        prop_assert!(run.file_offset + run.len <= last_end);
                        useful += run.len;
                        covered.extend(run.buffer_offset..run.buffer_offset + run.len);
                    }
                }
                prop_assert_eq!(useful, access.useful);
                prop_assert!(access.len <= largest.max(4) || access.single(&copies).is_some());
            }
            covered.sort_unstable();
            let all: Vec<u64> = (0..section.count() * 4).collect();
            prop_assert_eq!(covered, all);
        }

        #[test]
        fn without_a_limit_the_accesses_are_those_of_the_footprint(
            rows in 1u64..20, columns in 1u64..20, stride in 1u64..5, across in 1u64..5, gap in 0u64..60,
        ) {
            let layout = Layout::new(&[rows, columns], 4, &Order::Row, None).unwrap();
            let section = Section::parse(&format!("::{stride}, ::{across}"), layout.shape()).unwrap();
            let sieve = Sieve { gap, largest: u64::MAX / 4, buffer: u64::MAX / 4, slices: None };
            let found = accesses(&layout, &section, sieve);
            let footprint = layout.runs(&section).unwrap().footprint(gap);
            prop_assert_eq!(found.len() as u64, footprint.accesses);
            prop_assert_eq!(found.iter().map(|(access, _)| access.len).sum::<u64>(), footprint.bytes);
        }
    }
}
