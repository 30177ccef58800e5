//! What the commands that copy an array into another order or placement have in
//! common: `convert`, `relayout` and `transpose` differ in what they ask for.

use std::sync::OnceLock;
use std::time::Instant;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Array, ArrayDescriptor, Comm, LocalArray, Op, Order, PeakMemory, RelayoutJob, RelayoutOutput,
    Result, shape_text,
};

use crate::bytes;
use crate::chunks::has_chunks;
use crate::memory::Memory;
use crate::progress::Progress;
use crate::ranks::{Ranks, print};

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
    #[command(flatten)]
    ranks: Ranks,
}

/// What a command asks for.
pub(crate) struct Wanted {
    /// Axis `k` of the output is axis `axes[k]` of the input.
    pub(crate) axes: Vec<usize>,
    pub(crate) descriptor: ArrayDescriptor,
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
        let (progress, peak) = (OnceLock::new(), PeakMemory::watch());
        let budget = self.memory.budget();
        let ranks = Ranks {
            ranks: self.ranks.ranks.or(u32::try_from(ranks).ok()),
        };
        ranks.run(|comm| {
            let source = Array::open_all(comm, &self.input)?;
            let Wanted { axes, descriptor } = comm.agree(wanted(&source, comm))?;
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
                let job = RelayoutJob::begin(comm, &source, &axes, &output, &budget)?;
                comm.agree(match comm.rank() {
                    0 => self.announce(&job),
                    _ => Ok(()),
                })?;
                if job.resumed() {
                    part = job.remaining() as f64 / job.plan().bytes().max(1) as f64;
                }
                let share = job.remaining() / comm.size() as u64;
                let progress = Progress::shared(&progress, label, comm, share)?;
                job.run(comm, &|bytes| add(progress, bytes))?;
                progress.finish();
            }
            let used = comm.all_reduce(&[peak.bytes().unwrap_or(0)], Op::Max)?[0];
            let seconds = start.elapsed().as_secs_f64();
            let told = match comm.rank() {
                0 => describe(&self.output).and_then(|made| {
                    print(&format!(
                        "{made}; {seconds:.2} s, {:.2} GB/s; peak memory {}\n",
                        part * bytes as f64 / seconds / 1e9,
                        bytes::show(used)
                    ))
                }),
                _ => Ok(()),
            };
            Ok(comm.agree(told)?)
        })
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

/// What `source` becomes in a file named `output`: its shape, type, byte order and
/// attributes as far as the format has them.
pub(crate) fn like(source: &Array, output: &str) -> ArrayDescriptor {
    let old = source.descriptor();
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
    if has_chunks(output) {
        descriptor.codecs = old.codecs.clone();
        descriptor.shard = old.shard.clone();
        descriptor.fill_value = old.fill_value.clone();
        descriptor.axis_names = old.axis_names.clone();
    }
    if is_hdf5(output) {
        descriptor.arrangement.order = Order::Row;
    }
    if has_chunks(output) || is_hdf5(output) || output.trim_end_matches('/').ends_with(".oc") {
        descriptor.attributes = old.attributes.clone();
    }
    descriptor
}

/// Whether this is a dataset of an HDF5 file, which holds row order.
fn is_hdf5(name: &str) -> bool {
    let file = name.rsplit_once(':').map_or(name, |(file, _)| file);
    // Without a dataset, the colon may be that of an address.
    let ends = |text: &str| text.ends_with(".h5") || text.ends_with(".hdf5");
    ends(file) || ends(name)
}

/// The array `name` in a few words.
fn describe(name: &str) -> Result<String> {
    let made = Array::open(name)?;
    let placed = match &made.descriptor().local {
        None => String::new(),
        Some(placement) => format!(
            ", {} local files ({} on {})",
            placement.distribution.ranks(),
            placement.distribution,
            shape_text(placement.distribution.grid())
        ),
    };
    Ok(format!(
        "{}: {} {} in {} layout, {}{placed}",
        made.name(),
        shape_text(made.shape()),
        made.element_type(),
        made.descriptor().arrangement,
        bytes::show(made.layout().byte_len()),
    ))
}
