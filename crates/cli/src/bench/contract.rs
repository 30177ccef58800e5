//! `outcore bench contract`: the paper's contraction of block-sparse tensors.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use outcore::Result;
use outcore_apps::contract::{Predicate, Way};
use outcore_bench::{ContractOptions, Line, contract, contract_claims, contract_summary};

use crate::ranks::print;

/// Contract the paper's block-sparse tensors, from every place where their blocks may be
///
/// `i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p2]` with segments of 100, 60, 40 and 30 times
/// --scale for p, and k times as long ones for h, by ranks with one thread each: blocks by
/// procedure calls, from copies for every rank, or from one file a rank. Ratios and speed-ups
/// go to the standard error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench contract --csv
  outcore bench contract --scale 0.3 --k 1,2,4 --ranks 1,2,4,8 --state cold
  outcore bench contract --k '' --weak 1,2 --ranks 1,2,4
  outcore bench contract --weak 1 --claims")]
pub(super) struct Contract {
    /// How long segments are, in those of the paper
    #[arg(long, default_value_t = 0.5, value_parser = parse_scale)]
    scale: f64,
    /// How much longer the segments of h are: strong scaling
    #[arg(long, value_name = "LIST", default_value = "1", value_parser = parse_list)]
    k: List,
    /// The same for each rank, so k is L times the ranks: weak scaling
    #[arg(long, value_name = "LIST", default_value = "", value_parser = parse_list)]
    weak: List,
    /// The numbers of ranks
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8", value_parser = parse_list)]
    ranks: List,
    /// Whether the tensors are in the page cache
    #[arg(long, value_enum, default_value = "both")]
    state: State,
    /// Where blocks are: calls, replicas, files, striped
    #[arg(
        long,
        value_name = "LIST",
        default_value = "calls,replicas,files,striped"
    )]
    ways: String,
    /// Which blocks are not zero, as for 'contract'
    #[arg(long, default_value = "all")]
    predicate: Predicate,
    /// Print what becomes of the paper's claims, instead of the lines
    #[arg(long)]
    claims: bool,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Where files are made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
}

#[derive(Clone)]
struct List(Vec<u64>);

fn parse_list(text: &str) -> Result<List, String> {
    let numbers = text.split(',').filter(|part| !part.is_empty());
    let numbers = numbers.map(|part| part.trim().parse().ok().filter(|n| (1..=64).contains(n)));
    let numbers: Option<Vec<u64>> = numbers.collect();
    numbers
        .map(List)
        .ok_or_else(|| format!("'{text}' is not a list of numbers from 1 to 64"))
}

fn parse_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok();
    scale
        .filter(|scale| (0.01..=1.0).contains(scale))
        .ok_or_else(|| format!("'{text}' is not a number from 0.01 to 1"))
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum State {
    Warm,
    Cold,
    Both,
}

impl Contract {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        let ways: Result<Vec<Way>> = self.ways.split(',').map(str::parse).collect();
        let lines = contract(&ContractOptions {
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            scale: self.scale,
            ks: self.k.0.clone(),
            ls: self.weak.0.clone(),
            ranks: self.ranks.0.iter().map(|ranks| *ranks as usize).collect(),
            cold: match self.state {
                State::Warm => vec![false],
                State::Cold => vec![true],
                State::Both => vec![true, false],
            },
            ways: ways?,
            predicate: self.predicate,
            repeats: self.repeat.into(),
        })?;
        eprint!("{}", contract_summary(&lines));
        if self.claims {
            print(&contract_claims(&lines))?;
            return Ok(Vec::new());
        }
        Ok(lines)
    }
}
