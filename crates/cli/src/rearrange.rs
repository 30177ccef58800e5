//! What the commands that copy an array into another order or placement have in
//! common: `convert`, `relayout` and `transpose` differ in what they ask for.

use std::sync::OnceLock;
use std::time::Instant;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Arrangement, Array, ArrayDescriptor, Comm, Error, Fit, LocalArray, MemoryBudget, Order,
    RelayoutJob, RelayoutOutput, Result, shape_text,
};
use outcore_apps::Resources;
use outcore_apps::diff::{Side, Tolerance, diff};
use outcore_apps::stats::Part;
use serde_json::json;

use crate::bytes;
use crate::chunks::{has_chunks, is_hdf5};
use crate::memory::Memory;
use crate::output::{is_native, is_netcdf};
use crate::progress::Progress;
use crate::ranks::{Ranks, print};
use crate::work::{Begun, Closing, Ended, made_facts};

/// The arguments.
#[derive(Args)]
pub(crate) struct Rearrange {
    /// The array to copy
    #[arg(value_name = "IN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) input: String,
    /// The array to make; its ending says the format, as for 'create'
    #[arg(value_name = "OUT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) output: String,
    #[command(flatten)]
    memory: Memory,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// Continue what an interrupted run with the same IN and OUT has left, if there is such
    #[arg(long)]
    pub(crate) resume: bool,
    /// Read OUT again when it is complete, and compare every element with IN
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    closing: Closing,
    #[command(flatten)]
    ranks: Ranks,
}

/// What a command asks for.
pub(crate) struct Wanted {
    /// Axis `k` of the output is axis `axes[k]` of the input.
    pub(crate) axes: Vec<usize>,
    pub(crate) descriptor: ArrayDescriptor,
    /// How elements become those of another type, if that was asked for.
    pub(crate) conversion: Option<Fit>,
}

impl Rearrange {
    /// Makes what `wanted` says of the input, on `ranks` ranks if nobody asked for
    /// another number.
    pub(crate) fn run(
        &self,
        label: &'static str,
        ranks: usize,
        wanted: impl Fn(&Array, &Comm) -> Result<Wanted> + Sync,
    ) -> Result<()> {
        let (progress, verifying, begun) = (OnceLock::new(), OnceLock::new(), Begun::now());
        let budget = self.memory.budget();
        self.ranks.usually(ranks).run(|comm| {
            let source = Array::open_all(comm, &self.input)?;
            let Wanted {
                axes,
                descriptor,
                conversion,
            } = comm.agree(wanted(&source, comm))?;
            let bytes = source.whole().count() * source.layout().element_size();
            let start = Instant::now();
            let add = |progress: &Progress, bytes| progress.add(bytes);
            // The part of the array that this run moves.
            let mut part = 1.0;
            if self.makes_own_files(&descriptor, comm) {
                let share = bytes / comm.size() as u64;
                let progress = Progress::shared(&progress, label, comm, share)?;
                let draft = LocalArray::draft_all(comm, &self.output, &descriptor, self.force)?;
                let own = budget.for_rank(comm);
                comm.agree(draft.load_part(&source, &own, &|bytes| add(progress, bytes)))?;
                draft.commit(comm)?;
                progress.finish();
            } else {
                let output = RelayoutOutput {
                    name: &self.output,
                    descriptor: &descriptor,
                    replace: self.force,
                    resume: self.resume,
                };
                let job = RelayoutJob::begin_converting(
                    comm, &source, &axes, &output, conversion, &budget,
                )?;
                comm.agree(match (comm.rank(), self.closing.json) {
                    (0, false) => self.announce(&job),
                    _ => Ok(()),
                })?;
                if job.resumed() {
                    part = job.remaining() as f64 / job.plan().bytes().max(1) as f64;
                }
                let share = job.remaining() / comm.size() as u64;
                let progress = Progress::shared(&progress, label, comm, share)?;
                let made = job.run(comm, &|bytes| add(progress, bytes));
                if let Err(Error::Unfinished { .. }) = &made {
                    // All ranks have it, and one tells it.
                    return Ok(comm.agree(made.map(drop))?);
                }
                made?;
                progress.finish();
            }
            let mut ended = begun.end_since(comm, start)?;
            if self.verify {
                self.compare(comm, (&source, &axes), conversion, &budget, &verifying)?;
                ended.peak = begun.end(comm)?.peak;
            }
            let moved = (part * bytes as f64) as u64;
            let told = match comm.rank() {
                0 => self.tell(&ended, moved),
                _ => Ok(()),
            };
            Ok(comm.agree(told)?)
        })
    }

    /// Says what was made, and of how many bytes that moved.
    fn tell(&self, ended: &Ended, moved: u64) -> Result<()> {
        let made = Array::open(&self.output)?;
        if self.closing.json {
            let own = [
                ("input", json!(self.input)),
                ("gb_per_s", json!(ended.rate(moved as f64))),
                ("verified", json!(self.verify)),
            ];
            return print(&ended.json(own.into_iter().chain(made_facts(&made))));
        }
        print(&format!(
            "{}{}; {}\n",
            describe(&made),
            if self.verify { "; verified" } else { "" },
            ended.words(moved)
        ))
    }

    /// Collective: compares the output, read again, with what it was made of.
    fn compare(
        &self,
        comm: &Comm,
        (source, axes): (&Array, &[usize]),
        conversion: Option<Fit>,
        budget: &MemoryBudget,
        progress: &OnceLock<Progress>,
    ) -> Result<()> {
        let made = Array::open_all(comm, &self.output)?;
        let turned = source.permuted(axes)?;
        let order: Vec<usize> = (0..axes.len()).collect();
        let whole = turned.whole();
        let [left, right] = [&turned, &made].map(|array| Side {
            part: Part {
                array,
                section: &whole,
            },
            axes: &order,
        });
        let bytes = whole.count() * source.layout().element_size() / comm.size() as u64;
        let progress = Progress::shared(progress, "verifying", comm, bytes)?;
        let resources = Resources {
            budget: budget.clone(),
            progress: Some(&|bytes| progress.add(bytes)),
        };
        let sides = (&left, &right);
        let exact = Tolerance::default();
        let found = diff(comm, sides, &exact, conversion, &resources)?;
        progress.finish();
        let Some(first) = found.first else {
            return Ok(());
        };
        Err(Error::Invalid(format!(
            "{} differs from {} in {} elements, the first of them {:?}: it was written or read \
             wrongly, or {} has changed meanwhile; make it again with --force",
            self.output,
            self.input,
            found.beyond,
            right.index(&left, &first),
            self.input
        )))
    }

    /// Whether each rank makes its own file, on a disk that others may not be
    /// able to reach.
    fn makes_own_files(&self, descriptor: &ArrayDescriptor, comm: &Comm) -> bool {
        let placement = descriptor.local.as_ref();
        placement.is_some_and(|placement| {
            !placement.directories.is_empty()
                && placement.distribution.ranks() == comm.size() as u64
        })
    }

    /// Says what will be done.
    fn announce(&self, job: &RelayoutJob) -> Result<()> {
        let begun = match (self.resume, job.resumed()) {
            (true, true) => format!(
                "continued, {} of {} left; ",
                bytes::show(job.remaining()),
                bytes::show(job.plan().bytes())
            ),
            (true, false) => "nothing to continue, begun anew; ".into(),
            (false, _) => String::new(),
        };
        print(&format!("{begun}{}\n", job.plan()))
    }
}

/// What an array of this description becomes in a file named `output`: its shape, type,
/// byte order and attributes as far as the format has them.
pub(crate) fn like(old: &ArrayDescriptor, output: &str) -> ArrayDescriptor {
    let mut descriptor = ArrayDescriptor::new(&old.shape, old.element_type)
        .byte_order(old.byte_order)
        .layout(old.arrangement.clone());
    if output.ends_with(".npy") {
        // NumPy has two orders, and no tiles.
        descriptor.arrangement.tile = None;
        if matches!(descriptor.arrangement.order, Order::Axes(_)) {
            descriptor.arrangement.order = Order::Row;
        }
    }
    if has_chunks(output) || is_hdf5(output) {
        descriptor.fill_value = old.fill_value.clone();
        descriptor.axis_names = old.axis_names.clone();
    }
    if is_native(output) {
        descriptor.checksums = old.checksums;
    }
    if is_hdf5(output) {
        descriptor.arrangement.order = Order::Row;
        descriptor.codecs = old.codecs.in_hdf5();
    } else if has_chunks(output) {
        (descriptor.shard, descriptor.codecs) = match output.starts_with("zarr2:") {
            true => (None, old.codecs.in_zarr2()),
            false => (old.shard.clone(), old.codecs.in_zarr3()),
        };
    }
    if has_chunks(output) || is_hdf5(output) || is_native(output) {
        descriptor.attributes = old.attributes.clone();
    }
    if is_netcdf(output) {
        descriptor.arrangement = Arrangement::default();
        descriptor.axis_names = old.axis_names.clone();
        descriptor.attributes = old.attributes.clone();
    }
    descriptor
}

/// An array in a few words.
fn describe(made: &Array) -> String {
    let placed = match &made.descriptor().local {
        None => String::new(),
        Some(placement) => format!(
            ", {} local files ({} on {})",
            placement.distribution.ranks(),
            placement.distribution,
            shape_text(placement.distribution.grid())
        ),
    };
    format!(
        "{}: {} {} in {} layout, {}{placed}",
        made.name(),
        shape_text(made.shape()),
        made.element_type(),
        made.descriptor().arrangement,
        bytes::show(made.layout().byte_len()),
    )
}
