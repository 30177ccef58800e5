//! The options `--strategy`, `--buffer` and `--gap`, and `--op`.

use clap::{Args, ValueEnum};
use outcore::{Direction, Strategy, Tuning};

use crate::bytes;

/// How sections are moved.
#[derive(Args)]
pub(crate) struct TuningOptions {
    /// auto, direct, sieving or mapped
    #[arg(long, default_value = "auto")]
    strategy: Strategy,
    /// The most memory that each rank uses for sieving
    #[arg(long, value_name = "BYTES", default_value = "4MiB", value_parser = bytes::parse)]
    buffer: u64,
    /// The largest gap that sieving moves along [default: what costs as much as a request]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    gap: Option<u64>,
}

impl TuningOptions {
    pub(crate) fn tuning(&self) -> Tuning {
        Tuning {
            strategy: self.strategy,
            buffer: self.buffer,
            gap: self.gap,
        }
    }
}

/// The option `--op`.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Op {
    Read,
    Write,
}

impl Op {
    pub(crate) fn direction(self) -> Direction {
        match self {
            Self::Read => Direction::Read,
            Self::Write => Direction::Write,
        }
    }
}
