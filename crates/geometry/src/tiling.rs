//! A section in shares for ranks ([`divide`]) and in pieces that fit a memory
//! budget ([`Pieces`]).
//!
//! Both cut along the slowest axes of the file, so that each share and each
//! piece keeps the longest runs there are.

use crate::section::Section;

/// Cuts `section` into `parts` shares of nearly equal size (the first ones
/// one slice larger), along the slowest axis that has a slice for everybody,
/// or else the longest one. Shares may be empty; together they are the section.
pub fn divide(section: &Section, slowest_first: &[usize], parts: u64) -> Vec<Section> {
    let shape = section.shape();
    let enough = slowest_first
        .iter()
        .copied()
        .find(|axis| shape[*axis] >= parts);
    let longest = || {
        slowest_first
            .iter()
            .copied()
            .max_by_key(|axis| shape[*axis])
    };
    let Some(axis) = enough.or_else(longest) else {
        // Without axes there is one element, which goes to the first.
        return (0..parts)
            .map(|part| part_of_scalar(section, part))
            .collect();
    };
    let (each, more) = (shape[axis] / parts, shape[axis] % parts);
    let start = |part: u64| part * each + part.min(more);
    (0..parts)
        .map(|part| section.slice(axis, start(part), start(part + 1)))
        .collect()
}

/// A section has no axis to be cut along: an empty share needs one.
fn part_of_scalar(section: &Section, part: u64) -> Section {
    if part == 0 {
        return section.clone();
    }
    Section::empty(section.axes().len())
}

/// The pieces of a section, each of at most so many elements, in ascending
/// file order of an untiled layout.
#[derive(Debug, Clone)]
pub struct Pieces {
    section: Section,
    /// The axes from the slowest to the fastest, with the length of a piece
    /// along each: 1 along the slow ones, some along one, all along the fast.
    cuts: Vec<(usize, u64)>,
    positions: Vec<u64>,
    done: bool,
}

impl Pieces {
    /// Cuts `section` into pieces of at most `most` elements (at least 1).
    pub fn new(section: &Section, slowest_first: &[usize], most: u64) -> Self {
        let mut left = most.max(1);
        let mut cuts = Vec::with_capacity(slowest_first.len());
        for axis in slowest_first.iter().rev() {
            let count = section.axes()[*axis].count();
            let length = count.min(left).max(1);
            left = if length == count { left / length } else { 1 };
            cuts.push((*axis, length));
        }
        cuts.reverse();
        Self::cut(section, cuts)
    }

    /// Cuts `section` into pieces of the given shape (at least 1 along each
    /// axis), those at the upper edges smaller.
    pub fn of_shape(section: &Section, slowest_first: &[usize], shape: &[u64]) -> Self {
        let cuts = slowest_first
            .iter()
            .map(|axis| (*axis, shape[*axis].max(1)));
        Self::cut(section, cuts.collect())
    }

    fn cut(section: &Section, cuts: Vec<(usize, u64)>) -> Self {
        let positions = vec![0; cuts.len()];
        Self {
            section: section.clone(),
            cuts,
            positions,
            done: section.is_empty(),
        }
    }
}

impl Iterator for Pieces {
    type Item = Section;

    fn next(&mut self) -> Option<Section> {
        if self.done {
            return None;
        }
        let mut piece = self.section.clone();
        for ((axis, length), from) in self.cuts.iter().zip(&self.positions) {
            piece = piece.slice(*axis, *from, from.saturating_add(*length));
        }
        self.done = true;
        for ((axis, length), from) in self.cuts.iter().zip(&mut self.positions).rev() {
            *from = from.saturating_add(*length);
            if *from < self.section.axes()[*axis].count() {
                self.done = false;
                break;
            }
            *from = 0;
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AxisSection;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn elements(section: &Section) -> Vec<Vec<u64>> {
        section.axes().iter().fold(vec![vec![]], |points, axis| {
            let indices: Vec<u64> = (0..axis.count()).map(|at| axis.index(at)).collect();
            points
                .iter()
                .flat_map(|p| indices.iter().map(move |i| [&p[..], &[*i]].concat()))
                .collect()
        })
    }

    fn check_partition(whole: &Section, parts: impl Iterator<Item = Section>) -> u64 {
        let mut seen = BTreeSet::new();
        let mut largest = 0;
        for part in parts {
            largest = largest.max(part.count());
            if !part.is_empty() {
                assert!(
                    elements(&part)
                        .into_iter()
                        .all(|element| seen.insert(element))
                );
            }
        }
        assert_eq!(seen, elements(whole).into_iter().collect());
        largest
    }

    proptest! {
        #[test]
        fn shares_and_pieces_are_partitions(
            shape in proptest::collection::vec((0u64..7, 1u64..4), 0..4),
            parts in 1u64..9,
            most in 1u64..40,
            column in any::<bool>(),
        ) {
            let axes = shape.iter().map(|(n, stride)| AxisSection::range(1, 1 + n * stride, *stride).unwrap());
            let section = Section::new(axes.collect()).unwrap();
            let mut order: Vec<usize> = (0..shape.len()).collect();
            if column { order.reverse(); }
            check_partition(&section, divide(&section, &order, parts).into_iter());
            let largest = check_partition(&section, Pieces::new(&section, &order, most));
            prop_assert!(largest <= most);
            let piece: Vec<u64> = shape.iter().map(|(_, length)| *length).collect();
            let largest = check_partition(&section, Pieces::of_shape(&section, &order, &piece));
            prop_assert!(largest <= piece.iter().product());
        }
    }

    #[test]
    fn division_is_even() {
        let section = Section::whole(&[10, 3]).unwrap();
        let counts: Vec<u64> = divide(&section, &[0, 1], 4)
            .iter()
            .map(Section::count)
            .collect();
        assert_eq!(counts, [9, 9, 6, 6]);
        // Too few rows for all ranks: the longer axis is cut.
        let section = Section::whole(&[2, 100]).unwrap();
        assert!(
            divide(&section, &[0, 1], 4)
                .iter()
                .all(|share| share.count() == 50)
        );
    }
}
