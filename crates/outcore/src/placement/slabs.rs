//! The slabs of a local array: [`InCore`], the bounds of the in-core local
//! array (ICLA) of Thakur 1995, sections 5.4 and 5.4.1, and the loop over them.
//!
//! A rank works through its part slab by slab: fetch a slab with its overlap
//! area, compute, store. A slab lies in one block, since each block has overlap
//! areas of its own, and is cut along the slowest axis of the file, so that it
//! is contiguous there if the block takes the whole of the other axes.
//! [`LocalArray::slabs`] only tells the bounds; [`LocalArray::sweep`] goes
//! through them with reading ahead and reuse.

use outcore_geometry::{AxisSection, Section};

use crate::budget::MemoryBudget;
use crate::element::Element;
use crate::error::Result;
use crate::placement::local::LocalArray;
use crate::placement::parts::fitting;
use crate::sweep::{SweepPlan, Tile};

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

    /// Goes through what the rank owns, block by block and slab by slab, each
    /// with its overlap area as halo, within the budget of this rank: the next
    /// slab is read while this one is computed on, and what two slabs of a
    /// block share is read once. Tiles may be written back to the part.
    ///
    /// All slabs are as thick as those of the first block, which is the
    /// largest. Where memory is short because tiles of earlier blocks are still
    /// being written ([`crate::WriteBehind::write_core`]), the next block
    /// waits for them; tiles that the caller holds itself count as taken.
    pub fn sweep<'a, T: Element>(
        &'a self,
        budget: &'a MemoryBudget,
    ) -> impl Iterator<Item = Result<Tile<T>>> + 'a {
        let axes = self.parts.axes().iter();
        let halo: Vec<(u64, u64)> = axes.map(|axis| (axis.below, axis.above)).collect();
        let plan = SweepPlan::new(self.part()).halo(&halo).budget(budget);
        let mut thickness = None;
        self.blocks().flat_map(move |block| {
            let plan = plan.clone().over(block.part).thickness(thickness);
            let (tiles, refused) = match plan.start::<T>() {
                Ok(sweep) => (Some(sweep), None),
                Err(error) => (None, Some(Err(error))),
            };
            thickness = thickness.or(tiles.as_ref().and_then(|sweep| sweep.thickness()));
            tiles.into_iter().flatten().chain(refused)
        })
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
