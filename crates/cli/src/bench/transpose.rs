//! `outcore bench transpose`: a matrix from file to file, beside `cp` and other
//! systems.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use outcore::{ElementType, Result, bytes_text, default_ranks, parse_shape};
use outcore_bench::{Line, TransposeOptions, transpose};

use crate::bytes;

/// Transpose a matrix from file to file within a memory cap, beside cp and other systems
///
/// 'cp' copies the input: the limit of this machine. Nobody syncs. The memory that
/// this process used goes to the standard error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench transpose
  outcore bench transpose --state cold --csv
  outcore bench transpose --peers --python venv/bin/python --rechunker venv2/bin/python")]
pub(super) struct Transpose {
    /// The matrix
    #[arg(long, default_value = "16384x16384", value_parser = parse_matrix)]
    shape: Matrix,
    /// The type of its elements
    #[arg(long = "type", value_name = "TYPE", default_value = "f32")]
    element_type: ElementType,
    /// The memory cap
    #[arg(long, default_value = "128MiB", value_parser = bytes::parse)]
    memory: u64,
    /// Whether the input is in the page cache
    #[arg(long, value_enum, default_value = "warm")]
    state: State,
    /// The ranks (threads) [default: as many as cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    ranks: Option<u16>,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Where files are made for the time being [default: the system's temporary directory]
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
    /// The Python that has rechunker, which needs zarr below 3; without it, it is left out
    #[arg(long, value_name = "PATH", requires = "peers")]
    rechunker: Option<PathBuf>,
}

#[derive(Clone)]
struct Matrix(Vec<u64>);

fn parse_matrix(text: &str) -> Result<Matrix, String> {
    parse_shape(text)
        .map(Matrix)
        .map_err(|error| error.to_string())
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum State {
    Warm,
    Cold,
}

impl Transpose {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        let (lines, peak) = transpose(&TransposeOptions {
            shape: self.shape.0.clone(),
            element_type: self.element_type,
            memory: self.memory,
            cold: self.state == State::Cold,
            ranks: self.ranks.map_or_else(default_ranks, usize::from),
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            repeats: self.repeat.into(),
            python: self.peers.then(|| self.python.clone()),
            rechunker: self.rechunker.clone(),
        })?;
        if let Some(peak) = peak {
            eprintln!("peak memory of this process {}", bytes_text(peak));
        }
        Ok(lines)
    }
}
