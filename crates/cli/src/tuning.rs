//! The options `--strategy`, `--domains`, `--buffer`, `--gap` and `--whole-slices`,
//! and `--op`.

use clap::{Args, ValueEnum};
use outcore::{Array, Collective, CollectiveWay, Direction, DomainKind, Strategy, Tuning};

use crate::bytes;

/// How sections are moved.
#[derive(Args)]
pub(crate) struct TuningOptions {
    /// auto, direct, sieving or mapped; for ranks with sections of their own also independent and
    /// two-phase
    #[arg(long, default_value = "auto")]
    strategy: CollectiveWay,
    /// How two-phase divides the file among the ranks: auto, static, conforming, dynamic, cyclic,
    /// disks, few:COUNT or weighted
    #[arg(long, value_name = "KIND", default_value = "auto")]
    domains: DomainKind,
    /// The most memory that each rank uses for sieving [default: 4MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    buffer: Option<u64>,
    /// The largest gap that sieving moves along [default: what costs as much as a request]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    gap: Option<u64>,
    /// Sieve everything between the section's bounds along the file's slowest axis, in whole slices
    #[arg(long, conflicts_with_all = ["strategy", "gap"])]
    whole_slices: bool,
}

impl TuningOptions {
    /// Whether a strategy is asked for.
    pub(crate) fn is_forced(&self) -> bool {
        self.tuning().strategy != Strategy::Auto
    }

    pub(crate) fn tuning(&self) -> Tuning {
        Tuning {
            strategy: match self.strategy {
                _ if self.whole_slices => Strategy::Sieving,
                CollectiveWay::Independent(strategy) => strategy,
                CollectiveWay::Auto | CollectiveWay::TwoPhase => Strategy::Auto,
            },
            buffer: self.buffer,
            gap: self.gap,
            whole_slices: self.whole_slices,
        }
    }
}

impl TuningOptions {
    /// How all ranks move sections of `array` together.
    pub(crate) fn collective<'a>(&self, array: &'a Array) -> Collective<'a> {
        array.collective().way(self.strategy).domains(self.domains)
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
