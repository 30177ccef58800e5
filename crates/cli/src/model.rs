//! `outcore model`: what the papers' cost models say.

use clap::{Args, Subcommand, ValueEnum};
use outcore::all_to_all::Mesh;
use outcore::all_to_all::model::{Machine, fat_tree};
use outcore::{AllToAll, Error, Result};
use outcore_bench::{AllToAllEntry, all_to_all_model, all_to_all_tables};

use crate::bytes;
use crate::ranks::{once, print};
use crate::records;

/// Compute the cost models of the papers
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore model alltoall
  outcore model alltoall --mesh 16x32 --bytes 4KiB")]
pub(crate) struct Model {
    #[command(subcommand)]
    name: Name,
}

#[derive(Subcommand)]
enum Name {
    Alltoall(Alltoall),
}

/// All-to-all of Thakur's thesis, chapter 4: the model beside tables 4.4 to 4.10
///
/// The tables are measurements on meshes of the Touchstone Delta. The model sums,
/// over the steps of an algorithm, a start and the bytes at the rate of an
/// exchange or, if that is slower, of the busiest link. For GEN the thesis prints
/// a bound of the messages on that link ('printed'); 'corrected' has their exact
/// number. PEX-GEN and PEX-GEN-SHIFT have no formula: their messages are counted.
///
/// With --mesh or --fat-tree, what the model says of another machine with the
/// Delta's messages.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore model alltoall
  outcore model alltoall --table T4.7 --csv
  outcore model alltoall --mesh 16x32 --bytes 4KiB
  outcore model alltoall --fat-tree 256 --links 1 --bytes 1KiB")]
struct Alltoall {
    /// Only this table
    #[arg(long, value_enum, ignore_case = true)]
    table: Option<Table>,
    /// A mesh of so many rows and columns instead
    #[arg(long, value_name = "ROWSxCOLUMNS", conflicts_with_all = ["table", "fat_tree"], requires = "bytes")]
    mesh: Option<String>,
    /// A fat tree (CM-5) of so many processors instead, a power of two
    #[arg(long, value_name = "PROCESSORS", conflicts_with = "table", requires = "bytes",
          value_parser = clap::value_parser!(u32).range(2..=65536))]
    fat_tree: Option<u32>,
    /// So many messages a link of the tree carries as fast as two processors
    /// exchange one; on the Delta, 2
    #[arg(long, value_name = "MESSAGES", default_value_t = 2.0, requires = "fat_tree",
          value_parser = parse_links)]
    links: f64,
    /// The bytes from each processor to each
    #[arg(long, value_parser = bytes::parse)]
    bytes: Option<u64>,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Print the rows as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Table {
    /// PEX
    #[value(name = "T4.4")]
    T4_4,
    /// PEX-GEN
    #[value(name = "T4.5")]
    T4_5,
    /// PEX-GEN-SHIFT
    #[value(name = "T4.6")]
    T4_6,
    /// GEN on powers of two
    #[value(name = "T4.7")]
    T4_7,
    /// GEN on other meshes
    #[value(name = "T4.8")]
    T4_8,
    /// REX
    #[value(name = "T4.9")]
    T4_9,
    /// IPEX
    #[value(name = "T4.10")]
    T4_10,
}

impl Model {
    pub(crate) fn run(&self) -> Result<()> {
        let Name::Alltoall(options) = &self.name;
        once(|| print(&options.text()?))
    }
}

impl Alltoall {
    fn text(&self) -> Result<String> {
        let bytes = self.bytes.unwrap_or(0) as usize;
        let text = match (&self.mesh, self.fat_tree) {
            (Some(text), _) => self.of_mesh(parse_mesh(text)?, bytes),
            (_, Some(processors)) => self.of_fat_tree(processors as usize, bytes),
            _ => self.tables(),
        }?;
        Ok(if self.json {
            records::json(&text)
        } else {
            text
        })
    }

    /// Whether a row is comma-separated values.
    fn csv(&self) -> bool {
        self.csv || self.json
    }

    fn tables(&self) -> Result<String> {
        let wanted = self.table.and_then(|table| {
            let value = table.to_possible_value()?;
            Some(value.get_name().to_owned())
        });
        let entries: Vec<AllToAllEntry> = all_to_all_tables()?
            .into_iter()
            .filter(|entry| wanted.as_ref().is_none_or(|name| *name == entry.table))
            .collect();
        let mut text = match self.csv() {
            true => "table,algorithm,mesh,bytes,measured_s,model_printed_s,model_corrected_s,\
                     ratio_printed,ratio_corrected,note\n"
                .to_owned(),
            false => format!(
                "{:<6} {:<14} {:>6} {:>6} {:>11} {:>11} {:>11} {:>8}\n",
                "table",
                "algorithm",
                "mesh",
                "bytes",
                "measured s",
                "printed s",
                "corrected s",
                "ratio"
            ),
        };
        for entry in &entries {
            text += &self.row(entry);
        }
        if !self.csv() {
            text += &medians(&entries);
        }
        Ok(text)
    }

    fn row(&self, entry: &AllToAllEntry) -> String {
        let mesh = format!("{}x{}", entry.mesh.rows, entry.mesh.columns);
        let (measured, modelled) = (entry.measured, entry.modelled);
        let ratio = modelled.corrected / measured;
        match self.csv() {
            true => format!(
                "{},{},{mesh},{},{measured},{:.6},{:.6},{:.3},{ratio:.3},{}\n",
                entry.table,
                entry.algorithm,
                entry.bytes,
                modelled.printed,
                modelled.corrected,
                modelled.printed / measured,
                entry.note.replace(',', ";")
            ),
            false => format!(
                "{:<6} {:<14} {mesh:>6} {:>6} {measured:>11.3} {:>11.4} {:>11.4} {ratio:>8.2}{}\n",
                entry.table,
                entry.algorithm.name(),
                entry.bytes,
                modelled.printed,
                modelled.corrected,
                match entry.note.is_empty() {
                    true => "",
                    false => "  (probably misprinted)",
                }
            ),
        }
    }

    fn of_mesh(&self, mesh: Mesh, bytes: usize) -> Result<String> {
        let known = AllToAll::ALL.into_iter();
        let rows = known.filter_map(|algorithm| {
            let modelled = all_to_all_model(algorithm, mesh, bytes)?;
            Some((algorithm, modelled.corrected))
        });
        Ok(self.ranked(rows.collect()))
    }

    fn of_fat_tree(&self, processors: usize, bytes: usize) -> Result<String> {
        if !processors.is_power_of_two() {
            return Err(Error::Invalid(format!(
                "{processors} processors are no power of two"
            )));
        }
        let length = bytes as f64;
        let machine = |bytes: f64| {
            let delta = Machine::delta(bytes);
            Machine {
                link: delta.exchange / self.links,
                ..delta
            }
        };
        let (machine, bundle) = (machine(length), machine(length * processors as f64 / 2.0));
        Ok(self.ranked(vec![
            (AllToAll::Lex, fat_tree::lex(&machine, processors, length)),
            (AllToAll::Pex, fat_tree::pex(&machine, processors, length)),
            (AllToAll::Rex, fat_tree::rex(&bundle, processors, length)),
            (AllToAll::Bex, fat_tree::bex(&machine, processors, length)),
        ]))
    }

    /// The fastest first.
    fn ranked(&self, mut rows: Vec<(AllToAll, f64)>) -> String {
        rows.sort_by(|a, b| a.1.total_cmp(&b.1));
        let head = match self.csv() {
            true => "algorithm,model_s\n".to_owned(),
            false => format!("{:<14} {:>11}\n", "algorithm", "model s"),
        };
        rows.iter().fold(head, |text, (algorithm, seconds)| {
            text + &match self.csv() {
                true => format!("{algorithm},{seconds:.6}\n"),
                false => format!("{:<14} {seconds:>11.4}\n", algorithm.name()),
            }
        })
    }
}

/// For each algorithm, the middle of the ratios of model and measurement.
fn medians(entries: &[AllToAllEntry]) -> String {
    let mut text = "the model beside the measurement, in the middle:".to_owned();
    let mut algorithms: Vec<AllToAll> = entries.iter().map(|entry| entry.algorithm).collect();
    algorithms.dedup();
    for algorithm in algorithms {
        let of = |ratio: fn(&AllToAllEntry) -> f64| {
            let here = entries.iter().filter(|entry| entry.algorithm == algorithm);
            let mut ratios: Vec<f64> = here.map(ratio).collect();
            ratios.sort_by(f64::total_cmp);
            ratios[ratios.len() / 2]
        };
        let corrected = of(|entry| entry.modelled.corrected / entry.measured);
        text += &format!(" {algorithm} {corrected:.2}");
        if algorithm == AllToAll::Gen {
            let printed = of(|entry| entry.modelled.printed / entry.measured);
            text += &format!(" (as printed {printed:.2})");
        }
    }
    text + "\n"
}

fn parse_links(text: &str) -> std::result::Result<f64, String> {
    let links = text.parse::<f64>().ok();
    let links = links.filter(|links| links.is_finite() && *links > 0.0);
    links.ok_or_else(|| format!("'{text}' is no number of messages"))
}

fn parse_mesh(text: &str) -> Result<Mesh> {
    let wrong = || Error::Invalid(format!("'{text}' is no mesh; write e.g. 16x32"));
    let (rows, columns) = text.split_once('x').ok_or_else(wrong)?;
    let extent = |text: &str| {
        let extent = text.parse::<usize>().ok();
        extent.filter(|extent| (1..=256).contains(extent))
    };
    let (rows, columns) = (extent(rows), extent(columns));
    let (Some(rows), Some(columns)) = (rows, columns) else {
        return Err(wrong());
    };
    if rows * columns > 4096 {
        return Err(Error::Invalid(format!(
            "a mesh of {text} has more than 4096 processors"
        )));
    }
    Ok(Mesh { rows, columns })
}
