//! [`Part`]: which part of a section a rank takes, and in which pieces it goes through it.
//!
//! Pieces are boxes of positions of the section. They follow one another in the
//! order of the file; where the array is tiled (or in chunks), they are made of
//! whole tiles, so that no tile is read or decoded twice.

use outcore::{Array, Error, Pieces, Result, Section, divide};

/// A section of an array.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The array.
    pub array: &'a Array,
    /// The section of it.
    pub section: &'a Section,
}

impl Part<'_> {
    /// All positions of the section.
    pub fn positions(&self) -> Result<Section> {
        Section::whole(&self.section.shape()).map_err(|error| Error::Invalid(error.to_string()))
    }

    /// The positions that one of `ranks` ranks takes.
    pub fn share(&self, positions: &Section, rank: usize, ranks: usize) -> Section {
        let order = self.array.layout().slowest_first();
        let Some(tile) = self.array.layout().tile() else {
            return divide(positions, order, ranks as u64).swap_remove(rank);
        };
        let tiles = |axis: &usize| self.tiles(*axis, tile[*axis]);
        let enough = order.iter().find(|axis| tiles(axis).1 >= ranks as u64);
        let most = || order.iter().max_by_key(|axis| tiles(axis).1);
        let Some(axis) = enough.or_else(most).copied() else {
            return divide(positions, order, ranks as u64).swap_remove(rank);
        };
        let (first, count) = tiles(&axis);
        let border = |part: usize| {
            let tile_number = first + count * part as u64 / ranks as u64;
            let limit = tile_number.saturating_mul(tile[axis]);
            self.section.axes()[axis].count_below(limit)
        };
        let end = match rank + 1 == ranks {
            true => u64::MAX,
            false => border(rank + 1),
        };
        let start = if rank == 0 { 0 } else { border(rank) };
        within(positions, axis, (start, end))
    }

    /// The tiles that the section touches along an axis: the first, and how many.
    fn tiles(&self, axis: usize, tile: u64) -> (u64, u64) {
        let (lower, upper) = self.section.axes()[axis].bounds();
        if lower >= upper {
            return (0, 0);
        }
        let first = lower / tile;
        (first, (upper - 1) / tile - first + 1)
    }

    /// The pieces of a share, of at most `most` elements each, which are positions, too.
    pub fn pieces(&self, share: &Section, most: u64) -> Box<dyn Iterator<Item = Section>> {
        let order = self.array.layout().slowest_first().to_vec();
        let Some(tile) = self.array.layout().tile() else {
            return Box::new(Pieces::new(share, &order, most));
        };
        let tiles: Vec<(u64, u64)> = (0..order.len())
            .map(|axis| self.tiles(axis, tile[axis]))
            .collect();
        let mut left = (most / tile.iter().fold(1, |all: u64, n| all.saturating_mul(*n))).max(1);
        let mut groups = vec![1; order.len()];
        for axis in order.iter().rev() {
            groups[*axis] = tiles[*axis].1.min(left).max(1);
            left = match groups[*axis] == tiles[*axis].1 {
                true => left / groups[*axis],
                false => 1,
            };
        }
        // Along each axis, where the groups of tiles end, as positions.
        let borders = (0..order.len()).map(|axis| {
            let (first, count) = tiles[axis];
            let taken = self.section.axes()[axis].clone();
            let (group, extent) = (groups[axis], tile[axis]);
            move |number: u64| {
                let last = (number * group).min(count);
                let limit = (first + last).saturating_mul(extent);
                if last == count {
                    u64::MAX
                } else {
                    taken.count_below(limit)
                }
            }
        });
        let borders: Vec<_> = borders.collect();
        let numbers = (0..order.len()).map(|axis| tiles[axis].1.div_ceil(groups[axis]));
        let Ok(grid) = Section::whole(&numbers.collect::<Vec<_>>()) else {
            // So many tiles that they have no number: not of an array that exists.
            return Box::new(Pieces::new(share, &order, most));
        };
        let share = share.clone();
        let boxes = Pieces::new(&grid, &order, 1).map(move |at| {
            (0..borders.len()).fold(share.clone(), |piece, axis| {
                let number = at.axes()[axis].bounds().0;
                let start = if number == 0 {
                    0
                } else {
                    borders[axis](number)
                };
                within(&piece, axis, (start, borders[axis](number + 1)))
            })
        });
        // A tile may be larger than a piece may be.
        let boxes = boxes.filter(|piece| !piece.is_empty());
        Box::new(boxes.flat_map(move |piece| Pieces::new(&piece, &order, most)))
    }
}

/// The positions (a box) that lie in a range along one axis.
fn within(positions: &Section, axis: usize, (from, to): (u64, u64)) -> Section {
    let (lower, upper) = positions.axes()[axis].bounds();
    let (from, to) = (from.clamp(lower, upper), to.clamp(lower, upper));
    positions.slice(axis, from - lower, to.max(from) - lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::walk::{number, position};
    use outcore::storage::MemoryStore;
    use outcore::{ArrayDescriptor, ElementType};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    #[test]
    fn every_position_is_in_one_piece_of_one_rank() {
        for (layout, text, most) in [
            ("row", "1:9, ::2, 2:7", 7),
            ("column", ":, :, :", 11),
            ("tiled:3x2x4", "1:9, ::2, 2:7", 30),
            ("tiled:3x2x4", ":, :, :", 5),
            ("tiled:3x2x4", ":, :, :", 1000),
            ("tiled:3x2x4:column", "[0,5,6], 1:, :", 24),
            ("tiled:3x2x4", "3:3, :, :", 24),
        ] {
            let descriptor =
                ArrayDescriptor::new(&[10, 7, 9], ElementType::U8).layout(layout.parse().unwrap());
            let store = Arc::new(MemoryStore::new());
            let array = Array::in_store("array", &descriptor, store).unwrap();
            let section = array.section(text).unwrap();
            let part = Part {
                array: &array,
                section: &section,
            };
            let all = part.positions().unwrap();
            for ranks in [1, 2, 5] {
                let mut seen = BTreeSet::new();
                for rank in 0..ranks {
                    let share = part.share(&all, rank, ranks);
                    for piece in part.pieces(&share, most) {
                        assert!(piece.count() <= most, "{layout} {text}");
                        let order = array.layout().slowest_first();
                        for at in 0..piece.count() {
                            let place = position(&piece, order, at);
                            assert!(seen.insert(number(&all.shape(), order, &place)));
                        }
                    }
                }
                assert_eq!(seen.len() as u64, all.count(), "{layout} {text} {ranks}");
                assert!(seen.last().is_none_or(|last| *last + 1 == all.count()));
            }
        }
    }
}
