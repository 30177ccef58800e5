//! `outcore write`: values from a file, or made up, into a section.

use std::sync::OnceLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Arrangement, Array, ByteOrder, Error, Fill, Order, Result, Section, Tuning, shape_text,
};

use crate::copy::{Side, Team, copy};
use crate::create::fill_section;
use crate::memory::Memory;
use crate::progress::Progress;
use crate::ranks::Ranks;
use crate::selection::Selection;
use crate::tuning::TuningOptions;

/// Write into a section of an array, from a file or with made-up values
///
/// FILE is a .npy file, an outcore array or a 'raw:' description of the
/// section's shape and the array's type; any other file is taken as plain
/// bytes in the array's own order. %r in FILE becomes the rank, for sections
/// that depend on it (p, N).
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore write field.oc '0:100, ::2' --from values.npy
  outcore write field.oc '(1:100:1, 1:4096:1)' --from part.bin --ranks 2
  outcore write field.oc ':, 0' --fill 1.5
  outcore write field.oc --fill random --seed 7 --ranks 4")]
pub(crate) struct Write {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    values: Values,
    /// The seed of --fill random
    #[arg(long, default_value_t = 0)]
    seed: u64,
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
    pub(crate) fn run(&self) -> Result<()> {
        let progress = OnceLock::new();
        self.ranks.run(|comm| {
            let room = self.memory.room(comm, "writing")?;
            let array = comm.agree(Array::open_writable(&self.selection.array))?;
            let array = room.tuned(&array, self.tuning.tuning());
            let rank = comm.rank() as u64;
            let section = self.selection.of_each(comm, &array)?;
            // A section for each rank is its own work; one for all is divided.
            let group = if self.selection.section.depends_on_rank() {
                comm.split(Some(rank), 0)?.expect("every rank has a colour")
            } else {
                comm.clone()
            };
            let shares = group.size() as u64;
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
            Ok(comm.agree(self.fill_or_copy(&team, rank, &to))?)
        })
    }

    fn fill_or_copy(&self, team: &Team<'_>, rank: u64, to: &Side<'_>) -> Result<()> {
        if let Some(fill) = &self.values.fill {
            let fill = match fill {
                Fill::Random(_) => Fill::Random(self.seed),
                other => other.clone(),
            };
            fill.check(to.array.element_type())?;
            return fill_section(team, to.array, to.section, &fill);
        }
        let Some(file) = &self.values.from else {
            return Ok(());
        };
        let file = if self.selection.section.depends_on_rank() {
            &file.replace("%r", &rank.to_string())
        } else {
            file
        };
        let source = open_source(file, to.array, to.section)?;
        let source = team.room.tuned(&source, Tuning::default());
        let from = Side {
            array: &source,
            section: &source.whole(),
        };
        copy(team, &from, to)
    }
}

/// Opens the file with the values and checks that they fit.
fn open_source(file: &str, array: &Array, section: &Section) -> Result<Array> {
    let described = file.starts_with("raw:") || file.ends_with(".npy") || file.ends_with(".oc");
    let shape = section.shape();
    let source = if described {
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
