//! [`MedianKernel`]: the median filter of one block in memory.
//!
//! The path of the data:
//!
//! 1. Planes of the block (all axes but the slowest) are copied one after the
//!    other into a ring that holds as many as the window is high. On the way
//!    values become keys, and each row gets the nearest value repeated where
//!    the window reaches beyond the block. The ring stays in the cache.
//! 2. For each row of the result, the rows that its windows reach are named;
//!    indices beyond the block are moved to the nearest one inside.
//! 3. [`medians`] of these rows, written as values again.

use std::ops::Range;

use outcore::Result;

use super::key::Real;
use super::row::{Room, medians};
use crate::block::{Block, walk};
use crate::cpu::vectorised;

/// A median filter with its working memory.
#[derive(Debug)]
pub struct MedianKernel<T: Real> {
    window: Vec<usize>,
    ring: Vec<T::Key>,
    room: Room<T::Key>,
}

impl<T: Real> MedianKernel<T> {
    /// A filter with a window of these odd extents, in file order.
    pub fn new(window: &[usize]) -> Self {
        let mut window = window.to_vec();
        if window.is_empty() {
            window.push(1);
        }
        Self {
            window,
            ring: Vec::new(),
            room: Room::default(),
        }
    }

    /// The bytes of working memory for blocks whose core has at most this
    /// shape, in file order.
    pub fn bytes(window: &[usize], core: &[usize]) -> u64 {
        let product = |lengths: &mut dyn Iterator<Item = u64>| {
            lengths.fold(1, |product: u64, length| product.saturating_mul(length))
        };
        let mut extents = window.iter().map(|extent| *extent as u64);
        let values = product(&mut extents.clone());
        let wide = extents.next_back().unwrap_or(1).max(1);
        // Along a single axis there is one row; otherwise a ring of planes.
        let reached = window
            .iter()
            .zip(core)
            .enumerate()
            .map(|(axis, (extent, length))| {
                let (extent, length) = (*extent as u64, *length as u64);
                match axis == 0 && window.len() > 1 {
                    true => extent,
                    false => length.saturating_add(extent).saturating_sub(1),
                }
            });
        let ring = product(&mut { reached }).saturating_mul(size_of::<T>() as u64);
        // The rows of a window are named, for counting twice.
        let names = (values / wide).saturating_mul(2 * size_of::<&[u8]>() as u64);
        let room = Room::<T::Key>::bytes(values);
        ring.saturating_add(names).saturating_add(room)
    }

    /// Writes the median of the window around each element of the block's
    /// core, dense and in file order. Beyond the block, the nearest value
    /// inside counts.
    pub fn filter(&mut self, block: &Block<'_, T>, result: &mut [T]) -> Result<()> {
        block.check(result.len())?;
        if result.is_empty() {
            return Ok(());
        }
        let keys: &[T::Key] = bytemuck::cast_slice(block.values);
        let result: &mut [T::Key] = bytemuck::cast_slice_mut(result);
        match block.shape {
            [] => result.copy_from_slice(keys),
            [_] => self.line(keys, &block.core[0], result),
            _ => self.planes(keys, block.shape, block.core, result),
        }
        Ok(())
    }

    /// The filter along a single axis.
    fn line(&mut self, keys: &[T::Key], core: &Range<usize>, result: &mut [T::Key]) {
        let width = self.window[0];
        self.ring.clear();
        self.ring.resize(core.len() + width - 1, keys[0]);
        load_row::<T>(keys, core, width / 2, &mut self.ring);
        medians::<T>(&[&self.ring], width, result, &mut self.room);
    }

    fn planes(
        &mut self,
        keys: &[T::Key],
        shape: &[usize],
        core: &[Range<usize>],
        result: &mut [T::Key],
    ) {
        let fast = shape.len() - 1;
        let window = &self.window;
        let (high, width) = (window[0], window[fast]);
        let (columns, inner) = (&core[fast], 1..fast);
        let length = columns.len() + width - 1;
        // The rows of a plane that windows reach.
        let reached: Vec<Range<usize>> = inner
            .clone()
            .map(|axis| {
                let reach = window[axis] / 2;
                let Range { start, end } = core[axis];
                start.saturating_sub(reach)..(end + reach).min(shape[axis])
            })
            .collect();
        let plane_rows: usize = reached.iter().map(Range::len).product();
        let plane_length = plane_rows * length;
        self.ring.clear();
        self.ring.resize(high * plane_length, keys[0]);

        let mut next = core[0].start.saturating_sub(high / 2);
        let mut results = result.chunks_exact_mut(columns.len());
        for plane in core[0].clone() {
            // 1. The planes that are reached from now on.
            while next < (plane + high / 2 + 1).min(shape[0]) {
                let slot = &mut self.ring[next % high * plane_length..][..plane_length];
                let mut rows = slot.chunks_exact_mut(length);
                walk(&reached, |index| {
                    let row = index.iter().zip(&shape[1..fast]);
                    let row = row.fold(next, |row, (at, extent)| row * extent + at);
                    let from = &keys[row * shape[fast]..(row + 1) * shape[fast]];
                    let into = rows.next().expect("a row for each index");
                    load_row::<T>(from, columns, width / 2, into);
                });
                next += 1;
            }
            // 2. and 3. The windows of each row.
            let (ring, room) = (&self.ring, &mut self.room);
            let mut rows: Vec<&[T::Key]> = Vec::new();
            let offsets: Vec<Range<usize>> = inner.clone().map(|axis| 0..window[axis]).collect();
            walk(&core[inner.clone()], |index| {
                rows.clear();
                for step in 0..high {
                    let near = (plane + step).saturating_sub(high / 2).min(shape[0] - 1);
                    walk(&offsets, |offset| {
                        let mut row = 0;
                        for (k, of) in reached.iter().enumerate() {
                            let (at, extent) = (index[k] + offset[k], shape[k + 1]);
                            let at = at.saturating_sub(window[k + 1] / 2).min(extent - 1);
                            row = row * of.len() + at - of.start;
                        }
                        let start = near % high * plane_length + row * length;
                        rows.push(&ring[start..start + length]);
                    });
                }
                let result = results.next().expect("a row for each index");
                medians::<T>(&rows, width, result, room);
            });
        }
    }
}

/// Copies the columns that windows around `columns` reach, as keys, with the
/// nearest value where they reach beyond the row.
fn load_row<T: Real>(from: &[T::Key], columns: &Range<usize>, reach: usize, into: &mut [T::Key]) {
    let (start, end) = (columns.start.saturating_sub(reach), columns.end + reach);
    let before = reach - (columns.start - start);
    let inside = &from[start..end.min(from.len())];
    let (left, rest) = into.split_at_mut(before);
    let (middle, right) = rest.split_at_mut(inside.len());
    convert::<T>(inside, middle);
    left.fill(middle[0]);
    right.fill(middle[middle.len() - 1]);
}

vectorised! {
    fn convert[T: Real](from: &[T::Key], into: &mut [T::Key]) {
        for (key, bits) in into.iter_mut().zip(from) {
            *key = T::flip(*bits);
        }
    }
}
