//! A section of a file straight into a buffer of another axis order, through a
//! mapping: one copy in all, since the change of order is made on the way.
//!
//! Of each tile that the section touches (an array without tiles is one) the
//! elements form a box with equal steps in the file along each axis, so a box is
//! one call of the transposition kernel. As in `mapped`, the length of the
//! file is looked at before every [`PART`] bytes.

use outcore_geometry::{AxisSection, Layout, Section};
use outcore_storage::Store;

use crate::error::Result;
use crate::reorder::{Step, dense_steps, permute};

/// Bytes that are copied between two looks at the file.
const PART: usize = 4 << 20;

/// Positions of a section along one axis that lie in one tile.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// The first position, and how many there are.
    first: usize,
    count: usize,
    /// What they add to the offset in the file, and the bytes from one to the
    /// next.
    offset: u64,
    step: usize,
}

/// Reads `section` of an array that begins at `start` of `store`, as the bytes
/// stand in the file, into a dense buffer with its axes in `order` (slowest first).
/// False, with nothing done, where the store cannot be mapped or the section has
/// index lists.
pub(crate) fn read(
    (store, start): (&dyn Store, u64),
    layout: &Layout,
    section: &Section,
    (order, buffer): (&[usize], &mut [u8]),
) -> Result<bool> {
    if section.is_empty() {
        return Ok(true);
    }
    let Some(mapping) = store.map()? else {
        return Ok(false);
    };
    let Some(segments) = segments(layout, section) else {
        return Ok(false);
    };
    let size = layout.element_size() as usize;
    let places = dense_steps(&section.shape(), order, size);
    assert_eq!(
        buffer.len() as u64,
        section.count() * size as u64,
        "the buffer holds the section"
    );
    let mut tile = vec![0; segments.len()];
    loop {
        let of_tile = tile.iter().zip(&segments).map(|(at, axis)| axis[*at]);
        for part in parts(&of_tile.collect::<Vec<_>>(), size) {
            let offset: u64 = part.iter().map(|axis| axis.offset).sum();
            let extent: usize = part.iter().map(|axis| (axis.count - 1) * axis.step).sum();
            let from = mapping.readable(start + offset, extent + size)?;
            let place: usize = part
                .iter()
                .zip(&places)
                .map(|(axis, to)| axis.first * to)
                .sum();
            let axes = part.iter().zip(&places).map(|(axis, to)| Step {
                count: axis.count,
                from: axis.step,
                to: *to,
            });
            // SAFETY: the mapping, which is held, has the bytes from the first to
            // the last element of the part; the positions of the part lie in the
            // section, all of which the buffer holds.
            unsafe {
                let to = buffer.as_mut_ptr().add(place);
                permute(&axes.collect::<Vec<_>>(), size, from, to);
            }
        }
        if !advance(&mut tile, &segments) {
            return Ok(true);
        }
    }
}

/// Goes to the next tile, the last axis first; false after the last tile.
fn advance(tile: &mut [usize], segments: &[Vec<Segment>]) -> bool {
    for (at, axis) in tile.iter_mut().zip(segments).rev() {
        *at += 1;
        if *at < axis.len() {
            return true;
        }
        *at = 0;
    }
    false
}

/// The segments of each axis; `None` if one has an index list.
fn segments(layout: &Layout, section: &Section) -> Option<Vec<Vec<Segment>>> {
    let shape = layout.shape();
    let tile = layout.tile().unwrap_or(shape);
    let mut steps = vec![(0, 0); shape.len()];
    let mut inner = layout.element_size();
    for axis in layout.slowest_first().iter().rev() {
        steps[*axis].0 = inner;
        inner *= tile[*axis];
    }
    let mut outer = inner;
    for axis in layout.slowest_first().iter().rev() {
        steps[*axis].1 = outer;
        outer *= shape[*axis].div_ceil(tile[*axis]);
    }
    let axes = section.axes().iter().zip(tile).zip(steps);
    axes.map(|((taken, tile), steps)| segments_of(taken, *tile, steps))
        .collect()
}

fn segments_of(taken: &AxisSection, tile: u64, (inner, outer): (u64, u64)) -> Option<Vec<Segment>> {
    let stride = taken.stride()?;
    let (mut first, mut found) = (0, Vec::new());
    while first < taken.count() {
        let index = taken.index(first);
        let number = index / tile;
        let end = taken.count_below((number + 1).saturating_mul(tile));
        found.push(Segment {
            first: first as usize,
            count: (end - first) as usize,
            offset: number * outer + index % tile * inner,
            step: (stride * inner) as usize,
        });
        first = end;
    }
    Some(found)
}

/// A box in parts of about [`PART`] bytes, cut along the axis that is slowest in
/// the file.
fn parts(whole: &[Segment], size: usize) -> impl Iterator<Item = Vec<Segment>> + use<> {
    let whole = whole.to_vec();
    let slowest = (0..whole.len()).max_by_key(|axis| (whole[*axis].count > 1, whole[*axis].step));
    let all: usize = whole.iter().map(|axis| axis.count).product();
    let count = slowest.map_or(1, |axis| whole[axis].count);
    let most = (PART / (all / count * size).max(1)).max(1);
    (0..count).step_by(most).map(move |at| {
        let mut part = whole.clone();
        if let Some(axis) = slowest {
            part[axis] = Segment {
                first: whole[axis].first + at,
                count: most.min(count - at),
                offset: whole[axis].offset + (at * whole[axis].step) as u64,
                ..whole[axis]
            };
        }
        part
    })
}
