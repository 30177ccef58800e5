//! `outcore read`: a section of an array into a file or onto the screen.

use std::path::Path;
use std::sync::OnceLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Arrangement, Array, ArrayDescriptor, Comm, Direction, Error, Order, Result, Section, Tuning,
    distinct,
};
use serde_json::json;

use crate::chunks::{Chunking, is_hdf5, is_zarr};
use crate::copy::{Side, Team, copy, copy_together, fitting};
use crate::counted::counted;
use crate::memory::Memory;
use crate::output::{array_name, check_distinct, check_free, is_native, is_netcdf, is_text};
use crate::progress::Progress;
use crate::ranks::{Ranks, cause, print};
use crate::selection::Selection;
use crate::text;
use crate::tuning::TuningOptions;
use crate::work::{Begun, Closing};

/// Read a section of an array into a file, or print it
///
/// The ending of FILE says what is written: .npy, .oc, .zarr, .h5 and .nc arrays of these
/// formats, as for 'create', .txt or .csv text, anything else the plain bytes: elements in the
/// order of the array's axes, each in this machine's byte order. An axis given by a
/// single index is dropped from the output's shape (in .zarr it stays, with one element).
///
/// The ranks divide the section among themselves (but one alone prints text). A
/// section that depends on
/// the rank (p, N) gives each rank its own output: FILE must then contain %r,
/// which becomes the rank. A line in the end says how long it took; of numbers that
/// are printed there is none.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore read field.oc '0:4, 0:8'                              (prints the numbers)
  outcore read field.oc '::16, :' -o every16th.npy --ranks 4
  outcore read s3://bucket/climate.zarr/t '0, ::4, ::4' -o corner.npy
  outcore read field.oc '::4, ::4' -o coarse.zarr --chunks 256x256 --codec zstd:3
  outcore read field.oc '(1:100:1, 1:4096:1)' -o part.bin
  outcore read 'raw:data.bin?shape=4096x4096&type=f32&layout=column' ':, 7' -o column7.txt
  outcore read field.oc '(1+32*p:16+32*p:1, 1:4096:1)' -o part%r.npy --ranks 4")]
pub(crate) struct Read {
    #[command(flatten)]
    selection: Selection,
    /// The file to write; - prints text
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "-",
        hide_default_value = true,
        value_parser = NonEmptyStringValueParser::new()
    )]
    output: String,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    chunking: Chunking,
    #[command(flatten)]
    closing: Closing,
    #[command(flatten)]
    tuning: TuningOptions,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    ranks: Ranks,
}

impl Read {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.selection.section.depends_on_rank() && !self.output.contains("%r") {
            return Err(format!(
                "section '{}' differs from rank to rank, so the output '{}' must contain %r, \
                 which becomes the rank",
                self.selection.section, self.output
            ));
        }
        self.selection.check_name("--output", &self.output)?;
        self.chunking.check(&self.output)?;
        if self.closing.json && self.output == "-" {
            return Err("--json tells of a file that was written; name it with -o".into());
        }
        Ok(())
    }

    /// Whether it makes a file.
    pub(crate) fn makes_file(&self) -> bool {
        self.output != "-"
    }

    pub(crate) fn run(&self) -> Result<()> {
        let (progress, begun) = (OnceLock::new(), Begun::now());
        self.ranks.run(|comm| {
            let mut room = self.memory.room(comm, "reading")?;
            let array = Array::open_all(comm, &self.selection.array)?;
            let array = comm.agree(room.tuned(&array, self.tuning.tuning()))?;
            let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
            let section = self.selection.of_each(comm, &array)?;
            let own = !self.selection.section.depends_on_rank();
            let shares = if own { ranks } else { 1 };
            let bytes = section.count() * array.layout().element_size() / shares;
            let progress = match is_text(&self.output) {
                true => Progress::silent(&progress),
                false => Progress::shared(&progress, "reading", comm, bytes)?,
            };
            let from = Side {
                array: &array,
                section: &section,
            };
            let team = Team {
                comm,
                room,
                progress,
            };
            match own {
                true => self.extract(&team, &from, &self.output)?,
                false => {
                    let output = self.output.replace("%r", &rank.to_string());
                    self.extract_each(&team, &from, &output)?;
                }
            }
            progress.finish();
            match self.makes_file() {
                true => self.close(comm, (&array, &section), &begun),
                false => Ok(()),
            }
        })
    }

    /// Collective: tells what was read; as JSON of rank 0 where each has its own.
    fn close(
        &self,
        comm: &Comm,
        (array, section): (&Array, &Section),
        begun: &Begun,
    ) -> Result<()> {
        let all = self.selection.elements(comm, section)?;
        let ended = begun.end(comm)?;
        let size = array.layout().element_size();
        let bytes = section.count() * size;
        let told = match comm.rank() {
            0 if self.closing.json => print(&ended.json([
                ("array", json!(array.name())),
                ("section", json!(section.to_string())),
                ("shape", json!(section.shape())),
                ("type", json!(array.element_type().name())),
                ("bytes", json!(bytes)),
                ("gb_per_s", json!(ended.rate(bytes as f64))),
                ("output", json!(self.output)),
            ])),
            0 => print(&format!(
                "{}: {} of {}, {}; {}\n",
                self.output,
                counted(all, "element"),
                array.name(),
                array.element_type(),
                ended.words(all * size)
            )),
            _ => Ok(()),
        };
        Ok(comm.agree(told)?)
    }

    /// Collective: brings the section of each rank into its own `output`.
    fn extract_each(&self, team: &Team<'_>, from: &Side<'_>, output: &str) -> Result<()> {
        let (comm, array, section) = (team.comm, from.array, from.section);
        comm.agree(self.check_free(output))?;
        if is_text(output) {
            let lines = text::Lines {
                array,
                section,
                pattern: &self.selection.section,
                room: team.room.clone(),
            };
            return Ok(comm.agree(lines.write(output))?);
        }
        let descriptor = self.output_descriptor(array, section, output);
        let name = array_name(&descriptor, output);
        comm.agree(distinct(&self.selection.array, &name))?;
        let alone = comm.split(Some(comm.rank() as u64), 0)?;
        let alone = alone.expect("every rank has a colour");
        let mut room = team.room.clone();
        let mut make = || {
            let draft = Array::draft_all(&alone, &name, &descriptor, self.force);
            let draft = draft.map_err(|error| Error::Invalid(cause(&error)))?;
            let target = fitting(&draft, array)?.with_unit_axes(&section.shape())?;
            let target = room.tuned(&target, Tuning::default())?;
            Ok::<_, Error>((draft, target))
        };
        let (draft, target) = comm.agree(make())?;
        let team = &Team { room, ..*team };
        let to = Side {
            array: &target,
            section: &target.whole(),
        };
        let calls = self.tuning.collective(array);
        copy_together(team, (from, &calls), &to, Direction::Read)?;
        comm.agree(draft.commit(&alone).map_err(|error| cause(&error)))?;
        Ok(())
    }

    /// Collective: brings a section into `output`.
    fn extract(&self, team: &Team<'_>, from: &Side<'_>, output: &str) -> Result<()> {
        let (comm, array, section) = (team.comm, from.array, from.section);
        if is_text(output) {
            let print = || {
                self.check_free(output)?;
                let lines = text::Lines {
                    array,
                    section,
                    pattern: &self.selection.section,
                    room: team.room.clone(),
                };
                lines.write(output)
            };
            return Ok(comm.agree(if comm.rank() == 0 { print() } else { Ok(()) })?);
        }
        let free = match comm.rank() {
            0 => self.check_free(output),
            _ => Ok(()),
        };
        comm.agree(free)?;
        let descriptor = self.output_descriptor(array, section, output);
        let name = array_name(&descriptor, output);
        check_distinct(comm, &[&self.selection.array], &name)?;
        let draft = Array::draft_all(comm, &name, &descriptor, self.force)?;
        let target = fitting(&draft, array)?.with_unit_axes(&section.shape())?;
        let mut room = team.room.clone();
        let target = comm.agree(room.tuned(&target, Tuning::default()))?;
        let team = &Team { room, ..*team };
        let to = Side {
            array: &target,
            section: &target.whole(),
        };
        comm.agree(copy(team, from, &to))?;
        draft.commit(comm)?;
        Ok(())
    }

    /// Fails if there is something that must not be replaced.
    fn check_free(&self, output: &str) -> Result<()> {
        if is_text(output) && output != "-" {
            return check_free(output, self.force);
        }
        if output != "-" && !self.force && Path::new(output).symlink_metadata().is_ok() {
            return Err(Error::Invalid(format!(
                "{output} exists already; --force replaces it"
            )));
        }
        Ok(())
    }

    /// The output has the section's shape without the axes given by one
    /// index, and the array's axis order as far as its format allows.
    fn output_descriptor(&self, array: &Array, section: &Section, output: &str) -> ArrayDescriptor {
        let dropped = match is_zarr(output) {
            // Chunks have the axes of their array.
            true => Vec::new(),
            false => self.selection.section.single_axes(array.shape().len()),
        };
        let shape = section.shape();
        let kept: Vec<usize> = (0..shape.len())
            .filter(|axis| !dropped.contains(axis))
            .collect();
        let shape: Vec<u64> = kept.iter().map(|axis| shape[*axis]).collect();
        let slowest_first = array.layout().slowest_first();
        let order: Vec<usize> = slowest_first
            .iter()
            .filter_map(|axis| kept.iter().position(|kept_axis| kept_axis == axis))
            .collect();
        let mut order = Order::from_slowest_first(&order);
        let in_rows = is_netcdf(output) || is_hdf5(output);
        if matches!(order, Order::Axes(_)) && output.ends_with(".npy") || in_rows {
            order = Order::Row;
        }
        let mut descriptor = ArrayDescriptor::new(&shape, array.element_type())
            .layout(Arrangement { order, tile: None });
        let has_names = in_rows || is_zarr(output) || is_native(output);
        if has_names && let Some(names) = &array.descriptor().axis_names {
            let names = kept.iter().filter_map(|axis| names.get(*axis).cloned());
            descriptor.axis_names = Some(names.collect());
        }
        if has_names {
            descriptor.attributes = array.descriptor().attributes.clone();
        }
        self.chunking.apply(&mut descriptor, false);
        descriptor
    }
}
