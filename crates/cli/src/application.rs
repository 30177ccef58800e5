//! What commands that make one array of another have in common: their
//! arguments, the input in either placement, outputs that appear when they are
//! complete, and the closing line.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Array, ArrayDescriptor, ByteOrder, Comm, LocalArray, LocalDraft, Op, Order, PeakMemory, Result,
    SharedDraft, shape_text,
};
use outcore_apps::Resources;

use crate::bytes;
use crate::memory::Memory;
use crate::progress::Progress;
use crate::ranks::{Ranks, print, threads_for};

/// The arguments.
#[derive(Args)]
pub(crate) struct Application {
    /// The array to work on
    #[arg(value_name = "IN", value_parser = NonEmptyStringValueParser::new())]
    input: String,
    /// The array to make; placed like IN if that has one file a rank
    #[arg(value_name = "OUT", value_parser = NonEmptyStringValueParser::new())]
    output: String,
    #[command(flatten)]
    memory: Memory,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    ranks: Ranks,
}

/// The input of one rank.
pub(crate) enum Input {
    /// One array for all.
    Global(Box<Array>),
    /// This rank's files.
    Local(Box<LocalArray>),
}

/// An output that has no name yet.
pub(crate) enum Output {
    /// One array for all.
    Global(SharedDraft),
    /// This rank's part.
    Local(LocalDraft),
}

/// One rank's view of a run.
pub(crate) struct Run<'a> {
    pub(crate) comm: &'a Comm,
    pub(crate) input: Input,
    application: &'a Application,
    start: Instant,
}

/// What a command does on each rank.
pub(crate) trait Command: Sync {
    /// What the progress bar says.
    const LABEL: &'static str;

    /// How often the bytes of the array are made at most.
    fn rounds(&self) -> u64;

    /// Collective: makes the output; returns what to tell about it, without
    /// time and memory, and how often the bytes of the array were made.
    fn make(&self, run: &Run<'_>, resources: &Resources<'_>) -> Result<(String, u64)>;
}

impl Application {
    /// Runs a command on the ranks asked for; on local placement, if nobody
    /// asked, on as many as there are parts.
    pub(crate) fn run<C: Command>(&self, command: &C) -> Result<()> {
        let (progress, peak) = (OnceLock::new(), PeakMemory::watch());
        let ranks = match self.ranks.ranks {
            Some(asked) => Some(asked),
            None => self.parts()?,
        };
        let ranks = Ranks { ranks };
        let budget = self.memory.budget();
        ranks.run(|comm| {
            let run = Run {
                comm,
                input: self.open(comm)?,
                application: self,
                start: Instant::now(),
            };
            let bytes = run.bytes().saturating_mul(command.rounds());
            let progress = Progress::shared(&progress, C::LABEL, comm, bytes / comm.size() as u64)?;
            let (told, rounds) = command.make(
                &run,
                &Resources {
                    budget: budget.clone(),
                    progress: Some(&|bytes| progress.add(bytes)),
                },
            )?;
            progress.finish();
            let used = comm.all_reduce(&[peak.bytes().unwrap_or(0)], Op::Max)?[0];
            let line = closing_line(
                &told,
                run.bytes().saturating_mul(rounds),
                run.start.elapsed(),
                used,
            );
            let said = if comm.rank() == 0 {
                print(&line)
            } else {
                Ok(())
            };
            Ok(comm.agree(said)?)
        })
    }

    /// How many parts the input has, unless a launcher says how many ranks run.
    fn parts(&self) -> Result<Option<u32>> {
        if outcore::under_launcher() {
            return Ok(None);
        }
        // One that cannot be opened is told about when the ranks open it.
        let input = Array::open(&self.input).ok();
        let placement = input.and_then(|input| input.descriptor().local.clone());
        let parts = placement.map(|placement| placement.distribution.ranks());
        parts
            .map(|parts| threads_for(&self.input, parts))
            .transpose()
    }

    /// Collective: opens the input.
    fn open(&self, comm: &Comm) -> Result<Input> {
        let array = Array::open_all(comm, &self.input)?;
        if array.descriptor().local.is_none() {
            return Ok(Input::Global(Box::new(array)));
        }
        // Overlap areas are filled.
        let local = LocalArray::open_writable_all(comm, &self.input)?;
        Ok(Input::Local(Box::new(local)))
    }
}

impl Run<'_> {
    fn descriptor(&self) -> &ArrayDescriptor {
        match &self.input {
            Input::Global(array) => array.descriptor(),
            Input::Local(array) => array.whole(),
        }
    }

    fn bytes(&self) -> u64 {
        let descriptor = self.descriptor();
        descriptor.element_count().unwrap_or(0) * descriptor.element_type.size()
    }

    /// Shape and type of the input.
    pub(crate) fn what(&self) -> String {
        let descriptor = self.descriptor();
        format!(
            "{} {}",
            shape_text(&descriptor.shape),
            descriptor.element_type
        )
    }

    /// Collective: begins an output like the input. Several may be begun, of
    /// which one is committed; the others vanish.
    pub(crate) fn begin(&self) -> Result<Output> {
        let (comm, name) = (self.comm, &self.application.output);
        let descriptor = self.output_descriptor();
        let replace = self.application.force;
        if matches!(self.input, Input::Local(_)) {
            return LocalArray::draft_all(comm, name, &descriptor, replace).map(Output::Local);
        }
        Array::draft_all(comm, name, &descriptor, replace).map(Output::Global)
    }

    fn output_descriptor(&self) -> ArrayDescriptor {
        let (mut descriptor, output) = (self.descriptor().clone(), &self.application.output);
        descriptor.stripes = None;
        descriptor.byte_order = ByteOrder::NATIVE;
        if !output.trim_end_matches('/').ends_with(".oc") {
            // NumPy has two orders and no attributes.
            descriptor.arrangement.tile = None;
            if matches!(descriptor.arrangement.order, Order::Axes(_)) {
                descriptor.arrangement.order = Order::Row;
            }
            descriptor.attributes.clear();
        }
        descriptor
    }
}

impl Output {
    /// The array, if it is one for all ranks.
    pub(crate) fn global(&self) -> Option<&Array> {
        match self {
            Self::Global(draft) => Some(draft),
            Self::Local(_) => None,
        }
    }

    /// This rank's part, if there is one for each.
    pub(crate) fn local(&self) -> Option<&LocalArray> {
        match self {
            Self::Global(..) => None,
            Self::Local(draft) => Some(draft),
        }
    }

    /// Collective: gives the output its name.
    pub(crate) fn commit(self, comm: &Comm) -> Result<()> {
        match self {
            Self::Global(draft) => drop(draft.commit(comm)?),
            Self::Local(draft) => drop(draft.commit(comm)?),
        }
        Ok(())
    }
}

fn closing_line(told: &str, bytes: u64, took: Duration, used: u64) -> String {
    let seconds = took.as_secs_f64();
    format!(
        "{told}; {seconds:.2} s, {:.2} GB/s; peak memory {}\n",
        bytes as f64 / seconds / 1e9,
        bytes::show(used)
    )
}
