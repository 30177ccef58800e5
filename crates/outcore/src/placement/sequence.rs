//! [`Sequence`]: where the bytes of the global array, in its storage order,
//! stand in the files of the ranks. Index arithmetic only.
//!
//! A byte of the global sequence belongs to an element, the element to a block
//! of each axis, and the blocks to the file of one rank ([`Parts`]). Indices
//! that follow one another along the fastest axis inside one block follow one
//! another in that file, so a range falls apart into one [`Piece`] for each line
//! and block that it crosses; pieces that touch in one file are joined again.
//! What a range has of each file lies in an [`Extent`]. Overlap areas are not
//! part of the sequence.

use outcore_geometry::Layout;

use crate::placement::parts::Parts;

/// The bytes of a locally placed array in order.
#[derive(Debug)]
pub(super) struct Sequence {
    parts: Parts,
    element_size: u64,
    slowest_first: Vec<usize>,
    /// The ranks from one coordinate of each axis of the grid to the next.
    grid_steps: Vec<u64>,
    /// In the file of each rank, the bytes from one position of each axis to
    /// the next.
    steps: Vec<Vec<u64>>,
    len: u64,
}

/// Bytes of a request that lie together in one file.
pub(super) struct Piece {
    pub(super) part: usize,
    pub(super) offset: u64,
    pub(super) len: usize,
}

/// The bytes of one file from the first to the last of those that a range of
/// the whole has there.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Extent {
    pub(super) part: usize,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Sequence {
    /// Of parts that are stored so, one for each rank; `None` if there is none.
    pub(super) fn new(parts: Parts, layouts: &[Layout]) -> Option<Self> {
        let layout = layouts.first()?;
        let element_size = layout.element_size();
        let shape = parts.distribution().shape();
        let mut grid_steps = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            grid_steps[axis - 1] = grid_steps[axis] * parts.distribution().grid()[axis];
        }
        Some(Self {
            grid_steps,
            len: shape.iter().product::<u64>() * element_size,
            element_size,
            slowest_first: layout.slowest_first().to_vec(),
            steps: layouts.iter().map(steps).collect(),
            parts,
        })
    }

    /// How many bytes there are.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The first piece of the `len` bytes at `offset`, which is inside.
    pub(super) fn first_piece(&self, offset: u64, len: usize) -> Piece {
        let (element, within) = (offset / self.element_size, offset % self.element_size);
        let shape = self.parts.distribution().shape();
        // Where the element stands along each axis, the fastest first.
        let along = |rest: &mut u64, axis: usize| {
            let index = *rest % shape[axis];
            *rest /= shape[axis];
            self.parts.axes()[axis].locate(index)
        };
        let fastest_first = || self.slowest_first.iter().rev();
        let (mut rest, mut part, mut follow) = (element, 0, None);
        for axis in fastest_first() {
            let (owner, _, follows) = along(&mut rest, *axis);
            part += owner * self.grid_steps[*axis];
            follow.get_or_insert(follows);
        }
        let part = part as usize;
        let steps = &self.steps[part];
        let (mut rest, mut start) = (element, 0);
        for axis in fastest_first() {
            start += steps[*axis] * along(&mut rest, *axis).1;
        }
        let room = follow.unwrap_or(1) * self.element_size - within;
        Piece {
            part,
            offset: start + within,
            len: room.min(len as u64) as usize,
        }
    }

    /// The pieces of the `len` bytes at `offset`, joined where they touch.
    pub(super) fn pieces(&self, offset: u64, len: usize) -> impl Iterator<Item = Piece> {
        let mut done = 0;
        let next = move || {
            let piece = (done < len).then(|| self.first_piece(offset + done as u64, len - done))?;
            done += piece.len;
            Some(piece)
        };
        let mut found = std::iter::from_fn(next).peekable();
        std::iter::from_fn(move || {
            let mut piece = found.next()?;
            let touches = |piece: &Piece, next: &Piece| {
                next.part == piece.part && next.offset == piece.offset + piece.len as u64
            };
            while let Some(next) = found.next_if(|next| touches(&piece, next)) {
                piece.len += next.len;
            }
            Some(piece)
        })
    }

    /// The files that have bytes of the `len` at `offset`, which are inside, in
    /// ascending order.
    ///
    /// The first and the last element of the range agree in the slowest axes,
    /// up to the first along which they differ. Along that one, whoever owns an
    /// index between the two takes part, with the positions from its first such
    /// index to its last; along the faster axes, everybody with everything.
    pub(super) fn extents(&self, offset: u64, len: u64) -> Vec<Extent> {
        let shape = self.parts.distribution().shape();
        let (mut first, mut last) = (
            offset / self.element_size,
            (offset + len - 1) / self.element_size,
        );
        let mut below = self.len / self.element_size;
        let (mut owners, mut fixed) = (0, Vec::new());
        let mut slowest_first = self.slowest_first.iter().peekable();
        while let Some(axis) = slowest_first.next() {
            below /= shape[*axis];
            let (lower, upper) = (first / below, last / below);
            (first, last) = (first % below, last % below);
            let along = &self.parts.axes()[*axis];
            if lower == upper && slowest_first.peek().is_some() {
                let (owner, position, _) = along.locate(lower);
                owners += owner * self.grid_steps[*axis];
                fixed.push((*axis, position));
                continue;
            }
            let faster: Vec<usize> = slowest_first.copied().collect();
            let mut extents = Vec::new();
            for at in 0..along.ranks() {
                let Some((from, to)) = along.between(at, lower, upper) else {
                    continue;
                };
                for part in self.all_along(owners + at * self.grid_steps[*axis], &faster) {
                    let steps = &self.steps[part];
                    let start: u64 = fixed.iter().map(|(axis, at)| steps[*axis] * at).sum();
                    let (start, end) =
                        (start + steps[*axis] * from, start + steps[*axis] * (to + 1));
                    extents.push(Extent { part, start, end });
                }
            }
            extents.retain(|extent| extent.start < extent.end);
            extents.sort();
            return extents;
        }
        Vec::new()
    }

    /// The parts at all coordinates along `axes`; those along the others are
    /// in `part`.
    fn all_along(&self, part: u64, axes: &[usize]) -> Vec<usize> {
        let mut parts = vec![part as usize];
        for axis in axes {
            let (ranks, step) = (self.parts.axes()[*axis].ranks(), self.grid_steps[*axis]);
            let at = |part: usize| (0..ranks).map(move |at| part + (at * step) as usize);
            parts = parts.into_iter().flat_map(at).collect();
        }
        parts
    }
}

/// The bytes from one index of each axis to the next.
fn steps(layout: &Layout) -> Vec<u64> {
    let mut steps = vec![0; layout.shape().len()];
    let mut step = layout.element_size();
    for axis in layout.slowest_first().iter().rev() {
        steps[*axis] = step;
        step *= layout.shape()[*axis];
    }
    steps
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{ArrayDescriptor, Distribution, ElementType, LocalPlacement};

    fn sequence(shape: &[u64], distribution: &str, layout: &str, ranks: u64) -> Sequence {
        let distribution = Distribution::parse(distribution, shape, ranks, None).unwrap();
        let placement = LocalPlacement::new(distribution).overlap(&vec![(1, 2); shape.len()]);
        let whole = ArrayDescriptor::new(shape, ElementType::I16).layout(layout.parse().unwrap());
        let parts = Parts::new(&placement, &whole).unwrap();
        let layout = |rank| parts.descriptor(&whole, rank).to_layout().unwrap();
        let layouts: Vec<Layout> = (0..parts.ranks()).map(layout).collect();
        Sequence::new(parts, &layouts).unwrap()
    }

    /// The extents against all pieces of each range.
    #[test]
    fn extents_are_the_bounds_of_what_a_range_touches() {
        let cases = [
            (&[7, 5][..], "block,block", "row", 6),
            (&[7, 5], "cyclic(2),cyclic(2)", "column", 4),
            (&[11], "cyclic(3)", "row", 2),
            (&[3, 4, 5], "cyclic,*,cyclic(2)", "axes:1,2,0", 4),
            (&[3], "block", "row", 5),
        ];
        for (shape, distribution, layout, ranks) in cases {
            let sequence = sequence(shape, distribution, layout, ranks);
            for offset in 0..sequence.len {
                for len in 1..=sequence.len - offset {
                    let mut touched: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
                    for piece in sequence.pieces(offset, len as usize) {
                        let end = piece.offset + piece.len as u64;
                        let bounds = touched.entry(piece.part).or_insert((piece.offset, end));
                        *bounds = (bounds.0.min(piece.offset), bounds.1.max(end));
                    }
                    let extents = sequence.extents(offset, len);
                    assert!(extents.is_sorted());
                    for (part, (start, end)) in touched {
                        let found = extents.iter().find(|extent| extent.part == part);
                        let found = found.expect("a file that is touched is locked");
                        assert!(
                            found.start <= start && end <= found.end,
                            "{found:?} for {start}..{end}"
                        );
                    }
                    // One element is in one file alone.
                    if offset / 2 == (offset + len - 1) / 2 {
                        let locked: u64 =
                            extents.iter().map(|extent| extent.end - extent.start).sum();
                        assert_eq!((extents.len(), locked), (1, 2));
                    }
                }
            }
        }
    }
}
