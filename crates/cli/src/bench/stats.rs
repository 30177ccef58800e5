//! `outcore bench stats`: statistics of a file in the page cache, beside reading it.

use std::path::PathBuf;

use clap::Args;
use outcore::Result;
use outcore_bench::{Line, StatsOptions, stats};

use crate::bytes;

/// Least, largest, sum, mean and deviation of a raw file of f32, beside reading it with pread
///
/// With one rank and with two; the file is in the page cache. 'pread' reads the same
/// bytes with as many threads and does nothing with them: the limit of this machine.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench stats
  outcore bench stats --csv --peers --python venv/bin/python")]
pub(super) struct Stats {
    /// The size of the file
    #[arg(long, default_value = "1GiB", value_parser = bytes::parse)]
    size: u64,
    /// The memory cap
    #[arg(long, default_value = "64MiB", value_parser = bytes::parse)]
    memory: u64,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Where the file is made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Run other systems as well (numpy.memmap and dask)
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
}

impl Stats {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        stats(&StatsOptions {
            size: self.size,
            memory: self.memory,
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            repeats: self.repeat.into(),
            python: self.peers.then(|| self.python.clone()),
        })
    }
}
