//! Which planes of a part go where in a shift along one axis: index arithmetic
//! only.
//!
//! Coordinates are those of the ranks along the axis, positions those of a part
//! along it ([`PartAxis`]). The blocks before all blocks of a rank belong to the
//! rank before it, those after them to the rank after it, round the ring; only
//! the first block of the axis has none before it, and the last none after it.

use outcore_geometry::AxisSection;

use crate::placement::parts::PartAxis;

/// Planes at the same place of several blocks: `depth` positions from `first`
/// on, and again at every `pitch`.
#[derive(Clone, Copy)]
pub(super) struct Planes {
    pub(super) first: u64,
    pub(super) pitch: u64,
    pub(super) blocks: u64,
    pub(super) depth: u64,
}

/// What one rank sends and receives in a transfer: the coordinate of the other
/// one, and the planes.
#[derive(Default)]
pub(super) struct Side {
    pub(super) sends: Option<(u64, Planes)>,
    pub(super) receives: Option<(u64, Planes)>,
}

impl Planes {
    /// Planes of one block.
    pub(super) fn one(first: u64, depth: u64) -> Self {
        Self {
            first,
            pitch: depth.max(1),
            blocks: 1,
            depth,
        }
    }

    /// The positions of `blocks` blocks from number `start` on.
    pub(super) fn indices(&self, start: u64, blocks: u64) -> AxisSection {
        let first = self.first + start * self.pitch;
        let end = first + (blocks - 1) * self.pitch + self.depth;
        if blocks == 1 {
            return AxisSection::span(first, end);
        }
        if self.depth == 1 {
            return AxisSection::range(first, end, self.pitch).expect("a pitch is at least 1");
        }
        let block = |number: u64| first + number * self.pitch;
        let all = (0..blocks).flat_map(|number| (0..self.depth).map(move |at| block(number) + at));
        AxisSection::list(all.collect::<Vec<_>>()).expect("planes are at most a pitch deep")
    }
}

/// What the rank at coordinate `at` has in common with its neighbours.
struct Neighbours<'a> {
    axis: &'a PartAxis,
    at: u64,
    depth: u64,
}

impl Neighbours<'_> {
    /// The rank after it, and planes at `first` of each block that has a next
    /// one.
    fn next(&self, first: u64) -> (u64, Planes) {
        let Self { axis, at, depth } = *self;
        let planes = Planes {
            first,
            pitch: axis.pitch(),
            blocks: with_next(axis, at),
            depth,
        };
        ((at + 1) % axis.ranks(), planes)
    }

    /// The rank before it, and planes at `first` of each block that has a
    /// previous one.
    fn previous(&self, first: u64) -> (u64, Planes) {
        let Self { axis, at, depth } = *self;
        let without = u64::from(at == 0);
        let planes = Planes {
            first: without * axis.pitch() + first,
            pitch: axis.pitch(),
            blocks: axis.blocks(at) - without,
            depth,
        };
        ((at + axis.ranks() - 1) % axis.ranks(), planes)
    }
}

/// The last planes of each block into the area below the next one.
pub(super) fn upwards(axis: &PartAxis, at: u64, depth: u64) -> Side {
    let neighbours = Neighbours { axis, at, depth };
    let last = axis.below + axis.block() - depth.min(axis.block());
    Side {
        sends: Some(neighbours.next(last)),
        receives: Some(neighbours.previous(axis.below - depth)),
    }
}

/// The first planes of each block into the area above the previous one.
pub(super) fn downwards(axis: &PartAxis, at: u64, depth: u64) -> Side {
    let neighbours = Neighbours { axis, at, depth };
    Side {
        sends: Some(neighbours.previous(axis.below)),
        receives: Some(neighbours.next(axis.below + axis.block())),
    }
}

/// Round the ring: the last planes of the axis below its first block.
pub(super) fn last_to_first(axis: &PartAxis, at: u64, depth: u64) -> Side {
    let (owner, end) = last_end(axis);
    Side {
        sends: (at == owner).then(|| (0, Planes::one(end - depth, depth))),
        receives: (at == 0).then(|| (owner, Planes::one(axis.below - depth, depth))),
    }
}

/// Round the ring: the first planes of the axis above its last block.
pub(super) fn first_to_last(axis: &PartAxis, at: u64, depth: u64) -> Side {
    let (owner, end) = last_end(axis);
    Side {
        sends: (at == 0).then(|| (owner, Planes::one(axis.below, depth))),
        receives: (at == owner).then(|| (0, Planes::one(end, depth))),
    }
}

/// How many blocks of the rank at coordinate `at` have a next one.
fn with_next(axis: &PartAxis, at: u64) -> u64 {
    let last_is_here = (axis.all_blocks() - 1) % axis.ranks() == at;
    axis.blocks(at) - u64::from(last_is_here)
}

/// Who has the last block of the axis, and the position behind its last index.
pub(super) fn last_end(axis: &PartAxis) -> (u64, u64) {
    let last = axis.all_blocks() - 1;
    let start = last / axis.ranks() * axis.pitch() + axis.below;
    (last % axis.ranks(), start + axis.block_len(last))
}

/// The indices of a block that is shorter than the planes wanted of it.
pub(super) fn too_short(axis: &PartAxis, below: u64, above: u64, circular: bool) -> Option<u64> {
    let blocks = axis.all_blocks();
    let last = axis.block_len(blocks.checked_sub(1)?);
    let mut wanted = Vec::new();
    if blocks > 1 {
        // Every block but the last has a next one, every one but the first a
        // previous one.
        wanted.push((axis.block(), below));
        wanted.push((last, above));
    }
    if blocks > 2 {
        wanted.push((axis.block(), above));
    }
    if circular {
        wanted.push((last, below));
        wanted.push((axis.block_len(0), above));
    }
    let short = wanted.into_iter().filter(|(has, depth)| has < depth);
    short.map(|(has, _)| has).min()
}
