//! `outcore bench gpc`: procedure calls of one rank to another.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use clap::Args;
use outcore::{Error, Result};
use outcore_bench::{GpcOptions, Line, gpc, gpc_summary};

use crate::bytes;
use crate::ranks::Ranks;

/// Procedure calls of one rank to another, beside a futex ping-pong and memcpy
///
/// Rank 0 calls rank 1, which sleeps, computes, or computes on as many threads as
/// there are cores; nothing is pinned. Empty calls take turns with a futex
/// ping-pong between the same ranks; of both the median and the tail are
/// measured. Calls that move bytes take turns with memcpy and, started by mpirun
/// with --peers, with MPI_Get and MPI_Put in a window that is locked once, each
/// with a flush. Last comes what a server costs that waits.
///
/// How calls do beside the others goes to the standard error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench gpc
  outcore bench gpc --bytes 1MiB --csv
  mpirun -n 2 outcore bench gpc --peers --csv")]
pub(super) struct Gpc {
    /// The bytes that calls move
    #[arg(long, value_delimiter = ',', value_parser = bytes::parse,
          default_value = "64KiB,256KiB,1MiB")]
    bytes: Vec<u64>,
    #[command(flatten)]
    ranks: Ranks,
    /// Let one-sided MPI take turns as well (under mpirun)
    #[arg(long)]
    peers: bool,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Turns of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Where the peer is built [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Gpc {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        if self.peers && !outcore::under_launcher() {
            return Err(Error::Invalid("--peers: only under mpirun".into()));
        }
        let directory = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        let options = GpcOptions {
            bytes: self.lengths()?,
            peers: self.peers.then_some(directory),
            repeats: self.repeat.into(),
        };
        let ranks = self.ranks.usually(2);
        let lines = Mutex::new(Vec::new());
        ranks.run(|comm| {
            let found = gpc(comm, &options)?;
            if comm.rank() == 0 {
                *lines.lock().unwrap_or_else(PoisonError::into_inner) = found;
            }
            Ok(())
        })?;
        let lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        eprint!("{}", gpc_summary(&lines));
        Ok(lines)
    }

    fn lengths(&self) -> Result<Vec<usize>> {
        let lengths = self.bytes.iter().map(|&bytes| usize::try_from(bytes).ok());
        let lengths = lengths.map(|bytes| bytes.filter(|bytes| (1..=1 << 30).contains(bytes)));
        lengths
            .map(|bytes| bytes.ok_or_else(|| Error::Invalid("--bytes: from 1 to 1 GiB".into())))
            .collect()
    }
}
