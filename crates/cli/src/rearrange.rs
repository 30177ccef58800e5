//! What the commands that copy an array into another order or placement have in
//! common: `convert`, `relayout` and `transpose` differ in what they ask for.

use std::sync::OnceLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Arrangement, Array, ArrayDescriptor, Codecs, Comm, Filling, MemoryBudget, Order, Result,
    shape_text,
};
use serde_json::{Value, json};

use crate::bytes;
use crate::chunks::{is_hdf5, is_zarr};
use crate::contents::{Contents, Member};
use crate::memory::Memory;
use crate::output::{is_native, is_netcdf};
use crate::progress::Progress;
use crate::ranks::{Ranks, print};
use crate::remake::Remake;
pub(crate) use crate::remake::Wanted;
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

impl Rearrange {
    /// Makes what `wanted` says of the input, on `ranks` ranks if nobody asked for
    /// another number.
    pub(crate) fn run(
        &self,
        label: &'static str,
        ranks: usize,
        wanted: impl Fn(&Array, &Comm) -> Result<Wanted> + Sync,
    ) -> Result<()> {
        let (moving, verifying, begun) = (OnceLock::new(), OnceLock::new(), Begun::now());
        let copy = Remake {
            input: &self.input,
            output: &self.output,
            force: self.force,
            resume: self.resume,
            announced: !self.closing.json,
            budget: &self.memory.budget(),
        };
        self.ranks.usually(ranks).run(|comm| {
            let bar = |share| Progress::shared(&moving, label, comm, share);
            let made = copy.make(comm, &wanted, &bar)?;
            moving.get().into_iter().for_each(Progress::finish);
            let mut ended = begun.end_since(comm, made.start)?;
            if self.verify {
                let bar = |share| Progress::shared(&verifying, "verifying", comm, share);
                copy.compare(comm, &made.source, &made.wanted, &bar)?;
                verifying.get().into_iter().for_each(Progress::finish);
                ended.peak = begun.end(comm)?.peak;
            }
            let told = match comm.rank() {
                0 => self.tell(&ended, made.moved),
                _ => Ok(()),
            };
            Ok(comm.agree(told)?)
        })
    }

    /// Makes what `wanted` says of each array of the container IN, in the container OUT.
    pub(crate) fn run_all(
        &self,
        label: &'static str,
        options: &str,
        wanted: impl Fn(&Array, &str) -> Result<Wanted> + Sync,
    ) -> Result<()> {
        let (moving, verifying, begun) = (OnceLock::new(), OnceLock::new(), Begun::now());
        let budget = self.memory.budget();
        self.ranks.run(|comm| {
            let ends = (&*self.input, &*self.output);
            let (contents, filling) = Contents::begin(comm, ends, options, self.resume)?;
            let share = contents.bytes() / comm.size() as u64;
            let bar = Progress::shared(&moving, label, comm, share)?;
            for (at, member) in contents.members.iter().enumerate() {
                if member.complete {
                    bar.add(member.bytes / comm.size() as u64);
                    continue;
                }
                let wanted = |source: &Array, _: &Comm| {
                    let mut wanted = wanted(source, &member.output)?;
                    wanted.descriptor.axis_names = member.axis_names.clone();
                    Ok(wanted)
                };
                let made = self
                    .member(member, &budget)
                    .make(comm, &wanted, &|_| Ok(bar));
                comm.agree(made.map(drop).map_err(|error| contents.left(&error, at)))?;
            }
            comm.agree(filling.map_or(Ok(()), Filling::finish))?;
            bar.finish();
            if self.verify {
                let bar = Progress::shared(&verifying, "verifying", comm, share)?;
                for member in &contents.members {
                    let source = Array::open_all(comm, &member.input)?;
                    let wanted = comm.agree(wanted(&source, &member.output))?;
                    self.member(member, &budget)
                        .compare(comm, &source, &wanted, &|_| Ok(bar))?;
                }
                bar.finish();
            }
            let ended = begun.end(comm)?;
            let told = match comm.rank() {
                0 => contents.tell(&ended, self.closing.json, self.verify),
                _ => Ok(()),
            };
            Ok(comm.agree(told)?)
        })
    }

    /// How one of several arrays is made.
    fn member<'a>(&self, member: &'a Member, budget: &'a MemoryBudget) -> Remake<'a> {
        Remake {
            input: &member.input,
            output: &member.output,
            force: false,
            // What is added to a file of others begins anew.
            resume: self.resume && !is_hdf5(&member.output),
            announced: false,
            budget,
        }
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
}

/// What an array of this description becomes in a file named `output`: its shape, type,
/// byte order and attributes as far as the format has them.
pub(crate) fn like(old: &ArrayDescriptor, output: &str) -> ArrayDescriptor {
    let mut descriptor = ArrayDescriptor::new(&old.shape, old.element_type)
        .byte_order(old.byte_order)
        .layout(old.arrangement.clone());
    // NumPy has two orders, and no tiles; Zarr 2 has as many.
    if output.ends_with(".npy") {
        descriptor.arrangement.tile = None;
    }
    if (output.ends_with(".npy") || output.starts_with("zarr2:"))
        && matches!(descriptor.arrangement.order, Order::Axes(_))
    {
        descriptor.arrangement.order = Order::Row;
    }
    if is_zarr(output) || is_hdf5(output) {
        descriptor.fill_value = old.fill_value.clone();
    }
    if is_native(output) {
        descriptor.checksums = old.checksums;
    }
    if is_hdf5(output) {
        descriptor.arrangement.order = Order::Row;
        if !old.shape.is_empty() {
            descriptor.codecs = old.codecs.in_hdf5();
        }
    } else if is_zarr(output) {
        (descriptor.shard, descriptor.codecs) = match output.starts_with("zarr2:") {
            true => {
                // Others take it for the value of what is missing, and the zero that every
                // array of version 3 has means nothing.
                let zero = |value: &Value| value.as_f64() == Some(0.0) || value == false;
                descriptor.fill_value = descriptor.fill_value.filter(|value| !zero(value));
                (None, old.codecs.in_zarr2())
            }
            false => (old.shard.clone(), old.codecs.in_zarr3()),
        };
    }
    if is_netcdf(output) {
        descriptor.arrangement = Arrangement::default();
    }
    if is_zarr(output) || is_hdf5(output) || is_native(output) || is_netcdf(output) {
        descriptor.axis_names = old.axis_names.clone();
        descriptor.attributes = old.attributes.clone();
    }
    descriptor
}

/// With another layout: shards of other chunks need not fit, and in one piece there is
/// nothing that the codecs of an HDF5 file could encode.
pub(crate) fn with_layout(
    mut descriptor: ArrayDescriptor,
    layout: Option<&Arrangement>,
    output: &str,
) -> ArrayDescriptor {
    if let Some(layout) = layout {
        if layout.tile != descriptor.arrangement.tile {
            descriptor.shard = None;
        }
        if layout.tile.is_none() && is_hdf5(output) {
            descriptor.codecs = Codecs::default();
        }
        descriptor.arrangement = layout.clone();
    }
    descriptor
}

/// An array in a few words.
pub(crate) fn describe(made: &Array) -> String {
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
