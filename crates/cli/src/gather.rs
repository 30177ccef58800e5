//! `outcore gather`: elements at listed places, into a file.

use std::sync::OnceLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Array, ArrayDescriptor, Comm, Inspector, Pieces, Result, Section, Variable, distinct, reorder,
    shape_text,
};
use serde_json::json;

use crate::described::check_described;
use crate::output::{array_name, check_array};
use crate::places::{IndexFile, Listed, Load, Rounds};
use crate::progress::Progress;
use crate::ranks::{cause, print};
use crate::work::{Begun, Closing};

/// Read elements at listed places, in any order, into a file
///
/// The values are in the order of the indices; an index may be there several times.
/// With --axes K only the first K axes are indexed, and the values of an index are
/// all that the others number: their shape follows n. The ending of the output
/// says its format, as for 'read'.
///
/// The ranks read together, each a part of the array for all; the indices are dealt
/// out to them in blocks. With %r in FILE, which becomes the rank, each has a file
/// of its own, and so has the output. What does not fit into --memory at a time is
/// read in several rounds.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore gather field.oc --indices wanted.npy -o values.npy
  outcore gather mesh.oc --axes 1 --indices points.npy -o coordinates.npy --ranks 4
  outcore gather field.oc --indices wanted%r.npy -o values%r.npy --ranks 4 --memory 256MiB")]
pub(crate) struct Gather {
    #[command(flatten)]
    listed: Listed,
    /// The file to write
    #[arg(short, long, value_name = "OUT", value_parser = NonEmptyStringValueParser::new())]
    output: String,
    /// Replace the output if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    closing: Closing,
}

/// What goes into the output.
struct Source<'a> {
    array: &'a Array,
    indices: &'a IndexFile,
    inspector: &'a Inspector,
    rounds: &'a Rounds,
    /// The bytes of an index's values.
    record: u64,
}

impl Gather {
    pub(crate) fn check(&self) -> Result<(), String> {
        check_array(&self.output)?;
        self.listed.check("--output", &self.output)
    }

    pub(crate) fn run(&self) -> Result<()> {
        let (progress, begun) = (OnceLock::new(), Begun::now());
        self.listed.ranks.run(|comm| {
            let array = Array::open_all(comm, &self.listed.array)?;
            let indices = comm.agree(self.listed.open(comm, &array))?;
            let axes = comm.agree(self.listed.indexed(&array))?;
            let components = &array.shape()[axes..];
            let record = components.iter().product::<u64>() * array.layout().element_size();
            let load = Load {
                record,
                one_a_rank: self.listed.one_a_rank(),
                in_order: false,
                decoded: (array.decoded_bytes(), 0),
                purpose: "gathering",
            };
            let rounds = Rounds::new(comm, &indices, &self.listed.memory, &load)?;
            let share = rounds.share(comm.rank(), comm.size());
            let own_bytes = share * (indices.index_bytes() + record);
            let progress = Progress::shared(&progress, "gathering", comm, own_bytes)?;
            let shape: Vec<u64> = [&[indices.count()], components].concat();
            let descriptor = ArrayDescriptor::new(&shape, array.element_type());
            let source = Source {
                array: &array,
                indices: &indices,
                inspector: &Inspector::default().axes(axes),
                rounds: &rounds,
                record,
            };
            let output = Listed::of_rank(&self.output, comm);
            let name = array_name(&descriptor, &output);
            let mut inputs = [array.name(), indices.name()].into_iter();
            comm.agree(inputs.try_for_each(|input| distinct(input, &name)))?;
            match self.listed.one_a_rank() {
                false => {
                    let draft = Array::draft_all(comm, &name, &descriptor, self.force)?;
                    comm.agree(check_described(&draft, &output, &descriptor))?;
                    source.bring(comm, &draft, progress)?;
                    draft.commit(comm)?;
                }
                true => {
                    // Each rank makes its own; all appear, or none that failed before.
                    let alone = comm.split(Some(comm.rank() as u64), 0)?;
                    let alone = alone.expect("every rank has a colour");
                    let draft = Array::draft_all(&alone, &name, &descriptor, self.force);
                    let draft = comm.agree(draft.map_err(|error| cause(&error)))?;
                    comm.agree(check_described(&draft, &output, &descriptor))?;
                    source.bring(comm, &draft, progress)?;
                    let made = draft.commit(&alone).map_err(|error| cause(&error));
                    comm.agree(made)?;
                }
            }
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
                    ("output", json!(self.output)),
                ])),
                0 => print(&format!(
                    "{}: {} {} from {}{}; {}\n",
                    self.output,
                    match self.listed.one_a_rank() {
                        false => shape_text(&shape),
                        true => format!("{} records", rounds.indices()),
                    },
                    array.element_type(),
                    array.name(),
                    rounds_text(rounds.count(comm.size())),
                    ended.words(moved)
                )),
                _ => Ok(()),
            };
            Ok(comm.agree(told)?)
        })
    }
}

/// In how many rounds something was done, if there were several.
pub(crate) fn rounds_text(rounds: u64) -> String {
    match rounds {
        0 | 1 => String::new(),
        rounds => format!(" in {rounds} rounds"),
    }
}

impl Source<'_> {
    /// Collective: brings the values of all indices into `target`.
    fn bring(&self, comm: &Comm, target: &Array, progress: &Progress) -> Result<()> {
        let (rank, ranks) = (comm.rank(), comm.size());
        let mut values = self.rounds.values(comm, self.record)?;
        for round in 0..self.rounds.count(ranks) {
            let positions = self.rounds.positions(round, rank, ranks);
            let room = self.rounds.room;
            let numbers = comm.agree(self.indices.read(positions.clone(), room, progress))?;
            let schedule = self.inspector.schedule(comm, self.array, &numbers)?;
            let count = (positions.end - positions.start) * self.record;
            let part = &mut values.local_mut()[..count as usize];
            let call = schedule.call().budget(&self.rounds.staging);
            call.read_all(comm, &mut [Variable::read_bytes(self.array, part)])?;
            let section = target.whole().slice(0, positions.start, positions.end);
            comm.agree(self.write(target, &section, part))?;
            progress.add(count);
        }
        Ok(comm.agree(target.sync())?)
    }

    /// Writes values in row-major order into a section, which the description of a file may
    /// have in another.
    fn write(&self, target: &Array, section: &Section, values: &[u8]) -> Result<()> {
        let order = target.layout().slowest_first();
        if order.is_sorted() {
            return target.write_bytes(section, values);
        }
        let row_major: Vec<usize> = (0..order.len()).collect();
        let size = target.layout().element_size();
        let most = (self.rounds.room / size).max(1);
        let (mut rest, mut ordered) = (values, Vec::new());
        for piece in Pieces::new(section, &row_major, most) {
            let (taken, after) = rest.split_at((piece.count() * size) as usize);
            ordered.resize(taken.len(), 0);
            reorder(&piece.shape(), (taken, &row_major), (&mut ordered, order));
            target.write_bytes(&piece, &ordered)?;
            rest = after;
        }
        Ok(())
    }
}
