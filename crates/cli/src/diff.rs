//! `outcore diff`: where and by how much two arrays differ.

use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Array, Comm, Error, Pattern, Result, Section, shape_text};
use outcore_apps::Resources;
use outcore_apps::diff::{Differences, Peak, Side, Tolerance, diff};
use outcore_apps::stats::{Part, Value};
use serde_json::json;

use crate::memory::Memory;
use crate::progress::Progress;
use crate::ranks::{Ranks, print};
use crate::stats::number;
use crate::work::{Begun, Closing, Ended};

/// The exit status of arrays that cannot be compared.
pub(crate) const TROUBLE: u8 = 2;

/// Compare two arrays, whatever their types, layouts and formats are
///
/// Tells how many elements differ, the largest difference, absolute and as a part of
/// the larger number, and where. An element is within tolerance if its difference is
/// at most --tolerance, or at most --relative times the larger number. Two NaNs are
/// equal; a NaN beside a number is beyond every tolerance. Integers are compared
/// exactly, everything else in f64.
///
/// Both must have the same shape; an axis given by a single index counts as no axis.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore diff field.oc field.npy
  outcore diff old.npy new.zarr/t --tolerance 1e-6 --relative 1e-4 --json
  outcore diff volume.oc plane.npy --section-a '7, :, :' --ranks 2

Exit status: 0 the same within the tolerance, 1 different, 2 wrong usage, or they could not be
compared (not readable, other shapes, too little memory).")]
pub(crate) struct Diff {
    /// The first array
    #[arg(value_name = "A", value_parser = NonEmptyStringValueParser::new())]
    left: String,
    /// The second array
    #[arg(value_name = "B", value_parser = NonEmptyStringValueParser::new())]
    right: String,
    /// The section of both
    #[arg(long, allow_hyphen_values = true, conflicts_with_all = ["section_a", "section_b"])]
    section: Option<Pattern>,
    /// The section of A
    #[arg(long, allow_hyphen_values = true, value_name = "SECTION")]
    section_a: Option<Pattern>,
    /// The section of B
    #[arg(long, allow_hyphen_values = true, value_name = "SECTION")]
    section_b: Option<Pattern>,
    /// The largest difference that does not matter
    #[arg(long, value_name = "ABS", default_value_t = 0.0, value_parser = parse_tolerance,
          allow_hyphen_values = true)]
    tolerance: f64,
    /// The same as a part of the larger number
    #[arg(long, value_name = "REL", default_value_t = 0.0, value_parser = parse_tolerance,
          allow_hyphen_values = true)]
    relative: f64,
    /// Let two NaNs differ
    #[arg(long)]
    nan_differs: bool,
    #[command(flatten)]
    closing: Closing,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    ranks: Ranks,
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    number.ok_or_else(|| format!("'{text}' is no tolerance; write a number from 0 on, as in 1e-6"))
}

/// A section of an array, opened.
struct Opened {
    array: Array,
    section: Section,
    axes: Vec<usize>,
}

impl Opened {
    /// Collective.
    fn of(comm: &Comm, name: &str, pattern: &Pattern) -> Result<Self> {
        let array = Array::open_all(comm, name)?;
        let section = pattern.section(array.shape(), 0, 1);
        let section = section.map_err(|error| Error::Invalid(format!("{name}: {error}")));
        let section = comm.agree(section)?;
        let dropped = pattern.single_axes(array.shape().len());
        let axes = (0..array.shape().len()).filter(|axis| !dropped.contains(axis));
        Ok(Self {
            section,
            axes: axes.collect(),
            array,
        })
    }

    fn side(&self) -> Side<'_> {
        Side {
            part: Part {
                array: &self.array,
                section: &self.section,
            },
            axes: &self.axes,
        }
    }
}

impl Diff {
    pub(crate) fn check(&self) -> Result<(), String> {
        let sections = [&self.section, &self.section_a, &self.section_b];
        for section in sections.into_iter().flatten() {
            if section.depends_on_rank() {
                return Err(format!(
                    "section '{section}' differs from rank to rank; the ranks divide one section \
                     here"
                ));
            }
        }
        Ok(())
    }

    /// The exit status: whether the arrays differ.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let (progress, begun) = (OnceLock::new(), Begun::now());
        let budget = self.memory.budget();
        let differ = AtomicBool::new(false);
        self.ranks.run(|comm| {
            let all: Pattern = "".parse().map_err(invalid)?;
            let pattern =
                |own: &Option<Pattern>| own.clone().or(self.section.clone()).unwrap_or(all.clone());
            let left = Opened::of(comm, &self.left, &pattern(&self.section_a))?;
            let right = Opened::of(comm, &self.right, &pattern(&self.section_b))?;
            let (a, b) = (left.side(), right.side());
            let start = Instant::now();
            let own = left.section.count() * left.array.layout().element_size();
            let progress =
                Progress::shared(&progress, "comparing", comm, own / comm.size() as u64)?;
            let resources = Resources {
                budget: budget.clone(),
                progress: Some(&|bytes| progress.add(bytes)),
            };
            let tolerance = Tolerance {
                absolute: self.tolerance,
                relative: self.relative,
                nan_differs: self.nan_differs,
            };
            let found = diff(comm, (&a, &b), &tolerance, None, &resources)?;
            progress.finish();
            let report = Report {
                sides: [&a, &b],
                found: &found,
                ended: begun.end_since(comm, start)?,
            };
            differ.store(found.beyond > 0, Ordering::Relaxed);
            let said = match (comm.rank(), self.closing.json) {
                (0, true) => report.json().and_then(|text| print(&text)),
                (0, false) => report.text().and_then(|text| print(&text)),
                _ => Ok(()),
            };
            Ok(comm.agree(said)?)
        })?;
        Ok(ExitCode::from(u8::from(differ.into_inner())))
    }
}

fn invalid(error: outcore::GeometryError) -> Error {
    Error::Invalid(error.to_string())
}

/// What is told.
struct Report<'a> {
    sides: [&'a Side<'a>; 2],
    found: &'a Differences,
    ended: Ended,
}

impl Report<'_> {
    /// The index and the text of an element of both arrays.
    fn elements(&self, peak: &Peak) -> Result<[(Vec<u64>, String); 2]> {
        let element = |side: &Side<'_>| {
            let array = side.part.array;
            let index = side.index(self.sides[0], peak);
            let one = index
                .iter()
                .map(|at| outcore::AxisSection::span(*at, at + 1));
            let one = Section::new(one.collect()).map_err(invalid)?;
            let mut bytes = vec![0; array.layout().element_size() as usize];
            array.read_bytes(&one, &mut bytes)?;
            Ok::<_, Error>((index, array.element_type().text(&bytes)))
        };
        Ok([element(self.sides[0])?, element(self.sides[1])?])
    }

    fn peak_text(&self, peak: &Option<Peak>) -> Result<String> {
        let Some(peak) = peak else {
            return Ok("none".into());
        };
        let [(at, left), (there, right)] = self.elements(peak)?;
        let places = match at == there {
            true => format!("{at:?}"),
            false => format!("{at:?} and {there:?}"),
        };
        Ok(format!(
            "{} at {places}: {left} and {right}",
            Value::Real(peak.size)
        ))
    }

    fn text(&self) -> Result<String> {
        let found = self.found;
        let mut text = format!(
            "elements   {} ({})\ndiffering  {}\nbeyond     {} of the tolerance\n",
            found.elements,
            shape_text(&self.sides[0].shape()),
            found.differing,
            found.beyond,
        );
        if found.one_nan > 0 {
            text += &format!("one NaN    {}\n", found.one_nan);
        }
        if found.differing > 0 {
            text += &format!("absolute   {}\n", self.peak_text(&found.absolute)?);
            text += &format!("relative   {}\n", self.peak_text(&found.relative)?);
        }
        let verdict = match (found.differing, found.beyond) {
            (0, _) => "the same",
            (_, 0) => "the same within the tolerance",
            _ => "different",
        };
        Ok(format!(
            "{text}{verdict}; {}\n",
            self.ended.words(self.bytes())
        ))
    }

    /// The bytes of both.
    fn bytes(&self) -> u64 {
        let of = |side: &Side<'_>| side.part.array.layout().element_size();
        self.found.elements * (of(self.sides[0]) + of(self.sides[1]))
    }

    fn json(&self) -> Result<String> {
        let found = self.found;
        let peak = |peak: &Option<Peak>| {
            let Some(peak) = peak else {
                return Ok(json!(null));
            };
            let [(at, left), (there, right)] = self.elements(peak)?;
            Ok::<_, Error>(json!({
                "size": number(Value::Real(peak.size)),
                "at_a": at, "at_b": there, "a": left, "b": right,
            }))
        };
        let facts = [
            ("a", json!(self.sides[0].part.array.name())),
            ("b", json!(self.sides[1].part.array.name())),
            ("shape", json!(self.sides[0].shape())),
            ("elements", json!(found.elements)),
            ("differing", json!(found.differing)),
            ("beyond", json!(found.beyond)),
            ("one_nan", json!(found.one_nan)),
            ("largest_absolute", peak(&found.absolute)?),
            ("largest_relative", peak(&found.relative)?),
            ("same", json!(found.beyond == 0)),
            ("gb_per_s", json!(self.ended.rate(self.bytes() as f64))),
        ];
        Ok(self.ended.json(facts))
    }
}
