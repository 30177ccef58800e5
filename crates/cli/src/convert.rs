//! `outcore convert`: an array in another placement, layout or format.
//!
//! Into local placement, each rank fills whole local files, one after another:
//! it reads the file's part of the input and writes the file from one end to
//! the other. Out of it, the other way round. Between other arrays the ranks
//! divide the elements.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use outcore::{
    Arrangement, Array, ArrayDescriptor, Comm, Distribution, Error, LocalArray, LocalPlacement,
    MemoryBudget, Order, Result, SharedDraft, Tuning, parse_shape, shape_text,
};

use crate::bytes;
use crate::copy::{Side, Team, copy, fitting};
use crate::memory::{Memory, Room};
use crate::progress::Progress;
use crate::ranks::{Ranks, print};

/// Copy an array into another placement, layout or format
///
/// In global placement an array is one file (or striped); in local placement it
/// is one file a rank, each with the rank's local array and, round its blocks,
/// overlap areas for neighbours' data. A program on N ranks wants N parts. The
/// overlap areas of the output are zero. The ending of OUT says its format, as
/// for 'create'; local placement needs .oc.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore convert field.oc parts.oc --placement local --parts 4
  outcore convert field.npy parts.oc --distribution 'block,block' --grid 2x2 --overlap 1,1
  outcore convert parts.oc other.oc --parts 6 --ranks 2         (from 4 local files to 6)
  outcore convert parts.oc whole.npy --memory 256MiB            (back to one file)
  outcore convert field.oc disks.oc --parts 2 --directories /disk1,/disk2")]
pub(crate) struct Convert {
    /// The array to copy
    #[arg(value_name = "IN", value_parser = NonEmptyStringValueParser::new())]
    input: String,
    /// The array to make
    #[arg(value_name = "OUT", value_parser = NonEmptyStringValueParser::new())]
    output: String,
    /// Where the elements are kept [default: local if an option of it is given, or else global]
    #[arg(long)]
    placement: Option<Placement>,
    /// How local files divide the array: one of block, block(m), cyclic, cyclic(m), * an axis
    /// [default: that of IN, or else block along the slowest axis]
    #[arg(long)]
    distribution: Option<String>,
    /// The ranks along each axis, as in 2x2 [default: the most nearly square]
    #[arg(long, value_parser = parse_grid)]
    grid: Option<Grid>,
    /// How many local files to make [default: the grid's, or else as many as there are ranks]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65536))]
    parts: Option<u64>,
    /// The depth of the overlap areas along each axis, as in 1,1; below and above apart as 1:2,0
    /// [default: that of IN, or else 0]
    #[arg(long, value_parser = parse_overlap)]
    overlap: Option<Overlap>,
    /// Keep the local files in these directories (disks), one for each
    #[arg(long, value_name = "DIRECTORY", value_delimiter = ',')]
    directories: Vec<PathBuf>,
    /// The layout of the output, as for 'create' [default: that of IN]
    #[arg(long)]
    layout: Option<Arrangement>,
    #[command(flatten)]
    memory: Memory,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    ranks: Ranks,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Placement {
    /// One file, or stripes
    Global,
    /// One file a rank
    Local,
}

#[derive(Clone)]
struct Grid(Vec<u64>);

fn parse_grid(text: &str) -> Result<Grid, String> {
    parse_shape(text)
        .map(Grid)
        .map_err(|error| error.to_string())
}

#[derive(Clone)]
struct Overlap(Vec<(u64, u64)>);

fn parse_overlap(text: &str) -> Result<Overlap, String> {
    let depth = |text: &str| {
        text.trim().parse().map_err(|_| {
            format!("'{text}' is no depth; write one for each axis, as in 1,1, or 1:2,0")
        })
    };
    let axis = |text: &str| match text.split_once(':') {
        Some((below, above)) => Ok((depth(below)?, depth(above)?)),
        None => depth(text).map(|depth| (depth, depth)),
    };
    let axes: Result<Vec<_>, String> = text.split(',').map(axis).collect();
    axes.map(Overlap)
}

impl Convert {
    pub(crate) fn check(&self) -> Result<(), String> {
        let given = self.local_option();
        if let (Some(Placement::Global), Some(option)) = (self.placement, given) {
            return Err(format!(
                "{option} is for local placement, but --placement is global"
            ));
        }
        if self.is_local() && !self.output.trim_end_matches('/').ends_with(".oc") {
            return Err(format!(
                "local placement makes a directory of files, so '{}' must end in .oc",
                self.output
            ));
        }
        if self.layout.is_some() && self.output.starts_with("raw:") {
            return Err(
                "--layout cannot be used with a 'raw:' description, which says everything \
                        about the file itself"
                    .into(),
            );
        }
        Ok(())
    }

    /// The first option given that only local placement has.
    fn local_option(&self) -> Option<&'static str> {
        let options = [
            ("--distribution", self.distribution.is_some()),
            ("--grid", self.grid.is_some()),
            ("--parts", self.parts.is_some()),
            ("--overlap", self.overlap.is_some()),
            ("--directories", !self.directories.is_empty()),
        ];
        let given = options.into_iter().find(|(_, given)| *given);
        given.map(|(option, _)| option)
    }

    fn is_local(&self) -> bool {
        self.placement == Some(Placement::Local) || self.local_option().is_some()
    }

    pub(crate) fn run(&self) -> Result<()> {
        let progress = OnceLock::new();
        self.ranks.run(|comm| {
            let room = self.memory.room(comm, "converting")?;
            let source = Array::open_all(comm, &self.input)?;
            let source = room.tuned(&source, Tuning::default());
            let descriptor = comm.agree(self.descriptor(&source, comm))?;
            let bytes = source.whole().count() * source.layout().element_size();
            let share = bytes / comm.size() as u64;
            let work = Work {
                comm,
                source: &source,
                descriptor: &descriptor,
                room,
                budget: room.budget(),
                progress: Progress::shared(&progress, "converting", comm, share)?,
            };
            if self.is_local() {
                self.to_local(&work)?;
            } else {
                self.to_global(&work)?;
            }
            let outcome = if comm.rank() == 0 {
                self.tell()
            } else {
                Ok(())
            };
            Ok(comm.agree(outcome)?)
        })
    }

    /// What is to be made.
    fn descriptor(&self, source: &Array, comm: &Comm) -> Result<ArrayDescriptor> {
        let old = source.descriptor();
        let mut descriptor =
            ArrayDescriptor::new(&old.shape, old.element_type).byte_order(old.byte_order);
        let npy = self.output.ends_with(".npy");
        descriptor.arrangement = self.layout.clone().unwrap_or_else(|| {
            // Tiles stay in one file; NumPy has two orders.
            let mut same = old.arrangement.clone();
            if npy || self.is_local() {
                same.tile = None;
            }
            if npy && matches!(same.order, Order::Axes(_)) {
                same.order = Order::Row;
            }
            same
        });
        if self.output.trim_end_matches('/').ends_with(".oc") {
            descriptor.attributes = old.attributes.clone();
        }
        if self.is_local() {
            descriptor.local = Some(self.local_placement(source, comm)?);
        }
        Ok(descriptor)
    }

    fn local_placement(&self, source: &Array, comm: &Comm) -> Result<LocalPlacement> {
        let (shape, old) = (source.shape(), &source.descriptor().local);
        let grid = self.grid.as_ref().map(|grid| grid.0.as_slice());
        let of_grid =
            || grid.map(|grid| grid.iter().fold(1, |all, n| u64::saturating_mul(all, *n)));
        let parts = self.parts.or_else(of_grid).unwrap_or(comm.size() as u64);
        let text = match (&self.distribution, old) {
            (Some(text), _) => text.clone(),
            (None, Some(old)) => old.distribution.to_string(),
            (None, None) => {
                let slowest = source.layout().slowest_first().first();
                let axes = (0..shape.len()).map(|axis| match Some(&axis) == slowest {
                    true => "block",
                    false => "*",
                });
                axes.collect::<Vec<_>>().join(",")
            }
        };
        let distribution = Distribution::parse(&text, shape, parts, grid)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let overlap = match (&self.overlap, old) {
            (Some(Overlap(overlap)), _) => overlap.clone(),
            (None, Some(old)) => old.overlap.clone(),
            (None, None) => vec![(0, 0); shape.len()],
        };
        let placement = LocalPlacement::new(distribution).overlap(&overlap);
        Ok(placement.directories(&self.directories))
    }

    /// Fills local files, each by one rank.
    fn to_local(&self, work: &Work<'_>) -> Result<()> {
        let Work {
            comm,
            source,
            budget,
            ..
        } = work;
        let add = |bytes| work.progress.add(bytes);
        let placement = work.descriptor.local.as_ref();
        let parts = placement.map_or(0, |placement| placement.distribution.ranks() as usize);
        if parts == comm.size() {
            // Each rank makes its own, which others may not be able to reach.
            let draft = LocalArray::draft_all(comm, &self.output, work.descriptor, self.force)?;
            comm.agree(draft.load_part(source, budget, &add))?;
            draft.commit(comm)?;
            return Ok(());
        }
        let draft = self.draft(work)?;
        let fill = || {
            for part in (comm.rank()..parts).step_by(comm.size()) {
                let part = LocalArray::open_part_writable(draft.name(), part)?;
                part.load_part(source, budget, &add)?;
                part.part().sync()?;
            }
            Ok::<(), Error>(())
        };
        comm.agree(fill())?;
        draft.commit(comm)?;
        Ok(())
    }

    /// Fills one file, from local files or from another one.
    fn to_global(&self, work: &Work<'_>) -> Result<()> {
        let Work {
            comm,
            source,
            budget,
            ..
        } = work;
        let draft = self.draft(work)?;
        check_shape(&draft, source)?;
        let target = work
            .room
            .tuned(&fitting(&draft, source)?, Tuning::default());
        let placement = source.descriptor().local.as_ref();
        let parts = placement.map_or(0, |placement| placement.distribution.ranks() as usize);
        let fill = || {
            if parts < comm.size() {
                let team = Team {
                    comm,
                    room: work.room,
                    progress: work.progress,
                };
                let (from, to) = (source.whole(), target.whole());
                let from = Side {
                    array: source,
                    section: &from,
                };
                let to = Side {
                    array: &target,
                    section: &to,
                };
                return copy(&team, &from, &to);
            }
            for part in (comm.rank()..parts).step_by(comm.size()) {
                let part = LocalArray::open_part(source.name(), part)?;
                part.store_part(&target, budget, &|bytes| work.progress.add(bytes))?;
            }
            target.sync()
        };
        comm.agree(fill())?;
        draft.commit(comm)?;
        Ok(())
    }

    fn draft(&self, work: &Work<'_>) -> Result<SharedDraft> {
        Array::draft_all(work.comm, &self.output, work.descriptor, self.force)
    }

    fn tell(&self) -> Result<()> {
        let made = Array::open(&self.output)?;
        let placed = match &made.descriptor().local {
            None => String::new(),
            Some(placement) => format!(
                ", {} local files ({} on {})",
                placement.distribution.ranks(),
                placement.distribution,
                shape_text(placement.distribution.grid())
            ),
        };
        print(&format!(
            "{}: {} {} in {} layout, {}{placed}\n",
            made.name(),
            shape_text(made.shape()),
            made.element_type(),
            made.descriptor().arrangement,
            bytes::show(made.layout().byte_len()),
        ))
    }
}

/// What the ranks convert, and with what.
struct Work<'a> {
    comm: &'a Comm,
    source: &'a Array,
    descriptor: &'a ArrayDescriptor,
    room: Room,
    /// For the pieces of this rank.
    budget: MemoryBudget,
    progress: &'a Progress,
}

/// The description of a raw output may name another shape.
fn check_shape(target: &Array, source: &Array) -> Result<()> {
    if target.shape() == source.shape() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the output has shape {}, but {} has {}",
        shape_text(target.shape()),
        source.name(),
        shape_text(source.shape())
    )))
}
