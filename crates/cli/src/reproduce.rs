//! `outcore reproduce`: tables of the papers, run again on simulated storage.

use clap::{Args, ValueEnum};
use outcore::Result;
use outcore_bench::{Table, reproduce};

use crate::ranks::print;

/// Run tables of Thakur's thesis (1995) again, on a simulated disk of its time
///
/// The programs run on outcore's own code over a modelled disk (20 ms a
/// request, 2 MB/s) in virtual time. Printed and simulated numbers stand side
/// by side, and each claim of the thesis is judged by both.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore reproduce
  outcore reproduce --table T5.4
  outcore reproduce --table T5.2 --csv")]
pub(crate) struct Reproduce {
    /// The table [default: all of them]
    #[arg(long, value_enum, ignore_case = true)]
    table: Option<Name>,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    /// Sieving against direct reads and writes: time
    #[value(name = "T5.2")]
    T5_2,
    /// Sieving against direct reads and writes: requests and elements
    #[value(name = "T5.3")]
    T5_3,
    /// Median filter 3x3 with and without prefetch
    #[value(name = "T5.4")]
    T5_4,
    /// Median filter 5x5 with and without prefetch
    #[value(name = "T5.5")]
    T5_5,
    /// Laplace solver with and without reuse
    #[value(name = "T5.6")]
    T5_6,
}

impl Reproduce {
    pub(crate) fn run(&self) -> Result<()> {
        let tables = match self.table {
            None => Table::ALL.to_vec(),
            Some(Name::T5_2) => vec![Table::T5_2],
            Some(Name::T5_3) => vec![Table::T5_3],
            Some(Name::T5_4) => vec![Table::T5_4],
            Some(Name::T5_5) => vec![Table::T5_5],
            Some(Name::T5_6) => vec![Table::T5_6],
        };
        let mut texts = Vec::new();
        for table in tables {
            let report = reproduce(table)?;
            texts.push(if self.csv {
                report.csv()
            } else {
                report.text()
            });
        }
        print(&texts.join("\n"))
    }
}
