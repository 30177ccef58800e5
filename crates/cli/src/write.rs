//! `outcore write`: values from a file, or made up, into a section.

use std::sync::OnceLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Arrangement, Array, ByteOrder, Comm, Direction, Error, Fill, Order, Result, Section, Tuning,
    shape_text,
};
use serde_json::json;

use crate::copy::{Side, Team, copy, copy_together};
use crate::counted::counted;
use crate::create::{check_fill, fill_section};
use crate::memory::Memory;
use crate::numbers::Numbers;
use crate::output::{has_format, is_text};
use crate::progress::Progress;
use crate::ranks::{Ranks, print};
use crate::selection::{Selection, parse_seed};
use crate::tuning::TuningOptions;
use crate::work::{Begun, Closing};

/// Write into a section of an array, from a file or with made-up values
///
/// FILE is a .npy file, an outcore array or a 'raw:' description of the
/// section's shape and the array's type; .txt and .csv files are text as 'read'
/// writes it, with spaces, commas or ends of lines between the numbers, which are in
/// row-major order (one rank reads them); any other file is taken as plain
/// bytes in the array's own order. %r in FILE becomes the rank, for sections
/// that depend on it (p, N). Where such sections overlap, the values of the
/// highest rank are written.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore write field.oc '0:100, ::2' --from values.npy
  outcore write field.oc '(1:100:1, 1:4096:1)' --from part.bin --ranks 2
  outcore write field.oc '7, :' --from row7.csv
  outcore write field.oc ':, 0' --fill 1.5
  outcore write field.oc --fill random --seed 7 --ranks 4")]
pub(crate) struct Write {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    values: Values,
    /// The seed of --fill random
    #[arg(long, default_value_t = 0, value_parser = parse_seed, allow_hyphen_values = true)]
    seed: u64,
    #[command(flatten)]
    closing: Closing,
    #[command(flatten)]
    tuning: TuningOptions,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    ranks: Ranks,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Values {
    /// The file that holds the values
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    from: Option<String>,
    /// zero, index (the element's row-major number), random, or a number
    #[arg(long, allow_hyphen_values = true)]
    fill: Option<Fill>,
}

impl Write {
    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.values.from {
            Some(file) => self.selection.check_name("--from", file),
            None => Ok(()),
        }
    }

    pub(crate) fn run(&self) -> Result<()> {
        let (progress, begun) = (OnceLock::new(), Begun::now());
        self.ranks.run(|comm| {
            let mut room = self.memory.room(comm, "writing")?;
            let array = comm.agree(Array::open_writable(&self.selection.array))?;
            let array = comm.agree(room.tuned(&array, self.tuning.tuning()))?;
            let rank = comm.rank() as u64;
            let section = self.selection.of_each(comm, &array)?;
            // A section for each rank is its own work; one for all is divided.
            let each = self.selection.section.depends_on_rank();
            let group = if each && self.values.fill.is_some() {
                comm.split(Some(rank), 0)?.expect("every rank has a colour")
            } else {
                comm.clone()
            };
            let shares = if each { 1 } else { comm.size() as u64 };
            let bytes = section.count() * array.layout().element_size() / shares;
            let team = Team {
                comm: &group,
                room,
                progress: Progress::shared(&progress, "writing", comm, bytes)?,
            };
            let to = Side {
                array: &array,
                section: &section,
            };
            match &self.values.from {
                Some(file) if is_text(file) => self.copy_text(&team, &to, file)?,
                Some(file) if each => self.copy_each(&team, &to, file)?,
                _ => comm.agree(self.fill_or_copy(&team, &to))?,
            }
            team.progress.finish();
            self.tell(comm, &to, &begun)
        })
    }

    /// Collective: tells what was written; as JSON of rank 0 where each has its own.
    fn tell(&self, comm: &Comm, to: &Side<'_>, begun: &Begun) -> Result<()> {
        let all = self.selection.elements(comm, to.section)?;
        let ended = begun.end(comm)?;
        let size = to.array.layout().element_size();
        let bytes = to.section.count() * size;
        let told = match comm.rank() {
            0 if self.closing.json => print(&ended.json([
                ("array", json!(to.array.name())),
                ("section", json!(to.section.to_string())),
                ("shape", json!(to.section.shape())),
                ("type", json!(to.array.element_type().name())),
                ("bytes", json!(bytes)),
                ("gb_per_s", json!(ended.rate(bytes as f64))),
            ])),
            0 => print(&format!(
                "{}: {} written, {}; {}\n",
                to.array.name(),
                counted(all, "element"),
                to.array.element_type(),
                ended.words(all * size)
            )),
            _ => Ok(()),
        };
        Ok(comm.agree(told)?)
    }

    /// Collective: writes the section from text, which rank 0 reads, or the section of each
    /// rank from its own file, in the order of the ranks.
    fn copy_text(&self, team: &Team<'_>, to: &Side<'_>, file: &str) -> Result<()> {
        let comm = team.comm;
        let turns = match self.selection.section.depends_on_rank() {
            true => comm.size(),
            false => 1,
        };
        let numbers = Numbers {
            file: &file.replace("%r", &comm.rank().to_string()),
            array: to.array,
            section: to.section,
        };
        for turn in 0..turns {
            comm.agree(match comm.rank() == turn {
                true => numbers.write(&team.room, team.progress),
                false => Ok(()),
            })?;
        }
        Ok(())
    }

    /// Collective: writes the section of each rank from its own file.
    fn copy_each(&self, team: &Team<'_>, to: &Side<'_>, file: &str) -> Result<()> {
        let file = file.replace("%r", &team.comm.rank().to_string());
        let source = team.comm.agree(open_source(&file, to.array, to.section))?;
        let mut room = team.room.clone();
        let source = team.comm.agree(room.tuned(&source, Tuning::default()))?;
        let team = &Team { room, ..*team };
        let from = Side {
            array: &source,
            section: &source.whole(),
        };
        let calls = self.tuning.collective(to.array);
        copy_together(team, (to, &calls), &from, Direction::Write)
    }

    fn fill_or_copy(&self, team: &Team<'_>, to: &Side<'_>) -> Result<()> {
        if let Some(fill) = &self.values.fill {
            let fill = match fill {
                Fill::Random(_) => Fill::Random(self.seed),
                other => other.clone(),
            };
            check_fill(&fill, to.array)?;
            return fill_section(team, to.array, to.section, &fill);
        }
        let Some(file) = &self.values.from else {
            return Ok(());
        };
        let source = open_source(file, to.array, to.section)?;
        let mut room = team.room.clone();
        let source = room.tuned(&source, Tuning::default())?;
        let team = &Team { room, ..*team };
        let from = Side {
            array: &source,
            section: &source.whole(),
        };
        copy(team, &from, to)
    }
}

/// Opens the file with the values and checks that they fit.
fn open_source(file: &str, array: &Array, section: &Section) -> Result<Array> {
    let shape = section.shape();
    let source = if has_format(file) {
        Array::open(file)?
    } else {
        let plain = Arrangement {
            order: Order::from_slowest_first(array.layout().slowest_first()),
            tile: None,
        };
        let source = Array::open(&format!(
            "raw:{file}?shape={}&type={}&layout={plain}&byteorder={}",
            shape_text(&shape),
            array.element_type(),
            ByteOrder::NATIVE,
        ))?;
        let (needed, found) = (source.layout().byte_len(), source.store().len()?);
        if needed != found {
            return Err(Error::Invalid(format!(
                "{file} has {found} bytes, but section [{section}] of {} needs {needed}",
                array.name()
            )));
        }
        source
    };
    if source.element_type() != array.element_type() {
        return Err(Error::WrongType {
            array: source.name().into(),
            stored: source.element_type(),
            asked: array.element_type(),
        });
    }
    source.with_unit_axes(&shape)
}
