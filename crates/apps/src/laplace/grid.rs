//! [`Grid`]: a row-major array in memory that is solved; and [`relax`], some
//! sweeps from memory to memory.

use std::ops::Range;

use outcore::{Error, Result};

use super::problem::check_fused;
use super::region::Region;
use super::wavefront::Sink;
use crate::float::Float;

/// What happens at the edges of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edges {
    /// The outermost elements keep their values.
    Fixed,
    /// The array goes on at its other end.
    Periodic,
}

/// An array in memory on which Jacobi sweeps are done.
#[derive(Debug, Clone)]
pub struct Grid {
    shape: Vec<usize>,
    edges: Edges,
}

impl Grid {
    /// A row-major array.
    pub fn new(shape: &[usize], edges: Edges) -> Self {
        Self {
            shape: shape.to_vec(),
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
    check_fused(sweeps as u64)?;
    let fits = values.len() == grid.planes() * length
        && core.end <= grid.planes()
        && result.len() == core.len() * length;
    if !fits {
        return Err(Error::Invalid(format!(
            "a grid of {} planes of {length} elements does not fit {} values and {} results for planes \
             {core:?}",
            grid.planes(),
            values.len(),
            result.len()
        )));
    }
    let region = Region::of_planes(&grid.shape, &core, grid.edges, sweeps as u64);
    if region.is_empty() {
        return Ok(0.0);
    }
    let mut front = region.front()?;
    let mut sink = Slice {
        rest: result,
        length,
    };
    for (number, planes) in region.needed() {
        let slab = &values[planes.start as usize * length..planes.end as usize * length];
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
