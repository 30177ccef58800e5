//! `outcore bench checksums`.

use std::path::PathBuf;

use clap::Args;
use outcore::Result;
use outcore_bench::{ChecksumsOptions, Line, checksums};

use crate::bytes;

/// Sections of an array with checksums, beside one without
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench checksums
  outcore bench checksums --block 256KiB --csv")]
pub(super) struct Checksums {
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// The size of each array
    #[arg(long, default_value = "1GiB", value_parser = bytes::parse)]
    size: u64,
    /// The bytes of a block with a checksum [default: 256KiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    block: Option<u64>,
    /// Where the arrays are made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
}

impl Checksums {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        checksums(&ChecksumsOptions {
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            size: self.size,
            block: self.block,
            repeats: self.repeat.into(),
        })
    }
}
