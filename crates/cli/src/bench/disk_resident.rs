//! `outcore bench disk-resident`: sections of an array on the disks of several ranks.

use std::path::PathBuf;

use clap::Args;
use outcore::Result;
use outcore_bench::{DiskResidentOptions, Line, disk_resident};

use crate::ranks::Ranks;

/// Sections of an array on the disks of several ranks, got by any of them
///
/// An array of 4096x4096 f64 is spread over directories of the ranks. All of them get
/// random blocks of 256x256 at once, beside preads of the same blocks by the ranks
/// that hold them; one rank gets regions alone. With --peers, Disk Resident Arrays (built
/// with Open MPI) read the same regions by collective calls. Started by mpirun (and
/// built with --features mpi) the ranks are MPI processes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench disk-resident --ranks 2
  outcore bench disk-resident --ranks 4 --peers --csv
  mpirun -n 4 outcore bench disk-resident --csv")]
pub(super) struct DiskResident {
    #[command(flatten)]
    ranks: Ranks,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Measure Disk Resident Arrays as well (needs Open MPI and Global Arrays)
    #[arg(long)]
    peers: bool,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Where directories are made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
}

impl DiskResident {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        disk_resident(&DiskResidentOptions {
            ranks: self.ranks.ranks.map_or(2, |ranks| ranks as usize),
            repeats: self.repeat.into(),
            peers: self.peers,
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
        })
    }
}
