//! [`Pass`]: the median filter of a region of one array into another, tile by
//! tile, by one rank.
//!
//! The path of the data: a [`Sweep`] reads tiles with a halo as wide as the
//! window reaches, every element once; the kernel computes the core of a tile
//! into a buffer; that is written.
//!
//! Tiles take all of the fast axes, so that they stand in one piece in the
//! file: slabs along the slowest axis if one index of it fits the memory, or
//! else one index of that and slabs along the next one, and so on.

use std::ops::Range;

use outcore::{Array, MemoryBudget, Result, Section, Sweep, SweepOrder, SweepPlan};

use super::kernel::MedianKernel;
use super::key::Real;
use super::window::Window;
use crate::block::Block;
use crate::file_order::{in_file_order, ranges, whole_tiles_below};
use crate::fit::largest;
use crate::resources::Resources;
use crate::slab_writer::SlabWriter;

/// About so many bytes in a tile: enough for efficient requests, and little
/// enough to stay in the cache between reading, computing and writing.
const GOOD: u64 = 1 << 20;

/// What memory is needed for.
pub(super) const PURPOSE: &str = "the median filter";

/// The filter of a region.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    pub(super) source: &'a Array,
    pub(super) target: &'a Array,
    pub(super) window: &'a Window,
    /// What is computed.
    pub(super) region: Section,
    /// Tiles in flight to the target.
    pub(super) behind: usize,
}

impl Pass<'_> {
    /// Does it within `budget`.
    pub(super) fn run<T: Real>(
        &self,
        budget: &MemoryBudget,
        resources: &Resources<'_>,
    ) -> Result<()> {
        if self.region.is_empty() {
            return Ok(());
        }
        // 1. The largest tiles that fit.
        let tile = self.fitting::<T>(budget.limit());
        let window: Vec<usize> = self.window_of_file();
        let scratch = budget.reserve(self.scratch::<T>(&tile), PURPOSE)?;
        let mut kernel = MedianKernel::<T>::new(&window);
        let mut writer = SlabWriter::start(self.source, self.target, self.behind, budget)?;
        // 2. Read, compute, write.
        let core_within = |core: &Section, section: &Section| -> Vec<Range<usize>> {
            let pairs = ranges(self.source, core)
                .into_iter()
                .zip(ranges(self.source, section));
            let within = pairs.map(|(core, all)| core.start - all.start..core.end - all.start);
            within
                .map(|range| range.start as usize..range.end as usize)
                .collect()
        };
        let mut plan = self.plan(&tile).budget(budget);
        if tile == self.region.shape() {
            // A single tile: there is nothing to do while it is read.
            plan = plan.ahead(0);
        }
        for tile in plan.start::<T>()? {
            let tile = tile?;
            let shape: Vec<usize> = ranges(self.source, tile.section())
                .into_iter()
                .map(|range| (range.end - range.start) as usize)
                .collect();
            let block = Block {
                values: tile.values(),
                shape: &shape,
                core: &core_within(tile.core(), tile.section()),
            };
            kernel.filter(&block, writer.begin(tile.core())?)?;
            writer.end()?;
            resources.tell(tile.core().count() * size_of::<T>() as u64);
        }
        drop(scratch);
        writer.finish()
    }

    /// The bytes that it takes with `limit` bytes; more than these if they are
    /// too few.
    pub(super) fn need_within<T: Real>(&self, limit: u64) -> u64 {
        if self.region.is_empty() {
            return 0;
        }
        self.need::<T>(&self.fitting::<T>(limit))
    }

    fn window_of_file(&self) -> Vec<usize> {
        let window = in_file_order(self.source, self.window.extents());
        window.into_iter().map(|extent| extent as usize).collect()
    }

    fn plan(&self, tile: &[u64]) -> SweepPlan {
        let halo: Vec<(u64, u64)> = self.window.reach().into_iter().map(|n| (n, n)).collect();
        Sweep::<u8>::of(self.source)
            .over(self.region.clone())
            .order(SweepOrder::Tiles(tile.to_vec()))
            .halo(&halo)
    }

    /// The bytes that tiles of this shape need, all buffers together.
    fn need<T: Real>(&self, tile: &[u64]) -> u64 {
        let elements = tile.iter().product();
        let writer = SlabWriter::<T>::need(self.source, self.target, self.behind, elements);
        self.plan(tile)
            .need(1)
            .saturating_add(self.scratch::<T>(tile))
            .saturating_add(writer)
    }

    /// The bytes that the kernel needs for them.
    fn scratch<T: Real>(&self, tile: &[u64]) -> u64 {
        let core: Vec<usize> = in_file_order(self.source, tile)
            .into_iter()
            .map(|length| length as usize)
            .collect();
        MedianKernel::<T>::bytes(&self.window_of_file(), &core)
    }

    /// The shape of the largest good tiles within `limit`; of those with the
    /// smallest need if none fits.
    fn fitting<T: Real>(&self, limit: u64) -> Vec<u64> {
        let mut tile = self.region.shape();
        let mut smallest = tile.clone();
        for axis in self.source.layout().slowest_first() {
            let with = |length: u64| {
                let mut tile = tile.clone();
                tile[*axis] = length;
                tile
            };
            let row = with(1).iter().product::<u64>() * size_of::<T>() as u64;
            let extent = self.window.extents()[*axis];
            let good = (GOOD / row.max(1))
                .max((extent - 1).saturating_mul(8))
                .max(1);
            let most = self
                .whole_tiles(*axis, good.min(tile[*axis]))
                .min(tile[*axis]);
            if let Some(length) = largest(most, limit, |length| self.need::<T>(&with(length))) {
                return with(whole_tiles_below(self.source, *axis, length));
            }
            let candidates = [with(1), with(tile[*axis]), smallest];
            let least = candidates
                .into_iter()
                .min_by_key(|tile| self.need::<T>(tile));
            smallest = least.expect("three candidates");
            tile[*axis] = 1;
        }
        smallest
    }

    /// At least `length`, in whole tiles of the layout.
    fn whole_tiles(&self, axis: usize, length: u64) -> u64 {
        match self.source.layout().tile() {
            Some(tile) => length.next_multiple_of(tile[axis]),
            None => length,
        }
    }
}
