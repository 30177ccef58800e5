//! `outcore checkpoint verify`: whether the data are as they were saved.

use std::iter;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Checkpoint, Comm, Damage, Error, Op, Result, TransportError, default_ranks};
use serde_json::{Value, json};

use super::{Series, unfinished_text};
use crate::bytes;
use crate::progress::Progress;
use crate::ranks::{Ranks, is_interruption, print, shown};
use crate::work::{Begun, Ended};

/// Compare the data of checkpoints with their checksums
///
/// Reads every byte. Says what is damaged, block by block; exit status 1 if
/// anything is.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore checkpoint verify run
  outcore checkpoint verify run step-000012
  outcore checkpoint verify run --ranks 2 --json")]
pub(super) struct Verify {
    #[command(flatten)]
    series: Series,
    /// Only this checkpoint
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ranks: Ranks,
}

/// What was found of one checkpoint.
struct Finding {
    name: String,
    bytes: u64,
    problem: Option<String>,
    damage: Vec<Damage>,
}

impl Verify {
    /// What looks at a series, or at one checkpoint of it.
    pub(super) fn of(directory: &str, json: bool, ranks: Ranks) -> Self {
        let path = Path::new(directory);
        let name = path
            .file_name()
            .filter(|_| path.join("manifest.json").is_file());
        let (series, name) = match (name, path.parent()) {
            (Some(name), Some(parent)) => (parent, Some(name.to_string_lossy().into_owned())),
            _ => (path, None),
        };
        let series = match series.to_string_lossy().into_owned() {
            empty if empty.is_empty() => ".".into(),
            series => series,
        };
        Self {
            series: Series { directory: series },
            name,
            json,
            ranks,
        }
    }

    pub(super) fn run(&self) -> Result<()> {
        let (progress, begun) = (OnceLock::new(), Begun::now());
        self.ranks.usually(default_ranks()).run(|comm| {
            let (mut findings, checkpoints) = self.find(comm)?;
            let total: u64 = checkpoints.iter().map(Checkpoint::bytes).sum();
            let share = total / comm.size() as u64;
            let progress = Progress::shared(&progress, "verifying", comm, share)?;
            let start = Instant::now();
            for checkpoint in &checkpoints {
                findings.push(examine(comm, checkpoint, progress)?);
            }
            progress.finish();
            let ended = begun.end_since(comm, start)?;
            let told = match comm.rank() {
                0 => self.tell(&findings, total, &ended),
                _ => Ok(()),
            };
            comm.agree(told)?;
            let bad = findings.iter().filter(|finding| finding.problem.is_some());
            // Damaged manifests are rank 0's.
            let bad = comm.all_reduce(&[bad.count() as u64], Op::Max)?[0];
            let outcome = match bad {
                0 => Ok(()),
                _ => Err(Error::Invalid(format!(
                    "{}: {bad} of {} checkpoints {} damaged",
                    self.series.directory,
                    findings.len(),
                    if bad == 1 { "is" } else { "are" }
                ))),
            };
            Ok(comm.agree(outcome)?)
        })
    }

    /// Collective: those to look at; and for rank 0, those of which the manifest
    /// says enough.
    fn find(&self, comm: &Comm) -> Result<(Vec<Finding>, Vec<Checkpoint>)> {
        let listed = match comm.rank() {
            0 => self.names(),
            _ => Ok((Vec::new(), Vec::new())),
        };
        let (findings, names) = comm.agree(listed)?;
        // No name holds a slash.
        let mut names = names.join("/");
        comm.broadcast_string(0, &mut names)?;
        let names = names.split('/').filter(|name| !name.is_empty());
        let open = |name| Checkpoint::open(comm, &format!("{}/{name}", self.series.directory));
        let checkpoints: Result<Vec<_>> = names.map(open).collect();
        Ok((findings, checkpoints?))
    }

    /// Those with a damaged manifest, and the names of all others.
    fn names(&self) -> Result<(Vec<Finding>, Vec<String>)> {
        let entries = self.series.open()?.list()?;
        let all: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
        let (mut findings, mut names) = (Vec::new(), Vec::new());
        for entry in entries {
            if self.name.as_ref().is_some_and(|name| *name != entry.name) {
                continue;
            }
            match entry.state {
                Ok(_) => names.push(entry.name),
                Err(problem) => findings.push(Finding {
                    name: entry.name,
                    bytes: 0,
                    problem: Some(problem.to_string()),
                    damage: Vec::new(),
                }),
            }
        }
        let directory = &self.series.directory;
        match &self.name {
            _ if !(findings.is_empty() && names.is_empty()) => Ok((findings, names)),
            Some(name) if !all.is_empty() => Err(Error::Invalid(format!(
                "there is no checkpoint '{name}' in {directory}; there are {}",
                all.join(", ")
            ))),
            _ => Err(Error::Invalid(format!(
                "there are no checkpoints in {directory}"
            ))),
        }
    }

    fn tell(&self, findings: &[Finding], total: u64, ended: &Ended) -> Result<()> {
        let intact = findings.iter().filter(|finding| finding.problem.is_none());
        let intact = intact.count();
        if self.json {
            let all = json!({
                "directory": self.series.directory,
                "checkpoints": findings.iter().map(facts).collect::<Vec<_>>(),
                "intact": intact,
                "bytes": total,
                "gb_per_s": ended.rate(total as f64),
                "seconds": ended.seconds,
                "peak_memory_bytes": ended.peak,
            });
            return print(&format!("{all:#}\n"));
        }
        let mut text = String::new();
        for finding in findings {
            let Finding { name, bytes, .. } = finding;
            let first = match &finding.problem {
                None => format!("{name}  intact, {}", bytes::show(*bytes)),
                Some(problem) => format!("{name}  damaged: {problem}"),
            };
            let further = finding.damage.iter().skip(1);
            let further = further.map(|damage| format!("{name}  damaged: {damage}"));
            for line in iter::once(first).chain(further) {
                text.push_str(&(shown(&line) + "\n"));
            }
        }
        text.push_str(&format!(
            "{intact} of {} intact; {} in {:.2} s, {:.2} GB/s\n",
            findings.len(),
            bytes::show(total),
            ended.seconds,
            ended.rate(total as f64)
        ));
        let unfinished = self.series.open()?.leftovers()?.len();
        print(&(text + &unfinished_text(unfinished)))
    }
}

/// Collective: looks at all data of one checkpoint.
fn examine(comm: &Comm, checkpoint: &Checkpoint, progress: &Progress) -> Result<Finding> {
    let (problem, damage) = match checkpoint.damage(comm, &|bytes| progress.add(bytes)) {
        Ok(damage) => (damage.first().map(Damage::to_string), damage),
        Err(error) if is_interruption(&error) => return Err(error),
        // On all ranks, which go on.
        Err(Error::Transport(TransportError::Agreed { cause, .. })) => (Some(cause), Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(Finding {
        name: checkpoint.name().into(),
        bytes: checkpoint.bytes(),
        problem,
        damage,
    })
}

fn facts(finding: &Finding) -> Value {
    let damage = |damage: &Damage| {
        json!({
            "array": damage.array,
            "blocks": [damage.blocks.start, damage.blocks.end],
            "bytes": [damage.bytes.start, damage.bytes.end],
        })
    };
    json!({
        "name": finding.name,
        "bytes": finding.bytes,
        "intact": finding.problem.is_none(),
        "problem": finding.problem,
        "damage": finding.damage.iter().map(damage).collect::<Vec<_>>(),
    })
}
