//! `outcore create`: makes an array.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Arrangement, Array, ArrayDescriptor, ByteOrder, ElementType, Error, Fill, Result, Section,
    Stripes, Tuning, parse_shape, shape_text,
};

use crate::bytes;
use crate::checksums::Checksums;
use crate::chunks::Chunking;
use crate::copy::{Side, Team};
use crate::memory::Memory;
use crate::progress::Progress;
use crate::ranks::{Ranks, print};
use crate::selection::parse_seed;
use crate::work::{Begun, Closing, made_facts};

/// Make an array on disk
///
/// The ending of PATH says in which format: .oc is outcore's own (a directory
/// with a descriptor and data), .npy is NumPy's, .zarr is Zarr's version 3 (a name inside
/// of such a directory makes a group; 'zarr2:NAME' makes version 2), .h5 is HDF5
/// (file.h5:/group/data names the dataset), .nc is classic NetCDF (perhaps with the name of the
/// variable, as in out.nc:temperature); 'raw:FILE?shape=...&type=...'
/// makes a plain binary file and says there what the options --shape, --type,
/// --layout and --byte-order say for the others. An array of zeros is sparse:
/// it takes no time and no space, whatever its size.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore create field.oc --shape 4096x4096 --type f32
  outcore create field.oc --shape 4096x4096 --type f32 --layout tiled:64x64 --fill index
  outcore create noise.npy --shape 1000x1000x10 --type f64 --layout column --fill random --seed 7
  outcore create climate.zarr/t --shape 365x720x1440 --type f32 --chunks 1x720x1440 --codec zstd:3
  outcore create safe.oc --shape 4096x4096 --type f64 --checksums
  outcore create ocean.nc:depth --shape 720x1440 --type f32 --attribute units=m
  outcore create run.h5:/fields/t --shape 4096x4096 --type f32 --chunks 256x256 --codec shuffle,deflate:4
  outcore create big.oc --shape 524288x524288 --type f32            (1 TiB, at once)
  outcore create wide.oc --shape 65536x65536 --type f64 --stripe-unit 1MiB \\
      --stripe-directory /disk1 --stripe-directory /disk2")]
pub(crate) struct Create {
    /// The name of the new array
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    path: String,
    /// The extents, as in 4096x4096
    #[arg(long, value_parser = parse_shape_argument, allow_hyphen_values = true)]
    shape: Option<Shape>,
    /// bool, i8..i64, u8..u64, f16, f32, f64, c64 or c128
    #[arg(long = "type", value_name = "TYPE")]
    element_type: Option<ElementType>,
    /// row, column, axes:2,0,1 (slowest first), tiled:64x64 or tiled:64x64:column [default: row]
    #[arg(long)]
    layout: Option<Arrangement>,
    /// little or big [default: this machine's]
    #[arg(long, value_name = "ORDER")]
    byte_order: Option<ByteOrder>,
    /// zero, index (the element's row-major number), random, or a number
    #[arg(long, default_value = "zero", allow_hyphen_values = true)]
    fill: Fill,
    /// The seed of --fill random
    #[arg(long, default_value_t = 0, value_parser = parse_seed, allow_hyphen_values = true)]
    seed: u64,
    /// Keep the attribute NAME with the array; VALUE is JSON, or else text
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = parse_attribute)]
    attributes: Vec<(String, serde_json::Value)>,
    /// Spread the data over these directories (disks)
    #[arg(long = "stripe-directory", value_name = "DIRECTORY")]
    stripe_directories: Vec<PathBuf>,
    /// The bytes that stay together on one disk
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "1MiB",
        value_parser = bytes::parse,
        requires = "stripe_directories"
    )]
    stripe_unit: u64,
    #[command(flatten)]
    checksums: Checksums,
    #[command(flatten)]
    chunking: Chunking,
    /// Replace what has this name
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    closing: Closing,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    ranks: Ranks,
}

#[derive(Clone)]
pub(crate) struct Shape(pub(crate) Vec<u64>);

pub(crate) fn parse_shape_argument(text: &str) -> Result<Shape, String> {
    parse_shape(text)
        .map(Shape)
        .map_err(|error| error.to_string())
}

fn parse_attribute(text: &str) -> Result<(String, serde_json::Value), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("an attribute is written NAME=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.into(), value))
}

impl Create {
    pub(crate) fn check(&self) -> Result<(), String> {
        self.checksums.check(&self.path)?;
        let own = [
            ("--shape", self.shape.is_some()),
            ("--type", self.element_type.is_some()),
            ("--layout", self.layout.is_some()),
            ("--byte-order", self.byte_order.is_some()),
            ("--attribute", !self.attributes.is_empty()),
            ("--stripe-directory", !self.stripe_directories.is_empty()),
        ];
        if self.path.starts_with("raw:") {
            self.chunking.check(&self.path)?;
            return match own.iter().find(|(_, given)| *given) {
                Some((option, _)) => Err(format!(
                    "{option} cannot be used with a 'raw:' description, which says everything \
                     about the file itself"
                )),
                None => Ok(()),
            };
        }
        self.chunking.check(&self.path)?;
        match own[..2].iter().find(|(_, given)| !given) {
            Some((option, _)) => Err(format!("{option} is missing")),
            None => Ok(()),
        }
    }

    pub(crate) fn run(&self) -> Result<()> {
        let descriptor = self.descriptor();
        let fill = match &self.fill {
            Fill::Random(_) => Fill::Random(self.seed),
            other => other.clone(),
        };
        let (progress, begun) = (OnceLock::new(), Begun::now());
        self.ranks.run(|comm| {
            let mut room = self.memory.room(comm, "filling an array")?;
            let draft = Array::draft_all(comm, &self.path, &descriptor, self.force)?;
            check_fill(&fill, &draft)?;
            if fill != Fill::Zero || !draft.descriptor().begins_with_zeros() {
                let array = comm.agree(room.tuned(&draft, Tuning::default()))?;
                let share = array.layout().byte_len() / comm.size() as u64;
                let progress = Progress::shared(&progress, "filling", comm, share)?;
                let team = Team {
                    comm,
                    room,
                    progress,
                };
                comm.agree(fill_section(&team, &array, &array.whole(), &fill))?;
            }
            let array = draft.commit(comm)?;
            let ended = begun.end(comm)?;
            let told = match comm.rank() {
                0 if self.closing.json => print(&ended.json(made_facts(&array))),
                0 => print(&format!(
                    "{}: {} {} in {} layout, {}\n",
                    array.name(),
                    shape_text(array.shape()),
                    array.element_type(),
                    array.descriptor().arrangement,
                    bytes::show(array.layout().byte_len()),
                )),
                _ => Ok(()),
            };
            Ok(comm.agree(told)?)
        })
    }

    /// What the options say; of a 'raw:' array they say nothing, and nobody asks.
    fn descriptor(&self) -> ArrayDescriptor {
        let shape = self.shape.as_ref().map_or(&[][..], |shape| &shape.0);
        let element_type = self.element_type.unwrap_or(ElementType::U8);
        let mut descriptor = ArrayDescriptor::new(shape, element_type)
            .layout(self.layout.clone().unwrap_or_default());
        descriptor.byte_order = self.byte_order.unwrap_or(ByteOrder::NATIVE);
        self.chunking.apply(&mut descriptor, false);
        self.checksums.apply(&mut descriptor);
        descriptor.attributes = self.attributes.iter().cloned().collect();
        if !self.stripe_directories.is_empty() {
            descriptor.stripes = Some(Stripes {
                unit: self.stripe_unit,
                directories: self.stripe_directories.clone(),
            });
        }
        descriptor
    }
}

/// Fails if the value cannot be an element of `array`.
pub(crate) fn check_fill(fill: &Fill, array: &Array) -> Result<()> {
    let checked = fill.check(array.element_type());
    checked.map_err(|error| Error::Invalid(format!("{}: {error}", array.name())))
}

/// Collective: fills `section`; the ranks divide the work.
pub(crate) fn fill_section(
    team: &Team<'_>,
    array: &Array,
    section: &Section,
    fill: &Fill,
) -> Result<()> {
    let size = array.layout().element_size();
    let mut values = Vec::new();
    for piece in team.pieces(&Side { array, section }, 1)? {
        let piece = section.select(&piece);
        values.resize((piece.count() * size) as usize, 0);
        fill.generate(array, &piece, &mut values)?;
        array.write_bytes(&piece, &values)?;
        team.progress.add(values.len() as u64);
    }
    array.sync()
}
