//! `outcore checkpoint prune`: removes old checkpoints.

use clap::Args;
use outcore::Result;
use serde_json::json;

use super::Series;
use crate::ranks::{once, print};

/// Remove all but the newest checkpoints, and what killed runs have left
///
/// Waits for a program that is saving just now. Checkpoints whose manifest is
/// damaged are neither counted nor removed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore checkpoint prune run --keep 3
  outcore checkpoint prune run --keep 1 --json")]
pub(super) struct Prune {
    #[command(flatten)]
    series: Series,
    /// How many to keep
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl Prune {
    pub(super) fn run(&self) -> Result<()> {
        once(|| {
            let series = self.series.open()?;
            let before = series.leftovers()?.len();
            let removed = series.prune(self.keep as usize)?;
            let unfinished = before.saturating_sub(series.leftovers()?.len());
            if self.json {
                let all = json!({ "removed": removed, "unfinished": unfinished });
                return print(&format!("{all:#}\n"));
            }
            let mut parts = Vec::new();
            if !removed.is_empty() {
                parts.push(removed.join(", "));
            }
            match unfinished {
                0 => {}
                1 => parts.push("1 unfinished checkpoint".into()),
                count => parts.push(format!("{count} unfinished checkpoints")),
            }
            match parts.is_empty() {
                true => print("nothing to remove\n"),
                false => print(&format!("removed {}\n", parts.join(" and "))),
            }
        })
    }
}
