//! `outcore scatter`: values from a file into elements at listed places.

use std::sync::OnceLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Array, Combine, Comm, Error, Inspector, Result, Section, Variable, reorder, shape_text,
};
use serde_json::json;

use crate::gather::rounds_text;
use crate::places::{IndexFile, Listed, Load, Rounds};
use crate::progress::Progress;
use crate::ranks::print;
use crate::work::{Begun, Closing};

/// Write values into elements at listed places, in any order
///
/// The values are in the order of the indices, of the array's type. Of several for
/// one element the last stays; with --combine each changes what stands there. With
/// --axes K only the first K axes are indexed, and the values of an index are all
/// that the others number: their shape follows n.
///
/// The ranks write together, each a part of the array for all; the indices are
/// dealt out to them in blocks. With %r in both names, which becomes the rank, each
/// has files of its own; then the values of higher ranks stay. Nothing is written
/// unless all indices are in the array. What does not fit into --memory at a time is
/// written in several rounds.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore scatter field.oc --indices places.npy --values values.npy
  outcore scatter field.oc --indices places.npy --values values.npy --combine add --ranks 4
  outcore scatter mesh.oc --axes 1 --indices points%r.npy --values forces%r.npy --ranks 4")]
pub(crate) struct Scatter {
    #[command(flatten)]
    listed: Listed,
    /// The values: a .npy file or any other array, n or n x ... with --axes
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    values: String,
    /// Change what stands there instead of replacing it: add, min or max
    #[arg(long, value_name = "HOW")]
    combine: Option<Combine>,
    #[command(flatten)]
    closing: Closing,
}

/// What goes into the array.
struct Target<'a> {
    array: &'a Array,
    indices: &'a IndexFile,
    values: &'a Array,
    inspector: &'a Inspector,
    rounds: &'a Rounds,
    combine: Option<Combine>,
    /// The bytes of an index's values.
    record: u64,
}

impl Scatter {
    pub(crate) fn check(&self) -> Result<(), String> {
        self.listed.check("--values", &self.values)
    }

    pub(crate) fn run(&self) -> Result<()> {
        let (progress, begun) = (OnceLock::new(), Begun::now());
        self.listed.ranks.run(|comm| {
            let array = comm.agree(Array::open_writable(&self.listed.array))?;
            let indices = comm.agree(self.listed.open(comm, &array))?;
            let axes = comm.agree(self.listed.indexed(&array))?;
            let components = &array.shape()[axes..];
            let values = comm.agree(self.open_values(comm, &indices, (&array, components)))?;
            let record = components.iter().product::<u64>() * array.layout().element_size();
            let load = Load {
                record: match is_row_major(&values) {
                    true => record,
                    false => 2 * record,
                },
                one_a_rank: self.listed.one_a_rank(),
                in_order: self.combine.is_none(),
                decoded: (array.decoded_bytes(), values.decoded_bytes()),
                purpose: "scattering",
            };
            let rounds = Rounds::new(comm, &indices, &self.listed.memory, &load)?;
            let share = rounds.share(comm.rank(), comm.size());
            let several = rounds.count(comm.size()) > 1;
            let passes = if several { 2 } else { 1 };
            let own_bytes = share * (passes * indices.index_bytes() + record);
            let progress = Progress::shared(&progress, "scattering", comm, own_bytes)?;
            if several {
                rounds.check_all(comm, &indices, progress)?;
            }
            let target = Target {
                array: &array,
                indices: &indices,
                values: &values,
                inspector: &Inspector::default().axes(axes),
                rounds: &rounds,
                combine: self.combine,
                record,
            };
            target.fill(comm, progress)?;
            progress.finish();
            let ended = begun.end(comm)?;
            let moved = rounds.indices() * record;
            let told = match comm.rank() {
                0 if self.closing.json => print(&ended.json([
                    ("array", json!(array.name())),
                    ("indices", json!(rounds.indices())),
                    ("type", json!(array.element_type().name())),
                    ("bytes", json!(moved)),
                    ("rounds", json!(rounds.count(comm.size()))),
                    ("gb_per_s", json!(ended.rate(moved as f64))),
                ])),
                0 => print(&format!(
                    "{}: {} {}{}; {}\n",
                    array.name(),
                    match rounds.indices() {
                        1 => "1 index".into(),
                        count => format!("{count} indices"),
                    },
                    match self.combine {
                        None => "written".into(),
                        Some(combine) => format!("combined by {}", combine.name()),
                    },
                    rounds_text(rounds.count(comm.size())),
                    ended.words(moved)
                )),
                _ => Ok(()),
            };
            Ok(comm.agree(told)?)
        })
    }

    /// Opens this rank's values and checks that they fit.
    fn open_values(
        &self,
        comm: &Comm,
        indices: &IndexFile,
        (array, components): (&Array, &[u64]),
    ) -> Result<Array> {
        let values = Array::open(&Listed::of_rank(&self.values, comm))?;
        if values.element_type() != array.element_type() {
            return Err(Error::WrongType {
                array: values.name().into(),
                stored: values.element_type(),
                asked: array.element_type(),
            });
        }
        let shape = [&[indices.count()], components].concat();
        if values.shape() != shape {
            return Err(Error::Invalid(format!(
                "{} has the shape {}, but the {} indices of {} need values of shape {}",
                values.name(),
                shape_text(values.shape()),
                indices.count(),
                indices.name(),
                shape_text(&shape)
            )));
        }
        Ok(values)
    }
}

fn is_row_major(values: &Array) -> bool {
    values.layout().slowest_first().is_sorted()
}

impl Target<'_> {
    /// Collective: brings all values into the array.
    fn fill(&self, comm: &Comm, progress: &Progress) -> Result<()> {
        let (rank, ranks) = (comm.rank(), comm.size());
        let mut values = self.rounds.values(comm, self.record)?;
        let mut unordered = Vec::new();
        for round in 0..self.rounds.count(ranks) {
            let positions = self.rounds.positions(round, rank, ranks);
            let count = (positions.end - positions.start) * self.record;
            let part = &mut values.local_mut()[..count as usize];
            let section = self.values.whole().slice(0, positions.start, positions.end);
            let read = || {
                let numbers = self.indices.read(positions, self.rounds.room, progress)?;
                self.read_values(&section, (part, &mut unordered))?;
                Ok::<_, Error>(numbers)
            };
            let numbers = comm.agree(read())?;
            let schedule = self.inspector.schedule(comm, self.array, &numbers)?;
            let part = &values.local()[..count as usize];
            let call = schedule.call().budget(&self.rounds.staging);
            match self.combine {
                None => call.write_all(comm, &mut [Variable::write_bytes(self.array, part)]),
                Some(combine) => call.accumulate_bytes(comm, self.array, part, combine),
            }?;
            progress.add(count);
        }
        Ok(comm.agree(self.array.sync())?)
    }

    /// Values of a section in row-major order.
    fn read_values(
        &self,
        section: &Section,
        (part, unordered): (&mut [u8], &mut Vec<u8>),
    ) -> Result<()> {
        if is_row_major(self.values) {
            return self.values.read_bytes(section, part);
        }
        unordered.resize(part.len(), 0);
        self.values.read_bytes(section, unordered)?;
        let row_major: Vec<usize> = (0..section.shape().len()).collect();
        let order = self.values.layout().slowest_first();
        reorder(&section.shape(), (unordered, order), (part, &row_major));
        Ok(())
    }
}
