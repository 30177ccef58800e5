//! [`Block`]: a dense piece of an array in memory, and the part of it for
//! which results are wanted.
//!
//! Axes are in file order, slowest first, so that the last one is contiguous.
//! What surrounds the core is its halo: neighbours that are only read. Where
//! the halo ends, the array ends, as far as a kernel is concerned.

use std::ops::Range;

/// A dense piece of an array, with the part for which results are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a, T> {
    /// The values, in file order.
    pub values: &'a [T],
    /// The extent of each axis.
    pub shape: &'a [usize],
    /// Along each axis, which indices results are wanted for.
    pub core: &'a [Range<usize>],
}

impl<'a, T> Block<'a, T> {
    /// Fails with a sentence unless the parts fit one another.
    pub(crate) fn check(&self, results: usize) -> outcore::Result<()> {
        let fits = self.values.len() == self.shape.iter().product::<usize>()
            && self.core.len() == self.shape.len()
            && (self.core.iter().zip(self.shape)).all(|(core, extent)| core.end <= *extent)
            && results == self.core.iter().map(Range::len).product::<usize>();
        if fits {
            return Ok(());
        }
        Err(outcore::Error::Invalid(format!(
            "a block of {} values with shape {:?} and core {:?} does not fit {results} results",
            self.values.len(),
            self.shape,
            self.core
        )))
    }
}

/// Visits every index of a product of ranges, the last axis fastest.
pub(crate) fn walk(ranges: &[Range<usize>], mut visit: impl FnMut(&[usize])) {
    if ranges.iter().any(Range::is_empty) {
        return;
    }
    let mut index: Vec<usize> = ranges.iter().map(|range| range.start).collect();
    loop {
        visit(&index);
        let mut axis = ranges.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            if index[axis] < ranges[axis].end {
                break;
            }
            index[axis] = ranges[axis].start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_visited_once_in_order() {
        let mut seen = Vec::new();
        walk(&[1..3, 0..2], |index| seen.push(index.to_vec()));
        assert_eq!(seen, [[1, 0], [1, 1], [2, 0], [2, 1]]);
        let mut count = 0;
        walk(&[], |_| count += 1);
        walk(&[0..5, 2..2], |_| count += 100);
        assert_eq!(count, 1);
    }
}
