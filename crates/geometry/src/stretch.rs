//! Which elements a stretch of the file holds: the way back from bytes to
//! sections, for saying what a damaged stretch means.
//!
//! Elements that follow one another in a box of `d` axes are at most `2 d - 1`
//! boxes: the rest of a line, of a plane of lines, and so on up to whole ones, and
//! down again. In a tiled layout that holds for each tile, and what of an edge tile
//! lies outside the array is no element.

use std::ops::Range;

use crate::axis::AxisSection;
use crate::layout::Layout;
use crate::section::Section;

impl Layout {
    /// The elements of which the file has some byte in `bytes`, as boxes that do
    /// not overlap, in the order of the file. Bytes beyond its end are none.
    pub fn sections_of(&self, bytes: Range<u64>) -> impl Iterator<Item = Section> + '_ {
        let size = self.element_size();
        let end = bytes.end.min(self.byte_len());
        let elements = match bytes.start < end {
            true => bytes.start / size..end.div_ceil(size),
            false => 0..0,
        };
        let box_shape = self.tile().unwrap_or(self.shape()).to_vec();
        // Extents of an empty array may be anything.
        let (volume, tiles) = match elements.is_empty() {
            true => (1, 0..0),
            false => {
                let volume: u64 = box_shape.iter().product();
                (
                    volume,
                    elements.start / volume..elements.end.div_ceil(volume),
                )
            }
        };
        tiles.flat_map(move |tile| {
            let first = tile * volume;
            let from = elements.start.max(first) - first;
            let to = elements.end.min(first + volume) - first;
            self.boxes(&box_shape, tile, from..to)
        })
    }

    /// Elements `stretch` of a tile of such a shape, as far as they are in the array.
    fn boxes(&self, shape: &[u64], tile: u64, stretch: Range<u64>) -> Vec<Section> {
        let axes = self.slowest_first();
        let mut found = Vec::new();
        let extents: Vec<u64> = axes.iter().map(|axis| shape[*axis]).collect();
        cut(&extents, stretch, &mut Vec::new(), &mut found);
        let origin = self.origin(shape, tile);
        let sections = found.into_iter().filter_map(|ranges| {
            let mut spans = vec![AxisSection::span(0, 0); axes.len()];
            for (range, axis) in ranges.iter().zip(axes) {
                let extent = self.shape()[*axis];
                let at = |index: u64| (origin[*axis] + index).min(extent);
                spans[*axis] = AxisSection::span(at(range.start), at(range.end));
            }
            Section::new(spans).ok()
        });
        sections.filter(|section| !section.is_empty()).collect()
    }

    /// The index of the first element of a tile.
    fn origin(&self, shape: &[u64], mut tile: u64) -> Vec<u64> {
        let mut origin = vec![0; shape.len()];
        if self.tile().is_none() {
            return origin;
        }
        for axis in self.slowest_first().iter().rev() {
            let count = self.shape()[*axis].div_ceil(shape[*axis]).max(1);
            origin[*axis] = tile % count * shape[*axis];
            tile /= count;
        }
        origin
    }
}

/// Cuts elements `stretch` of a box, extents from the slowest axis on, into boxes;
/// `outer` are the indices along the axes before.
fn cut(
    extents: &[u64],
    stretch: Range<u64>,
    outer: &mut Vec<Range<u64>>,
    found: &mut Vec<Vec<Range<u64>>>,
) {
    let Some((_, inner)) = extents.split_first() else {
        found.push(outer.clone());
        return;
    };
    let plane: u64 = inner.iter().product();
    // The planes that are touched, and those that are whole.
    let (first, last) = (stretch.start / plane, stretch.end.div_ceil(plane));
    let whole = stretch.start.div_ceil(plane)..stretch.end / plane;
    if whole.start < whole.end {
        let mut put = |planes: Range<u64>, part: Range<u64>| {
            outer.push(planes);
            cut(inner, part, outer, found);
            outer.pop();
        };
        if first < whole.start {
            put(first..first + 1, stretch.start - first * plane..plane);
        }
        put(whole.clone(), 0..plane);
        if whole.end < last {
            put(whole.end..last, 0..stretch.end - whole.end * plane);
        }
        return;
    }
    for at in first..last {
        let begin = at * plane;
        let part = stretch.start.max(begin) - begin..stretch.end.min(begin + plane) - begin;
        outer.push(at..at + 1);
        cut(inner, part, outer, found);
        outer.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Order;

    /// Every stretch of several layouts against the offsets of all elements.
    #[test]
    fn stretches_hold_the_elements_whose_bytes_they_have() {
        type Case<'a> = (&'a [u64], Order, Option<&'a [u64]>);
        let cases: [Case<'_>; 8] = [
            (&[u64::MAX, 3, 0], Order::Row, None),
            (&[], Order::Row, None),
            (&[7], Order::Row, None),
            (&[3, 0], Order::Row, None),
            (&[3, 4, 2], Order::Row, None),
            (&[3, 4], Order::Column, None),
            (&[5, 4], Order::Row, Some(&[2, 3])),
            (&[3, 2, 3], Order::Axes(vec![1, 2, 0]), Some(&[2, 2, 2])),
        ];
        for (shape, order, tile) in cases {
            let layout = Layout::new(shape, 3, &order, tile).unwrap();
            let count = match shape.contains(&0) {
                true => 0,
                false => shape.iter().product(),
            };
            let index = |mut number: u64| {
                let mut index = vec![0; shape.len()];
                for axis in (0..shape.len()).rev() {
                    index[axis] = number % shape[axis];
                    number /= shape[axis];
                }
                index
            };
            let all: Vec<(Vec<u64>, u64)> = (0..count)
                .map(|number| (index(number), layout.offset(&index(number)).unwrap()))
                .collect();
            for start in 0..layout.byte_len() + 2 {
                for end in start..layout.byte_len() + 3 {
                    let sections: Vec<_> = layout.sections_of(start..end).collect();
                    for (index, offset) in &all {
                        let wanted = start < end && *offset < end && start < offset + 3;
                        let holding = sections.iter().filter(|s| s.contains(index)).count();
                        assert_eq!(holding, usize::from(wanted), "{shape:?} {start}..{end}");
                    }
                    if start == end {
                        assert!(sections.is_empty());
                    }
                    if tile.is_none() {
                        assert!(sections.len() < 2 * shape.len().max(1));
                    }
                }
            }
        }
    }
}
