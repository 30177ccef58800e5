//! Moving blocks: a *lane* is a thread with memory for one block, which it reads,
//! rearranges and writes, one block after another. Lanes take the blocks of
//! their rank in turn, so that one writes while another reads.

use outcore_geometry::{Pieces, Section};
use outcore_storage::for_each_with;

use super::blocks::Reads;
use super::leg::Leg;
use super::passes::PAGE;
use crate::array::Array;
use crate::convert::{Fit, convert};
use crate::element::{ByteOrder, swap_bytes};
use crate::error::{Error, Result};
use crate::execute::{Transfer, execute, permuted};
use crate::fresh;
use crate::reorder::{Step, dense_steps, permute};
use crate::strategy::{Direction, Strategy, Tuning};

/// The most that is read before it is rearranged.
const STAGING: u64 = 1 << 20;

/// The least that a strategy may stage.
const LEAST_BUFFER: u64 = 4096;

/// The memory of a lane in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneMemory {
    /// For the block, in the order of the target.
    pub(crate) block: u64,
    /// For what is read in the order of the source.
    pub(crate) staging: u64,
    /// For what a strategy stages.
    pub(crate) buffer: u64,
}

impl LaneMemory {
    /// Divides the `bytes` of a lane that moves elements of `size` bytes; a chunk of
    /// the source, which is decoded whole, has so many bytes of them.
    pub(crate) fn of(bytes: u64, size: u64, chunk: u64) -> Self {
        let chunk = if chunk <= bytes / 3 { chunk } else { 0 };
        let staging = (bytes / 8).clamp(size, STAGING.max(size)).max(chunk);
        Self {
            block: bytes.saturating_sub(2 * staging).max(size),
            staging,
            buffer: staging.max(LEAST_BUFFER),
        }
    }
}

/// One pass: the legs, cut into blocks of one shape.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) legs: Vec<Leg>,
    pub(crate) shape: Vec<u64>,
    pub(crate) reads: Reads,
    pub(crate) memory: LaneMemory,
    /// What becomes of elements of another type.
    pub(crate) conversion: Option<Fit>,
}

impl Blocks {
    /// How many blocks there are; they are numbered leg by leg.
    pub(crate) fn count(&self) -> u64 {
        self.legs.iter().map(|leg| self.count_of(leg)).sum()
    }

    fn count_of(&self, leg: &Leg) -> u64 {
        let along = leg.shape.iter().zip(&self.shape);
        along
            .map(|(extent, block)| extent.div_ceil((*block).max(1)))
            .product()
    }

    /// The leg and the positions of a block; the fastest axes of the target count
    /// first.
    fn block(&self, number: u64) -> Result<(usize, Section)> {
        let mut rest = number;
        for (at, leg) in self.legs.iter().enumerate() {
            let count = self.count_of(leg);
            if rest >= count {
                rest -= count;
                continue;
            }
            let mut piece = Section::whole(&leg.shape).map_err(Error::geometry("a leg"))?;
            for axis in leg.target.array()?.layout().slowest_first().iter().rev() {
                let (extent, block) = (leg.shape[*axis], self.shape[*axis].max(1));
                let along = extent.div_ceil(block);
                let from = rest % along * block;
                rest /= along;
                piece = piece.slice(*axis, from, from.saturating_add(block));
            }
            return Ok((at, piece));
        }
        Err(Error::Invalid(format!("there is no block {number}")))
    }

    /// The blocks of one of `ranks` ranks: where there are files for all of them,
    /// those of its files, or else every so many-th.
    pub(crate) fn of_rank(
        &self,
        rank: usize,
        ranks: usize,
    ) -> impl Iterator<Item = u64> + Clone + Send + use<> {
        let files = self.legs.iter().filter_map(Leg::part).max();
        let files = files.map_or(0, |last| last + 1);
        let mut first = 0;
        let own = self.legs.iter().map(|leg| {
            let start = first;
            first += self.count_of(leg);
            match leg.part() {
                Some(part) if files >= ranks && part % ranks == rank => (start..first, 1),
                Some(_) if files >= ranks => (first..first, 1),
                _ => {
                    let before = (rank + ranks - start as usize % ranks) % ranks;
                    (start + before as u64..first, ranks)
                }
            }
        });
        let own: Vec<_> = own.collect();
        own.into_iter()
            .flat_map(|(numbers, step)| numbers.step_by(step))
    }

    /// Moves blocks on so many lanes; `done` is told of each with its leg and its
    /// bytes. After a failure no block is begun.
    pub(crate) fn run(
        &self,
        numbers: impl Iterator<Item = u64> + Clone + Send,
        lanes: usize,
        done: &(dyn Fn(u64, &Leg, u64) -> Result<()> + Sync),
    ) -> Result<()> {
        let carry = |lane: &mut Lane<'_>, number: u64| {
            let (leg, piece) = self.block(number)?;
            let bytes = lane.carry(&self.legs[leg], &piece)?;
            done(number, &self.legs[leg], bytes)
        };
        let lanes = numbers.clone().take(lanes).count();
        for_each_with(numbers, lanes, || Lane::new(self), carry)
    }
}

/// The memory of one thread.
struct Lane<'a> {
    blocks: &'a Blocks,
    block: Vec<u8>,
    /// The block with elements of the target's type, if that is another one.
    converted: Vec<u8>,
    staging: Vec<u8>,
}

impl<'a> Lane<'a> {
    fn new(blocks: &'a Blocks) -> Result<Self> {
        let LaneMemory { block, staging, .. } = blocks.memory;
        // What a block takes before and after its elements have another type.
        let both = match (blocks.legs.first(), blocks.conversion) {
            (Some(leg), Some(_)) => {
                let (from, to) = (leg.source.array()?, leg.target.array()?);
                match from.element_type() == to.element_type() {
                    true => (1, 0),
                    false => (from.layout().element_size(), to.layout().element_size()),
                }
            }
            _ => (1, 0),
        };
        let converted = block / (both.0 + both.1) * both.1;
        let room = |bytes: u64| {
            let made = usize::try_from(bytes).ok().and_then(fresh::with_room);
            made.ok_or_else(|| {
                Error::Invalid(format!("there are no {bytes} bytes of memory for a block"))
            })
        };
        Ok(Self {
            blocks,
            block: room(block - converted)?,
            converted: room(converted)?,
            staging: room(staging)?,
        })
    }

    /// Moves one block; returns its bytes.
    fn carry(&mut self, leg: &Leg, piece: &Section) -> Result<u64> {
        let (from, to) = leg.sections(piece);
        let (source, target) = (leg.source.array()?, leg.target.array()?);
        let bytes = piece.count() * target.layout().element_size();
        let read = piece.count() * source.layout().element_size();
        self.block.resize(read as usize, 0);
        self.gather(source, &from, target.layout().slowest_first())?;
        if source.element_type() != target.element_type() {
            self.convert((source, &from), target)?;
            self.write(target, &to, &self.converted)?;
            return Ok(bytes);
        }
        let width = target.element_type().swap_width();
        if source.descriptor().byte_order != target.descriptor().byte_order && width > 1 {
            swap_bytes(&mut self.block, width);
        }
        self.write(target, &to, &self.block)?;
        Ok(bytes)
    }

    fn write(&self, target: &Array, to: &Section, block: &[u8]) -> Result<()> {
        let tuned = tuned(target, to, self.blocks.memory.buffer)?;
        let plan = plan_as_stored(&tuned, to, Direction::Write)?;
        execute(&plan, &**target.store(), Transfer::Write(block))
    }

    /// Makes elements of the target's type of the block, which holds the section of
    /// `source` in the axis order of the target.
    fn convert(&mut self, (source, from): (&Array, &Section), target: &Array) -> Result<()> {
        let swap = |array: &Array, bytes: &mut [u8]| {
            let width = array.element_type().swap_width();
            if array.descriptor().byte_order != ByteOrder::NATIVE && width > 1 {
                swap_bytes(bytes, width);
            }
        };
        let (old, new) = (source.element_type(), target.element_type());
        swap(source, &mut self.block);
        let size = old.size() as usize;
        let count = self.block.len() / size;
        self.converted.resize(count * new.size() as usize, 0);
        let fit = self.blocks.conversion.unwrap_or(Fit::Refuse);
        let outcome = convert((old, &self.block), (new, &mut self.converted), fit);
        outcome.map_err(|number| {
            let mut rest = number as u64;
            let mut index = vec![0; from.axes().len()];
            for axis in target.layout().slowest_first().iter().rev() {
                let taken = &from.axes()[*axis];
                index[*axis] = taken.index(rest % taken.count());
                rest /= taken.count();
            }
            let value = old.text(&self.block[number * size..(number + 1) * size]);
            Error::format(
                source.name(),
                format!("the value {value} of element {index:?} does not fit {new}"),
            )
        })?;
        swap(target, &mut self.converted);
        Ok(())
    }

    /// Brings the section of `source` into the block, its axes in `order`, with the
    /// bytes of numbers as they stand in the file.
    fn gather(&mut self, source: &Array, from: &Section, order: &[usize]) -> Result<()> {
        let layout = source.layout();
        let own = layout.slowest_first();
        let read = |section: &Section, into: &mut [u8]| {
            let tuned = tuned(source, section, self.blocks.memory.buffer)?;
            let plan = plan_as_stored(&tuned, section, Direction::Read)?;
            execute(&plan, &**source.store(), Transfer::Read(into))
        };
        if own == order {
            return read(from, &mut self.block);
        }
        let place = (&**source.store(), source.data_offset());
        if self.blocks.reads == Reads::Resident
            && permuted::read(place, layout, from, (order, &mut self.block))?
        {
            return Ok(());
        }
        let size = layout.element_size();
        let shape = from.shape();
        let steps = dense_steps(&shape, order, size as usize);
        let positions = Section::whole(&shape).map_err(Error::geometry(source.name()))?;
        let most = self.blocks.memory.staging / size;
        let pieces: Box<dyn Iterator<Item = Section>> = match (self.blocks.reads, layout.tile()) {
            (Reads::Chunks, Some(tile)) => {
                let own = own.to_vec();
                let parts = by_tiles(from, &positions, tile)?;
                Box::new(parts.flat_map(move |part| Pieces::new(&part, &own, most)))
            }
            _ => Box::new(Pieces::new(&positions, own, most)),
        };
        for piece in pieces {
            self.staging.resize((piece.count() * size) as usize, 0);
            read(&from.select(&piece), &mut self.staging)?;
            let own_steps = dense_steps(&piece.shape(), own, size as usize);
            let axes: Vec<Step> = (0..shape.len())
                .map(|axis| Step {
                    count: piece.axes()[axis].count() as usize,
                    from: own_steps[axis],
                    to: steps[axis],
                })
                .collect();
            let first = piece.axes().iter().map(|axis| axis.bounds().0 as usize);
            let place: usize = first.zip(&steps).map(|(at, step)| at * step).sum();
            // SAFETY: the staging holds the piece, and the block all positions, of
            // which the piece has some.
            unsafe {
                let to = self.block.as_mut_ptr().add(place);
                permute(&axes, size as usize, self.staging.as_ptr(), to);
            }
        }
        Ok(())
    }
}

/// The positions of a section in parts, each of which lies in one tile, as far as the
/// section has neighbouring indices.
fn by_tiles(
    from: &Section,
    positions: &Section,
    tile: &[u64],
) -> Result<impl Iterator<Item = Section> + use<>> {
    // Along each axis, where the first part ends and how long the others are.
    let mut cuts = Vec::new();
    for (axis, tile) in from.axes().iter().zip(tile) {
        let (lower, upper) = axis.bounds();
        let count = axis.count();
        cuts.push(match upper - lower == count {
            true => (tile - lower % tile, *tile, count),
            false => (count.max(1), 1, count),
        });
    }
    let along = |(first, each, count): &(u64, u64, u64)| match *count {
        0 => 0,
        count => 1 + count.saturating_sub(*first).div_ceil(*each),
    };
    let numbers: Vec<u64> = cuts.iter().map(along).collect();
    let grid = Section::whole(&numbers).map_err(Error::geometry("the tiles of a block"))?;
    let order: Vec<usize> = (0..numbers.len()).collect();
    let positions = positions.clone();
    Ok(Pieces::new(&grid, &order, 1).map(move |at| {
        let mut part = positions.clone();
        for (axis, (first, each, count)) in cuts.iter().enumerate() {
            let end = |number: u64| (first + number * each).min(*count);
            let number = at.axes()[axis].bounds().0;
            let start = if number == 0 { 0 } else { end(number - 1) };
            part = part.slice(axis, start, end(number));
        }
        part
    }))
}

/// A plan that leaves the bytes of numbers as they are.
fn plan_as_stored(
    array: &Array,
    section: &Section,
    direction: Direction,
) -> Result<crate::plan::Plan> {
    Ok(crate::plan::Plan {
        swap: None,
        ..array.plan(section, direction)?
    })
}

/// The array, with a strategy for this section: tiles are moved whole, long runs
/// as they are, and for short ones the cost model chooses.
fn tuned(array: &Array, section: &Section, buffer: u64) -> Result<Array> {
    let tuning = array.tuning();
    let tuning = Tuning {
        buffer: Some(tuning.buffer().min(buffer)),
        ..tuning
    };
    if tuning.strategy != Strategy::Auto {
        return Ok(array.tuned(tuning));
    }
    let (runs, bytes) = array
        .layout()
        .runs(section)
        .map_err(Error::geometry(array.name()))?
        .totals();
    let (strategy, gap) = match (array.layout().tile(), bytes / runs.max(1) >= PAGE) {
        (Some(_), _) => (Strategy::Sieving, Some(0)),
        (None, true) => (Strategy::Direct, tuning.gap),
        (None, false) => (Strategy::Auto, tuning.gap),
    };
    Ok(array.tuned(Tuning {
        strategy,
        gap,
        ..tuning
    }))
}
