//! `outcore repair-report`: what of an array must be written again.

use std::fmt::Write as _;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Fault, Layout, Problem, Result, Verified};
use serde_json::{Value, json};

use crate::bytes;
use crate::ranks::{print, shown};
use crate::verify::{Finding, Look, count_text, place_text, unlisted_text};
use crate::whole_file;

/// List which blocks, bytes and sections of arrays are damaged
///
/// Looks at the data as 'verify' does, and lists everything that must be written
/// again. Exit status 1 if there is such a thing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore repair-report field.oc
  outcore repair-report field.oc climate.zarr/t -o damage.txt
  outcore repair-report field.oc --json -o damage.json

Then, for each section of a .oc array:
  outcore write field.oc '3:4, 0:512' --from lost.npy
  outcore verify field.oc --accept all              (if blocks were not written whole)")]
pub(crate) struct RepairReport {
    #[command(flatten)]
    look: Look,
    /// Write the report to FILE
    #[arg(short, long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    output: Option<String>,
    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

impl RepairReport {
    pub(crate) fn run(&self) -> Result<()> {
        let file = self.output.as_deref().map(|file| (file, self.force));
        self.look.run(
            file,
            |_, _| Ok(()),
            |findings, _| match &self.output {
                Some(file) => write(file, findings, self.look.json),
                // Of one that cannot be read, that is the error of the command.
                None if !self.look.json && matches!(findings, [Finding { found: Err(_), .. }]) => {
                    Ok(())
                }
                None => print(&report(findings, self.look.json)),
            },
        )
    }
}

/// Writes the report to a file, in place of what it held when it is complete.
pub(crate) fn write(file: &str, findings: &[Finding], json: bool) -> Result<()> {
    whole_file::write_text(file, &report(findings, json))
}

fn report(findings: &[Finding], json: bool) -> String {
    if json {
        let arrays = findings.iter().map(|finding| match &finding.found {
            Ok((layout, verified)) => {
                json!({
                    "array": finding.name,
                    "name": finding.name,
                    "faults": facts(layout, verified),
                    "not_listed": verified.unlisted,
                })
            }
            Err(problem) => {
                json!({ "array": finding.name, "name": finding.name, "problem": problem })
            }
        });
        return format!("{:#}\n", json!({ "arrays": arrays.collect::<Vec<_>>() }));
    }
    findings.iter().map(text).collect()
}

/// The report of one array.
fn text(finding: &Finding) -> String {
    let name = shown(&finding.name);
    let (layout, verified) = match &finding.found {
        Ok(found) => found,
        Err(problem) => return format!("{name}: cannot be read: {}\n", shown(problem)),
    };
    if verified.is_sound() {
        return format!("{name}: nothing to repair\n");
    }
    let each = bytes::show(verified.piece);
    let mut text = format!("{name}: {} (each {each})\n", count_text(finding));
    for fault in &verified.faults {
        let place = place_text(verified.checks, fault);
        // Writing to a string does not fail.
        let problem = shown(&fault.problem.to_string());
        let _ = writeln!(text, "  {place}: {problem}");
        let mut none = true;
        for section in fault.sections(layout) {
            none = false;
            let _ = writeln!(text, "    {name} '{section}'");
        }
        if none {
            text.push_str("    no element: room behind the edge of the array\n");
        }
    }
    text.push_str(&unlisted_text(verified));
    text
}

/// What is wrong with an array, for programs.
pub(crate) fn facts(layout: &Layout, verified: &Verified) -> Value {
    let fault = |fault: &Fault| {
        let sections = fault.sections(layout).map(|section| section.to_string());
        let kind = match fault.problem {
            Problem::Damaged => "damaged",
            Problem::Interrupted => "interrupted",
            Problem::Unreadable(_) => "unreadable",
        };
        json!({
            "kind": kind,
            "problem": fault.problem.to_string(),
            "pieces": [fault.pieces.start, fault.pieces.end],
            "bytes": [fault.bytes.start, fault.bytes.end],
            "sections": sections.collect::<Vec<_>>(),
        })
    };
    Value::Array(verified.faults.iter().map(fault).collect())
}
