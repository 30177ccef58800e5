//! [`Relayout`]: how an array moves, decided and printed before anything moves.
//!
//! Rank 0 decides and tells the others, since what it finds (what is in the page
//! cache, how much memory is free) may differ from rank to rank.

use std::fmt;
use std::path::{Path, PathBuf};

use outcore_geometry::{Layout, shape_text};
use outcore_storage::{Access, FileStore, Store};
use outcore_transport::{Comm, Op};
use serde::{Deserialize, Serialize};

use super::blocks::{Reads, Units};
use super::journal::Marks;
use super::lane::{Blocks, LaneMemory};
use super::leg::Leg;
use super::passes::{MOST, Stage, stages};
use super::pull::pull;
use crate::array::Array;
use crate::budget::{MemoryBudget, available_bytes};
use crate::bytes::bytes_text;
use crate::convert::Fit;
use crate::descriptor::{check_permutation, permuted};
use crate::draft::{parent, sync_directory};
use crate::error::{Error, Result};
use crate::format::{Location, place};

/// What needs the memory.
const PURPOSE: &str = "changing the layout";

/// The least memory that a rank works with.
const LEAST: u64 = 64 << 10;

/// A lane with less than this is not worth a thread.
const LANE: u64 = 1 << 20;

/// Blocks of one order are as good as larger ones.
const SAME_ORDER: u64 = 8 << 20;

/// Blocks for requests are as good as larger ones.
const LARGEST: u64 = 512 << 20;

/// What the lists of a piece may take for each of its elements.
const LISTS: u64 = 32;

/// How all elements of one array move into another of the same type, whose axis
/// `k` is axis `axes[k]` of the first: into any layout and placement.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, Fill, MemoryBudget, Relayout};
/// # let directory = tempfile::tempdir()?;
/// # let name = |file| directory.path().join(file).to_str().unwrap().to_string();
/// let budget = MemoryBudget::of(1 << 20);
/// outcore::run(2, |comm| {
///     let descriptor = ArrayDescriptor::new(&[300, 200], ElementType::F32);
///     let source = Array::create_all(comm, &name("a.oc"), &descriptor)?;
///     if comm.rank() == 0 {
///         source.write(&source.section("7, 3")?, &[1.5f32])?;
///     }
///     comm.barrier()?;
///     let turned = Array::create_all(comm, &name("b.oc"), &descriptor.transposed(&[1, 0])?)?;
///     let plan = Relayout::plan(comm, &source, &turned, &[1, 0], &budget)?;
///     assert_eq!(plan.passes(), 1);
///     plan.run(comm, &|_bytes| ())?;
///     assert_eq!(turned.read::<f32>(&turned.section("3, 7")?)?, [1.5]);
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Relayout {
    source: Array,
    target: Array,
    axes: Vec<usize>,
    conversion: Option<Fit>,
    decision: Decision,
    budget: MemoryBudget,
}

/// What moves where.
pub(super) struct Ends<'a> {
    pub(super) source: &'a Array,
    pub(super) target: &'a Array,
    /// Axis `k` of the target is axis `axes[k]` of the source.
    pub(super) axes: &'a [usize],
    /// What becomes of elements of another type.
    pub(super) conversion: Option<Fit>,
}

/// What rank 0 decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decision {
    /// The threads of a rank, and the bytes that each has.
    lanes: usize,
    lane: u64,
    /// Whether reads are copies from the page cache, and whether the source must
    /// be brought there before.
    resident: bool,
    pull: bool,
    stages: Vec<Stage>,
}

impl Relayout {
    /// Collective: plans how `source` moves into `target`, which exists, within
    /// the budget of the process. Fails on all ranks alike if the two do not
    /// fit one another or the budget is too small.
    pub fn plan(
        comm: &Comm,
        source: &Array,
        target: &Array,
        axes: &[usize],
        budget: &MemoryBudget,
    ) -> Result<Self> {
        let ends = Ends {
            source,
            target,
            axes,
            conversion: None,
        };
        Self::of(comm, &ends, budget)
    }

    /// Collective: the same, perhaps with elements of another type.
    pub(super) fn of(comm: &Comm, ends: &Ends<'_>, budget: &MemoryBudget) -> Result<Self> {
        let budget = budget.for_rank(comm);
        comm.agree(ends.check())?;
        let least = LEAST.saturating_add(decoded(ends.source, ends.target));
        comm.agree(budget.require(least, PURPOSE))?;
        let room = comm.all_reduce(&[budget.free()], Op::Min)?[0];
        let decided = match comm.rank() {
            0 => Decision::make(ends, room, comm.size()).map(Some),
            _ => Ok(None),
        };
        let decided = comm.agree(decided)?;
        let mut text = decided.map_or(String::new(), |decision| {
            serde_json::to_string(&decision).expect("a decision is plain data")
        });
        comm.broadcast_string(0, &mut text)?;
        let decision = serde_json::from_str(&text);
        let decision = comm.agree(decision)?;
        Ok(ends.planned(decision, budget))
    }

    /// Collective: the same plan again, as `decision` says.
    pub(super) fn again(
        comm: &Comm,
        ends: &Ends<'_>,
        mut decision: Decision,
        budget: &MemoryBudget,
    ) -> Result<Self> {
        let budget = budget.for_rank(comm);
        comm.agree(ends.check())?;
        comm.agree(decision.check(ends.target))?;
        let room = comm.all_reduce(&[budget.free()], Op::Min)?[0];
        let lane = decision
            .lane
            .saturating_add(decoded(ends.source, ends.target));
        comm.agree(budget.require(lane, PURPOSE))?;
        decision.lanes = decision.lanes.min((room / lane.max(1)) as usize).max(1);
        Ok(ends.planned(decision, budget))
    }

    pub(super) fn decision(&self) -> &Decision {
        &self.decision
    }

    /// How many times every byte is read and written: once, unless the budget is
    /// so small that requests would be shorter than a page.
    pub fn passes(&self) -> usize {
        self.decision.stages.len()
    }

    /// The bytes that are moved in all passes.
    pub fn bytes(&self) -> u64 {
        let whole = self.target.whole().count() * self.target.layout().element_size();
        whole.saturating_mul(self.passes() as u64)
    }

    /// Collective: moves everything, without waiting for the device at the end.
    /// `progress` is told of the bytes of each block when it is written.
    pub fn run(&self, comm: &Comm, progress: &(dyn Fn(u64) + Sync)) -> Result<()> {
        self.run_and_mark(comm, progress, None)
    }

    /// Collective: how many blocks each pass has.
    pub(super) fn block_counts(&self, comm: &Comm) -> Result<Vec<u64>> {
        let mut counts = Vec::new();
        for stage in &self.decision.stages {
            // Passes between are of one array in one file.
            let legs = Leg::all(&self.source, &self.target, &self.axes);
            let legs = comm.agree(legs)?;
            counts.push(self.blocks(legs, stage).count());
        }
        Ok(counts)
    }

    /// Collective: moves what is not marked, and marks what is complete and on
    /// stable storage from time to time.
    pub(super) fn run_and_mark(
        &self,
        comm: &Comm,
        progress: &(dyn Fn(u64) + Sync),
        marks: Option<&Marks>,
    ) -> Result<()> {
        let Decision {
            lanes,
            lane,
            pull: pulls,
            ref stages,
            ..
        } = self.decision;
        let all = lane.saturating_add(decoded(&self.source, &self.target));
        let held = self
            .budget
            .reserve(all.saturating_mul(lanes as u64), PURPOSE);
        let _held = comm.agree(held)?;
        let mut source: Option<Between> = None;
        let begin = self.complete_stages(comm, marks)?;
        for (number, stage) in stages.iter().enumerate() {
            if number < begin {
                // The last of those that are complete is read again, others are gone.
                if number + 1 == begin
                    && let Some(layout) = &stage.between
                {
                    source = Some(Between::make(comm, &self.target, number, layout)?);
                }
                continue;
            }
            let mut between = match &stage.between {
                Some(layout) => Some(Between::make(comm, &self.target, number, layout)?),
                None => None,
            };
            let target = between
                .as_ref()
                .map_or(&self.target, |between| &between.array);
            let same: Vec<usize> = (0..self.axes.len()).collect();
            let legs = match &source {
                None => Leg::all(&self.source, target, &self.axes),
                Some(source) => Leg::all(&source.array, target, &same),
            };
            let blocks = self.blocks(comm.agree(legs)?, stage);
            if pulls && number == 0 {
                let pulled = pull(comm, &self.source, blocks.memory.staging);
                Marks::agree(marks, comm, pulled)?;
            }
            if let (Some(marks), Some(between)) = (marks, &between)
                && !between.found
            {
                // What was made in a file that is gone is made again.
                let forgotten = match comm.rank() {
                    0 => marks.forget(number),
                    _ => Ok(()),
                };
                comm.agree(forgotten)?;
            }
            let kept = marks.filter(|_| between.as_ref().is_none_or(|between| between.found));
            let numbers = blocks
                .of_rank(comm.rank(), comm.size())
                .filter(move |block| kept.is_none_or(|marks| !marks.has(number, *block)));
            let Some(marks) = marks else {
                comm.agree(blocks.run(numbers, lanes, &|_, _, bytes| {
                    progress(bytes);
                    Ok(())
                }))?;
                source = between;
                continue;
            };
            let pass = marks.pass(number);
            let outcome = blocks.run(numbers, lanes, &|block, leg, bytes| {
                progress(bytes);
                pass.done(block, leg)
            });
            // The next pass begins when this one is on stable storage; and what is
            // written through files of its own is synced here or nowhere.
            let outcome = outcome.and_then(|()| pass.finish());
            let outcome = Marks::agree(Some(marks), comm, outcome);
            if let Err(Error::Unfinished { .. }) = outcome {
                for file in [&mut source, &mut between].into_iter().flatten() {
                    file.keep();
                }
                // What cannot be marked is made again.
                let _ = comm.agree(pass.finish());
            }
            outcome?;
            source = between;
        }
        Ok(())
    }

    /// Collective: how many of the first passes need not be made again: those up to the last
    /// one that is complete in the array itself, or in a file that is still there.
    fn complete_stages(&self, comm: &Comm, marks: Option<&Marks>) -> Result<usize> {
        let Some(marks) = marks else {
            return Ok(0);
        };
        let count = || -> Result<u64> {
            let beside = beside(&self.target)?;
            let is_complete = |(number, stage): &(usize, &Stage)| {
                let there = || Between::path(&beside, *number).exists();
                marks.is_complete(*number) && (stage.between.is_none() || there())
            };
            let mut stages = self.decision.stages.iter().enumerate();
            let last = stages.rfind(is_complete);
            Ok(last.map_or(0, |(number, _)| number as u64 + 1))
        };
        let count = comm.agree(count())?;
        Ok(comm.all_reduce_one(count, Op::Min)? as usize)
    }

    fn blocks(&self, legs: Vec<Leg>, stage: &Stage) -> Blocks {
        let size = moved_size(&self.source, &self.target);
        let chunk = chunk_elements(&self.source).saturating_mul(size);
        Blocks {
            legs,
            shape: stage.choice.block.clone(),
            reads: reads(self.decision.resident, chunk),
            memory: LaneMemory::of(self.decision.lane, size, chunk),
            conversion: self.conversion,
        }
    }
}

/// The bytes that an element takes in a block; while it becomes one of another
/// type, both are there.
fn moved_size(source: &Array, target: &Array) -> u64 {
    let (from, to) = (
        source.layout().element_size(),
        target.layout().element_size(),
    );
    match source.element_type() == target.element_type() {
        true => to,
        false => from + to,
    }
}

/// What a lane takes for chunks of both arrays that can be had only whole.
fn decoded(source: &Array, target: &Array) -> u64 {
    source
        .decoded_bytes()
        .saturating_add(target.decoded_bytes())
}

/// The elements of a chunk of the source that is decoded; 0 if none is.
fn chunk_elements(source: &Array) -> u64 {
    source.whole_chunk() / source.layout().element_size()
}

fn reads(resident: bool, chunk: u64) -> Reads {
    match (resident, chunk) {
        (true, _) => Reads::Resident,
        (false, 0) => Reads::Requests,
        (false, _) => Reads::Chunks,
    }
}

impl Ends<'_> {
    fn planned(&self, decision: Decision, budget: MemoryBudget) -> Relayout {
        Relayout {
            source: self.source.clone(),
            target: self.target.clone(),
            axes: self.axes.to_vec(),
            conversion: self.conversion,
            decision,
            budget,
        }
    }

    /// Fails unless the elements of one fit the other.
    fn check(&self) -> Result<()> {
        let Self {
            source,
            target,
            axes,
            ..
        } = *self;
        check_permutation(axes, source.shape().len())?;
        let expected = permuted(source.shape(), axes);
        if expected != target.shape() {
            return Err(Error::Invalid(format!(
                "the output has shape {}, but {} {} {}",
                shape_text(target.shape()),
                source.name(),
                if axes.is_sorted() {
                    "has"
                } else {
                    "transposed has"
                },
                shape_text(&expected)
            )));
        }
        if target.element_type() != source.element_type() && self.conversion.is_none() {
            return Err(Error::WrongType {
                array: "the output".into(),
                stored: target.element_type(),
                asked: source.element_type(),
            });
        }
        Ok(())
    }
}

/// The error of a journal that says what cannot be.
pub(super) fn journal_is_damaged(name: &str) -> Error {
    Error::format(
        name,
        "this cannot be continued: its journal is damaged; take --force instead of --resume to begin anew",
    )
}

impl Decision {
    /// Fails unless it may be one for an array like `target`: it may come from a file.
    fn check(&self, target: &Array) -> Result<()> {
        let shape = target.shape();
        let fits = |block: &[u64]| {
            block.len() == shape.len()
                && block
                    .iter()
                    .zip(shape)
                    .all(|(extent, all)| (1..=(*all).max(1)).contains(extent))
        };
        let last = self.stages.len().saturating_sub(1);
        // Without elements there is nothing to do, and no pass.
        let possible = self.stages.len() <= MOST
            && (self.lane >= LEAST || self.stages.is_empty())
            && self.stages.iter().enumerate().all(|(number, stage)| {
                fits(&stage.choice.block) && stage.between.is_some() == (number < last)
            });
        match possible {
            true => Ok(()),
            false => Err(journal_is_damaged(target.name())),
        }
    }

    /// With `room` bytes for each of `ranks` ranks.
    fn make(ends: &Ends<'_>, room: u64, ranks: usize) -> Result<Self> {
        let Ends {
            source,
            target,
            axes,
            ..
        } = *ends;
        let size = moved_size(source, target);
        let (decoded, chunk) = (
            decoded(source, target),
            chunk_elements(source).saturating_mul(size),
        );
        let bytes = target.whole().count() * size;
        let legs = Leg::all(source, target, axes)?;
        let virtual_time = source.store().time().or(target.store().time()).is_some();
        let cores = outcore_storage::cores();
        // Every lane has room for what is read or written only whole.
        let written = written_whole(target).map_or(0, |unit| unit.iter().product());
        let unit = chunk.max(written.saturating_mul(size));
        let lanes = match virtual_time {
            true => 1,
            false => (cores / ranks)
                .min((room / LANE.max(unit.saturating_mul(3)).saturating_add(decoded)) as usize)
                .max(1),
        };
        // What a lane has beside decoded chunks.
        let share = (room / lanes as u64).saturating_sub(decoded);
        let Some(leg) = legs
            .iter()
            .max_by_key(|leg| leg.shape.iter().product::<u64>())
        else {
            return Ok(Self {
                lanes,
                lane: share,
                resident: false,
                pull: false,
                stages: Vec::new(),
            });
        };
        let (from, to) = (leg.source.array()?, leg.target.array()?);
        let of_leg = |array: &Array| {
            Layout::arranged(&leg.shape, size, &array.layout().arrangement())
                .map_err(Error::geometry(array.name()))
        };
        let (from_layout, to_layout) = (of_leg(from)?, of_leg(to)?);
        let same_order = from_layout.slowest_first() == to_layout.slowest_first()
            && from_layout.tile().or(to_layout.tile()).is_none();
        let cached = source
            .store()
            .cached(source.data_offset(), source.layout().byte_len());
        let cached = cached.unwrap_or(0.0);
        let holds = available_bytes().is_some_and(|available| bytes <= available / 2);
        let resident = !same_order && from.is_mappable() && (cached > 0.9 || holds);
        // Every lane has some blocks.
        let workers = (ranks * lanes) as u64;
        let largest = match same_order {
            true => SAME_ORDER,
            false => LARGEST,
        };
        let most = largest
            .min((bytes / (2 * workers)).max(SAME_ORDER))
            .max(chunk);
        let whole = LaneMemory::of(share, size, chunk);
        let fits = if leg.lists() {
            whole.block / (size + LISTS) * size
        } else {
            whole.block
        };
        let reads = reads(resident, chunk);
        let alone =
            legs.len() > 1 || leg.lists() || leg.part().is_some() || target.format() == "store";
        // Boxes of several files need not begin where chunks do.
        let units = match legs.len() {
            1 => Units {
                source: whole_chunk(from),
                target: written_whole(to),
                room: fits,
            },
            _ => Units::default(),
        };
        let found = stages(
            &from_layout,
            &to_layout,
            fits.min(most),
            (reads, alone),
            &units,
        );
        let resident = resident && found.len() == 1;
        let block = |stage: &Stage| stage.choice.block.iter().product::<u64>() * size;
        let needed = found.iter().map(block).max().unwrap_or(0);
        // No more memory than blocks of that size take.
        let needed = if leg.lists() {
            needed / size * (size + LISTS)
        } else {
            needed
        };
        let lane = share.min(needed.saturating_add(2 * whole.staging).max(LEAST));
        Ok(Self {
            lanes,
            lane,
            resident,
            pull: resident && cached < 0.9 && legs.len() == 1,
            stages: found,
        })
    }
}

/// The chunks of an array, if they are decoded whole.
fn whole_chunk(array: &Array) -> Option<&[u64]> {
    array.store().as_chunks()?;
    array.layout().tile()
}

/// What of an array can be written only whole without being read first.
fn written_whole(array: &Array) -> Option<&[u64]> {
    let shard = array.descriptor().shard.as_deref();
    shard.or_else(|| whole_chunk(array))
}

/// An array between two passes, in a file beside the target that rank 0 removes.
struct Between {
    array: Array,
    made: Option<PathBuf>,
    /// Whether there was one already.
    found: bool,
}

/// The path beside which the files between passes to `target` are.
fn beside(target: &Array) -> Result<PathBuf> {
    place::local(&Location::of_existing(target.name())?.own_path())
}

impl Between {
    /// Collective: makes the file, or opens it if there is one already.
    fn make(comm: &Comm, target: &Array, number: usize, layout: &str) -> Result<Self> {
        let beside = comm.agree(beside(target))?;
        let path = Self::path(&beside, number);
        let found = path.exists();
        // Nobody makes it before all have looked.
        comm.agree(Ok::<_, Error>(()))?;
        let like = target.descriptor();
        let name = format!(
            "raw:{}?shape={}&type={}&layout={layout}&byteorder={}",
            path.display(),
            shape_text(&like.shape),
            like.element_type,
            like.byte_order
        );
        let make = || -> Result<Option<PathBuf>> {
            let arranged = like
                .clone()
                .layout(layout.parse().map_err(Error::geometry(&name))?);
            // One that a killed run has left is kept; it may not have its length yet.
            let file = match path.exists() {
                true => FileStore::open(&path, Access::ReadWrite)?,
                false => FileStore::create(&path)?,
            };
            let len = arranged.byte_len().map_err(Error::geometry(&name))?;
            file.set_len(len)
                .inspect_err(|_| drop(std::fs::remove_file(&path)))?;
            sync_directory(parent(&path))?;
            Ok(Some(path.clone()))
        };
        let made = comm.agree(if comm.rank() == 0 { make() } else { Ok(None) })?;
        let mut between = Self {
            array: target.clone(),
            made,
            found,
        };
        between.array = comm.agree(Array::open_writable(&name))?;
        Ok(between)
    }

    /// Leaves the file for a later run.
    fn keep(&mut self) {
        self.made = None;
    }

    fn path(target: &Path, number: usize) -> PathBuf {
        let mut path = target.as_os_str().to_os_string();
        path.push(format!(".pass{}", number + 1));
        path.into()
    }
}

/// Removes the arrays between passes that another run has left beside the
/// unfinished array at `target`.
pub(super) fn remove_between(target: &Path) {
    let Ok(target) = place::local(target) else {
        return;
    };
    for number in 0..MOST {
        // Most are not there.
        let _ = std::fs::remove_file(Between::path(&target, number));
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        if let Some(path) = &self.made {
            // What is left has a temporary name.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Moves what the file of one rank has within `budget`; not collective.
/// `progress` is told of the bytes as they are done.
pub(crate) fn move_part(
    leg: Leg,
    budget: &MemoryBudget,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<()> {
    const PURPOSE: &str = "copying between local files and a global array";
    let (source, target) = (leg.source.array()?, leg.target.array()?);
    let size = target.layout().element_size();
    let same_order = source.layout().slowest_first() == target.layout().slowest_first();
    let each = if same_order { size } else { 2 * size } + if leg.lists() { LISTS } else { 0 };
    let decoded = decoded(source, target);
    budget.require(each.saturating_add(decoded), PURPOSE)?;
    let free = budget.free().saturating_sub(decoded);
    let room = free.clamp(each, LARGEST.max(each));
    let _held = budget.reserve(room.saturating_add(decoded), PURPOSE)?;
    let memory = LaneMemory::of(room, size, 0);
    let of_leg = |array: &Array| {
        let arrangement = array.layout().arrangement();
        Layout::arranged(&leg.shape, size, &arrangement).map_err(Error::geometry(array.name()))
    };
    let fits = if leg.lists() {
        memory.block / (size + LISTS) * size
    } else {
        memory.block
    };
    let found = stages(
        &of_leg(source)?,
        &of_leg(target)?,
        fits.min(SAME_ORDER * 8),
        (Reads::Requests, true),
        &Units::default(),
    );
    let shape = found
        .into_iter()
        .next()
        .map_or(Vec::new(), |stage| stage.choice.block);
    let blocks = Blocks {
        legs: vec![leg],
        shape,
        reads: Reads::Requests,
        memory,
        conversion: None,
    };
    blocks.run(0..blocks.count(), 1, &|_, _, bytes| {
        progress(bytes);
        Ok(())
    })
}

/// What will be done, in a line for each pass.
impl fmt::Display for Relayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.target.layout().element_size();
        match self.passes() {
            1 => write!(f, "1 pass")?,
            more => write!(
                f,
                "{more} passes, since longer requests do not fit the memory"
            )?,
        }
        for (number, stage) in self.decision.stages.iter().enumerate() {
            let block = stage.choice.block.iter().product::<u64>() * size;
            write!(f, "{}", if self.passes() == 1 { ": " } else { "\n  " })?;
            if let Some(between) = &stage.between {
                write!(f, "{}. into a temporary file, {between}: ", number + 1)?;
            } else if self.passes() > 1 {
                write!(f, "{}. ", number + 1)?;
            }
            write!(
                f,
                "blocks of {} ({}), read in pieces of {}{}, written in pieces of {}",
                shape_text(&stage.choice.block),
                bytes_text(block),
                bytes_text(stage.choice.read),
                if self.decision.resident {
                    " from the page cache"
                } else {
                    ""
                },
                bytes_text(stage.choice.write),
            )?;
        }
        Ok(())
    }
}
