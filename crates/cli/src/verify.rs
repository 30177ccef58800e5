//! `outcore verify`: whether the data are as they were written.
//!
//! Rank 0 finds out which arrays are meant, and tells; then all ranks go through
//! array after array (`outcore::verify`). What is wrong with one does not keep the
//! others from being looked at.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use outcore::{
    Array, Checkpoints, Checks, Comm, Error, Fault, Layout, Problem, Result, Verified, accept,
    default_ranks, list, storage, verify,
};
use serde_json::{Value, json};

use crate::bytes;
use crate::checkpoint::verify_checkpoints;
use crate::counted::counted;
use crate::memory::Memory;
use crate::output::check_free;
use crate::progress::Progress;
use crate::ranks::{Ranks, cause, is_interruption, print, shown};
use crate::repair_report;
use crate::work::{Begun, Ended};

/// Problems of one array that are shown; a report has all.
const SHOWN: usize = 10;

/// Read arrays and compare them with their checksums
///
/// Works on every array: blocks of .oc arrays made with --checksums are compared;
/// chunks of Zarr and HDF5 are decoded, which finds what their checksums (crc32c,
/// fletcher32) and codecs find; anything else is read through, and what is said then
/// is no more than that. A container stands for all arrays in it, a directory of
/// checkpoints for 'checkpoint verify'. Exit status 1 if anything is wrong.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore verify field.oc
  outcore verify field.oc climate.zarr results.h5:/u --ranks 2 --json
  outcore verify field.oc --report damage.txt
  outcore verify field.oc --accept interrupted      (after a crash: the blocks being written then)")]
pub(crate) struct Verify {
    #[command(flatten)]
    look: Look,
    /// Also write what 'repair-report' says to FILE
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    report: Option<String>,
    /// Replace FILE if it exists
    #[arg(long, requires = "report")]
    force: bool,
    /// Take blocks as they are that were being written in a crash, or all that are wrong
    #[arg(long, value_name = "WHICH")]
    accept: Option<Which>,
}

/// Which blocks are taken as they are.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Which {
    /// Those that were being written when the writer failed or died
    Interrupted,
    /// These and damaged ones
    All,
}

/// What is looked at, and with what.
#[derive(Args)]
pub(crate) struct Look {
    /// Arrays or containers of arrays
    #[arg(value_name = "ARRAY", required = true, value_parser = NonEmptyStringValueParser::new())]
    arrays: Vec<String>,
    /// Print JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    ranks: Ranks,
}

/// What was found of one array.
pub(crate) struct Finding {
    pub(crate) name: String,
    /// Why it could not be looked at, or what was found.
    pub(crate) found: Result<(Layout, Verified), String>,
    /// How many blocks were taken as they are.
    accepted: u64,
}

impl Finding {
    fn is_bad(&self) -> bool {
        match &self.found {
            Ok((_, verified)) => !verified.is_sound(),
            Err(_) => true,
        }
    }
}

impl Look {
    /// Looks at everything; rank 0 tells with `tell`. `report` is a file that will be
    /// written then, and whether it may be replaced.
    pub(crate) fn run(
        &self,
        report: Option<(&str, bool)>,
        after: impl Fn(&Comm, &mut Finding) -> Result<()> + Sync,
        tell: impl Fn(&[Finding], &Ended) -> Result<()> + Sync,
    ) -> Result<()> {
        let progress = OnceLock::new();
        let begun = Begun::now();
        let ranks = self.ranks.usually(default_ranks());
        let budget = self.memory.budget();
        ranks.run(|comm| {
            comm.agree(match (comm.rank(), report) {
                (0, Some((file, force))) => check_free(file, force),
                _ => Ok(()),
            })?;
            let names = self.names(comm)?;
            // Each is open only while it is looked at: a container may hold many.
            let open = |name: &String| Array::open_all(comm, name);
            let opened = names.iter().filter_map(|name| open(name).ok());
            let total: u64 = opened.map(|array| array.layout().byte_len()).sum();
            let share = total / comm.size() as u64;
            let progress = Progress::shared(&progress, "verifying", comm, share)?;
            let start = Instant::now();
            let mut findings = Vec::new();
            for name in names {
                // An error is the same on all ranks.
                let found = open(&name).and_then(|array| {
                    let found = verify(comm, &array, &budget, &|bytes| progress.add(bytes))?;
                    Ok((array.layout().clone(), found))
                });
                if let Err(error) = &found
                    && is_interruption(error)
                {
                    return found.map(drop);
                }
                let mut finding = Finding {
                    // What is no good address may hold what lets one in.
                    name: match &found {
                        Ok(_) => name,
                        Err(_) => storage::without_secrets(&name),
                    },
                    found: found.map_err(|error| cause(&error)),
                    accepted: 0,
                };
                after(comm, &mut finding)?;
                findings.push(finding);
            }
            progress.finish();
            let ended = begun.end_since(comm, start)?;
            let told = match comm.rank() {
                0 => tell(&findings, &ended),
                _ => Ok(()),
            };
            comm.agree(told)?;
            let bad: Vec<_> = findings.iter().filter(|finding| finding.is_bad()).collect();
            let outcome = match &bad[..] {
                [] => Ok(()),
                [one] if findings.len() == 1 => Err(Error::Invalid(match &one.found {
                    Err(problem) => problem.clone(),
                    Ok(_) => format!("{}: {}", one.name, count_text(one)),
                })),
                several => Err(Error::Invalid(format!(
                    "{} of {} arrays are not as they should be",
                    several.len(),
                    findings.len()
                ))),
            };
            Ok(comm.agree(outcome)?)
        })
    }

    /// Collective: the names of all arrays that are meant.
    fn names(&self, comm: &Comm) -> Result<Vec<String>> {
        let found = match comm.rank() {
            0 => self.find(),
            _ => Ok(Vec::new()),
        };
        let mut text = json!(comm.agree(found)?).to_string();
        comm.broadcast_string(0, &mut text)?;
        serde_json::from_str(&text).map_err(|error| Error::Invalid(error.to_string()))
    }

    fn find(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for name in &self.arrays {
            if is_checkpoint(name) {
                return Err(Error::Invalid(format!(
                    "{name} is a directory of checkpoints; give it to 'outcore verify' alone"
                )));
            }
            // What cannot be listed is told when it cannot be opened.
            let items = list(name).unwrap_or_default();
            let inside = items.into_iter().filter(|item| !item.path.is_empty());
            let inside: Vec<_> = inside.collect();
            if inside.is_empty() {
                names.push(name.clone());
                continue;
            }
            let arrays = inside
                .into_iter()
                .filter(|item| item.array.is_some() || item.problem.is_some());
            names.extend(arrays.map(|item| item.name));
        }
        Ok(names)
    }
}

/// Whether this is a checkpoint or a series of them.
fn is_checkpoint(name: &str) -> bool {
    let path = Path::new(name);
    if !path.is_dir() || path.join("array.json").is_file() {
        return false;
    }
    path.join("manifest.json").is_file()
        || Checkpoints::existing(name)
            .and_then(|series| series.list())
            .is_ok_and(|entries| !entries.is_empty())
}

impl Verify {
    pub(crate) fn run(&self) -> Result<()> {
        if let [one] = &self.look.arrays[..]
            && is_checkpoint(one)
        {
            self.check_of_checkpoints(one)?;
            return verify_checkpoints(one, self.look.json, self.look.ranks);
        }
        let report = self.report.as_deref().map(|file| (file, self.force));
        self.look.run(
            report,
            |comm, finding| self.accept(comm, finding),
            |findings, ended| {
                if let Some(file) = &self.report {
                    repair_report::write(file, findings, self.look.json)?;
                }
                self.tell(findings, ended)
            },
        )
    }

    /// Fails if something is asked for that there is only for arrays.
    fn check_of_checkpoints(&self, name: &str) -> Result<()> {
        let asked = [
            ("--report", self.report.is_some()),
            ("--accept", self.accept.is_some()),
            ("--memory", self.look.memory.is_given()),
        ];
        match asked.iter().find(|(_, asked)| *asked) {
            None => Ok(()),
            Some((option, _)) => Err(Error::Invalid(format!(
                "{name} holds checkpoints, for which there is no {option}; leave it out, or name \
                 an array in it, as in {name}/{}",
                match Path::new(name).join("manifest.json").is_file() {
                    true => "u.oc",
                    false => "step-000012/u.oc",
                }
            ))),
        }
    }

    /// Collective: rank 0 gives blocks new checksums, if that was asked for.
    fn accept(&self, comm: &Comm, finding: &mut Finding) -> Result<()> {
        let (Some(which), Ok((_, verified))) = (self.accept, &mut finding.found) else {
            return Ok(());
        };
        let wanted = |fault: &Fault| match fault.problem {
            Problem::Interrupted => true,
            Problem::Damaged => which == Which::All,
            Problem::Unreadable(_) => false,
        };
        let (taken, left): (Vec<_>, Vec<_>) = verified.faults.drain(..).partition(wanted);
        verified.faults = left;
        let accepted = match comm.rank() {
            0 if !taken.is_empty() => Array::open_writable(&finding.name).and_then(|array| {
                taken.iter().try_for_each(|fault| accept(&array, fault))?;
                array.sync()
            }),
            _ => Ok(()),
        };
        comm.agree(accepted)?;
        let counts = taken
            .iter()
            .map(|fault| fault.pieces.end - fault.pieces.start);
        finding.accepted = counts.sum();
        Ok(())
    }

    fn tell(&self, findings: &[Finding], ended: &Ended) -> Result<()> {
        let sound = findings.iter().filter(|finding| !finding.is_bad()).count();
        let bytes = |finding: &Finding| match &finding.found {
            Ok((_, verified)) => verified.bytes,
            Err(_) => 0,
        };
        let total: u64 = findings.iter().map(bytes).sum();
        if self.look.json {
            let all = json!({
                "arrays": findings.iter().map(facts).collect::<Vec<_>>(),
                "sound": sound,
                "bytes": total,
                "gb_per_s": ended.rate(total as f64),
                "seconds": ended.seconds,
                "peak_memory_bytes": ended.peak,
            });
            return print(&format!("{all:#}\n"));
        }
        if let [Finding { found: Err(_), .. }] = findings {
            // That is the error of the command.
            return Ok(());
        }
        let mut text: String = findings.iter().map(lines).collect();
        text.push_str(&format!(
            "{sound} of {} without fault; {} in {:.2} s, {:.2} GB/s\n",
            findings.len(),
            bytes::show(total),
            ended.seconds,
            ended.rate(total as f64)
        ));
        print(&text)
    }
}

/// `2 of 1024 blocks are damaged`.
pub(crate) fn count_text(finding: &Finding) -> String {
    let Ok((_, verified)) = &finding.found else {
        return String::new();
    };
    let bad = verified.wrong();
    let problems = verified.faults.iter().map(|fault| &fault.problem);
    let what = match problems
        .clone()
        .all(|problem| *problem == Problem::Interrupted)
    {
        true => "interrupted",
        false => "damaged",
    };
    let verb = if bad == 1 { "is" } else { "are" };
    let piece = piece_name(verified.checks);
    format!("{bad} of {} {piece}s {verb} {what}", verified.pieces)
}

/// What the pieces of an array are called.
pub(crate) fn piece_name(checks: Checks) -> &'static str {
    match checks {
        Checks::Blocks => "block",
        Checks::Chunks | Checks::Decoding => "chunk",
        Checks::Nothing => "piece",
    }
}

/// `block 3, bytes 196608 to 262143`.
pub(crate) fn place_text(checks: Checks, fault: &Fault) -> String {
    let piece = piece_name(checks);
    let pieces = match fault.pieces.end - fault.pieces.start {
        1 => format!("{piece} {}", fault.pieces.start),
        _ => format!(
            "{piece}s {} to {}",
            fault.pieces.start,
            fault.pieces.end - 1
        ),
    };
    let last = fault.bytes.end.saturating_sub(1);
    format!("{pieces}, bytes {} to {last}", fault.bytes.start)
}

/// What is said of one array.
fn lines(finding: &Finding) -> String {
    let name = shown(&finding.name);
    let (layout, verified) = match &finding.found {
        Ok(found) => found,
        Err(problem) => return format!("{name}  cannot be read: {}\n", shown(problem)),
    };
    let Verified { checks, pieces, .. } = verified;
    let (size, each) = (bytes::show(verified.bytes), bytes::show(verified.piece));
    let stored = pieces - verified.unstored;
    let absent = match verified.unstored {
        0 => String::new(),
        1 => "; 1 is not stored and reads as the fill value".into(),
        many => format!("; {many} are not stored and read as the fill value"),
    };
    let mut text = String::new();
    if finding.accepted > 0 {
        let blocks = counted(finding.accepted, "block");
        text.push_str(&format!("{name}  {blocks} taken as found\n"));
    }
    if verified.is_sound() {
        let (fit, were) = match pieces {
            1 => ("matches its checksum", "was"),
            _ => ("match their checksums", "were"),
        };
        text.push_str(&match checks {
            Checks::Blocks => {
                let blocks = counted(*pieces, "block");
                format!("{name}  sound: {blocks} of {each} {fit}, {size}\n")
            }
            Checks::Chunks => {
                let chunks = counted(stored, "chunk");
                format!("{name}  sound: {chunks} {fit}{absent}, {size}\n")
            }
            Checks::Decoding => format!(
                "{name}  no checksums: {} {were} decoded without error{absent}, {size}\n",
                counted(stored, "chunk")
            ),
            Checks::Nothing => {
                format!("{name}  no checksums: read through without error, {size}\n")
            }
        });
        return text;
    }
    text.push_str(&format!("{name}  {}\n", count_text(finding)));
    for fault in verified.faults.iter().take(SHOWN) {
        let mut sections = fault.sections(layout).map(|section| format!("[{section}]"));
        let some: Vec<String> = sections.by_ref().take(3).collect();
        let more = if sections.next().is_some() {
            ", ..."
        } else {
            ""
        };
        text.push_str(&format!(
            "  {}: {} ({}{more})\n",
            place_text(*checks, fault),
            shown(&fault.problem.to_string()),
            some.join(", ")
        ));
    }
    let hidden = verified.faults.len().saturating_sub(SHOWN);
    if hidden > 0 {
        text.push_str(&format!(
            "  and {hidden} more, which 'outcore repair-report {name}' lists\n"
        ));
    }
    text.push_str(&unlisted_text(verified));
    text
}

/// What is said of pieces that are wrong, and not listed.
pub(crate) fn unlisted_text(verified: &Verified) -> String {
    match verified.unlisted {
        0 => String::new(),
        more => {
            let more = counted(more, &format!("more {}", piece_name(verified.checks)));
            format!("  and {more}, listed when those before are sound\n")
        }
    }
}

/// The same for programs.
fn facts(finding: &Finding) -> Value {
    let (layout, verified) = match &finding.found {
        Ok(found) => found,
        Err(problem) => {
            return json!({ "array": finding.name, "name": finding.name, "problem": problem });
        }
    };
    let checks = match verified.checks {
        Checks::Blocks => "blocks",
        Checks::Chunks => "chunks",
        Checks::Decoding => "decoding",
        Checks::Nothing => "none",
    };
    json!({
        "array": finding.name,
        "name": finding.name,
        "checks": checks,
        "bytes": verified.bytes,
        "pieces": verified.pieces,
        "piece_bytes": verified.piece,
        "not_stored": verified.unstored,
        "accepted": finding.accepted,
        "sound": verified.is_sound(),
        "faults": repair_report::facts(layout, verified),
        "not_listed": verified.unlisted,
    })
}
