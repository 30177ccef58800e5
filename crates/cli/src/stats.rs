//! `outcore stats`: what the numbers of a section come to.

use std::sync::OnceLock;
use std::time::Instant;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Array, Result, json_number, shape_text};
use outcore_apps::Resources;
use outcore_apps::stats::{Answer, Bins, Extreme, Histogram, Part, Question, Value, stats};
use serde_json::{Map, json};

use crate::bytes;
use crate::counted::counted;
use crate::memory::Memory;
use crate::output::{check_array, check_free};
use crate::picture::histogram;
use crate::progress::Progress;
use crate::ranks::{Ranks, print};
use crate::selection::{Selection, parse_axis};
use crate::stats_along::{Along, Which};
use crate::whole_file;
use crate::work::{Begun, Closing, Ended};

/// Bins of a histogram if nobody says how many.
const BINS: usize = 20;

/// Count, least, largest, mean, deviation and sum of a section
///
/// One pass over the data. NaNs are counted and left out of the rest. Sums of
/// integers are exact, others are in f64; the deviation is of all elements, not of a
/// sample. Of complex numbers the modulus counts. Places are indices of the array,
/// from 0; of several equal ones the first in the order of the file.
///
/// A histogram whose --range is given is made in the same pass; otherwise a second
/// one follows, when the least and the largest number are known. A bin holds its
/// lower edge, the last one its upper edge, too.
///
/// With --axes there is one result for each position of the other axes, in f64.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore stats field.oc
  outcore stats field.oc '::16, :' --memory 64MiB --ranks 2 --json
  outcore stats climate.zarr/t --bins 40 --range 250,310 --plot
  outcore stats field.npy --plot histogram.svg
  outcore stats field.oc --axes 0 -o mean.npy
  outcore stats field.oc --axes 0,1 --of max -o largest.npy")]
pub(crate) struct Stats {
    #[command(flatten)]
    selection: Selection,
    /// Count how many numbers lie in each of so many bins [default with --range or --plot: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    bins: Option<u32>,
    /// From where to where the bins reach, as in 0,1 [default: from the least to the largest]
    #[arg(long, value_name = "LOW,HIGH", value_parser = parse_range, allow_hyphen_values = true)]
    range: Option<Range>,
    /// Draw the histogram here, or into an .svg file
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    plot: Option<String>,
    /// Go along these axes, as in 0 or 0,2, for each position of the others
    #[arg(long = "axes", visible_alias = "axis", value_delimiter = ',', value_parser = parse_axis,
          allow_hyphen_values = true, conflicts_with_all = ["bins", "range", "plot"])]
    axis: Vec<usize>,
    /// What goes into FILE
    #[arg(long, value_enum, default_value = "mean", requires = "output")]
    of: Which,
    /// With --axes, the array to make, instead of a table
    #[arg(short, long, value_name = "FILE", requires = "axis",
          value_parser = NonEmptyStringValueParser::new())]
    output: Option<String>,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    closing: Closing,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    ranks: Ranks,
}

#[derive(Clone, Copy)]
struct Range(f64, f64);

fn parse_range(text: &str) -> Result<Range, String> {
    let limits = text.split_once(',').and_then(|(low, high)| {
        let low: f64 = low.trim().parse().ok()?;
        let high: f64 = high.trim().parse().ok()?;
        (low <= high && (high - low).is_finite()).then_some(Range(low, high))
    });
    limits.ok_or_else(|| {
        format!("'{text}' is no range; write two numbers, the lower one first, as in 0,1")
    })
}

/// What is told at the end.
pub(crate) struct Course<'a> {
    pub(crate) part: &'a Part<'a>,
    pub(crate) ended: Ended,
    pub(crate) passes: u64,
}

impl Stats {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.selection.section.depends_on_rank() {
            return Err(format!(
                "section '{}' differs from rank to rank; the ranks divide one section here",
                self.selection.section
            ));
        }
        self.output.as_deref().map_or(Ok(()), check_array)?;
        match self.plot.as_deref() {
            Some(file) if file != "-" && !file.ends_with(".svg") => Err(format!(
                "'{file}' must end in .svg; --plot alone draws into the terminal, and then \
                 stands behind ARRAY and SECTION"
            )),
            _ => Ok(()),
        }
    }

    /// Whether it makes an array.
    pub(crate) fn makes_array(&self) -> bool {
        self.output.is_some()
    }

    /// The histogram that is wanted.
    fn bins(&self) -> Option<Bins> {
        let wanted = self.bins.is_some() || self.range.is_some() || self.plot.is_some();
        wanted.then(|| Bins {
            count: self.bins.map_or(BINS, |bins| bins as usize),
            range: self.range.map(|Range(low, high)| (low, high)),
        })
    }

    pub(crate) fn run(&self) -> Result<()> {
        let (progress, begun) = (OnceLock::new(), Begun::now());
        let budget = self.memory.budget();
        self.ranks.run(|comm| {
            let free = match (comm.rank(), self.plot.as_deref()) {
                (0, Some(file)) if file != "-" => check_free(file, self.force),
                _ => Ok(()),
            };
            comm.agree(free)?;
            let array = Array::open_all(comm, &self.selection.array)?;
            let section = self.selection.of_each(comm, &array)?;
            let part = Part {
                array: &array,
                section: &section,
            };
            let bins = self.bins();
            let passes = match bins {
                Some(Bins { range: None, .. }) => 2,
                _ => 1,
            };
            let start = Instant::now();
            let bytes = section.count() * array.layout().element_size() * passes;
            let progress =
                Progress::shared(&progress, "reading", comm, bytes / comm.size() as u64)?;
            let resources = Resources {
                budget: budget.clone(),
                progress: Some(&|bytes| progress.add(bytes)),
            };
            if !self.axis.is_empty() {
                let along = Along {
                    axes: &self.axis,
                    of: self.of,
                    output: self.output.as_deref(),
                    force: self.force,
                    json: self.closing.json,
                };
                let told = along.run(comm, &part, &resources)?;
                progress.finish();
                let course = Course::of(&part, begun.end_since(comm, start)?);
                let said = match comm.rank() {
                    0 => along.close(&course, told),
                    _ => Ok(()),
                };
                return Ok(comm.agree(said)?);
            }
            let answer = stats(comm, &part, &Question { bins }, &resources)?;
            progress.finish();
            let mut course = Course::of(&part, begun.end_since(comm, start)?);
            course.passes = answer.passes;
            let said = match comm.rank() {
                0 => self.tell(&course, &answer),
                _ => Ok(()),
            };
            Ok(comm.agree(said)?)
        })
    }

    fn tell(&self, course: &Course<'_>, answer: &Answer) -> Result<()> {
        let picture = self.plot.as_deref().zip(answer.histogram.as_ref());
        if let Some((file, histogram)) = picture.filter(|(file, _)| *file != "-") {
            let left_out = match answer.summary.nans() {
                0 => String::new(),
                nans => format!(", {nans} NaN left out"),
            };
            let drawn = histogram::draw(&(course.title() + &left_out), histogram);
            whole_file::write_text(file, &drawn)?;
        }
        if self.closing.json {
            return print(&course.json(answer));
        }
        let here = picture.is_some_and(|(file, _)| file == "-");
        print(&course.text(answer, here))
    }
}

/// A value as JSON; what JSON has no word for is a text, as in Zarr.
pub(crate) fn number(value: Value) -> serde_json::Value {
    match value {
        Value::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => value.to_string().into(),
        },
        Value::Real(value) => json_number(value),
    }
}

impl<'a> Course<'a> {
    /// Of one pass.
    fn of(part: &'a Part<'a>, ended: Ended) -> Self {
        Self {
            part,
            ended,
            passes: 1,
        }
    }

    pub(crate) fn title(&self) -> String {
        let Part { array, section } = *self.part;
        let section = match *section == array.whole() {
            true => String::new(),
            false => format!(" [{section}]"),
        };
        let shape = shape_text(&self.part.section.shape());
        format!(
            "{}{section}: {shape} {}",
            array.name(),
            array.element_type()
        )
    }

    /// Time, speed and memory.
    pub(crate) fn closing_text(&self) -> String {
        format!(
            "{} of data, {}; {}\n",
            bytes::show(self.bytes()),
            counted(self.passes, "pass"),
            self.ended.words(self.bytes() * self.passes)
        )
    }

    fn bytes(&self) -> u64 {
        self.part.section.count() * self.part.array.layout().element_size()
    }

    /// What is the same for every answer.
    pub(crate) fn facts(&self) -> Map<String, serde_json::Value> {
        let Part { array, section } = *self.part;
        let facts = [
            ("array", json!(array.name())),
            ("section", json!(section.to_string())),
            ("shape", json!(section.shape())),
            ("type", json!(array.element_type().name())),
            ("passes", json!(self.passes)),
            (
                "gb_per_s",
                json!(self.ended.rate((self.bytes() * self.passes) as f64)),
            ),
        ];
        Map::from_iter(facts.map(|(name, value)| (name.to_owned(), value)))
    }

    fn json(&self, answer: &Answer) -> String {
        let found = &answer.summary;
        let mut facts = self.facts();
        let place = |extreme: Option<Extreme>| {
            extreme.map_or(serde_json::Value::Null, |extreme| {
                json!({ "value": number(extreme.value), "at": self.part.index(&extreme) })
            })
        };
        let more = [
            ("count", json!(found.count())),
            ("nans", json!(found.nans())),
            ("min", place(found.least())),
            ("max", place(found.most())),
            ("mean", number(Value::Real(found.mean()))),
            ("deviation", number(Value::Real(found.deviation()))),
            ("sum", number(found.sum())),
        ];
        facts.extend(more.map(|(name, value)| (name.to_owned(), value)));
        if let Some(histogram) = &answer.histogram {
            facts.insert(
                "histogram".into(),
                json!({
                    "edges": histogram.edges,
                    "counts": histogram.counts,
                    "below": histogram.below,
                    "above": histogram.above,
                }),
            );
        }
        self.ended.json(facts)
    }

    fn text(&self, answer: &Answer, drawn: bool) -> String {
        let found = &answer.summary;
        let mut text = format!("{}\n", self.title());
        let mut row = |name: &str, value: String| text += &format!("{name:<10} {value}\n");
        let place = |extreme: Option<Extreme>| match extreme {
            Some(extreme) => {
                format!("{} at {:?}", extreme.value, self.part.index(&extreme))
            }
            None => "none".into(),
        };
        row("count", found.count().to_string());
        row("NaN", found.nans().to_string());
        row("min", place(found.least()));
        row("max", place(found.most()));
        row("mean", Value::Real(found.mean()).to_string());
        row("deviation", Value::Real(found.deviation()).to_string());
        row("sum", found.sum().to_string());
        if let Some(histogram) = &answer.histogram {
            text += &bins(histogram, drawn);
        }
        text + &self.closing_text()
    }
}

/// The bins, one a line, with bars if they are to be drawn.
fn bins(histogram: &Histogram, drawn: bool) -> String {
    const LONGEST: f64 = 50.0;
    let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
    let mut text = String::new();
    for (at, count) in histogram.counts.iter().enumerate() {
        let (low, high) = (histogram.edges[at], histogram.edges[at + 1]);
        let bar = match drawn {
            true => bar(*count as f64 / most as f64 * LONGEST),
            false => String::new(),
        };
        let line = format!(
            "{:>12} .. {:<12} {count:>14} {bar}",
            short(low),
            short(high)
        );
        text += line.trim_end();
        text.push('\n');
    }
    if histogram.below + histogram.above > 0 {
        text += &format!("below {}, above {}\n", histogram.below, histogram.above);
    }
    text
}

/// A bar so many letters long, to an eighth.
fn bar(length: f64) -> String {
    let eighths = (length * 8.0).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

/// A number with six digits.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e6).contains(&size) {
        return format!("{value:.5e}");
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}
