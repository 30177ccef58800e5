//! What commands that make one array of another have in common: their
//! arguments, the input in either placement, and outputs that appear when they
//! are complete.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Array, ArrayDescriptor, ByteOrder, Comm, ElementType, LocalArray, LocalDraft, Result, Scratch,
    SharedDraft, shape_text,
};
use outcore_apps::Resources;
use serde_json::json;

use crate::memory::Memory;
use crate::output::check_distinct;
use crate::ranks::{Ranks, threads_for};
use crate::rearrange::like;
use crate::work::{Closing, Done, Work};

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
    closing: Closing,
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
    pub(crate) input: &'a Input,
    application: &'a Application,
}

/// What a command does on each rank.
pub(crate) trait Command: Sync {
    /// What the progress bar says.
    const LABEL: &'static str;

    /// Whether ranks work on files of their own, if the input has such; if not,
    /// these are one array for all.
    const APART: bool = true;

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
        let ranks = match self.ranks.ranks {
            Some(asked) => Some(asked),
            None if C::APART => self.parts()?,
            None => None,
        };
        let work = Work {
            label: C::LABEL,
            ranks: Ranks::of(ranks),
            memory: &self.memory,
            json: self.closing.json,
        };
        let open = |comm: &Comm| {
            let input = self.open(comm, C::APART)?;
            let bytes = input.bytes().saturating_mul(command.rounds());
            Ok((input, bytes))
        };
        work.run(open, |comm, input, resources| {
            let run = Run {
                comm,
                input,
                application: self,
            };
            let (told, rounds) = command.make(&run, resources)?;
            Ok(Done {
                inputs: vec![("input", json!(self.input))],
                output: self.output.clone(),
                told,
                amount: input.bytes() as f64 * rounds as f64,
                unit: "GB/s",
            })
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
    fn open(&self, comm: &Comm, apart: bool) -> Result<Input> {
        let array = Array::open_all(comm, &self.input)?;
        check_distinct(comm, &[&self.input], &self.output)?;
        if !apart || array.descriptor().local.is_none() {
            return Ok(Input::Global(Box::new(array)));
        }
        // Overlap areas are filled.
        let local = LocalArray::open_writable_all(comm, &self.input)?;
        Ok(Input::Local(Box::new(local)))
    }
}

impl Input {
    fn descriptor(&self) -> &ArrayDescriptor {
        match self {
            Self::Global(array) => array.descriptor(),
            Self::Local(array) => array.whole(),
        }
    }

    fn bytes(&self) -> u64 {
        let descriptor = self.descriptor();
        descriptor.element_count().unwrap_or(0) * descriptor.element_type.size()
    }
}

impl Run<'_> {
    /// Shape and type of the input.
    pub(crate) fn what(&self) -> String {
        let descriptor = self.input.descriptor();
        format!(
            "{} {}",
            shape_text(&descriptor.shape),
            descriptor.element_type
        )
    }

    /// Collective: begins an output like the input.
    pub(crate) fn begin(&self) -> Result<Output> {
        self.begin_of(self.input.descriptor().element_type)
    }

    /// Collective: the same with other elements.
    pub(crate) fn begin_of(&self, element_type: ElementType) -> Result<Output> {
        let (comm, name) = (self.comm, &self.application.output);
        let mut descriptor = self.output_descriptor();
        if element_type != descriptor.element_type {
            descriptor = descriptor.converted(element_type);
        }
        let replace = self.application.force;
        if matches!(self.input, Input::Local(_)) {
            return LocalArray::draft_all(comm, name, &descriptor, replace).map(Output::Local);
        }
        Array::draft_all(comm, name, &descriptor, replace).map(Output::Global)
    }

    /// Collective: an array for values between the passes to `output`, with elements of
    /// the type given.
    pub(crate) fn scratch(&self, output: &Array, element_type: ElementType) -> Result<Scratch> {
        let like = output.descriptor().clone().converted(element_type);
        Scratch::beside(self.comm, &self.application.output, &like)
    }

    fn output_descriptor(&self) -> ArrayDescriptor {
        let input = self.input.descriptor();
        let mut descriptor = match self.input {
            Input::Global(_) => like(input, &self.application.output),
            Input::Local(_) => input.clone(),
        };
        descriptor.stripes = None;
        descriptor.byte_order = ByteOrder::NATIVE;
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
