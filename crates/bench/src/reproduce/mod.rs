//! The tables of chapter 5 of Thakur's thesis (Syracuse, 1995), run again: the
//! same programs on outcore's own code, over a simulated disk of that time and
//! in virtual time, beside the printed numbers; and what becomes of the claims
//! that the thesis makes of them.
//!
//! The disk is that of [`DeviceModel::disk1995`](outcore::storage::DeviceModel):
//! 20 ms for each request and 2 MB/s. The thesis runs on 64 disks and notes that
//! "each processor's LAF can be stored on a separate disk" (section 5.5.2), and
//! so does the simulation: ranks share no queue, and since all of them between
//! the first and the last do the same work, one of those is simulated and its
//! time is that of all. So the result is exact and the same in every run.
//!
//! It is a model: it has no caches in I/O nodes, no operating system and no
//! network, so seconds differ from those of the Intel Delta; ratios and orders
//! are what can be compared.

mod disk;
mod laplace;
mod median;
mod printed;
mod report;
mod sieving;

use outcore::Result;

pub use report::{Claim, Report, Value, Verdict};

/// A table of the thesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Sieving against direct reads and writes: time.
    T5_2,
    /// Sieving against direct reads: requests and elements.
    T5_3,
    /// Median filter 3x3 with and without prefetch.
    T5_4,
    /// Median filter 5x5 with and without prefetch.
    T5_5,
    /// Laplace solver with and without reuse.
    T5_6,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::T5_2, Self::T5_3, Self::T5_4, Self::T5_5, Self::T5_6];

    /// The name in the thesis.
    pub fn name(self) -> &'static str {
        match self {
            Self::T5_2 => "T5.2",
            Self::T5_3 => "T5.3",
            Self::T5_4 => "T5.4",
            Self::T5_5 => "T5.5",
            Self::T5_6 => "T5.6",
        }
    }
}

/// Runs the programs of a table.
pub fn reproduce(table: Table) -> Result<Report> {
    match table {
        Table::T5_2 => sieving::times(),
        Table::T5_3 => sieving::counts(),
        Table::T5_4 => median::report(table, 3),
        Table::T5_5 => median::report(table, 5),
        Table::T5_6 => laplace::report(),
    }
}
