//! [`Windows`]: the file cut into windows of equally many records, and
//! [`Domains`]: which rank reads and writes which of them.
//!
//! A window is a power of two of records, so that the window of a place and the
//! place inside of it are a shift and a mask. It is small enough for a
//! processor's cache, where elements of all ranks come together, unless the file
//! is so long that there would be too many. Domains are whole windows: each rank
//! has a stretch of them in which equally many elements are wanted, or every
//! P-th one, as in the paper (No et al. 1998, section 3.1.1: `chunk = i / (P b)`,
//! `owner = (i mod P b) / b`, with `b` the records of a window).

use std::ops::Range;

use crate::error::{Error, Result};

/// What a window is meant to have: about half of a processor's own cache.
const WINDOW_BYTES: u64 = 1 << 20;

/// Smaller ones are not worth a request.
const LEAST_BYTES: u64 = 64 << 10;

/// With more windows they are rather made larger, unless there are very many
/// indices; and with fewer indices in each, since windows are moved one after the
/// other, but what is wanted of one at the same time.
const MOST: u64 = 1 << 16;
const LEAST_WANTED: u64 = 256;

/// Places inside of a window have 32 bits.
const LARGEST_SHIFT: u32 = 31;

/// Windows are weighed in at most so many parts.
pub(super) const BINS: u64 = 4096;

/// Stretches of `1 << shift` records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Windows {
    pub(super) shift: u32,
    /// Of the whole file, in records.
    pub(super) extent: u64,
}

impl Windows {
    /// For a file of `extent` records of `record` bytes, of which `ranks` ranks
    /// want `wanted` elements; of `asked` records each, if that is given.
    pub(super) fn new(
        extent: u64,
        record: u64,
        (ranks, wanted): (u64, u64),
        asked: Option<u64>,
    ) -> Result<Self> {
        let record = record.max(1);
        let shift = match asked {
            Some(records) => records.max(1).next_power_of_two().trailing_zeros(),
            None => {
                // Some for every rank, so that loads can be levelled.
                let share = extent.saturating_mul(record) / ranks.saturating_mul(8).max(1);
                let bytes = share.clamp(LEAST_BYTES, WINDOW_BYTES);
                let records = (bytes / record).max(1);
                let most = MOST
                    .max(wanted / 64)
                    .min((8 * ranks).max(wanted / LEAST_WANTED));
                let shift = records.ilog2();
                shift.max(ceil_log2(extent.div_ceil(most)))
            }
        };
        let shift = shift.min(LARGEST_SHIFT);
        let windows = Self { shift, extent };
        if windows.count() > 1 << 26 {
            return Err(Error::Invalid(format!(
                "an index schedule of a file of {extent} elements would have {} windows",
                windows.count()
            )));
        }
        Ok(windows)
    }

    pub(super) fn count(self) -> u64 {
        self.extent.div_ceil(1 << self.shift)
    }

    /// The records of a window.
    pub(super) fn range(self, window: u64) -> Range<u64> {
        let start = window << self.shift;
        start..self.extent.min(start + (1 << self.shift))
    }

    /// How many windows are weighed together: a power of two, as a shift.
    pub(super) fn bin_shift(self) -> u32 {
        ceil_log2(self.count().div_ceil(BINS))
    }
}

fn ceil_log2(number: u64) -> u32 {
    number.max(1).next_power_of_two().trailing_zeros()
}

/// Which rank reads and writes which windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Domains {
    /// Rank `p` has the windows from the `p`-th to the next.
    Stretches(Vec<u64>),
    /// Rank `p` has every window `p + k P`.
    Cyclic { ranks: u64, windows: u64 },
}

impl Domains {
    /// Stretches of bins of `1 << bin_shift` windows, in which equally many
    /// elements are wanted, as nearly as bins allow.
    pub(super) fn balanced(weights: &[u64], windows: Windows, ranks: u64) -> Self {
        let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        let shift = windows.bin_shift();
        let mut bounds = vec![0];
        let (mut before, mut bin) = (0u128, 0u64);
        for rank in 1..ranks {
            let goal = total * u128::from(rank) / u128::from(ranks);
            while let Some(weight) = weights.get(bin as usize) {
                let with = before + u128::from(*weight);
                // The bin goes to the side that its larger half is on.
                if 2 * goal < before + with {
                    break;
                }
                (before, bin) = (with, bin + 1);
            }
            bounds.push((bin << shift).min(windows.count()));
        }
        bounds.push(windows.count());
        Self::Stretches(bounds)
    }

    /// How many windows a rank has.
    pub(super) fn count(&self, rank: usize) -> u64 {
        match self {
            Self::Stretches(bounds) => bounds[rank + 1] - bounds[rank],
            Self::Cyclic { ranks, windows } => {
                (windows + ranks - 1).saturating_sub(rank as u64) / ranks
            }
        }
    }

    /// The `k`-th window of a rank.
    pub(super) fn window(&self, rank: usize, k: u64) -> u64 {
        match self {
            Self::Stretches(bounds) => bounds[rank] + k,
            Self::Cyclic { ranks, .. } => rank as u64 + k * ranks,
        }
    }

    /// The windows of a rank, in ascending order.
    pub(super) fn windows(&self, rank: usize) -> impl Iterator<Item = u64> + Clone + '_ {
        (0..self.count(rank)).map(move |k| self.window(rank, k))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_paper() {
        let windows = Windows::new(16, 8, (4, 16), Some(2)).unwrap();
        let domains = Domains::Cyclic {
            ranks: 4,
            windows: windows.count(),
        };
        let of = |rank| -> Vec<u64> {
            let ranges = domains.windows(rank).map(|window| windows.range(window));
            ranges.flatten().collect()
        };
        assert_eq!(of(0), [0, 1, 8, 9]);
        assert_eq!(of(1), [2, 3, 10, 11]);
        assert_eq!(of(3), [6, 7, 14, 15]);
    }

    #[test]
    fn every_window_has_one_rank() {
        for (extent, ranks) in [(0, 3), (1, 1), (1, 5), (1000, 7), (1 << 22, 16)] {
            let windows = Windows::new(extent, 8, (ranks, extent), Some(16)).unwrap();
            let bins = windows.count().div_ceil(1 << windows.bin_shift());
            let weights: Vec<u64> = (0..bins).map(|bin| bin * bin).collect();
            let cyclic = Domains::Cyclic {
                ranks,
                windows: windows.count(),
            };
            for domains in [Domains::balanced(&weights, windows, ranks), cyclic] {
                let all = (0..ranks as usize).flat_map(|rank| domains.windows(rank));
                let mut all: Vec<u64> = all.collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..windows.count()));
            }
        }
    }

    #[test]
    fn domains_are_level() {
        let windows = Windows::new(1000, 8, (4, 1000), Some(1)).unwrap();
        // Only the last quarter is wanted.
        let weights: Vec<u64> = (0..1000).map(|at| u64::from(at >= 750)).collect();
        let domains = Domains::balanced(&weights, windows, 4);
        for rank in 0..4 {
            let wanted = domains.windows(rank).filter(|window| *window >= 750);
            assert!((60..=65).contains(&wanted.count()));
        }
    }

    #[test]
    fn windows_fit_the_cache_until_they_are_too_many() {
        let bytes = |extent, ranks| {
            let windows = Windows::new(extent, 8, (ranks, extent), None).unwrap();
            8 << windows.shift
        };
        assert_eq!(bytes(1 << 22, 2), 1 << 20);
        assert_eq!(bytes(1 << 17, 4), 64 << 10);
        assert_eq!(bytes(1 << 34, 4), 1 << 20);
        // A few elements of many: as many windows as are worth it.
        let few = Windows::new(1 << 34, 8, (2, 4096), None).unwrap();
        assert_eq!(few.count(), 16);
        assert!(Windows::new(1 << 60, 8, (1, 0), None).is_err());
    }
}
