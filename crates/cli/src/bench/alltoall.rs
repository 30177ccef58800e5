//! `outcore bench alltoall`: everybody sends to everybody, by every algorithm.

use clap::Args;
use outcore::{AllToAll, Error, Result};
use outcore_bench::{AllToAllOptions, Line, all_to_all, all_to_all_summary};

use crate::bytes;
use crate::ranks::Ranks;

/// Everybody sends to everybody, by every algorithm and beside MPI_Alltoall
///
/// Contestants take turns in the same processes; a repetition is as many calls
/// as take 20 ms. Started by mpirun (and built with --features mpi) the ranks
/// are MPI processes, and MPI_Alltoall of that library takes part.
///
/// How auto does beside the best other algorithm, and beside MPI_Alltoall, goes
/// to the standard error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench alltoall --ranks 4
  outcore bench alltoall --bytes 8,1KiB --ranks 16 --algorithm bruck,shared --csv
  mpirun -n 4 outcore bench alltoall --csv")]
pub(super) struct AllToAllBench {
    /// The bytes from each rank to each
    #[arg(long, value_delimiter = ',', value_parser = bytes::parse,
          default_value = "8,64,512,4KiB,32KiB,256KiB,1MiB")]
    bytes: Vec<u64>,
    #[command(flatten)]
    ranks: Ranks,
    /// all, or some of: auto, lex, pex, rex, bex, pex-gen, pex-gen-shift, gen,
    /// ipex, bruck, messages, shared
    #[arg(long, value_delimiter = ',', default_value = "all")]
    algorithm: Vec<String>,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
}

impl AllToAllBench {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        let options = AllToAllOptions {
            bytes: self.lengths()?,
            algorithms: self.algorithms()?,
            repeats: self.repeat.into(),
        };
        let lines = std::sync::Mutex::new(Vec::new());
        self.ranks.usually(outcore::default_ranks()).run(|comm| {
            let found = all_to_all(comm, &options)?;
            if comm.rank() == 0 {
                let mut lines = lines.lock().unwrap_or_else(|error| error.into_inner());
                *lines = found;
            }
            Ok(())
        })?;
        let lines = lines
            .into_inner()
            .unwrap_or_else(|error| error.into_inner());
        eprint!("{}", all_to_all_summary(&lines));
        Ok(lines)
    }

    fn lengths(&self) -> Result<Vec<usize>> {
        let lengths = self.bytes.iter().map(|&bytes| usize::try_from(bytes).ok());
        let lengths = lengths.map(|bytes| bytes.filter(|bytes| (1..=1 << 30).contains(bytes)));
        lengths
            .map(|bytes| bytes.ok_or_else(|| Error::Invalid("--bytes: from 1 to 1 GiB".into())))
            .collect()
    }

    fn algorithms(&self) -> Result<Vec<AllToAll>> {
        let mut algorithms = Vec::new();
        for name in &self.algorithm {
            match name.as_str() {
                "all" => algorithms.extend([AllToAll::Auto].into_iter().chain(AllToAll::ALL)),
                name => algorithms.push(name.parse()?),
            }
        }
        Ok(algorithms)
    }
}
