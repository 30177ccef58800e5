//! `outcore bench global`: global arrays in memory.

use std::path::PathBuf;

use clap::Args;
use outcore::{Error, Result};
use outcore_bench::{GlobalOptions, Line, global, global_peers, global_summary};

use crate::bytes;
use crate::ranks::Ranks;

/// Global arrays in memory: sections and counters that another rank owns
///
/// Rank 0 gets, puts and accumulates contiguous sections and square patches of
/// doubles that the last rank owns, beside copies (and sums) in its own memory; then
/// one rank, and all, increment a counter there. Started by mpirun (and built with
/// --features mpi) the ranks are MPI processes.
///
/// With --peers, Global Arrays does the same; Open MPI starts it and this program in
/// turns.
///
/// How outcore does beside the others goes to the standard error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench global --ranks 2
  outcore bench global --peers --ranks 2 --csv
  mpirun -n 4 outcore bench global --csv")]
pub(super) struct Global {
    /// The bytes of contiguous sections: from 8 to 2 MiB
    #[arg(long, value_delimiter = ',', value_parser = bytes::parse,
          default_value = "8,64,512,4KiB,32KiB,64KiB,256KiB,1MiB")]
    bytes: Vec<u64>,
    /// The sides of square patches of a matrix of 2048 x 2048
    #[arg(long, value_delimiter = ',', default_value = "4,32,256")]
    sides: Vec<u64>,
    #[command(flatten)]
    ranks: Ranks,
    /// Run Global Arrays as well (needs Open MPI and its development files)
    #[arg(long)]
    peers: bool,
    /// Where it is built for the time being [default: the system's temporary directory]
    #[arg(long, requires = "peers")]
    directory: Option<PathBuf>,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
}

impl Global {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        let options = GlobalOptions {
            bytes: self.lengths()?,
            sides: self.sides.clone(),
            repeats: self.repeat.into(),
        };
        if self.peers && !outcore::under_launcher() {
            return self.beside_peers(&options);
        }
        // Another rank to own what rank 0 works on.
        let ranks = self.ranks.usually(2);
        let lines = std::sync::Mutex::new(Vec::new());
        ranks.run(|comm| {
            let found = global(comm, &options)?;
            if comm.rank() == 0 {
                let mut lines = lines.lock().unwrap_or_else(|error| error.into_inner());
                *lines = found;
            }
            Ok(())
        })?;
        let lines = lines
            .into_inner()
            .unwrap_or_else(|error| error.into_inner());
        if !self.peers {
            eprint!("{}", global_summary(&lines));
        }
        Ok(lines)
    }

    fn beside_peers(&self, options: &GlobalOptions) -> Result<Vec<Line>> {
        let list = |numbers: &[u64]| {
            let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            texts.join(",")
        };
        let arguments = [
            ["bench", "global"].map(String::from).to_vec(),
            ["--csv", "--peers", "--bytes"].map(String::from).to_vec(),
            vec![list(&self.bytes), "--sides".into(), list(&self.sides)],
            vec!["--repeat".into(), self.repeat.to_string()],
        ];
        let directory = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        let ranks = self.ranks.ranks.unwrap_or(2) as usize;
        let lines = global_peers(&directory, ranks, options, &arguments.concat())?;
        eprint!("{}", global_summary(&lines));
        Ok(lines)
    }

    fn lengths(&self) -> Result<Vec<usize>> {
        let fit = |bytes: &&u64| (8..=2 << 20).contains(*bytes) && bytes.is_multiple_of(8);
        match self.bytes.iter().all(|bytes| fit(&bytes)) {
            true => Ok(self.bytes.iter().map(|bytes| *bytes as usize).collect()),
            false => Err(Error::Invalid(
                "--bytes: whole doubles, from 8 bytes to 2 MiB".into(),
            )),
        }
    }
}
