//! `outcore convert`: an array in another placement, layout or format.
//!
//! Between local files, whatever two files have in common moves at once; ranks
//! divide the files if there are enough of them, or else what is in them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use outcore::{
    Arrangement, Array, ArrayDescriptor, ByteOrder, Comm, Distribution, ElementType, Error, Fit,
    LocalPlacement, Result, parse_shape,
};

use crate::checksums::Checksums;
use crate::chunks::{Chunking, is_zarr};
use crate::rearrange::{Rearrange, Wanted, like, with_layout};
use crate::transpose::no_layout_of_raw;

/// Copy an array into another placement, layout, format or element type
///
/// In global placement an array is one file (or striped); in local placement it
/// is one file a rank, each with the rank's local array and, round its blocks,
/// overlap areas for neighbours' data. A program on N ranks wants N parts. The
/// overlap areas of the output are zero. The ending of OUT says its format, as
/// for 'create'; local placement needs .oc.
///
/// With --type the numbers become numbers of another type: floats the nearest ones,
/// integers without the fraction. A number that the type does not have (out of range,
/// for bool anything but 0 and 1, a NaN as an integer, an imaginary part) is an error, and
/// nothing is made; with --saturate what is out of range becomes the nearest number
/// there is.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore convert field.oc parts.oc --placement local --parts 4
  outcore convert field.npy parts.oc --distribution 'block,block' --grid 2x2 --overlap 1,1
  outcore convert parts.oc other.oc --parts 6 --ranks 2         (from 4 local files to 6)
  outcore convert parts.oc whole.npy --memory 256MiB            (back to one file)
  outcore convert field.npy field.zarr --chunks 256x256 --codec zstd:3 --ranks 2
  outcore convert field.npy safe.oc --checksums
  outcore convert climate.zarr/t t.npy --memory 256MiB
  outcore convert field.oc small.npy --type f32 --verify
  outcore convert scan.npy bytes.npy --type u8 --saturate
  outcore convert field.npy s3://bucket/field.zarr --chunks 256x256 --codec zstd:3
  outcore convert climate.zarr/t climate.h5:/t --codec shuffle,deflate:4 --ranks 2
  outcore convert climate.nc climate.zarr --all --codec zstd:3 --ranks 2   (every variable)
  outcore convert field.oc disks.oc --parts 2 --directories /disk1,/disk2")]
pub(crate) struct Convert {
    #[command(flatten)]
    rearrange: Rearrange,
    /// Copy every array of the container IN, and what is kept with its groups, into the new
    /// container OUT (.zarr, .h5, .nc4); --chunks and --shard hold for arrays of as many axes
    #[arg(long, conflicts_with_all = [
        "force", "placement", "distribution", "grid", "parts", "overlap", "directories", "layout",
        "checksums",
    ])]
    all: bool,
    /// Where the elements are kept [default: local if an option of it is given, or else global]
    #[arg(long)]
    placement: Option<Placement>,
    /// How local files divide the array: one of block, block(m), cyclic, cyclic(m), * an axis
    /// [default: that of IN, or else block along the slowest axis]
    #[arg(long)]
    distribution: Option<String>,
    /// The ranks along each axis, as in 2x2 [default: the most nearly square]
    #[arg(long, value_parser = parse_grid)]
    grid: Option<Grid>,
    /// How many local files to make [default: the grid's, or else as many as there are ranks]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65536))]
    parts: Option<u64>,
    /// The depth of the overlap areas along each axis, as in 1,1; below and above apart as 1:2,0
    /// [default: that of IN, or else 0]
    #[arg(long, value_parser = parse_overlap)]
    overlap: Option<Overlap>,
    /// Keep the local files in these directories (disks), one for each
    #[arg(long, value_name = "DIRECTORY", value_delimiter = ',')]
    directories: Vec<PathBuf>,
    /// The layout of the output, as for 'create' [default: that of IN]
    #[arg(long)]
    layout: Option<Arrangement>,
    /// The byte order of the output: little or big [default: that of IN]
    #[arg(long, value_name = "ORDER")]
    byte_order: Option<ByteOrder>,
    /// The type of the output's elements [default: that of IN]
    #[arg(long = "type", value_name = "TYPE")]
    element_type: Option<ElementType>,
    /// With --type, take the nearest number for one that is out of range
    #[arg(long, requires = "element_type")]
    saturate: bool,
    #[command(flatten)]
    checksums: Checksums,
    #[command(flatten)]
    chunking: Chunking,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Placement {
    /// One file, or stripes
    Global,
    /// One file a rank
    Local,
}

#[derive(Clone)]
struct Grid(Vec<u64>);

fn parse_grid(text: &str) -> Result<Grid, String> {
    parse_shape(text)
        .map(Grid)
        .map_err(|error| error.to_string())
}

#[derive(Clone)]
struct Overlap(Vec<(u64, u64)>);

fn parse_overlap(text: &str) -> Result<Overlap, String> {
    let depth = |text: &str| {
        text.trim().parse().map_err(|_| {
            format!("'{text}' is no depth; write one for each axis, as in 1,1, or 1:2,0")
        })
    };
    let axis = |text: &str| match text.split_once(':') {
        Some((below, above)) => Ok((depth(below)?, depth(above)?)),
        None => depth(text).map(|depth| (depth, depth)),
    };
    let axes: Result<Vec<_>, String> = text.split(',').map(axis).collect();
    axes.map(Overlap)
}

impl Convert {
    pub(crate) fn check(&self) -> Result<(), String> {
        let output = &self.rearrange.output;
        let is_file = [".h5", ".hdf5", ".nc4"]
            .iter()
            .any(|ending| output.ends_with(ending));
        if self.all && !is_zarr(output) && !is_file {
            return Err(format!(
                "--all makes a container, and '{output}' is none; name one that ends in .zarr, .h5 or \
                 .nc4"
            ));
        }
        let given = self.local_option();
        if let (Some(Placement::Global), Some(option)) = (self.placement, given) {
            return Err(format!(
                "{option} is for local placement, but --placement is global"
            ));
        }
        if self.is_local() && !output.trim_end_matches('/').ends_with(".oc") {
            return Err(format!(
                "local placement makes a directory of files, so '{output}' must end in .oc"
            ));
        }
        if self.rearrange.resume && !self.directories.is_empty() {
            return Err(
                "--resume cannot be used with --directories: each rank knows its own".into(),
            );
        }
        self.checksums.check(output)?;
        if self.is_local() && self.checksums.are_wanted() {
            return Err("--checksums is for arrays in one file, not for local placement".into());
        }
        if self.element_type.is_some() && !self.directories.is_empty() {
            return Err(
                "--type cannot be used with --directories: convert the type first, then place it"
                    .into(),
            );
        }
        self.chunking.check(output)?;
        if output.starts_with("raw:") && self.byte_order.is_some() {
            return Err(format!(
                "--byte-order cannot be used with '{output}', which says its own"
            ));
        }
        no_layout_of_raw(self.layout.as_ref(), output)
    }

    /// The first option given that only local placement has.
    fn local_option(&self) -> Option<&'static str> {
        let options = [
            ("--distribution", self.distribution.is_some()),
            ("--grid", self.grid.is_some()),
            ("--parts", self.parts.is_some()),
            ("--overlap", self.overlap.is_some()),
            ("--directories", !self.directories.is_empty()),
        ];
        let given = options.into_iter().find(|(_, given)| *given);
        given.map(|(option, _)| option)
    }

    fn is_local(&self) -> bool {
        self.placement == Some(Placement::Local) || self.local_option().is_some()
    }

    pub(crate) fn run(&self) -> Result<()> {
        if self.all {
            let options = format!(
                "{} type {:?} saturate {} byte order {:?}",
                self.chunking.words(),
                self.element_type,
                self.saturate,
                self.byte_order
            );
            return self
                .rearrange
                .run_all("converting", &options, |source, output| {
                    Ok(self.wanted(source, self.descriptor(source, output)))
                });
        }
        self.rearrange.run("converting", 1, |source: &Array, comm| {
            let mut descriptor = self.descriptor(source, &self.rearrange.output);
            if self.is_local() {
                // Tiles stay in one file.
                if self.layout.is_none() {
                    descriptor.arrangement.tile = None;
                }
                descriptor.checksums = None;
                descriptor.local = Some(self.local_placement(source, comm)?);
            }
            Ok(self.wanted(source, descriptor))
        })
    }

    fn wanted(&self, source: &Array, descriptor: ArrayDescriptor) -> Wanted {
        let fit = match self.saturate {
            true => Fit::Saturate,
            false => Fit::Refuse,
        };
        Wanted {
            axes: (0..source.shape().len()).collect(),
            descriptor,
            conversion: self.element_type.map(|_| fit),
        }
    }

    /// What is to be made, in global placement.
    fn descriptor(&self, source: &Array, output: &str) -> ArrayDescriptor {
        let same = like(source.descriptor(), output);
        let mut descriptor = with_layout(same, self.layout.as_ref(), output);
        if let Some(byte_order) = self.byte_order {
            descriptor.byte_order = byte_order;
        }
        if let Some(element_type) = self.element_type {
            descriptor = descriptor.converted(element_type);
        }
        self.chunking.apply(&mut descriptor, self.all);
        self.checksums.apply(&mut descriptor);
        descriptor
    }

    fn local_placement(&self, source: &Array, comm: &Comm) -> Result<LocalPlacement> {
        let (shape, old) = (source.shape(), &source.descriptor().local);
        let grid = self.grid.as_ref().map(|grid| grid.0.as_slice());
        let of_grid =
            || grid.map(|grid| grid.iter().fold(1, |all, n| u64::saturating_mul(all, *n)));
        let parts = self.parts.or_else(of_grid).unwrap_or(comm.size() as u64);
        let text = match (&self.distribution, old) {
            (Some(text), _) => text.clone(),
            (None, Some(old)) => old.distribution.to_string(),
            (None, None) => {
                let slowest = source.layout().slowest_first().first();
                let axes = (0..shape.len()).map(|axis| match Some(&axis) == slowest {
                    true => "block",
                    false => "*",
                });
                axes.collect::<Vec<_>>().join(",")
            }
        };
        let distribution = Distribution::parse(&text, shape, parts, grid)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let overlap = match (&self.overlap, old) {
            (Some(Overlap(overlap)), _) => overlap.clone(),
            (None, Some(old)) => old.overlap.clone(),
            (None, None) => vec![(0, 0); shape.len()],
        };
        let placement = LocalPlacement::new(distribution).overlap(&overlap);
        Ok(placement.directories(&self.directories))
    }
}
