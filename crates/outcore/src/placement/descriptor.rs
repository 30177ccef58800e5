//! [`LocalDescriptor`]: all that one rank must know of an out-of-core array,
//! the descriptor of Thakur 1995, section 5.4.1 and figure 5.5 (OCAD).
//!
//! The rows of the thesis are the fields here: global size, size of the
//! out-of-core local array (OCLA), processors, storage order, distribution and
//! block size. Those of the in-core local array (ICLA), its bounds with and
//! without overlap area, change with every slab: [`LocalArray::slabs`] gives
//! them for the slabs that fit a memory budget. Indices count from 0, and upper
//! bounds are excluded.
//!
//! Element `i` of the part, with extents `e` (overlap areas included), stands
//! at offset `sum over axes of i_d * product of e_t over the axes t that vary
//! faster than d`.

use std::fmt;

use outcore_geometry::{AxisDistribution, AxisSection, Section};

use crate::budget::MemoryBudget;
use crate::error::Result;
use crate::placement::local::LocalArray;
use crate::placement::parts::fitting;

/// What one rank must know of an array that is kept in one file a rank; one
/// entry for each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalDescriptor {
    /// The rank.
    pub rank: usize,
    /// The extents of the global array.
    pub global: Vec<u64>,
    /// The extents of the local array, without overlap areas.
    pub local: Vec<u64>,
    /// The extents of the local array in its file, overlap areas included.
    pub stored: Vec<u64>,
    /// The ranks along each axis.
    pub processors: Vec<u64>,
    /// The rank of each axis in the order of the file: 1 varies fastest.
    pub storage: Vec<usize>,
    /// The kinds of distribution.
    pub distribution: Vec<AxisDistribution>,
    /// The sizes of the blocks.
    pub block: Vec<u64>,
    /// The depths of the overlap areas below and above each block.
    pub overlap: Vec<(u64, u64)>,
}

impl LocalDescriptor {
    /// The number, in the file, of the element at `index` of the part; `None`
    /// outside.
    pub fn offset(&self, index: &[u64]) -> Option<u64> {
        let inside = index.len() == self.stored.len()
            && index
                .iter()
                .zip(&self.stored)
                .all(|(at, extent)| at < extent);
        let mut slowest_first: Vec<usize> = (0..self.stored.len()).collect();
        slowest_first.sort_by_key(|axis| std::cmp::Reverse(self.storage[*axis]));
        let place = |offset: u64, axis: &usize| offset * self.stored[*axis] + index[*axis];
        inside.then(|| slowest_first.iter().fold(0, place))
    }
}

/// The rows of the descriptor, as the thesis draws them.
impl fmt::Display for LocalDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let overlap = |(below, above): &(u64, u64)| format!("{below}+{above}");
        let rows: [(&str, Vec<String>); 8] = [
            ("global size", texts(&self.global)),
            ("local size", texts(&self.local)),
            ("stored size", texts(&self.stored)),
            ("processors", texts(&self.processors)),
            ("storage order", texts(&self.storage)),
            ("distribution", texts(&self.distribution)),
            ("block size", texts(&self.block)),
            ("overlap", self.overlap.iter().map(overlap).collect()),
        ];
        write!(f, "{:<16}", format!("rank {}", self.rank))?;
        for axis in 0..self.global.len() {
            write!(f, "{:>12}", format!("axis {axis}"))?;
        }
        for (name, row) in rows {
            write!(f, "\n{name:<16}")?;
            for entry in row {
                write!(f, "{entry:>12}")?;
            }
        }
        Ok(())
    }
}

fn texts<T: ToString>(row: &[T]) -> Vec<String> {
    row.iter().map(T::to_string).collect()
}

/// The bounds of an in-core local array: a slab of one block of the part, with
/// and without overlap area. Positions in the part, upper bounds excluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InCore {
    /// The lower bounds, without overlap area.
    pub lower: Vec<u64>,
    /// The upper bounds, without overlap area.
    pub upper: Vec<u64>,
    /// The lower bounds including the overlap area.
    pub lower_with_overlap: Vec<u64>,
    /// The upper bounds including the overlap area.
    pub upper_with_overlap: Vec<u64>,
}

impl InCore {
    /// What is computed: a section of the part.
    pub fn core(&self) -> Section {
        between(&self.lower, &self.upper)
    }

    /// What must be in memory for that: a section of the part.
    pub fn with_overlap(&self) -> Section {
        between(&self.lower_with_overlap, &self.upper_with_overlap)
    }
}

fn between(lower: &[u64], upper: &[u64]) -> Section {
    let bounds = lower.iter().zip(upper);
    fitting(bounds.map(|(l, u)| AxisSection::span(*l, *u)).collect())
}

impl LocalArray {
    /// All that this rank must know of the array.
    pub fn descriptor(&self) -> LocalDescriptor {
        let distribution = self.distribution();
        let axes = self.parts.axes();
        let mut storage = vec![0; axes.len()];
        for (number, axis) in self
            .part()
            .layout()
            .slowest_first()
            .iter()
            .rev()
            .enumerate()
        {
            storage[*axis] = number + 1;
        }
        LocalDescriptor {
            rank: self.rank(),
            global: distribution.shape().to_vec(),
            local: distribution.local_shape(self.rank() as u64),
            stored: self.part().shape().to_vec(),
            processors: distribution.grid().to_vec(),
            storage,
            distribution: distribution.axes().iter().map(|axis| axis.kind()).collect(),
            block: axes.iter().map(|axis| axis.block()).collect(),
            overlap: axes.iter().map(|axis| (axis.below, axis.above)).collect(),
        }
    }

    /// The slabs of the part, along the slowest axis of the file, of which
    /// `buffers` fit the budget of this rank with their overlap areas: what
    /// the slab loop of the thesis goes through. Together they are what the
    /// rank owns.
    pub fn slabs(
        &self,
        buffers: u64,
        budget: &MemoryBudget,
    ) -> Result<impl Iterator<Item = InCore> + '_> {
        let along = self.part().layout().slowest_first()[0];
        let axes = self.parts.axes();
        // The largest block, which is the first, without the axis that is cut.
        let slice: u64 = self.blocks().next().map_or(0, |block| {
            let lengths = block.part.shape();
            let others = (0..axes.len()).filter(|axis| *axis != along);
            others
                .map(|axis| lengths[axis] + axes[axis].below + axes[axis].above)
                .product()
        });
        let each = (slice * self.part().layout().element_size()).saturating_mul(buffers.max(1));
        let rim = axes[along].below + axes[along].above;
        budget.require((rim + 1).saturating_mul(each), "a slab of a local array")?;
        let thickness = (budget.limit() / each.max(1)).saturating_sub(rim).max(1);
        Ok(self.blocks().flat_map(move |block| {
            let slices = block.part.shape()[along];
            let cut = (0..slices).step_by(usize::try_from(thickness).unwrap_or(usize::MAX));
            cut.map(move |from| {
                let core = block
                    .part
                    .slice(along, from, from.saturating_add(thickness));
                self.in_core(&core)
            })
        }))
    }

    fn in_core(&self, core: &Section) -> InCore {
        let bounds = |axis: &AxisSection| axis.bounds();
        let (lower, upper): (Vec<u64>, Vec<u64>) = core.axes().iter().map(bounds).unzip();
        let axes = self.parts.axes();
        let below = lower.iter().zip(axes).map(|(at, axis)| at - axis.below);
        let above = upper.iter().zip(axes).map(|(at, axis)| at + axis.above);
        InCore {
            lower_with_overlap: below.collect(),
            upper_with_overlap: above.collect(),
            lower,
            upper,
        }
    }
}
