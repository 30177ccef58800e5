//! What is asked for in advance when data are not in the page cache, so that
//! the device works on many requests at once while runs are copied.
//!
//! The mathematics. Runs whose gaps cost less than a request are one stretch,
//! as with sieving, and stretches are asked for in pieces, a window ahead of
//! the copies. Of a stretch that is longer than what the system reads ahead by
//! itself, only the beginning is asked for: where pages are touched one after
//! the other, the system's own reading ahead is cheaper than advice.
//!
//! Invariants: pieces are disjoint and ascending, and lie between the first and
//! the last byte of the section. Asking changes nothing but time.

use outcore_geometry::{Pass, Passes, Runs};

/// The longest piece.
const PIECE: u64 = 2 << 20;

/// What to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fetch {
    /// Gaps of up to so many bytes are asked for as well.
    pub(crate) gap: u64,
    /// Of longer stretches only so many bytes.
    pub(crate) stretch: u64,
}

/// The pieces to ask for, as offsets and lengths.
pub(crate) struct Pieces {
    passes: Passes,
    rest: Option<Pass>,
    /// What follows from the last run looked at.
    pending: Option<(u64, u64)>,
    /// The bytes given of the stretch that `pending` continues.
    given: u64,
    fetch: Fetch,
}

impl Pieces {
    pub(crate) fn new(runs: &Runs, fetch: Fetch) -> Self {
        Self {
            passes: runs.passes(),
            rest: None,
            pending: None,
            given: 0,
            fetch,
        }
    }

    /// The next runs that are one stretch by themselves: all of a pass whose
    /// gaps are small, or a single one.
    fn next_stretch(&mut self) -> Option<(u64, u64)> {
        let pass = self.rest.take().or_else(|| self.passes.next())?;
        let between = pass.file_step.saturating_sub(pass.first.len);
        let start = pass.first.file_offset;
        if pass.count == 1 || between <= self.fetch.gap {
            return Some((start, start + pass.file_extent()));
        }
        let (one, rest) = pass.split(1);
        self.rest = rest;
        Some((start, start + one.first.len))
    }

    /// The next piece, whether or not it is worth asking for.
    fn next_piece(&mut self) -> Option<(u64, u64)> {
        let (start, mut end) = match self.pending.take() {
            Some(pending) => pending,
            None => {
                self.given = 0;
                self.next_stretch()?
            }
        };
        while end - start < PIECE
            && let Some((from, to)) = self.next_stretch()
        {
            if from - end > self.fetch.gap {
                self.pending = Some((from, to));
                return Some((start, end));
            }
            end = to;
        }
        if end - start > PIECE {
            self.pending = Some((start + PIECE, end));
            end = start + PIECE;
        }
        Some((start, end))
    }
}

impl Iterator for Pieces {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        loop {
            let (start, end) = self.next_piece()?;
            let continued = self.pending.is_some_and(|(next, _)| next == end);
            let wanted = self.given < self.fetch.stretch;
            self.given = if continued {
                self.given + (end - start)
            } else {
                0
            };
            if wanted {
                return Some((start, end - start));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcore_geometry::{AxisSection, Layout, Order, Section};
    use proptest::prelude::*;

    #[test]
    fn of_a_long_stretch_only_the_beginning() {
        let layout = Layout::new(&[64 << 20], 1, &Order::Row, None).unwrap();
        let pieces = |text: &str, stretch| {
            let runs = layout.runs(&Section::parse(text, layout.shape()).unwrap());
            let fetch = Fetch { gap: 100, stretch };
            Pieces::new(&runs.unwrap(), fetch).collect::<Vec<_>>()
        };
        assert_eq!(pieces(":", u64::MAX).len(), 32);
        assert_eq!(pieces("5:", 3 << 20), [(5, PIECE), (5 + PIECE, PIECE)]);
        // Each stretch counts for itself.
        assert_eq!(pieces("[7, 1000, 1050]", 1), [(7, 1), (1000, 51)]);
        assert_eq!(pieces("::1048576", 1).len(), 64);
    }

    proptest! {
        #[test]
        fn pieces_cover_every_run(
            axes in proptest::collection::vec((1u64..9, 0u64..4, 1u64..4, 1u64..5), 1..4),
            tiled in any::<bool>(), gap in 0u64..40,
        ) {
            let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let tile: Vec<u64> = axes.iter().map(|axis| axis.3).collect();
            let layout = Layout::new(&shape, 4, &Order::Row, tiled.then_some(&tile[..])).unwrap();
            let taken = axes.iter().map(|(n, lower, stride, _)| AxisSection::range(*lower.min(n), *n, *stride).unwrap());
            let runs = layout.runs(&Section::new(taken.collect()).unwrap()).unwrap();
            let fetch = Fetch { gap, stretch: u64::MAX };
            let pieces: Vec<(u64, u64)> = Pieces::new(&runs, fetch).collect();
            prop_assert!(pieces.windows(2).all(|pair| pair[0].0 + pair[0].1 + gap < pair[1].0));
            let footprint = runs.footprint(gap);
            prop_assert_eq!(pieces.len() as u64, footprint.accesses);
            prop_assert_eq!(pieces.iter().map(|piece| piece.1).sum::<u64>(), footprint.bytes);
            for run in runs {
                prop_assert!(pieces.iter().any(|(start, len)| *start <= run.file_offset && run.file_offset + run.len <= start + len));
            }
        }
    }
}
