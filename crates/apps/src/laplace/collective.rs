//! [`solve_together`]: Jacobi sweeps on one global file with collective reads and
//! writes (Thakur and Choudhary 1996, section 2.2).
//!
//! The array is cut along its first two axes into blocks, one for each rank or,
//! where these do not fit in memory, more, which are dealt out in turn. For `t`
//! sweeps a rank reads its block with `t` elements more on all sides that are not
//! edges of the array, sweeps it in memory, and writes the block. Blocks of
//! several ranks interleave in the file, so all read together and write together;
//! plans of these calls are kept from pass to pass if each rank has one block.
//!
//! Invariants: all ranks cut alike and do the same number of rounds; elements are
//! computed by the same front as in [`solve`](super::solve()), so results are the
//! same to the bit.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use outcore::{
    Array, AxisSection, CollectivePlan, Comm, Direction, ElementType, Error, MemoryBudget, Op,
    Result, Section,
};

use super::average::larger;
use super::grid::Edges;
use super::pass::PURPOSE;
use super::passes::{Files, Turn, iterate};
use super::problem::{Problem, Solution, wrong_type};
use super::region::Region;
use super::wavefront::{Sink, Wavefront};
use crate::block::walk;
use crate::file_order::{check_alike, ranges};
use crate::float::Float;
use crate::resources::Resources;

/// A side of a block is so many times as long as its halo, if the memory allows.
const WORTH: u64 = 8;

/// What a collective call may take, as far as there is so much.
const STAGING: u64 = 2 << 20;

/// The plans that are kept: reads of the source and both results, and writes.
const PLANS: u64 = 5;

/// Collective: as [`solve`](super::solve()), with blocks of the array that all
/// ranks read and write together; between fixed edges.
pub fn solve_together(
    comm: &Comm,
    source: &Array,
    results: &[&Array],
    problem: &Problem,
    resources: &Resources<'_>,
) -> Result<Solution> {
    match source.element_type() {
        ElementType::F32 => solve_typed::<f32>(comm, source, results, problem, resources),
        ElementType::F64 => solve_typed::<f64>(comm, source, results, problem, resources),
        other => Err(wrong_type(source.name(), other)),
    }
}

fn solve_typed<T: Float>(
    comm: &Comm,
    source: &Array,
    results: &[&Array],
    problem: &Problem,
    resources: &Resources<'_>,
) -> Result<Solution> {
    problem.check(source.name(), source.shape())?;
    results
        .iter()
        .try_for_each(|result| check_alike(source, result))?;
    if problem.edges == Edges::Periodic {
        return Err(Error::Invalid(
            "collective input and output of blocks is for fixed edges; periodic ones are swept by \
             every rank for itself"
                .into(),
        ));
    }
    let orders = results.iter().map(|result| result.layout());
    let order = source.layout().slowest_first();
    if orders
        .into_iter()
        .any(|layout| layout.slowest_first() != order)
    {
        return Err(Error::Invalid(format!(
            "collective input and output of blocks needs results in the axis order of {}",
            source.name()
        )));
    }
    let files = SharedFiles {
        comm,
        source,
        results,
        problem,
        plans: RefCell::default(),
    };
    iterate::<T>(comm, &files, problem, resources)
}

/// Which calls a plan is for: the array (`None` is the source), and how many
/// sweeps the pass has.
type Purpose = (Option<usize>, bool, u64);

/// Files that all ranks read and write together.
struct SharedFiles<'a> {
    comm: &'a Comm,
    source: &'a Array,
    results: &'a [&'a Array],
    problem: &'a Problem,
    plans: RefCell<HashMap<Purpose, CollectivePlan>>,
}

/// How the array is cut along its axes.
type Cuts = Vec<u64>;

impl SharedFiles<'_> {
    fn shape(&self) -> &[u64] {
        self.source.shape()
    }

    fn array(&self, which: Option<usize>) -> &Array {
        which.map_or(self.source, |which| self.results[which])
    }

    /// The least that a collective call takes on a rank, without its chunks.
    fn least_staging(&self) -> u64 {
        let least = self.source.collective().least_memory(self.comm.size());
        2 * (least - self.source.decoded_bytes())
    }

    /// What chunks take that can be had only whole, of one array at a time.
    fn decoded(&self) -> u64 {
        let all = std::iter::once(self.source).chain(self.results.iter().copied());
        all.map(Array::decoded_bytes).max().unwrap_or(0)
    }

    /// The largest block of such cuts.
    fn block(&self, cuts: &Cuts) -> Vec<u64> {
        let pairs = self.shape().iter().zip(cuts);
        pairs.map(|(extent, cuts)| extent.div_ceil(*cuts)).collect()
    }

    /// The bytes that blocks of such a shape need, without staging.
    fn buffers<T: Float>(&self, block: &[u64], sweeps: u64) -> u64 {
        let boxed = block
            .iter()
            .zip(self.shape())
            .map(|(length, extent)| match length == extent {
                true => *length,
                false => length.saturating_add(sweeps.saturating_mul(2)),
            });
        let boxed: Vec<u64> = boxed.collect();
        let product = |lengths: &[u64]| lengths.iter().copied().fold(1, u64::saturating_mul);
        let slowest = self.source.layout().slowest_first()[0];
        let plane = product(&boxed) / boxed[slowest].max(1);
        let elements = product(&boxed)
            .saturating_add(product(block))
            .saturating_add(plane.saturating_mul(2));
        let front = Wavefront::<T>::bytes(sweeps, plane);
        elements
            .saturating_mul(size_of::<T>() as u64)
            .saturating_add(front)
    }

    /// A block for each rank; more of them until they fit in `limit`.
    fn cuts<T: Float>(&self, sweeps: u64, limit: u64) -> Cuts {
        let ranks = self.comm.size() as u64;
        let mut cuts = vec![1; self.shape().len()];
        match self.shape() {
            [] => {}
            [_] => cuts[0] = ranks,
            [rows, columns, ..] => {
                // The grid of ranks whose blocks are most nearly square.
                let grids = (1..=ranks).filter(|down| ranks.is_multiple_of(*down));
                let half_rim = |down: &u64| {
                    let (h, w) = (rows / *down, columns / (ranks / down));
                    h.saturating_add(w)
                };
                let even =
                    |down: &u64| *down <= (*rows).max(1) && ranks / down <= (*columns).max(1);
                let all: Vec<u64> = grids.collect();
                let good = all.iter().copied().filter(even).min_by_key(half_rim);
                cuts[0] = good.unwrap_or(ranks);
                cuts[1] = ranks / cuts[0];
            }
        }
        loop {
            let block = self.block(&cuts);
            if self.buffers::<T>(&block, sweeps) <= limit {
                return cuts;
            }
            let longest = (0..block.len()).take(2).max_by_key(|axis| block[*axis]);
            match longest.filter(|axis| block[*axis] > 1) {
                Some(axis) => cuts[axis] = self.shape()[axis].div_ceil(block[axis] / 2).max(2),
                // Smaller ones there are not.
                None => return cuts,
            }
        }
    }

    /// Block `at` of all, if there are so many and it has elements.
    fn section_of(&self, cuts: &Cuts, at: u64) -> Option<Section> {
        let mut left = at;
        let mut axes = Vec::with_capacity(cuts.len());
        for (extent, cuts) in self.shape().iter().zip(cuts).rev() {
            let index = left % cuts;
            left /= cuts;
            let bound = |at: u64| (u128::from(*extent) * u128::from(at) / u128::from(*cuts)) as u64;
            axes.push(AxisSection::span(bound(index), bound(index + 1)));
        }
        axes.reverse();
        let section = Section::new(axes).ok()?;
        (left == 0 && !section.is_empty()).then_some(section)
    }

    /// The block with its halo, as far as the array reaches.
    fn with_halo(&self, core: &Section, sweeps: u64) -> Result<Section> {
        let axes = core.axes().iter().zip(self.shape()).map(|(axis, extent)| {
            let (start, end) = axis.bounds();
            AxisSection::span(
                start.saturating_sub(sweeps),
                end.saturating_add(sweeps).min(*extent),
            )
        });
        Section::new(axes.collect()).map_err(|error| Error::Invalid(error.to_string()))
    }

    /// Collective: calls `execute` with a plan, a kept one if there is one.
    fn with_plan(
        &self,
        purpose: Purpose,
        section: &Section,
        (staging, keep): (&MemoryBudget, bool),
        execute: impl FnOnce(&CollectivePlan) -> Result<()>,
    ) -> Result<()> {
        let (which, writes, _) = purpose;
        let direction = match writes {
            true => Direction::Write,
            false => Direction::Read,
        };
        let make = || {
            let together = self.array(which).collective().budget(staging);
            together.plan(self.comm, section, direction)
        };
        if !keep {
            return execute(&make()?);
        }
        let mut plans = self.plans.borrow_mut();
        if !plans.contains_key(&purpose) {
            // The last pass may have fewer sweeps: its plans replace the others.
            plans.retain(|(which, writes, _), _| (*which, *writes) != (purpose.0, purpose.1));
            plans.insert(purpose, make()?);
        }
        execute(&plans[&purpose])
    }

    /// Sweeps a block, which stands in `old` with its halo, into `new`.
    fn sweep<T: Float>(
        &self,
        (core, all): (&Section, &Section),
        sweeps: u64,
        old: &[T],
        new: &mut [T],
    ) -> Result<f64> {
        let region = Region::of_core(self.source, core, self.problem.edges, sweeps);
        let (core, all) = (ranges(self.source, core), ranges(self.source, all));
        let whole = |k: usize| {
            let axis = self.source.layout().slowest_first()[k];
            core[k].end - core[k].start == self.shape()[axis]
        };
        // Of a plane: the box, what was read of it, and what is wanted.
        let plane: Vec<PlaneAxis> = (1..core.len())
            .map(|k| {
                let halo = if whole(k) { 0 } else { sweeps };
                let within = |range: &Range<u64>| {
                    let start = range.start + halo - core[k].start;
                    start as usize..(start + range.end - range.start) as usize
                };
                PlaneAxis {
                    length: (core[k].end - core[k].start + 2 * halo) as usize,
                    read: within(&all[k]),
                    wanted: within(&core[k]),
                }
            })
            .collect();
        let read: Vec<Range<usize>> = plane.iter().map(|axis| axis.read.clone()).collect();
        let read_len: usize = read.iter().map(Range::len).product();
        let mut boxed = vec![T::zeroed(); plane.iter().map(|axis| axis.length).product()];
        let mut front: Wavefront<T> = region.front()?;
        let mut sink = Cropped {
            plane: &plane,
            boxed: boxed.clone(),
            begun: false,
            results: new,
            done: 0,
        };
        let planes = (all[0].end - all[0].start) as i64;
        for number in region.numbers() {
            let at = core[0].start as i64 + number - all[0].start as i64;
            // Planes beyond the edge are never looked at.
            if (0..planes).contains(&at) {
                let values = &old[at as usize * read_len..][..read_len];
                copy_rows(&plane, &read, |row, from| {
                    boxed[row].copy_from_slice(&values[from]);
                });
            }
            front.push(number, &boxed, &mut sink)?;
        }
        front.finish(&mut sink)?;
        sink.crop();
        Ok(front.change())
    }
}

impl Files for SharedFiles<'_> {
    fn results(&self) -> usize {
        self.results.len()
    }

    fn is_empty(&self) -> bool {
        self.source.whole().is_empty()
    }

    /// Blocks should not be much smaller than what is read for them.
    fn most_fused(&self) -> Result<u64> {
        if self.problem.fuse.is_some() {
            return Ok(u64::MAX);
        }
        let block = self.block(&self.cuts::<f64>(1, u64::MAX));
        let divided = block.iter().zip(self.shape());
        let sides = divided.filter(|(side, extent)| side != extent);
        Ok(sides
            .map(|(side, _)| side / WORTH)
            .min()
            .unwrap_or(u64::MAX))
    }

    fn need<T: Float>(&self, turn: Turn) -> u64 {
        // The smallest blocks that are worth their halo.
        let least = turn.sweeps.saturating_mul(WORTH);
        let block: Vec<u64> = self
            .shape()
            .iter()
            .enumerate()
            .map(|(axis, extent)| {
                if axis < 2 {
                    (*extent).min(least)
                } else {
                    *extent
                }
            })
            .collect();
        let staging = PLANS.saturating_mul(self.least_staging());
        self.buffers::<T>(&block, turn.sweeps)
            .saturating_add(staging)
            .saturating_add(self.decoded())
    }

    fn run<T: Float>(
        &self,
        turn: Turn,
        budget: &MemoryBudget,
        resources: &Resources<'_>,
    ) -> Result<f64> {
        // 1. All ranks cut alike.
        let limit = self.comm.all_reduce(&[budget.limit()], Op::Min)?[0];
        let staging = STAGING.min(limit / 8 / PLANS).max(self.least_staging());
        let cuts = self.cuts::<T>(
            turn.sweeps,
            limit.saturating_sub(PLANS * staging + self.decoded()),
        );
        let ranks = self.comm.size() as u64;
        let blocks: u64 = cuts.iter().product();
        let rounds = blocks.div_ceil(ranks);
        let block = self.block(&cuts);
        let _memory = self
            .comm
            .agree(budget.reserve(self.buffers::<T>(&block, turn.sweeps), PURPOSE))?;
        let staging = staging + self.decoded();
        let staging = match self.comm.transport().shares_memory() {
            true => MemoryBudget::of(staging.saturating_mul(ranks)),
            false => MemoryBudget::of(staging),
        };
        let plans = (&staging, rounds == 1);
        // 2. Round after round: read together, sweep, write together.
        let mut change = 0.0;
        let (mut old, mut new): (Vec<T>, Vec<T>) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let core = self.section_of(&cuts, round * ranks + self.comm.rank() as u64);
            let nothing = || Section::empty(self.shape().len());
            let all = match &core {
                Some(core) => self.with_halo(core, turn.sweeps)?,
                None => nothing(),
            };
            old.resize(all.count() as usize, T::zeroed());
            self.with_plan((turn.from, false, turn.sweeps), &all, plans, |plan| {
                plan.read_into(self.comm, &mut old).map(drop)
            })?;
            let own = core.clone().unwrap_or_else(nothing);
            new.resize(own.count() as usize, T::zeroed());
            if let Some(core) = &core {
                let swept = self.sweep((core, &all), turn.sweeps, &old, &mut new)?;
                change = larger(change, swept);
                let bytes = size_of_val(&new[..]) as u64;
                resources.tell(bytes.saturating_mul(turn.sweeps));
            }
            self.with_plan((Some(turn.to), true, turn.sweeps), &own, plans, |plan| {
                plan.write(self.comm, &new).map(drop)
            })?;
        }
        Ok(change)
    }

    fn prepare(&self, _: Turn) -> Result<()> {
        Ok(())
    }
}

/// One axis of a plane.
struct PlaneAxis {
    /// Its length in the box.
    length: usize,
    /// What was read of it.
    read: Range<usize>,
    /// What is wanted of it.
    wanted: Range<usize>,
}

/// Calls `copy` for each row of `part` of a plane: where it stands in the plane,
/// and where in a dense copy of the part.
fn copy_rows(
    plane: &[PlaneAxis],
    part: &[Range<usize>],
    mut copy: impl FnMut(Range<usize>, Range<usize>),
) {
    let Some((last, slow)) = part.split_last() else {
        return copy(0..1, 0..1);
    };
    let mut dense = 0;
    walk(slow, |index| {
        let before = index.iter().zip(plane);
        let at = before.fold(0, |at, (index, axis)| at * axis.length + index);
        let at = at * plane[slow.len()].length + last.start;
        copy(at..at + last.len(), dense..dense + last.len());
        dense += last.len();
    });
}

/// Finished planes, of which the wanted part is kept.
struct Cropped<'a, T> {
    plane: &'a [PlaneAxis],
    /// The plane that is being made.
    boxed: Vec<T>,
    begun: bool,
    results: &'a mut [T],
    /// How many results there are already.
    done: usize,
}

impl<T: Float> Cropped<'_, T> {
    /// Takes the wanted part of the plane that was made.
    fn crop(&mut self) {
        if !std::mem::take(&mut self.begun) {
            return;
        }
        let wanted: Vec<Range<usize>> = self.plane.iter().map(|axis| axis.wanted.clone()).collect();
        let length: usize = wanted.iter().map(Range::len).product();
        let into = &mut self.results[self.done..self.done + length];
        copy_rows(self.plane, &wanted, |row, to| {
            into[to].copy_from_slice(&self.boxed[row]);
        });
        self.done += length;
    }
}

impl<T: Float> Sink<T> for Cropped<'_, T> {
    fn place(&mut self) -> Result<&mut [T]> {
        self.crop();
        self.begun = true;
        Ok(&mut self.boxed)
    }
}
