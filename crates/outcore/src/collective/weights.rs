//! [`Weights`]: how many bytes are asked for before each of some offsets.
//!
//! The range of all requests is cut into equal buckets. Each request says how
//! many of its bytes stand before each edge, which takes one look at each of
//! its axes; the sums over all requests say where the file has to be cut so
//! that equally many bytes are asked for on both sides, within a bucket as if
//! they lay evenly. So the size does not grow with the number of ranks.

use outcore_transport::Comm;

use super::request::Request;
use crate::error::Result;

/// The number of buckets.
pub(super) const BUCKETS: usize = 1024;

/// The bytes that are asked for before each edge of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Weights {
    start: u64,
    end: u64,
    below: Vec<u64>,
}

impl Weights {
    /// Of no request, between two offsets.
    pub(super) fn new((start, end): (u64, u64)) -> Self {
        Self {
            start,
            end,
            below: vec![0; BUCKETS + 1],
        }
    }

    /// Of these requests, between two offsets.
    pub(super) fn of(bounds: (u64, u64), requests: &[Request]) -> Self {
        let mut weights = Self::new(bounds);
        requests.iter().for_each(|request| weights.add(request));
        weights
    }

    /// Adds a request.
    pub(super) fn add(&mut self, request: &Request) {
        for bucket in 0..=BUCKETS {
            let edge = self.edge(bucket);
            let below = &mut self.below[bucket];
            *below = below.saturating_add(request.runs.bytes_below(edge));
        }
    }

    /// Collective: adds those of all ranks.
    pub(super) fn join(&mut self, comm: &Comm) -> Result<()> {
        self.below = comm.all_join(&self.below, |sums, others| {
            let pairs = sums.iter_mut().zip(others);
            pairs.for_each(|(sum, other)| *sum = sum.saturating_add(*other));
        })?;
        Ok(())
    }

    /// Where a bucket begins.
    fn edge(&self, bucket: usize) -> u64 {
        self.start + part(self.end - self.start, bucket as u64, BUCKETS as u64)
    }

    /// The offset before which the share `numerator / denominator` of all bytes
    /// is asked for.
    pub(super) fn cut(&self, numerator: usize, denominator: usize) -> u64 {
        let wanted = part(self.below[BUCKETS], numerator as u64, denominator as u64);
        let bucket = self.below.partition_point(|below| *below <= wanted) - 1;
        if bucket == BUCKETS {
            return self.end;
        }
        let (edge, below) = (self.edge(bucket), self.below[bucket]);
        let width = self.edge(bucket + 1) - edge;
        edge + part(width, wanted - below, self.below[bucket + 1] - below)
    }
}

/// `whole * numerator / denominator`, which is at most `whole`.
pub(super) fn part(whole: u64, numerator: u64, denominator: u64) -> u64 {
    (u128::from(whole) * u128::from(numerator) / u128::from(denominator)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcore_geometry::{Layout, Order, Section};

    #[test]
    fn cuts_halve_what_is_asked_for() {
        let layout = Layout::new(&[1 << 20], 1, &Order::Row, None).unwrap();
        let request = |text: &str| {
            let section = Section::parse(text, layout.shape()).unwrap();
            Request::new(&layout, &section).unwrap()
        };
        let mut weights = Weights::new((0, 1 << 20));
        assert_eq!((weights.cut(0, 3), weights.cut(1, 3)), (1 << 20, 1 << 20));
        weights.add(&request(":"));
        assert_eq!(weights.cut(1, 3), (1 << 20) / 3);
        assert_eq!((weights.cut(0, 2), weights.cut(2, 2)), (0, 1 << 20));
        // Three more ask for the first quarter: 4/7 of all bytes are there.
        (0..3).for_each(|_| weights.add(&request(":262144")));
        assert_eq!(weights.cut(4, 7), 262144);
        assert_eq!(weights.cut(2, 7), 131072);
        // Nobody wants what lies between: the cut is at one end of it.
        let mut weights = Weights::new((0, 1 << 20));
        weights.add(&request(":1024"));
        weights.add(&request("1047552:"));
        assert!([1024, 1047552].contains(&weights.cut(1, 2)));
    }
}
