//! [`Stencil`]: one sweep over one plane.
//!
//! A plane is everything along all axes but the slowest. An element becomes the
//! average of its two neighbours along each axis: two in the planes before and
//! after, the others in the plane itself. The neighbours are added in the order
//! of the array's own axes, lower before upper, whatever the order of the axes
//! in the file; so the layout of an array does not change its results.

use std::ops::Range;

use super::average::average;
use crate::block::walk;
use crate::float::Float;

/// What an axis does at its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ends {
    /// The last element has the first one as its neighbour.
    Joined,
    /// Elements outside of the range keep their values.
    Kept(Range<usize>),
}

/// How planes are swept.
#[derive(Debug, Clone)]
pub(super) struct Stencil {
    /// The extents of a plane, slowest first.
    pub(super) plane: Vec<usize>,
    /// What each axis of the plane does at its ends.
    pub(super) ends: Vec<Ends>,
    /// The axes in the order in which neighbours are added; axis 0 is the one
    /// across planes, axis `k + 1` is axis `k` of the plane.
    pub(super) order: Vec<usize>,
}

impl Stencil {
    /// The number of elements of a plane.
    pub(super) fn plane_len(&self) -> usize {
        self.plane.iter().product()
    }

    /// Writes the plane between `before` and `after` one sweep later.
    pub(super) fn sweep<T: Float>(&self, [before, plane, after]: [&[T]; 3], result: &mut [T]) {
        let factor = T::of(1.0 / (2 * self.order.len()) as f64);
        let (outer, row) = match &*self.plane {
            [outer @ .., row] => (outer, *row),
            [] => (&[][..], 1),
        };
        let fast = self.plane.len();
        let mut neighbours: Vec<&[T]> = Vec::with_capacity(2 * self.order.len());
        let ranges: Vec<Range<usize>> = outer.iter().map(|extent| 0..*extent).collect();
        let mut start = 0;
        walk(&ranges, |index| {
            let here = start..start + row;
            start += row;
            let (old, result) = (&plane[here.clone()], &mut result[here.clone()]);
            if !self.is_swept(index) {
                return result.copy_from_slice(old);
            }
            let columns = self.swept_columns(row);
            let ends = [0..columns.start, columns.end..row];
            let pieces = match self.ends.last() {
                Some(Ends::Joined) => [columns, ends[0].clone(), ends[1].clone()],
                _ => {
                    ends.into_iter()
                        .for_each(|end| result[end.clone()].copy_from_slice(&old[end]));
                    [columns, 0..0, 0..0]
                }
            };
            for columns in pieces {
                if columns.is_empty() {
                    continue;
                }
                neighbours.clear();
                for axis in &self.order {
                    let [lower, upper] = match *axis {
                        0 => [&before[here.clone()], &after[here.clone()]]
                            .map(|row| &row[columns.clone()]),
                        axis if axis == fast => beside(old, &columns),
                        axis => self
                            .rows_beside(index, axis - 1)
                            .map(|at| &plane[at * row..][columns.clone()]),
                    };
                    neighbours.extend([lower, upper]);
                }
                average(&neighbours, factor, &mut result[columns]);
            }
        });
    }

    /// Whether the row at `index` of the plane's outer axes changes.
    fn is_swept(&self, index: &[usize]) -> bool {
        let mut axes = index.iter().zip(&self.ends);
        axes.all(|(at, ends)| match ends {
            Ends::Joined => true,
            Ends::Kept(swept) => swept.contains(at),
        })
    }

    /// The columns whose neighbours stand beside them.
    fn swept_columns(&self, row: usize) -> Range<usize> {
        match self.ends.last() {
            // Without an axis in the plane, its one element has none.
            None => 0..1,
            Some(Ends::Kept(swept)) => swept.clone(),
            Some(Ends::Joined) if row == 1 => 1..1,
            Some(Ends::Joined) => 1..row - 1,
        }
    }

    /// The numbers of the rows before and after `index` along an outer axis.
    fn rows_beside(&self, index: &[usize], axis: usize) -> [usize; 2] {
        let extent = self.plane[axis];
        [extent - 1, 1].map(|step| {
            let outer = index.iter().zip(&self.plane).enumerate();
            outer.fold(0, |row, (k, (at, n))| {
                let at = if k == axis { (at + step) % extent } else { *at };
                row * n + at
            })
        })
    }
}

/// The columns before and after `columns` of a row, joined at its ends.
fn beside<'a, T>(row: &'a [T], columns: &Range<usize>) -> [&'a [T]; 2] {
    let count = row.len();
    if columns.len() == 1 {
        let before = (columns.start + count - 1) % count;
        let after = (columns.start + 1) % count;
        return [&row[before..before + 1], &row[after..after + 1]];
    }
    [
        &row[columns.start - 1..columns.end - 1],
        &row[columns.start + 1..columns.end + 1],
    ]
}
