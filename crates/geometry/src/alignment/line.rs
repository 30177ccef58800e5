//! [`Line`]: an array axis on a template axis, and what a rank holds of it.
//!
//! Index `i` stands at `stride * i + offset` (ALIGN of High Performance
//! Fortran; Thakur 1995, section 3.2). The local index of `i` is how many
//! indices below `i` the rank holds. The template's blocks of `m` come round
//! every `m P` indices, hence this is the number of `j < i` with
//! `(stride * j + offset - p m) mod (m P) < m`: a difference of two sums of
//! quotients rounded down, each of which Euclid's algorithm evaluates. The way
//! back halves the axis until one index is left. A stride of 1 needs neither:
//! there the local index is the template's, less what lies before the array.

use crate::axis::AxisSection;
use crate::distribution::{DistributedAxis, progression};
use crate::error::{Error, Result};

/// An array axis on a template axis: `stride * i + offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    pub(crate) template_axis: usize,
    pub(crate) stride: i64,
    pub(crate) offset: i64,
}

impl Line {
    /// An array axis that is its own template, the first axis of it.
    pub(crate) fn identity() -> Self {
        Self {
            template_axis: 0,
            stride: 1,
            offset: 0,
        }
    }

    /// Fails unless every index of array axis `axis` lands below `extent`.
    pub(crate) fn check(self, axis: usize, shape: &[u64], extent: u64) -> Result<()> {
        let template_axis = self.template_axis;
        if axis >= shape.len() {
            return Err(Error::invalid(format!(
                "template axis {template_axis} is aligned with array axis {axis}, but the array \
                 has {} axes, counted from 0",
                shape.len()
            )));
        }
        if self.stride == 0 {
            return Err(Error::invalid(format!(
                "template axis {template_axis} is aligned with array axis {axis} by stride 0; fix \
                 it at one index instead"
            )));
        }
        let Some(last) = shape[axis].checked_sub(1) else {
            return Ok(());
        };
        for index in [0, last] {
            let lands = self.lands(index);
            if lands < 0 || lands >= extent as i128 {
                return Err(Error::invalid(format!(
                    "index {index} of array axis {axis} lands on index {lands} of template axis \
                     {template_axis}, whose extent is {extent}"
                )));
            }
        }
        Ok(())
    }

    fn lands(self, index: u64) -> i128 {
        self.stride as i128 * index as i128 + self.offset as i128
    }

    /// The template index of an index of the array.
    pub(crate) fn image(self, index: u64) -> u64 {
        self.lands(index) as u64
    }

    /// The array index of a template index on the line.
    fn preimage(self, index: u64) -> u64 {
        ((index as i128 - self.offset as i128) / self.stride as i128) as u64
    }

    /// How many of the array indices below `limit` stand where `rank` owns.
    pub(crate) fn count_below(self, axis: &DistributedAxis, rank: u64, limit: u64) -> u64 {
        if limit == 0 || axis.local_count(rank) == 0 {
            return 0;
        }
        if self.stride == 1 {
            let below = |index| axis.count_below(rank, index);
            return below(self.image(0) + limit) - below(self.image(0));
        }
        let (block, period) = (axis.block() as i128, axis.period as i128);
        let start = self.offset as i128 - rank as i128 * block;
        let step = (self.stride as i128).rem_euclid(period) as u128;
        let start = start.rem_euclid(period) as u128;
        let (block, period, limit) = (block as u128, period as u128, limit as u128);
        let upper = sum_of_quotients(limit, step, start, period);
        let lower = sum_of_quotients(limit, step, start + period - block, period);
        (limit + upper - lower) as u64
    }

    /// The array index at position `local` among those below `extent` that
    /// stand where `rank` owns.
    pub(crate) fn at(
        self,
        axis: &DistributedAxis,
        rank: u64,
        local: u64,
        extent: u64,
    ) -> Option<u64> {
        if local >= self.count_below(axis, rank, extent) {
            return None;
        }
        if self.stride == 1 {
            let before = axis.count_below(rank, self.image(0));
            return Some(axis.to_global(rank, before + local) - self.image(0));
        }
        // The least limit that has more than `local` indices below it.
        let (mut too_low, mut enough) = (0, extent);
        while too_low + 1 < enough {
            let middle = too_low + (enough - too_low) / 2;
            if self.count_below(axis, rank, middle) > local {
                enough = middle;
            } else {
                too_low = middle;
            }
        }
        Some(enough - 1)
    }

    /// The array indices below `extent` that stand where `rank` owns, as
    /// disjoint progressions ordered by their first index.
    pub(crate) fn sections(
        self,
        axis: &DistributedAxis,
        rank: u64,
        extent: u64,
    ) -> Vec<AxisSection> {
        let Some(last) = extent.checked_sub(1) else {
            return Vec::new();
        };
        let (one, other) = (self.image(0), self.image(last));
        let line = progression(one.min(other), one.max(other), extent);
        let (lower, upper) = line.bounds();
        let back = |owned: AxisSection| {
            let both = owned.intersect(&line);
            let (one, other) = (self.preimage(both.first()?), self.preimage(both.last()?));
            Some(progression(one.min(other), one.max(other), both.count()))
        };
        let owned = axis.sections_within(rank, lower, upper).into_iter();
        let mut sections: Vec<AxisSection> = owned.filter_map(back).collect();
        sections.sort_by_key(AxisSection::first);
        sections
    }
}

/// The sum of `(step * i + start) / divisor`, rounded down, over `i < count`.
///
/// Whole multiples of the divisor are summed directly; what remains are the
/// lattice points under a line, and counting them along the other axis swaps
/// `step` and `divisor`, as in Euclid's algorithm. `count` must be below 2^63,
/// the others below 2^65, and `step < divisor`.
fn sum_of_quotients(mut count: u128, mut step: u128, mut start: u128, mut divisor: u128) -> u128 {
    let mut sum = 0;
    loop {
        sum += count * (count - 1) / 2 * (step / divisor) + count * (start / divisor);
        step %= divisor;
        start %= divisor;
        let end = step * count + start;
        if end < divisor {
            return sum;
        }
        count = end / divisor;
        start = end % divisor;
        (step, divisor) = (divisor, step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_summed() {
        for (count, divisor) in (1..12).flat_map(|count| (1..12).map(move |d| (count, d))) {
            for (step, start) in (0..divisor).flat_map(|step| (0..30).map(move |s| (step, s))) {
                let sum: u128 = (0..count).map(|i| (step * i + start) / divisor).sum();
                assert_eq!(sum_of_quotients(count, step, start, divisor), sum);
            }
        }
        // i * (2^64 - 2) / (2^64 - 1) is i - 1, but 0 for i = 0.
        let count = i64::MAX as u128;
        let sum = sum_of_quotients(count, u64::MAX as u128 - 1, 0, u64::MAX as u128);
        assert_eq!(sum, (count - 1) * (count - 2) / 2);
    }
}
