//! [`Grid`]: what is solved, in the axis order of the file; and [`relax`], some
//! sweeps from memory to memory.

use std::ops::Range;

use outcore::{Array, Error, Result};

use super::average::Float;
use super::stencil::{Ends, Stencil};
use super::wavefront::{Sink, Wavefront};

/// What happens at the edges of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edges {
    /// The outermost elements keep their values.
    Fixed,
    /// The array goes on at its other end.
    Periodic,
}

/// An array on which Jacobi sweeps are done.
#[derive(Debug, Clone)]
pub struct Grid {
    /// The extents in file order, slowest first.
    shape: Vec<usize>,
    /// The file's axes in the order of the array's own axes.
    order: Vec<usize>,
    edges: Edges,
}

impl Grid {
    /// A row-major array.
    pub fn new(shape: &[usize], edges: Edges) -> Self {
        Self {
            shape: shape.to_vec(),
            order: (0..shape.len()).collect(),
            edges,
        }
    }

    /// The grid of an array, with the axes as they stand in its file.
    pub fn of(array: &Array, edges: Edges) -> Self {
        let slowest_first = array.layout().slowest_first();
        let shape = array.shape();
        let place = |axis: usize| slowest_first.iter().position(|of_file| *of_file == axis);
        Self {
            shape: slowest_first
                .iter()
                .map(|axis| shape[*axis] as usize)
                .collect(),
            order: (0..shape.len()).filter_map(place).collect(),
            edges,
        }
    }

    /// The number of planes: indices of the slowest axis.
    pub fn planes(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// The elements of a plane.
    pub fn plane_len(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// The planes that `sweeps` sweeps of the planes `core` need, as stretches
    /// in the order in which they are needed, each with the number that its
    /// first plane has for the front: along periodic edges planes before the
    /// first one have negative numbers.
    pub(super) fn needed(&self, core: &Range<usize>, sweeps: usize) -> Vec<(i64, Range<usize>)> {
        if core.is_empty() {
            return Vec::new();
        }
        let count = self.planes();
        if self.edges == Edges::Fixed {
            let from = core.start.saturating_sub(sweeps);
            return vec![(
                from as i64,
                from..core.end.saturating_add(sweeps).min(count),
            )];
        }
        let mut found = Vec::new();
        let mut number = core.start as i64 - sweeps as i64;
        let end = core.end as i64 + sweeps as i64;
        while number < end {
            let start = number.rem_euclid(count as i64) as usize;
            let length = (count - start).min((end - number) as usize);
            found.push((number, start..start + length));
            number += length as i64;
        }
        found
    }

    pub(super) fn front<T: Float>(&self, core: &Range<usize>, sweeps: usize) -> Wavefront<T> {
        let (swept, ends): (Range<i64>, fn(&usize) -> Ends) = match self.edges {
            Edges::Fixed => (1..self.planes() as i64 - 1, |extent| {
                Ends::Kept(1..(*extent).max(2) - 1)
            }),
            Edges::Periodic => (i64::MIN..i64::MAX, |_| Ends::Joined),
        };
        let plane = self.shape.get(1..).unwrap_or(&[]).to_vec();
        let measured = plane.iter().map(|extent| 0..*extent).collect();
        let stencil = Stencil {
            ends: plane.iter().map(ends).collect(),
            plane,
            order: self.order.clone(),
        };
        let wanted = core.start as i64..core.end as i64;
        Wavefront::new(stencil, [swept, wanted], measured, sweeps)
    }
}

/// Does `sweeps` (at least 1) Jacobi sweeps in one pass: from the whole array
/// `values` the planes `core` after them. Returns the largest change of the
/// last sweep.
pub fn relax<T: Float>(
    grid: &Grid,
    values: &[T],
    core: Range<usize>,
    sweeps: usize,
    result: &mut [T],
) -> Result<f64> {
    let length = grid.plane_len();
    if values.len() != grid.planes() * length || result.len() != core.len() * length {
        return Err(Error::Invalid(format!(
            "a grid of {} planes of {length} elements does not fit {} values and {} results for {} \
             planes",
            grid.planes(),
            values.len(),
            result.len(),
            core.len()
        )));
    }
    let mut front = grid.front(&core, sweeps);
    let mut sink = Slice {
        rest: result,
        length,
    };
    for (number, planes) in grid.needed(&core, sweeps) {
        let slab = &values[planes.start * length..planes.end * length];
        front.push(number, slab, &mut sink)?;
    }
    front.finish(&mut sink)?;
    Ok(front.change())
}

/// Finished planes in memory.
struct Slice<'a, T> {
    rest: &'a mut [T],
    length: usize,
}

impl<T> Sink<T> for Slice<'_, T> {
    fn place(&mut self) -> Result<&mut [T]> {
        let rest = std::mem::take(&mut self.rest);
        let (plane, rest) = rest.split_at_mut(self.length);
        self.rest = rest;
        Ok(plane)
    }
}
