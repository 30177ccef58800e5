//! [`Histogram`]: how many numbers lie in each of some bins of equal width.
//!
//! As in NumPy, a bin holds its lower edge, and the last one its upper edge, too.
//! What lies outside of all is counted, and NaNs are not.

use outcore::{Error, Result};

use super::number::Number;

/// The most bins there can be.
const MOST: usize = 1 << 24;

/// Bins of equal width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bins {
    /// How many.
    pub count: usize,
    /// From where to where; `None` from the least number to the largest, which
    /// takes a pass of its own to find.
    pub range: Option<(f64, f64)>,
}

/// How many numbers lie in each bin.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// The edges of the bins, one more than there are bins.
    pub edges: Vec<f64>,
    /// How many numbers each bin has.
    pub counts: Vec<u64>,
    /// Numbers below the first bin.
    pub below: u64,
    /// Numbers above the last bin.
    pub above: u64,
}

impl Histogram {
    /// Empty bins from `low` to `high`; both are widened by a half if they are the
    /// same.
    pub(crate) fn new(count: usize, (low, high): (f64, f64)) -> Result<Self> {
        let ordered = low <= high && (high - low).is_finite();
        if !ordered || count == 0 || count > MOST {
            return Err(Error::Invalid(format!(
                "{count} bins from {low} to {high} are no histogram: it has 1 to {MOST} bins \
                 between finite limits, the lower one first"
            )));
        }
        let (low, high) = match low == high {
            true => (low - 0.5, high + 0.5),
            false => (low, high),
        };
        let edge = |at: usize| match at == count {
            true => high,
            false => low + at as f64 * ((high - low) / count as f64),
        };
        Ok(Self {
            edges: (0..=count).map(edge).collect(),
            counts: vec![0; count],
            below: 0,
            above: 0,
        })
    }

    /// The bytes that so many bins take: edges, counts, and the counts once more as
    /// they are sent, summed, and joined.
    pub(crate) fn bytes(count: usize) -> u64 {
        40 * count as u64
    }

    /// Counts values.
    pub(crate) fn add<T: Number>(&mut self, values: &[T]) {
        let (edges, bins) = (&self.edges[..], self.counts.len());
        let (low, high) = (edges[0], edges[bins]);
        let scale = bins as f64 / (high - low);
        for value in values {
            let value = value.value().as_f64();
            if !(value >= low && value <= high) {
                self.below += u64::from(value < low);
                self.above += u64::from(value > high);
                continue;
            }
            let mut bin = (((value - low) * scale) as usize).min(bins - 1);
            // Rounding may have led into the neighbour.
            if value < edges[bin] {
                bin -= 1;
            } else if bin + 1 < bins && value >= edges[bin + 1] {
                bin += 1;
            }
            self.counts[bin] += 1;
        }
    }

    /// All counts, for a message.
    pub(crate) fn words(&self) -> Vec<u64> {
        let outside = [self.below, self.above];
        outside
            .into_iter()
            .chain(self.counts.iter().copied())
            .collect()
    }

    /// The same bins with these counts.
    pub(crate) fn with(self, words: &[u64]) -> Self {
        Self {
            below: words[0],
            above: words[1],
            counts: words[2..].to_vec(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_belong_to_the_bin_above_and_the_last_to_the_last() {
        let mut histogram = Histogram::new(4, (0.0, 1.0)).unwrap();
        histogram.add(&[0.0f64, 0.25, 0.5, 0.75, 1.0, 1.1, -0.1, f64::NAN]);
        assert_eq!(histogram.counts, [1, 1, 1, 2]);
        assert_eq!((histogram.below, histogram.above), (1, 1));
        let mut histogram = Histogram::new(3, (7.0, 7.0)).unwrap();
        histogram.add(&[7u8, 7, 8]);
        assert_eq!((histogram.counts, histogram.above), (vec![0, 2, 0], 1));
        for range in [(1.0, 0.0), (0.0, f64::INFINITY), (f64::NAN, 1.0)] {
            assert!(Histogram::new(3, range).is_err());
        }
        assert!(Histogram::new(0, (0.0, 1.0)).is_err());
    }
}
