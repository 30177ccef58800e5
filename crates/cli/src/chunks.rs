//! The options of formats that have chunks: their shape, what encodes them, shards.

use clap::Args;
use outcore::{ArrayDescriptor, Codecs, format_of_new};

use crate::create::{Shape, parse_shape_argument};

/// How the chunks of a new array are made.
#[derive(Args)]
#[command(next_help_heading = "Options of formats with chunks (.zarr, .h5)")]
pub(crate) struct Chunking {
    /// The shape of a chunk, as in 256x256 [default: the tiles of the layout, or about 1 MiB]
    #[arg(long, value_name = "SHAPE", value_parser = parse_shape_argument)]
    chunks: Option<Shape>,
    /// What encodes chunks: none, zstd:3, gzip:5, lz4, blosc:lz4:5:shuffle, shuffle,deflate:4
    #[arg(long, value_name = "CODECS")]
    codec: Option<Codecs>,
    /// The shape of what is kept in one file, as in 2048x2048: several chunks together
    #[arg(long, value_name = "SHAPE", value_parser = parse_shape_argument)]
    shard: Option<Shape>,
}

/// Whether this is a Zarr array.
pub(crate) fn is_zarr(name: &str) -> bool {
    format_of_new(name) == Some("zarr")
}

/// Whether this is a dataset of an HDF5 file, which holds row order.
pub(crate) fn is_hdf5(name: &str) -> bool {
    format_of_new(name) == Some("hdf5")
}

impl Chunking {
    /// Fails if an option is given that the format of `output` does not have.
    pub(crate) fn check(&self, output: &str) -> Result<(), String> {
        let given = [
            ("--chunks", self.chunks.is_some()),
            ("--codec", self.codec.is_some()),
            ("--shard", self.shard.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) if !is_zarr(output) && !is_hdf5(output) => Err(format!(
                "{option} is for formats with chunks, and '{output}' is not of such a format; \
                 names ending in .zarr, .h5 and .nc4 are"
            )),
            _ if self.shard.is_some() && !is_zarr(output) => Err(format!(
                "--shard is for Zarr, and '{output}' is not; a name ending in .zarr is"
            )),
            _ => Ok(()),
        }
    }

    /// What was asked for, for comparing.
    pub(crate) fn words(&self) -> String {
        let shape = |shape: &Option<Shape>| shape.as_ref().map(|Shape(shape)| shape.clone());
        format!(
            "chunks {:?} codec {:?} shard {:?}",
            shape(&self.chunks),
            self.codec,
            shape(&self.shard)
        )
    }

    /// Puts into `descriptor` what was asked for; if it is one of several, only shapes
    /// that have as many axes.
    pub(crate) fn apply(&self, descriptor: &mut ArrayDescriptor, of_several: bool) {
        let axes = descriptor.shape.len();
        let fits = |Shape(shape): &&Shape| !of_several || shape.len() == axes;
        if let Some(Shape(chunks)) = self.chunks.as_ref().filter(fits) {
            descriptor.arrangement.tile = Some(chunks.clone());
            // Shards of another array need not fit.
            descriptor.shard = None;
        }
        // One element is no chunk.
        if let Some(codec) = self.codec.as_ref().filter(|_| !of_several || axes > 0) {
            descriptor.codecs = codec.clone();
        }
        if let Some(Shape(shard)) = self.shard.as_ref().filter(fits) {
            descriptor.shard = Some(shard.clone());
        }
    }
}
