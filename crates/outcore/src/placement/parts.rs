//! [`LocalPlacement`], how an array is spread over one file a rank, and
//! [`Parts`], where each element then stands: index arithmetic only.
//!
//! A [`Distribution`] gives each rank its local indices. In the rank's file,
//! each block of an axis is stored with an overlap area at both ends (Thakur
//! 1995, section 5.4: the local array "interspersed with overlap area"). With
//! blocks of `m` indices and overlap areas of `b` below and `a` above, a block
//! takes `m + b + a` positions, its pitch, and local index `l` stands at
//! position `(l / m) (m + b + a) + b + l mod m`. The last block is as short as
//! it is. So a BLOCK axis is one box with a rim, and a CYCLIC(m) axis is a row
//! of such boxes.
//!
//! Invariants: the part of every rank is smaller than 2^63 bytes; there is at
//! least one axis; a rank that owns nothing has a part without elements.

use std::path::PathBuf;

use outcore_geometry::{AxisSection, DistributedAxis, Distribution, Section, shape_text};

use crate::descriptor::ArrayDescriptor;

/// More files than this are not believed.
const MOST_RANKS: u64 = 1 << 16;

/// How an array is spread over one file a rank.
///
/// ```
/// use outcore::{Distribution, LocalPlacement};
/// let distribution = Distribution::parse("block,block", &[1000, 1000], 4, None)?;
/// let placement = LocalPlacement::new(distribution).overlap(&[(1, 1), (1, 1)]);
/// assert_eq!(placement.overlap, [(1, 1), (1, 1)]);
/// # Ok::<(), outcore::GeometryError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPlacement {
    /// Which rank owns which element.
    pub distribution: Distribution,
    /// The depth of the overlap areas below and above each block of each axis.
    pub overlap: Vec<(u64, u64)>,
    /// One directory a rank, absolute, usually on a disk of the rank's own;
    /// inside the array's directory if there are none.
    pub directories: Vec<PathBuf>,
}

impl LocalPlacement {
    /// Without overlap areas, all files in the array's directory.
    pub fn new(distribution: Distribution) -> Self {
        let overlap = vec![(0, 0); distribution.shape().len()];
        Self {
            distribution,
            overlap,
            directories: Vec::new(),
        }
    }

    /// With overlap areas of this depth below and above each block of each axis.
    pub fn overlap(mut self, overlap: &[(u64, u64)]) -> Self {
        self.overlap = overlap.to_vec();
        self
    }

    /// With the files in these directories, one a rank.
    pub fn directories(mut self, directories: &[PathBuf]) -> Self {
        self.directories = directories.to_vec();
        self
    }
}

/// Where each element of a locally placed array stands.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    distribution: Distribution,
    axes: Vec<PartAxis>,
}

impl Parts {
    /// Checks that `placement` fits an array of this description.
    pub(crate) fn new(
        placement: &LocalPlacement,
        descriptor: &ArrayDescriptor,
    ) -> Result<Self, String> {
        let distribution = placement.distribution.clone();
        let (shape, axes) = (&descriptor.shape, descriptor.shape.len());
        if axes == 0 {
            return Err("an array without axes cannot be placed locally".into());
        }
        if distribution.shape() != shape {
            return Err(format!(
                "the distribution is for shape {}, but the array's is {}",
                shape_text(distribution.shape()),
                shape_text(shape)
            ));
        }
        if distribution.ranks() > MOST_RANKS {
            return Err(format!(
                "local placement on {} ranks would take more than {MOST_RANKS} files",
                distribution.ranks()
            ));
        }
        if placement.overlap.len() != axes {
            return Err(format!(
                "overlap is given for {} axes, but the array has {axes}",
                placement.overlap.len()
            ));
        }
        let directories = placement.directories.len() as u64;
        if directories != 0 && directories != distribution.ranks() {
            return Err(format!(
                "there are {directories} directories for {} ranks; each rank needs one",
                distribution.ranks()
            ));
        }
        if descriptor.arrangement.tile.is_some() {
            return Err(format!(
                "local placement stores row, column or axis order, not {}",
                descriptor.arrangement
            ));
        }
        if descriptor.stripes.is_some() {
            return Err("an array is either placed locally or striped, not both".into());
        }
        let parts = distribution.axes().iter().zip(&placement.overlap);
        let axes: Result<Vec<_>, String> = parts
            .enumerate()
            .map(|(number, (axis, overlap))| {
                PartAxis::new(axis.clone(), *overlap).ok_or_else(|| {
                    format!(
                        "with an overlap of {} and {}, axis {number} of a local array exceeds \
                         2^63 indices",
                        overlap.0, overlap.1
                    )
                })
            })
            .collect();
        let parts = Self {
            distribution,
            axes: axes?,
        };
        // Rank 0 has the largest part along every axis.
        let largest = parts.descriptor(descriptor, 0).to_layout();
        largest.map_err(|error| format!("the local array of rank 0: {error}"))?;
        Ok(parts)
    }

    pub(crate) fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    pub(crate) fn axes(&self) -> &[PartAxis] {
        &self.axes
    }

    pub(crate) fn ranks(&self) -> usize {
        self.distribution.ranks() as usize
    }

    /// The extents of the part of `rank`, overlap areas included.
    pub(crate) fn shape(&self, rank: usize) -> Vec<u64> {
        match self.distribution.coordinates(rank as u64) {
            None => vec![0; self.axes.len()],
            Some(at) => self
                .axes
                .iter()
                .zip(at)
                .map(|(axis, at)| axis.extent(at))
                .collect(),
        }
    }

    /// The part of `rank` as an array of its own; `whole` describes the
    /// global array.
    pub(crate) fn descriptor(&self, whole: &ArrayDescriptor, rank: usize) -> ArrayDescriptor {
        ArrayDescriptor::new(&self.shape(rank), whole.element_type)
            .layout(whole.arrangement.clone())
            .byte_order(whole.byte_order)
    }

    /// Where the elements at `local`, a box of local indices of `rank`, stand
    /// in the global array and in the part: two sections of the same shape.
    pub(crate) fn sections(&self, rank: usize, local: &Section) -> (Section, Section) {
        let at = self.distribution.coordinates(rank as u64);
        let at = at.unwrap_or_else(|| vec![0; self.axes.len()]);
        let axes = self.axes.iter().zip(at).zip(local.axes());
        let (global, part) = axes
            .map(|((axis, at), taken)| {
                let (lower, upper) = taken.bounds();
                (axis.globals(at, lower, upper), axis.positions(lower, upper))
            })
            .unzip();
        (fitting(global), fitting(part))
    }
}

/// The product of axes that lie inside an array.
pub(crate) fn fitting(axes: Vec<AxisSection>) -> Section {
    Section::new(axes).expect("a part has at most as many elements as its array")
}

/// One axis of the local arrays.
#[derive(Debug, Clone)]
pub(crate) struct PartAxis {
    axis: DistributedAxis,
    /// The depths of the overlap areas.
    pub(crate) below: u64,
    pub(crate) above: u64,
}

impl PartAxis {
    fn new(axis: DistributedAxis, (below, above): (u64, u64)) -> Option<Self> {
        let part = Self { axis, below, above };
        // The first rank has as many blocks and indices as any.
        let rim = u128::from(below) + u128::from(above);
        let longest =
            u128::from(part.axis.local_count(0)) + u128::from(part.blocks(0)) * rim.max(1);
        let pitch = u128::from(part.axis.block()) + rim;
        (longest.max(pitch) <= i64::MAX as u128).then_some(part)
    }

    /// The indices of a block.
    pub(crate) fn block(&self) -> u64 {
        self.axis.block()
    }

    /// How many blocks the whole axis has.
    pub(crate) fn all_blocks(&self) -> u64 {
        self.axis.extent().div_ceil(self.block())
    }

    /// The indices of block number `block` of the whole axis.
    pub(crate) fn block_len(&self, block: u64) -> u64 {
        self.block().min(self.axis.extent() - block * self.block())
    }

    /// The ranks along the axis.
    pub(crate) fn ranks(&self) -> u64 {
        self.axis.ranks()
    }

    /// The positions from one block to the next.
    pub(crate) fn pitch(&self) -> u64 {
        self.block() + self.below + self.above
    }

    /// How many blocks the rank at coordinate `at` has.
    pub(crate) fn blocks(&self, at: u64) -> u64 {
        self.axis.local_count(at).div_ceil(self.block())
    }

    /// How many positions the rank at coordinate `at` has.
    pub(crate) fn extent(&self, at: u64) -> u64 {
        self.axis.local_count(at) + self.blocks(at) * (self.below + self.above)
    }

    /// Where local index `local` stands.
    pub(crate) fn position(&self, local: u64) -> u64 {
        local / self.block() * self.pitch() + self.below + local % self.block()
    }

    /// The local index at `position`; `None` in an overlap area.
    pub(crate) fn local(&self, position: u64) -> Option<u64> {
        let (block, within) = (position / self.pitch(), position % self.pitch());
        let within = within.checked_sub(self.below)?;
        (within < self.block()).then(|| block * self.block() + within)
    }

    /// Who has index `global`, where it stands there, and how many indices
    /// follow one another from there on, itself included.
    pub(crate) fn locate(&self, global: u64) -> (u64, u64, u64) {
        let end = (global / self.block() + 1) * self.block();
        let follow = end.min(self.axis.extent()) - global;
        let position = self.position(self.axis.to_local(global));
        (self.axis.owner(global), position, follow)
    }

    /// The positions of the first and the last of the global indices from
    /// `lower` to `upper`, which is the last, that coordinate `at` owns.
    pub(crate) fn between(&self, at: u64, lower: u64, upper: u64) -> Option<(u64, u64)> {
        let (block, ranks) = (self.block(), self.ranks());
        let (first, last) = (lower / block, upper / block);
        let first = first + (at + ranks - first % ranks) % ranks;
        if first > last {
            return None;
        }
        let last = last - (last % ranks + ranks - at) % ranks;
        let (first, last) = (lower.max(first * block), upper.min((last + 1) * block - 1));
        Some((self.locate(first).1, self.locate(last).1))
    }

    /// Where the local indices from `lower` up to `upper` stand.
    fn positions(&self, lower: u64, upper: u64) -> AxisSection {
        if lower >= upper {
            return AxisSection::span(0, 0);
        }
        let place = |local| self.position(local);
        let (first, last) = (place(lower), place(upper - 1));
        if self.below + self.above == 0 || last - first == upper - 1 - lower {
            return AxisSection::span(first, last + 1);
        }
        if self.block() == 1 {
            let stride = place(lower + 1) - first;
            return AxisSection::range(first, last + 1, stride).expect("a step is at least 1");
        }
        let all: Vec<u64> = (lower..upper).map(place).collect();
        AxisSection::list(all).expect("positions ascend with local indices")
    }

    /// Which global indices they are, for the rank at coordinate `at`.
    fn globals(&self, at: u64, lower: u64, upper: u64) -> AxisSection {
        self.axis.globals(at, lower, upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementType;

    fn parts(text: &str, shape: &[u64], ranks: u64, overlap: &[(u64, u64)]) -> Parts {
        let distribution = Distribution::parse(text, shape, ranks, None).unwrap();
        let placement = LocalPlacement::new(distribution).overlap(overlap);
        Parts::new(&placement, &ArrayDescriptor::new(shape, ElementType::F32)).unwrap()
    }

    #[test]
    fn blocks_have_a_rim_each() {
        // 11 indices in blocks of 3 on 2 ranks: 0-2, 6-8 and 3-5, 9-10.
        let parts = parts("cyclic(3)", &[11], 2, &[(1, 2)]);
        assert_eq!(parts.shape(0), [12]);
        assert_eq!(parts.shape(1), [11]);
        let (global, part) = parts.sections(1, &Section::whole(&[5]).unwrap());
        assert_eq!(global.to_string(), "[3,4,5,9,10]");
        assert_eq!(part.to_string(), "[1,2,3,7,8]");
        assert_eq!(parts.axes()[0].locate(4), (1, 2, 2));
        assert_eq!(parts.axes()[0].locate(10), (1, 8, 1));
    }

    #[test]
    fn simple_axes_need_no_lists() {
        let parts = parts("cyclic,block", &[10, 10], 4, &[(1, 0), (2, 2)]);
        let (global, part) = parts.sections(3, &Section::whole(&[5, 5]).unwrap());
        assert_eq!(global.to_string(), "1:10:2, 5:10");
        assert_eq!(part.to_string(), "1:10:2, 2:7");
        assert_eq!(parts.shape(3), [10, 9]);
    }

    #[test]
    fn ranks_without_elements_have_empty_parts() {
        let parts = parts("block", &[3], 5, &[(1, 1)]);
        assert_eq!(parts.shape(2), [3]);
        assert_eq!(parts.shape(3), [0]);
        assert_eq!(parts.shape(4), [0]);
    }

    #[test]
    fn impossible_placements_are_refused() {
        let refused = |shape: &[u64], overlap: &[(u64, u64)], layout: &str| {
            let distribution = Distribution::parse("block,*", &[4, 4], 2, None).unwrap();
            let placement = LocalPlacement::new(distribution).overlap(overlap);
            let descriptor = ArrayDescriptor::new(shape, ElementType::F32);
            Parts::new(&placement, &descriptor.layout(layout.parse().unwrap())).unwrap_err()
        };
        assert!(refused(&[4, 5], &[(0, 0), (0, 0)], "row").contains("4x5"));
        assert!(refused(&[4, 4], &[(0, 0)], "row").contains("1 axes"));
        assert!(refused(&[4, 4], &[(0, u64::MAX), (0, 0)], "row").contains("2^63"));
        assert!(refused(&[4, 4], &[(1 << 40, 0), (1 << 40, 0)], "row").contains("63 bits"));
        assert!(refused(&[4, 4], &[(0, 0), (0, 0)], "tiled:2x2").contains("tiled"));
    }
}
