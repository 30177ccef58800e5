//! `outcore bench`: how fast outcore is, beside the limits of this machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use outcore::Result;
use outcore_bench::{IoOptions, csv, io, table};

use crate::bytes;
use crate::ranks::print;

/// Measure outcore beside the limits of this machine and other systems
#[derive(Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    name: Name,
}

#[derive(Subcommand)]
enum Name {
    Io(Io),
}

/// The foundations: contiguous files, runs, planning, messages
///
/// Contestants of one case take turns; times are the best and the median of
/// the repetitions. Started by mpirun (and built with --features mpi), it
/// measures the exchange between MPI processes beside MPI_Alltoallv.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench io
  outcore bench io --csv --peers > io.csv
  mpirun -n 4 outcore bench io --csv")]
struct Io {
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// The size of the contiguous array
    #[arg(long, default_value = "1GiB", value_parser = bytes::parse)]
    size: u64,
    /// Where files are made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Build and run other systems' programs as well (needs Open MPI)
    #[arg(long)]
    peers: bool,
}

impl Bench {
    pub(crate) fn run(&self) -> Result<()> {
        let Name::Io(options) = &self.name;
        let lines = io(&IoOptions {
            directory: options.directory.clone().unwrap_or_else(std::env::temp_dir),
            size: options.size,
            repeats: options.repeat.into(),
            peers: options.peers,
        })?;
        if lines.is_empty() {
            return Ok(());
        }
        print(&if options.csv {
            csv(&lines)
        } else {
            table(&lines)
        })
    }
}
