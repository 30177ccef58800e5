//! `outcore bench irregular`: elements at random places.

use std::path::PathBuf;

use clap::Args;
use outcore::Result;
use outcore_bench::{
    IrregularOptions, Line, TakeOptions, irregular, irregular_pipeline, irregular_scaling,
    irregular_take,
};

use crate::ranks::Ranks;

/// Elements at random places, beside other programs and the limits of this machine
///
/// A random permutation of a file's elements is dealt out to the ranks, which
/// write and read them together: with a schedule that is kept ('reused') or made
/// in each repetition ('anew'), with values in ordinary memory or in memory of
/// the node, and in messages. Beside them one file a rank with a sequential sort,
/// and staging by half of the ranks. On threads the limits are lines of their own:
/// the permutation in memory, the contiguous file, and one after the other.
/// Started by mpirun (and built with --features mpi) the ranks are MPI processes;
/// with --peers, a hand-written two-phase program on MPI_Alltoallv, collective
/// MPI-IO with indexed types, and one pread or pwrite an element take turns with
/// outcore. Who takes longer than four seconds in all has no more turns.
///
/// With --pipeline, what calls in messages take with every number of groups of
/// ranks that read and write in turn, at the setting of No et al. 1998 (a Paragon
/// with 16 disks) and on the device 'pfs': simulated, in virtual time. A summary
/// goes to the standard error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench irregular --ranks 2
  outcore bench irregular --elements 4194304 --type f64 --repeat 7 --csv
  outcore bench irregular --pipeline --csv
  outcore bench irregular --take --peers --python venv/bin/python
  outcore bench irregular --scaling
  mpirun -n 4 outcore bench irregular --peers --csv")]
pub(super) struct Irregular {
    /// The elements of the file
    #[arg(long, default_value_t = 1 << 22, value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff))]
    elements: u32,
    /// Their type: f64 or f32
    #[arg(long = "type", value_name = "TYPE", default_value = "f64", value_parser = ["f64", "f32"])]
    element_type: String,
    #[command(flatten)]
    ranks: Ranks,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Instead, simulate groups of ranks that take turns, in virtual time
    #[arg(long, conflicts_with_all = ["peers", "ranks", "elements", "element_type", "repeat"])]
    pipeline: bool,
    /// Instead, take and put 2^20 random elements of 2^26 by one rank
    #[arg(long, conflicts_with_all = ["pipeline", "ranks", "elements", "element_type"])]
    take: bool,
    /// Instead, make schedules of 2^20 to 2^26 random indices
    #[arg(long, conflicts_with_all = ["pipeline", "take", "peers", "elements", "element_type"])]
    scaling: bool,
    /// Let other programs take turns as well (under mpirun; with --take, numpy.memmap and h5py)
    #[arg(long)]
    peers: bool,
    /// The Python that has those packages
    #[arg(
        long,
        value_name = "PATH",
        default_value = "python3",
        requires = "take"
    )]
    python: PathBuf,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Where files are made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
}

impl Irregular {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        if self.pipeline {
            let (lines, notes) = irregular_pipeline()?;
            eprintln!("in virtual time:\n{}", notes.join("\n"));
            return Ok(lines);
        }
        let directory = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        let ranks = self.ranks.ranks.map(|ranks| ranks as usize);
        if self.take || self.scaling {
            let options = TakeOptions {
                repeats: self.repeat.into(),
                python: self.peers.then(|| self.python.clone()),
                directory,
            };
            if self.take {
                return irregular_take(&options);
            }
            let (lines, notes) = irregular_scaling(&options, ranks.unwrap_or(2))?;
            eprintln!("{}", notes.join("\n"));
            return Ok(lines);
        }
        irregular(&IrregularOptions {
            elements: self.elements,
            element: if self.element_type == "f32" { 4 } else { 8 },
            ranks,
            repeats: self.repeat.into(),
            peers: self.peers,
            directory,
        })
    }
}
