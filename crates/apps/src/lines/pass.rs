//! [`LinePass`]: all lines of an array along some axes, tile by tile, by all
//! ranks.
//!
//! Tiles take all of the axes with lines, and as much of the others as the
//! memory allows, the fast ones first, since these make the runs in the file
//! long. What the system keeps in memory is moved in short runs as well as in
//! long ones; then tiles are only as large as the processor's cache likes them.
//!
//! Every rank has its share of an axis without lines. A pass may write to the
//! array that it reads: no tile has anything of another.

use bytemuck::Pod;
use outcore::{
    Array, Comm, Element, MemoryBudget, Result, Section, Sweep, SweepOrder, SweepPlan, divide,
};

use crate::file_order::{in_file_order, ranges, whole_tiles_below};
use crate::fit::largest;
use crate::resources::Resources;
use crate::slab_writer::{SlabWriter, depth};

/// The bytes of a tile of data that the system keeps in memory.
const GOOD: u64 = 2 << 20;

/// The bytes of a tile of other data.
const LARGE: u64 = 64 << 20;

/// A piece of an array in memory; axes are in file order, slowest first.
#[derive(Debug)]
pub(crate) struct Piece<'a, S> {
    pub(crate) values: &'a [S],
    /// The extents.
    pub(crate) shape: &'a [usize],
    /// Where it begins in the array.
    pub(crate) start: &'a [u64],
}

/// What is done to lines.
pub(crate) trait LineKernel<S, T> {
    /// The bytes that it holds for tiles of so many elements.
    fn bytes(&self, elements: u64) -> u64;

    /// The result of `piece`, in the same order.
    fn apply(&mut self, piece: &Piece<'_, S>, results: &mut [T]);
}

/// All lines along some axes.
#[derive(Debug)]
pub(crate) struct LinePass<'a> {
    pub(crate) source: &'a Array,
    pub(crate) target: &'a Array,
    /// The axes whose lines are whole in every tile.
    pub(crate) axes: &'a [usize],
}

impl LinePass<'_> {
    /// Collective: does it, with the memory of this rank, which must be at least
    /// what it [needs](Self::least_need).
    pub(crate) fn run<S: Element + Pod, T: Element + Pod>(
        &self,
        comm: &Comm,
        kernel: &mut dyn LineKernel<S, T>,
        memory: (&MemoryBudget, &Resources<'_>),
    ) -> Result<()> {
        let outcome = self.rank(&self.share(comm), kernel, memory);
        Ok(comm.agree(outcome)?)
    }

    /// The bytes that this rank needs at least.
    pub(crate) fn least_need<S: Element, T: Element + Pod>(
        &self,
        comm: &Comm,
        kernel: &dyn LineKernel<S, T>,
    ) -> u64 {
        let share = self.share(comm);
        match share.is_empty() {
            true => 0,
            false => self.need(&share, &self.smallest(&share.shape()), kernel),
        }
    }

    /// Whether tiles with nothing but these lines fit `limit` bytes, and leave
    /// something to do for all of `ranks`.
    pub(crate) fn suits<S: Element, T: Element + Pod>(
        &self,
        (ranks, limit): (u64, u64),
        kernel: &dyn LineKernel<S, T>,
    ) -> bool {
        let shape = self.source.shape();
        let others = (0..shape.len()).filter(|axis| !self.axes.contains(axis));
        let slices: u64 = others.map(|axis| shape[axis]).max().unwrap_or(1);
        slices >= ranks && self.need(&self.source.whole(), &self.smallest(shape), kernel) <= limit
    }

    /// What this rank does.
    fn share(&self, comm: &Comm) -> Section {
        let order = self.source.layout().slowest_first().iter().copied();
        let others: Vec<usize> = order.filter(|axis| !self.axes.contains(axis)).collect();
        let whole = self.source.whole();
        let mut shares = divide(&whole, &others, comm.size() as u64);
        shares.swap_remove(comm.rank())
    }

    fn rank<S: Element + Pod, T: Element + Pod>(
        &self,
        share: &Section,
        kernel: &mut dyn LineKernel<S, T>,
        (budget, resources): (&MemoryBudget, &Resources<'_>),
    ) -> Result<()> {
        if share.is_empty() {
            return Ok(());
        }
        let tile = self.fitting(share, budget.limit(), kernel);
        let scratch = budget.reserve(kernel.bytes(tile.iter().product()), "lines")?;
        let mut writer = SlabWriter::<T>::start(self.source, self.target, self.behind(), budget)?;
        let plan = self.plan(share, &tile).budget(budget);
        for tile in plan.start::<S>()? {
            let tile = tile?;
            let held = ranges(self.source, tile.core());
            let shape: Vec<usize> = held
                .iter()
                .map(|range| (range.end - range.start) as usize)
                .collect();
            let start: Vec<u64> = held.iter().map(|range| range.start).collect();
            let piece = Piece {
                values: tile.values(),
                shape: &shape,
                start: &start,
            };
            kernel.apply(&piece, writer.begin(tile.core())?);
            writer.end()?;
            resources.tell(tile.core().count() * size_of::<T>() as u64);
        }
        drop(scratch);
        writer.finish()
    }

    fn behind(&self) -> usize {
        depth(&[self.target], self.target.descriptor())
    }

    fn plan(&self, share: &Section, tile: &[u64]) -> SweepPlan {
        Sweep::<u8>::of(self.source)
            .over(share.clone())
            .order(SweepOrder::Tiles(tile.to_vec()))
    }

    /// The bytes that tiles of this shape need, all buffers together.
    fn need<S, T: Element + Pod>(
        &self,
        share: &Section,
        tile: &[u64],
        kernel: &dyn LineKernel<S, T>,
    ) -> u64 {
        let elements = tile.iter().product();
        let writer = SlabWriter::<T>::need(self.source, self.target, self.behind(), elements);
        self.plan(share, tile)
            .need(1)
            .saturating_add(kernel.bytes(elements))
            .saturating_add(writer)
    }

    /// A tile of nothing but one line along each axis.
    fn smallest(&self, shape: &[u64]) -> Vec<u64> {
        let along = |(axis, extent): (usize, &u64)| match self.axes.contains(&axis) {
            true => *extent,
            false => 1,
        };
        shape.iter().enumerate().map(along).collect()
    }

    /// The shape of good tiles of `share` within `limit`; the smallest if none
    /// fits.
    fn fitting<S: Element, T: Element + Pod>(
        &self,
        share: &Section,
        limit: u64,
        kernel: &dyn LineKernel<S, T>,
    ) -> Vec<u64> {
        let shape = share.shape();
        let size = size_of::<T>().max(size_of::<S>()) as u64;
        let kept = self.behind() == 0 && MemoryBudget::machine().limit() / 4 > self.bytes();
        let good = if kept { GOOD } else { LARGE };
        let mut tile = self.smallest(&shape);
        for axis in self.source.layout().slowest_first().iter().rev() {
            if self.axes.contains(axis) {
                continue;
            }
            let with = |length: u64| {
                let mut tile = tile.clone();
                tile[*axis] = length;
                tile
            };
            let most = good / (with(1).iter().product::<u64>() * size).max(1);
            let most = most.clamp(1, shape[*axis]);
            let fits = largest(most, limit, |length| {
                self.need(share, &with(length), kernel)
            });
            let length = whole_tiles_below(self.source, *axis, fits.unwrap_or(1));
            tile[*axis] = length;
            if length < shape[*axis] {
                break;
            }
        }
        tile
    }

    fn bytes(&self) -> u64 {
        self.source.descriptor().byte_len().unwrap_or(u64::MAX)
    }
}

/// At which places of the file's order these axes are, fastest first.
pub(crate) fn places(array: &Array, axes: &[usize]) -> Vec<usize> {
    let numbers: Vec<usize> = (0..array.shape().len()).collect();
    let order = in_file_order(array, &numbers);
    let places = (0..order.len()).rev();
    places
        .filter(|place| axes.contains(&order[*place]))
        .collect()
}
