//! `outcore bench formats`: sections of Zarr and HDF5 files and a conversion, beside
//! other libraries.

use std::path::PathBuf;

use clap::Args;
use outcore::Result;
use outcore_bench::{FormatsOptions, Line, formats};

/// Read sections of Zarr and HDF5 files and convert one into the other, beside other libraries
///
/// The files are made for the time being and are in the page cache; nobody syncs. The
/// conversion is from HDF5 chunks with deflate to Zarr with zstd, on one core and on two ranks.
/// Other libraries are h5py, zarr-python, dask and tensorstore, and the zarrs crate, whose
/// program is built by 'cargo build --release' in crates/bench/peers/zarrs.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench formats
  outcore bench formats --csv --peers --python venv/bin/python > formats.csv
  outcore bench formats --convert 0 --zarrs crates/bench/peers/zarrs/target/release/outcore-peer-zarrs")]
pub(super) struct Formats {
    /// The extent of the square array whose sections are read; 0 leaves them out
    #[arg(long, default_value_t = 4096)]
    extent: u32,
    /// The extent of the square array that is converted (16384 is 1 GiB); 0 leaves it out
    #[arg(long, default_value_t = 16384)]
    convert: u32,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Turns of each contestant
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Where files are made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Run other libraries as well (h5py, zarr, dask, tensorstore)
    #[arg(long)]
    peers: bool,
    /// The Python that has their packages
    #[arg(
        long,
        value_name = "PATH",
        default_value = "python3",
        requires = "peers"
    )]
    python: PathBuf,
    /// The program of crates/bench/peers/zarrs; without it, zarrs is left out
    #[arg(long, value_name = "PATH")]
    zarrs: Option<PathBuf>,
}

impl Formats {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        formats(&FormatsOptions {
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            extent: self.extent.into(),
            convert: self.convert.into(),
            repeats: self.repeat.into(),
            python: self.peers.then(|| self.python.clone()),
            zarrs: self.zarrs.clone(),
        })
    }
}
