//! `outcore checkpoint list`: which checkpoints there are.

use clap::Args;
use outcore::{Checkpoint, CheckpointEntry, Result, SavedArray, shape_text};
use serde_json::{Value, json};

use super::{Series, time, unfinished_text};
use crate::bytes;
use crate::ranks::{once, print, shown};

/// Say which checkpoints there are, the newest last
///
/// Times are in UTC. A checkpoint is complete if it is listed; one whose manifest
/// is damaged says so. Data are not looked at: 'verify' does that.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore checkpoint list run
  outcore checkpoint list run --json")]
pub(super) struct List {
    #[command(flatten)]
    series: Series,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(&self) -> Result<()> {
        once(|| {
            let series = self.series.open()?;
            let (entries, unfinished) = (series.list()?, series.leftovers()?);
            if self.json {
                let names = unfinished.iter().filter_map(|path| path.file_name());
                let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
                let checkpoints: Vec<Value> = entries.iter().map(facts).collect();
                let all = json!({
                    "directory": series.directory(),
                    "checkpoints": checkpoints,
                    "unfinished": names,
                });
                return print(&format!("{all:#}\n"));
            }
            if entries.is_empty() {
                let none = format!("there are no checkpoints in {}\n", series.directory());
                return print(&(none + &unfinished_text(unfinished.len())));
            }
            print(&(table(&entries) + &unfinished_text(unfinished.len())))
        })
    }
}

fn table(entries: &[CheckpointEntry]) -> String {
    let width = entries.iter().map(|entry| entry.name.chars().count());
    let width = width.max().unwrap_or(0).max(4);
    let (name, number, saved) = ("name", "number", "saved");
    let mut text = format!(
        "{name:<width$}  {number:>6}  {saved:<19}  {:>5}  {:>10}  arrays\n",
        "ranks", "bytes"
    );
    for CheckpointEntry { name, state } in entries {
        let line = match state {
            Ok(checkpoint) => format!(
                "{name:<width$}  {:>6}  {:<19}  {:>5}  {:>10}  {}",
                checkpoint.sequence(),
                time::utc(checkpoint.created()),
                checkpoint.ranks(),
                bytes::show(checkpoint.bytes()),
                arrays(checkpoint)
            ),
            Err(problem) => format!("{name:<width$}  damaged: {problem}"),
        };
        text += &(shown(&line) + "\n");
    }
    text
}

/// `u 100x200 f64, v 7 i32`.
fn arrays(checkpoint: &Checkpoint) -> String {
    let of = |array: &SavedArray| {
        let shape = shape_text(array.shape());
        format!("{} {shape} {}", array.name(), array.element_type())
    };
    let texts: Vec<String> = checkpoint.arrays().iter().map(of).collect();
    match texts.is_empty() {
        true => "none".into(),
        false => texts.join(", "),
    }
}

fn facts(entry: &CheckpointEntry) -> Value {
    let checkpoint = match &entry.state {
        Ok(checkpoint) => checkpoint,
        Err(problem) => return json!({ "name": entry.name, "damaged": problem.to_string() }),
    };
    let of = |array: &SavedArray| {
        json!({
            "name": array.name(),
            "shape": array.shape(),
            "type": array.element_type().name(),
            "bytes": array.bytes(),
        })
    };
    json!({
        "name": entry.name,
        "sequence": checkpoint.sequence(),
        "created": checkpoint.created(),
        "ranks": checkpoint.ranks(),
        "bytes": checkpoint.bytes(),
        "notes": checkpoint.notes(),
        "arrays": checkpoint.arrays().iter().map(of).collect::<Vec<_>>(),
    })
}
