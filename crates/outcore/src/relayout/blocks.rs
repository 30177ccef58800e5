//! [`choose`]: the shape of the blocks in which an array moves from one layout
//! into another. Arithmetic only.
//!
//! A block is a box of elements. Of a block, what follows one another in the
//! source is one piece of a read, and in the target one piece of a write. A
//! layout is a sequence of *levels* from the fastest on: an axis, or first the
//! axes inside a tile and then those from tile to tile. A piece grows as long as
//! all faster levels are whole. So a block that has long pieces on both sides is
//! grown from one element: along the fastest levels of the source, and along
//! those of the target. With pieces of `s` elements and `t` elements that takes
//! up to `s t` elements of memory.
//!
//! Which pieces? Where reads are copies from memory ([`Reads::Resident`]), short
//! pieces cost nothing and contiguous writes are what counts: [`SHORT`] bytes of
//! the source, and of the target as much as there is. A block that fits the
//! processor's cache, [`CACHED`], is better than a larger one. Otherwise
//! ([`Reads::Requests`]) both sides have the longest pieces that fit.
//!
//! What can be read or written only whole, chunks that are decoded and shards, is
//! moved again for every block that has a part of it. So where a side has such
//! [`Units`], blocks are made of whole ones if they fit.

use outcore_geometry::Layout;
use serde::{Deserialize, Serialize};

/// What is read in one piece at least, if reads are copies from memory.
const SHORT: u64 = 256;

/// Larger blocks gain nothing where reads are copies from memory.
const CACHED: u64 = 4 << 20;

/// For writes of so many bytes a larger block is worth it.
const CONTIGUOUS: u64 = 1 << 20;

/// Longer pieces gain nothing.
const LONG: u64 = 64 << 20;

/// What a read of a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// A copy from the page cache.
    Resident,
    /// A request to the store.
    Requests,
    /// Requests for chunks, which are decoded whole.
    Chunks,
}

/// A block, and the bytes of its pieces on either side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Choice {
    pub(crate) block: Vec<u64>,
    pub(crate) read: u64,
    pub(crate) write: u64,
}

/// Boxes of elements that can be moved only whole, and how many bytes may be taken so
/// that they are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Units<'a> {
    pub(crate) source: Option<&'a [u64]>,
    pub(crate) target: Option<&'a [u64]>,
    pub(crate) room: u64,
}

impl Units<'_> {
    /// The smallest box of whole units of both sides, or of one of them, that fits.
    fn block(&self, shape: &[u64], size: u64) -> Option<Vec<u64>> {
        let both = match (self.source, self.target) {
            (Some(source), Some(target)) => Some(common(source, target)),
            _ => None,
        };
        let one_side = [self.target, self.source].into_iter().flatten();
        let boxes = both.into_iter().chain(one_side.map(<[u64]>::to_vec));
        let within = boxes.map(|unit| {
            let along = unit.iter().zip(shape);
            along.map(|(unit, whole)| *unit.min(whole)).collect()
        });
        let mut fitting = within.filter(|block: &Vec<u64>| count(block) <= self.room / size);
        fitting.next()
    }
}

/// The least extents that are multiples of both.
fn common(a: &[u64], b: &[u64]) -> Vec<u64> {
    let divisor = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a.max(1)
    };
    let pairs = a.iter().zip(b);
    pairs
        .map(|(a, b)| (a / divisor(*a, *b)).saturating_mul(*b))
        .collect()
}

/// A layout from the fastest level to the slowest.
pub(crate) struct Levels(Vec<Level>);

struct Level {
    axis: usize,
    /// How many indices of the axis one step of this level goes over.
    unit: u64,
    /// How many indices there are, from the level below up to this one.
    limit: u64,
}

impl Levels {
    pub(crate) fn of(layout: &Layout) -> Self {
        let fastest_first = || layout.slowest_first().iter().rev().copied();
        let whole = |axis: usize| layout.shape()[axis].max(1);
        let mut levels = Vec::new();
        if let Some(tile) = layout.tile() {
            levels.extend(fastest_first().map(|axis| Level {
                axis,
                unit: 1,
                limit: tile[axis].min(whole(axis)),
            }));
        }
        levels.extend(fastest_first().map(|axis| Level {
            axis,
            unit: layout.tile().map_or(1, |tile| tile[axis].min(whole(axis))),
            limit: whole(axis),
        }));
        Self(levels)
    }

    /// How many elements of `block` follow one another.
    pub(crate) fn piece(&self, block: &[u64]) -> u64 {
        let mut piece = 1u64;
        for level in &self.0 {
            let taken = block[level.axis].min(level.limit);
            piece = piece.saturating_mul(taken.div_ceil(level.unit));
            if taken < level.limit {
                break;
            }
        }
        piece
    }

    /// Grows `block` until `goal` elements follow one another, or all.
    fn grow(&self, block: &mut [u64], goal: u64) {
        let mut piece = 1u64;
        for level in &self.0 {
            if piece >= goal {
                return;
            }
            let wanted = level.unit.saturating_mul(goal.div_ceil(piece));
            let extent = &mut block[level.axis];
            *extent = (*extent).max(wanted.min(level.limit));
            let taken = (*extent).min(level.limit);
            piece = piece.saturating_mul(taken.div_ceil(level.unit));
            if taken < level.limit {
                return;
            }
        }
    }

    /// The block that has `page` elements of this layout in a piece, and of the
    /// other as many lines as `room` elements allow; `None` if these are no more
    /// than there are in a page already.
    pub(crate) fn pages_by_lines(&self, other: &Self, page: u64, room: u64) -> Option<Vec<u64>> {
        let axes = self.0.iter().map(|level| level.axis + 1).max().unwrap_or(0);
        let mut block = vec![1; axes];
        self.grow(&mut block, page);
        let before = other.piece(&block);
        other.fill(&mut block, room);
        (count(&block) <= room && other.piece(&block) > before).then_some(block)
    }

    /// Grows `block` by whole multiples as far as `room` elements allow.
    fn fill(&self, block: &mut [u64], room: u64) {
        for level in &self.0 {
            let factor = room / count(block).max(1);
            let extent = &mut block[level.axis];
            if *extent < level.limit {
                *extent = extent.saturating_mul(factor.max(1)).min(level.limit);
            }
            if *extent < level.limit {
                return;
            }
        }
    }
}

/// How many elements there are.
fn count(block: &[u64]) -> u64 {
    block
        .iter()
        .fold(1, |all, extent| all.saturating_mul(*extent))
}

/// The block with pieces as `reads` wants them, of at most `room` bytes, or of whole
/// `units`; both layouts are of one shape and element size.
pub(crate) fn choose(
    source: &Layout,
    target: &Layout,
    room: u64,
    reads: Reads,
    units: &Units<'_>,
) -> Choice {
    let size = target.element_size();
    let (from, to) = (Levels::of(source), Levels::of(target));
    let most = (room / size).max(1);
    if let Some(unit) = units.block(target.shape(), size) {
        let mut block = unit.clone();
        to.fill(&mut block, most);
        from.fill(&mut block, most);
        even_out_units(&mut block, target.shape(), &unit);
        return Choice {
            read: from.piece(&block).saturating_mul(size),
            write: to.piece(&block).saturating_mul(size),
            block,
        };
    }
    let one = vec![1; target.shape().len()];
    let fits = |block: &Vec<u64>| count(block) <= most;
    let grown = |read: u64, write: u64| {
        let mut block = one.clone();
        from.grow(&mut block, (read / size).max(1));
        to.grow(&mut block, (write / size).max(1));
        block
    };
    let goals = || {
        std::iter::successors(Some(LONG), |goal| {
            Some(goal / 2).filter(|goal| *goal >= size)
        })
    };
    let balanced = || goals().map(|goal| grown(goal, goal)).find(fits);
    let block = match reads {
        Reads::Requests | Reads::Chunks => balanced(),
        Reads::Resident => {
            let mut block = grown(SHORT, size);
            let fit = fits(&block).then(|| {
                let mut enough = CACHED / size;
                to.fill(&mut block, most.min(enough));
                while to.piece(&block) < CONTIGUOUS / size && enough < most {
                    enough *= 2;
                    to.fill(&mut block, most.min(enough));
                }
                from.fill(&mut block, most.min(CACHED / size));
                block
            });
            fit.or_else(balanced)
        }
    };
    let mut block = block.unwrap_or(one);
    if reads != Reads::Resident {
        to.fill(&mut block, most);
        from.fill(&mut block, most);
    }
    cut_at_tiles(&mut block, target);
    even_out(
        &mut block,
        target.shape(),
        (source.tile(), target.tile()),
        size,
    );
    Choice {
        read: from.piece(&block).saturating_mul(size),
        write: to.piece(&block).saturating_mul(size),
        block,
    }
}

/// Makes blocks end where tiles of the target do, so that no tile is written in parts.
fn cut_at_tiles(block: &mut [u64], target: &Layout) {
    let tiles = target.tile().unwrap_or_default().iter();
    for ((extent, tile), whole) in block.iter_mut().zip(tiles).zip(target.shape()) {
        if *extent > *tile && *extent < *whole {
            *extent -= *extent % *tile;
        }
    }
}

/// Makes the blocks along each axis equally long, as far as units are whole: ranks take
/// turns, and one that always got the rest would have nothing to do.
fn even_out_units(block: &mut [u64], shape: &[u64], unit: &[u64]) {
    for ((extent, whole), unit) in block.iter_mut().zip(shape).zip(unit) {
        if *extent > 0 && *unit > 0 {
            let even = whole.div_ceil(whole.div_ceil(*extent).max(1));
            *extent = (*extent).min(even.next_multiple_of(*unit));
        }
    }
}

/// Makes the blocks along each axis without tiles equally long, in whole lines of
/// the cache where that is no more.
fn even_out(
    block: &mut [u64],
    shape: &[u64],
    (source, target): (Option<&[u64]>, Option<&[u64]>),
    size: u64,
) {
    let line = (64 / size).max(1);
    let tile = |axis: usize| source.or(target).map(|tile| tile[axis]);
    for (axis, extent) in block.iter_mut().enumerate() {
        let whole = shape[axis];
        if whole == 0 || tile(axis).is_some_and(|tile| tile < whole) {
            continue;
        }
        let even = whole.div_ceil(whole.div_ceil(*extent));
        let lines = even.next_multiple_of(line);
        *extent = if lines <= *extent { lines } else { even };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[u64], text: &str) -> Layout {
        Layout::arranged(shape, 4, &text.parse().unwrap()).unwrap()
    }

    #[test]
    fn resident_sources_give_contiguous_writes() {
        let shape = [16384, 16384];
        let (row, column) = (layout(&shape, "row"), layout(&shape, "column"));
        let choice = choose(&row, &column, 60 << 20, Reads::Resident, &Units::default());
        assert_eq!(choice.block, [16384, 64]);
        assert_eq!((choice.read, choice.write), (256, 4 << 20));
        // Wider ones take a larger block, but no larger than writes need.
        let wide = layout(&[32768, 32768], "column");
        let choice = choose(
            &layout(&[32768, 32768], "row"),
            &wide,
            60 << 20,
            Reads::Resident,
            &Units::default(),
        );
        assert_eq!(choice.block, [32768, 64]);
        // The other way round it is the rows that are cut.
        assert_eq!(
            choose(&column, &row, 60 << 20, Reads::Resident, &Units::default()).block,
            [64, 16384]
        );
    }

    #[test]
    fn requests_are_balanced() {
        let shape = [16384, 16384];
        let (row, column) = (layout(&shape, "row"), layout(&shape, "column"));
        let choice = choose(&row, &column, 64 << 20, Reads::Requests, &Units::default());
        assert_eq!(choice.block, [4096, 4096]);
        assert_eq!((choice.read, choice.write), (16384, 16384));
        // The same order: everything is one piece.
        let choice = choose(&row, &row, 1 << 20, Reads::Requests, &Units::default());
        assert_eq!((choice.read, choice.write), (1 << 20, 1 << 20));
    }

    #[test]
    fn tiles_are_moved_whole() {
        let shape = [1024, 1024];
        let (row, tiled) = (layout(&shape, "row"), layout(&shape, "tiled:256x256"));
        let choice = choose(&tiled, &row, 1 << 20, Reads::Requests, &Units::default());
        assert_eq!(choice.block, [256, 1024]);
        assert_eq!((choice.read, choice.write), (1 << 20, 1 << 20));
        let choice = choose(&tiled, &row, 512 << 10, Reads::Requests, &Units::default());
        // Half a tile, which is still one piece, of each of four.
        assert_eq!((choice.read, choice.write), (128 << 10, 512 << 10));
    }

    #[test]
    fn tiles_are_written_whole() {
        let shape = [1000, 1000];
        let (from, to) = (
            layout(&shape, "tiled:100x100"),
            layout(&shape, "tiled:64x64"),
        );
        for room in [64 << 10, 256 << 10, 1 << 20] {
            let block = choose(&from, &to, room, Reads::Requests, &Units::default()).block;
            let along = block
                .iter()
                .all(|extent| extent % 64 == 0 || *extent == 1000);
            assert!(along, "{room}: {block:?}");
        }
    }

    #[test]
    fn what_moves_only_whole_is_moved_whole() {
        let shape = [4096, 8192];
        let (row, tiled) = (layout(&shape, "row"), layout(&shape, "tiled:512x512"));
        let block = |source: Option<&[u64]>, target: Option<&[u64]>, room: u64| {
            let units = Units {
                source,
                target,
                room,
            };
            choose(&tiled, &tiled, 4 << 20, Reads::Requests, &units).block
        };
        // A shard of 16 MiB, though less was asked for; four chunks; both.
        assert_eq!(block(None, Some(&[2048, 2048]), 16 << 20), [2048, 2048]);
        assert_eq!(block(Some(&[512, 512]), None, 16 << 20), [512, 2048]);
        assert_eq!(
            block(Some(&[512, 384]), Some(&[256, 256]), 16 << 20),
            [512, 1536]
        );
        // What does not fit on both sides is whole on that of the target.
        assert_eq!(
            block(Some(&[511, 511]), Some(&[1024, 1024]), 16 << 20),
            [1024, 1024]
        );
        // Rows of chunks become rows: each chunk is decoded once.
        let units = Units {
            source: Some(&[512, 512]),
            target: None,
            room: 16 << 20,
        };
        let choice = choose(&tiled, &row, 16 << 20, Reads::Requests, &units);
        assert_eq!(choice.block, [512, 8192]);
        // Blocks are equally long: three chunks twice, not five and one.
        let six = layout(&[512, 3072], "row");
        let chunk: Option<&[u64]> = Some(&[512, 512]);
        let units = Units {
            source: None,
            target: chunk,
            room: 16 << 20,
        };
        let tiled_six = layout(&[512, 3072], "tiled:512x512");
        let choice = choose(&six, &tiled_six, 5 << 20, Reads::Requests, &units);
        assert_eq!(choice.block, [512, 1536]);
        // What fits nowhere is moved as everything else.
        let none = Units::default();
        let large = Units {
            target: Some(&[4096, 4096]),
            room: 1 << 20,
            ..none
        };
        for source in [&row, &tiled] {
            assert_eq!(
                choose(source, &tiled, 1 << 20, Reads::Requests, &large),
                choose(source, &tiled, 1 << 20, Reads::Requests, &none)
            );
        }
    }

    #[test]
    fn the_smallest_room_takes_one_element() {
        let (row, column) = (layout(&[7, 0, 3], "row"), layout(&[7, 0, 3], "column"));
        assert_eq!(
            choose(&row, &column, 0, Reads::Requests, &Units::default())
                .block
                .len(),
            3
        );
        let (row, column) = (layout(&[7, 9], "row"), layout(&[7, 9], "column"));
        assert_eq!(
            choose(&row, &column, 1, Reads::Requests, &Units::default()).block,
            [1, 1]
        );
    }
}
