//! `outcore reproduce`: tables of the papers, run again on simulated storage.

use clap::{Args, ValueEnum};
use outcore::{Error, Result};
use outcore_bench::{Agreement, Report, Table, reproduce};

use crate::ranks::print;
use crate::records;

/// Run tables of PASSION's papers (1995, 1996) again, on simulated machines of
/// their time
///
/// T5.2 to T5.6, of Thakur's thesis: programs on outcore's own code over a
/// modelled disk (20 ms a request, 2 MB/s). T1 to T10, of the papers on the
/// extended two-phase method: requests from outcore's own sections and file
/// domains on a modelled Touchstone Delta of 64 disks, fitted to T1 to T6. All
/// in virtual time. Printed and simulated numbers stand side by side, and each
/// claim is judged by both.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore reproduce
  outcore reproduce --table T5.4
  outcore reproduce --table T7
  outcore reproduce --table T5.2 --csv")]
pub(crate) struct Reproduce {
    /// The table [default: all of them]
    #[arg(long, value_enum, ignore_case = true)]
    table: Option<Name>,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Print the rows of all tables as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
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
    /// Two phases: reading common sections
    #[value(name = "T1")]
    T1,
    /// Two phases: reading overlapping sections
    #[value(name = "T2")]
    T2,
    /// Two phases: reading distinct sections
    #[value(name = "T3")]
    T3,
    /// Two phases: writing distinct sections
    #[value(name = "T4")]
    T4,
    /// Two phases: reading sections with strides
    #[value(name = "T5")]
    T5,
    /// Two phases: writing sections with strides
    #[value(name = "T6")]
    T6,
    /// Two phases: sections on 4 to 128 processors
    #[value(name = "T7")]
    T7,
    /// Two phases: large sections on 4 to 128 processors
    #[value(name = "T8")]
    T8,
    /// Two phases: matrix multiplication
    #[value(name = "T9")]
    T9,
    /// Two phases: Laplace solver
    #[value(name = "T10")]
    T10,
}

impl Name {
    fn table(self) -> Table {
        match self {
            Self::T5_2 => Table::T5_2,
            Self::T5_3 => Table::T5_3,
            Self::T5_4 => Table::T5_4,
            Self::T5_5 => Table::T5_5,
            Self::T5_6 => Table::T5_6,
            Self::T1 => Table::T1,
            Self::T2 => Table::T2,
            Self::T3 => Table::T3,
            Self::T4 => Table::T4,
            Self::T5 => Table::T5,
            Self::T6 => Table::T6,
            Self::T7 => Table::T7,
            Self::T8 => Table::T8,
            Self::T9 => Table::T9,
            Self::T10 => Table::T10,
        }
    }
}

impl Reproduce {
    pub(crate) fn run(&self) -> Result<()> {
        let tables = match self.table {
            None => Table::ALL.to_vec(),
            Some(name) => vec![name.table()],
        };
        let mut reports = Vec::new();
        for table in tables {
            if outcore::interrupted().is_some() {
                return Err(Error::Interrupted);
            }
            let report = reproduce(table)?;
            let between = if reports.is_empty() { "" } else { "\n" };
            if self.csv {
                print(&format!("{between}{}", report.csv()))?;
            } else if !self.json {
                print(&format!("{between}{}", report.text()))?;
            }
            reports.push((table, report));
        }
        if self.json {
            let tables = reports.iter().map(|(_, report)| report.csv());
            return print(&records::json(&joined(tables)));
        }
        match self.table.is_none() && !self.csv {
            true => print(&format!("\n{}", agreements(&reports))),
            false => Ok(()),
        }
    }
}

/// Tables of the same columns as one, under the header of the first.
fn joined(tables: impl Iterator<Item = String>) -> String {
    let mut all = String::new();
    for table in tables {
        let header = if all.is_empty() { 0 } else { 1 };
        for line in table.lines().skip(header) {
            all += &format!("{line}\n");
        }
    }
    all
}

/// How far simulated rows agree with printed ones, over several tables.
fn agreements(reports: &[(Table, Report)]) -> String {
    let fitted = [
        Table::T1,
        Table::T2,
        Table::T3,
        Table::T4,
        Table::T5,
        Table::T6,
    ];
    let mut text = String::new();
    for (title, tables) in [
        ("Tables 1 to 6, to which the Delta was fitted:", &fitted[..]),
        (
            "Tables 7 and 8, to which it was not:",
            &[Table::T7, Table::T8],
        ),
        (
            "Tables 9 and 10, to which it was not:",
            &[Table::T9, Table::T10],
        ),
    ] {
        let chosen = reports.iter().filter(|(table, _)| tables.contains(table));
        let agreement = Agreement::of(chosen.map(|(_, report)| report));
        text += &format!("{title}\n");
        for line in agreement.text() {
            text += &format!("    {line}\n");
        }
    }
    text
}
