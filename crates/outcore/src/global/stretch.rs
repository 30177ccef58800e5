//! [`Stretch`]: the indices of one axis of a section that one rank has with
//! equal steps, and how an axis is cut into such.
//!
//! With blocks of `m` indices dealt to `P` ranks, an axis of the section is cut
//! either at the ends of blocks, or into progressions: positions that are `q`
//! apart, where `q s` is the least multiple of the stride `s` that is one of the
//! period `m P`, have the same owner, and stand `q s / P` apart there. Blocks of
//! one index, and long axes with small blocks, are cut in the second way.

use outcore_geometry::{AxisSection, DistributedAxis};

/// Indices of one axis with one owner: where they stand in its part and in the
/// section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The coordinate of the owner along the axis of the grid.
    pub(super) owner: usize,
    /// The first local index, and how far the next is.
    pub(super) local: usize,
    pub(super) step: usize,
    pub(super) count: usize,
    /// The position of the first in the section, and how far the next is.
    pub(super) at: usize,
    pub(super) at_step: usize,
}

impl Stretch {
    /// No index at all.
    pub(super) const NONE: Self = Self {
        owner: 0,
        local: 0,
        step: 1,
        count: 0,
        at: 0,
        at_step: 1,
    };
}

/// One axis, with what its arithmetic needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedAxis {
    extent: u64,
    block: u64,
    ranks: u64,
}

/// Blocks that are shorter than this are not worth copying one by one.
const SHORT: u64 = 8;

/// So many blocks of one section are too many to list.
const MANY: u64 = 1 << 16;

impl PlacedAxis {
    pub(super) fn new(axis: &DistributedAxis) -> Self {
        Self {
            extent: axis.extent(),
            block: axis.block(),
            ranks: axis.ranks(),
        }
    }

    /// The owner of `index`, its local index, and how many indices from it on
    /// stand in the same block.
    #[inline(always)]
    pub(super) fn place(&self, index: u64) -> (usize, usize, u64) {
        if self.ranks == 1 {
            return (0, index as usize, self.extent - index);
        }
        let block = index / self.block;
        let within = index - block * self.block;
        let room = self.block - within;
        match block < self.ranks {
            true => (block as usize, within as usize, room),
            false => {
                let (round, owner) = (block / self.ranks, block % self.ranks);
                (owner as usize, (round * self.block + within) as usize, room)
            }
        }
    }

    /// The indices that `taken` has, if they are evenly spaced inside the extent
    /// and stand in one block.
    #[inline(always)]
    pub(super) fn single(&self, taken: &AxisSection) -> Option<Stretch> {
        let stride = taken.stride()?;
        let (lower, upper) = taken.bounds();
        if upper > self.extent || lower >= upper {
            return None;
        }
        let count = match stride {
            1 => upper - lower,
            _ => taken.count(),
        };
        let (owner, local, room) = self.place(lower);
        ((count - 1) * stride < room).then_some(Stretch {
            owner,
            local,
            step: stride as usize,
            count: count as usize,
            at: 0,
            at_step: 1,
        })
    }

    /// All indices of `taken`, which lie inside the extent.
    pub(super) fn stretches(&self, taken: &AxisSection) -> Vec<Stretch> {
        if let Some(single) = self.single(taken) {
            return vec![single];
        }
        match taken.stride() {
            None => self.list(taken),
            Some(stride) => self.range(taken, stride),
        }
    }

    fn range(&self, taken: &AxisSection, stride: u64) -> Vec<Stretch> {
        let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
            return Vec::new();
        };
        let count = taken.count();
        let blocks = (last / self.block - first / self.block + 1).min(count);
        // No overflow: where the product would, there is one block for each rank
        // at most, and the saturated period exceeds the extent.
        let period = self.block.saturating_mul(self.ranks);
        let apart = period / gcd(stride, period);
        let better = self.block / stride < SHORT && apart.saturating_mul(4) <= blocks;
        if better || (blocks > MANY && apart < blocks) {
            let step = stride * apart / period * self.block;
            let progression = |at: u64| {
                let (owner, local, _) = self.place(first + at * stride);
                Stretch {
                    owner,
                    local,
                    step: step as usize,
                    count: (count - at).div_ceil(apart) as usize,
                    at: at as usize,
                    at_step: apart as usize,
                }
            };
            return (0..apart.min(count)).map(progression).collect();
        }
        let mut all = Vec::with_capacity(blocks as usize);
        let mut at = 0;
        while at < count {
            let (owner, local, room) = self.place(first + at * stride);
            let here = room.div_ceil(stride).min(count - at);
            all.push(Stretch {
                owner,
                local,
                step: stride as usize,
                count: here as usize,
                at: at as usize,
                at_step: 1,
            });
            at += here;
        }
        all
    }

    fn list(&self, taken: &AxisSection) -> Vec<Stretch> {
        let count = taken.count();
        let mut all = Vec::new();
        let mut at = 0;
        while at < count {
            let first = taken.index(at);
            let (owner, local, room) = self.place(first);
            let mut here = 1;
            while here < room && at + here < count && taken.index(at + here) == first + here {
                here += 1;
            }
            all.push(Stretch {
                owner,
                local,
                step: 1,
                count: here as usize,
                at: at as usize,
                at_step: 1,
            });
            at += here;
        }
        all
    }
}

fn gcd(x: u64, y: u64) -> u64 {
    if y == 0 { x } else { gcd(y, x % y) }
}

/// The stretches of each owner along one axis, the owners ascending.
pub(super) fn by_owner(all: Vec<Stretch>) -> Vec<(usize, Vec<Stretch>)> {
    let mut groups: Vec<(usize, Vec<Stretch>)> = Vec::new();
    for stretch in all {
        match groups.binary_search_by_key(&stretch.owner, |(owner, _)| *owner) {
            Ok(found) => groups[found].1.push(stretch),
            Err(place) => groups.insert(place, (stretch.owner, vec![stretch])),
        }
    }
    groups
}

/// The same stretches, standing end to end instead of where they do in the part:
/// as they travel, with the number of all.
pub(super) fn packed(stretches: &[Stretch]) -> (Vec<Stretch>, usize) {
    let mut end = 0;
    let place = |stretch: &Stretch| {
        let local = end;
        end += stretch.count;
        Stretch {
            local,
            step: 1,
            ..*stretch
        }
    };
    (stretches.iter().map(place).collect(), end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcore_geometry::AxisDistribution;

    #[test]
    fn every_index_once_at_its_place() {
        let sections = [
            AxisSection::span(0, 60),
            AxisSection::span(7, 41),
            AxisSection::range(1, 60, 3).unwrap(),
            AxisSection::range(0, 59, 7).unwrap(),
            AxisSection::range(2, 60, 12).unwrap(),
            AxisSection::list(vec![0, 1, 2, 5, 6, 17, 18, 19, 20, 59]).unwrap(),
            AxisSection::span(5, 5),
        ];
        for kind in [
            "block",
            "cyclic",
            "cyclic(2)",
            "cyclic(5)",
            "cyclic(16)",
            "block(25)",
        ] {
            let kind: AxisDistribution = kind.parse().unwrap();
            for ranks in [3, 4] {
                let axis = DistributedAxis::new(kind, 60, ranks).unwrap();
                let placed = PlacedAxis::new(&axis);
                for taken in &sections {
                    let mut seen = vec![false; taken.count() as usize];
                    for stretch in placed.stretches(taken) {
                        for turn in 0..stretch.count {
                            let at = stretch.at + turn * stretch.at_step;
                            assert!(!std::mem::replace(&mut seen[at], true));
                            let index = taken.index(at as u64);
                            let local = stretch.local + turn * stretch.step;
                            assert_eq!(axis.owner(index), stretch.owner as u64, "{kind} {taken}");
                            assert_eq!(axis.to_local(index), local as u64, "{kind} {taken}");
                        }
                    }
                    assert!(seen.iter().all(|seen| *seen));
                }
            }
        }
    }

    #[test]
    fn long_axes_with_short_blocks_are_few_progressions() {
        let kind = AxisDistribution::CyclicSize(2);
        let axis = PlacedAxis::new(&DistributedAxis::new(kind, 1 << 40, 4).unwrap());
        assert_eq!(axis.stretches(&AxisSection::span(3, 1 << 40)).len(), 8);
    }
}
