//! Tables of Thakur's thesis (Syracuse, 1995) and of the papers on the extended
//! two-phase method (Thakur and Choudhary, 1996; chapter 6 of the thesis), run
//! again on simulated machines of that time and in virtual time, beside the
//! printed numbers; and what becomes of the claims that are made of them.
//!
//! Tables 5.2 to 5.6 (chapter 5, one processor and its file): the same programs
//! on outcore's own code. The disk is that of [`DeviceModel::disk1995`](outcore::storage::DeviceModel):
//! 20 ms for each request and 2 MB/s. The thesis runs on 64 disks and notes that
//! "each processor's LAF can be stored on a separate disk" (section 5.5.2), and
//! so does the simulation: ranks share no queue, and since all of them between
//! the first and the last do the same work, one of those is simulated and its
//! time is that of all. So the result is exact and the same in every run.
//!
//! Tables 1 to 10 (two phases, many processors and one file): requests from
//! outcore's own sections, layouts and file domains, in the order in which PASSION
//! makes them, on a simulated Touchstone Delta whose ranks share all disks
//! (`delta.rs`, which says how it was fitted).
//!
//! The disk of chapter 5 is a model: it has no caches in I/O nodes, no operating system and no
//! network, so seconds differ from those of the Intel Delta; ratios and orders
//! are what can be compared.

mod access;
mod agreement;
mod claims;
mod columns;
mod delta;
mod disk;
mod jacobi;
mod laplace;
mod matmul;
mod median;
mod pairs;
mod printed;
mod report;
mod sieving;
mod two_phase;

use outcore::{Error, GeometryError, Result};

pub use agreement::Agreement;
pub use report::{Claim, Report, Value, Verdict};

/// A table of chapter 5 of the thesis, or of the papers on the extended
/// two-phase method.
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
    /// Two phases: reading common sections.
    T1,
    /// Two phases: reading overlapping sections.
    T2,
    /// Two phases: reading distinct sections.
    T3,
    /// Two phases: writing distinct sections.
    T4,
    /// Two phases: reading sections with strides.
    T5,
    /// Two phases: writing sections with strides.
    T6,
    /// Two phases: sections on 4 to 128 processors.
    T7,
    /// Two phases: large sections on 4 to 128 processors.
    T8,
    /// Two phases: matrix multiplication.
    T9,
    /// Two phases: Laplace solver.
    T10,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::T5_2,
        Self::T5_3,
        Self::T5_4,
        Self::T5_5,
        Self::T5_6,
        Self::T1,
        Self::T2,
        Self::T3,
        Self::T4,
        Self::T5,
        Self::T6,
        Self::T7,
        Self::T8,
        Self::T9,
        Self::T10,
    ];

    /// The name in the thesis, or in the papers.
    pub fn name(self) -> &'static str {
        match self {
            Self::T5_2 => "T5.2",
            Self::T5_3 => "T5.3",
            Self::T5_4 => "T5.4",
            Self::T5_5 => "T5.5",
            Self::T5_6 => "T5.6",
            Self::T1 => "T1",
            Self::T2 => "T2",
            Self::T3 => "T3",
            Self::T4 => "T4",
            Self::T5 => "T5",
            Self::T6 => "T6",
            Self::T7 => "T7",
            Self::T8 => "T8",
            Self::T9 => "T9",
            Self::T10 => "T10",
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
        Table::T9 => matmul::report(),
        Table::T10 => jacobi::report(),
        _ => two_phase::report(table),
    }
}

/// What is wrong with a section, as an error of outcore.
fn geometry(error: GeometryError) -> Error {
    Error::Invalid(error.to_string())
}
