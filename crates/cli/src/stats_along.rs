//! `outcore stats --axes`: a table, or an array with one of its columns.

use clap::ValueEnum;
use outcore::{Array, ArrayDescriptor, Comm, ElementType, Result, Section, SharedDraft, reorder};
use outcore_apps::Resources;
use outcore_apps::stats::{Moments, Part, Value, along, check_axes};
use serde_json::json;

use crate::described::check_described;
use crate::output::{array_name, check_distinct};
use crate::ranks::print;
use crate::stats::{Course, number};

/// What an array is made of.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Which {
    /// How many elements are numbers
    Count,
    /// How many are not
    Nans,
    /// The least
    Min,
    /// The largest
    Max,
    /// The mean
    Mean,
    /// The deviation
    Deviation,
    /// The sum
    Sum,
}

impl Which {
    fn of(self, found: &Moments) -> f64 {
        let any = |value: f64| if found.count == 0 { f64::NAN } else { value };
        match self {
            Self::Count => found.count as f64,
            Self::Nans => found.nans as f64,
            Self::Min => any(found.least),
            Self::Max => any(found.most),
            Self::Mean => found.mean(),
            Self::Deviation => found.deviation(),
            Self::Sum => found.sum(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Nans => "nans",
            Self::Min => "min",
            Self::Max => "max",
            Self::Mean => "mean",
            Self::Deviation => "deviation",
            Self::Sum => "sum",
        }
    }
}

const COLUMNS: [Which; 7] = [
    Which::Count,
    Which::Nans,
    Which::Min,
    Which::Max,
    Which::Mean,
    Which::Deviation,
    Which::Sum,
];

/// Statistics along some axes.
pub(crate) struct Along<'a> {
    pub(crate) axes: &'a [usize],
    pub(crate) of: Which,
    /// The array to make.
    pub(crate) output: Option<&'a str>,
    pub(crate) force: bool,
    pub(crate) json: bool,
}

impl Along<'_> {
    /// Collective: makes the array, or prints the table as far as it is known; tells
    /// how many rows it has.
    pub(crate) fn run(
        &self,
        comm: &Comm,
        part: &Part<'_>,
        resources: &Resources<'_>,
    ) -> Result<u64> {
        check_axes(self.axes, part.section.axes().len())?;
        let left: Vec<usize> = (0..part.section.axes().len())
            .filter(|axis| !self.axes.contains(axis))
            .collect();
        let shape = part.section.shape();
        let shape: Vec<u64> = left.iter().map(|axis| shape[*axis]).collect();
        let made = match self.output {
            Some(output) => {
                let descriptor = ArrayDescriptor::new(&shape, ElementType::F64);
                let name = array_name(&descriptor, output);
                check_distinct(comm, &[part.array.name()], &name)?;
                let draft = Array::draft_all(comm, &name, &descriptor, self.force)?;
                comm.agree(check_described(&draft, output, &descriptor))?;
                Some(draft)
            }
            None => None,
        };
        let order: Vec<usize> = (part.array.layout().slowest_first().iter())
            .filter_map(|axis| left.iter().position(|kept| kept == axis))
            .collect();
        let mut rows = 0;
        along(comm, part, self.axes, resources, |group, found| {
            let first = rows == 0;
            rows += found.len() as u64;
            match &made {
                Some(made) => self.store(made, (group, &order), found),
                None => self.print((part, &left), (group, &order), found, first),
            }
        })?;
        if let Some(made) = made {
            made.commit(comm)?;
        }
        Ok(rows)
    }

    fn store(
        &self,
        made: &SharedDraft,
        (group, order): (&Section, &[usize]),
        found: &[Moments],
    ) -> Result<()> {
        let values: Vec<u8> = (found.iter())
            .flat_map(|found| self.of.of(found).to_ne_bytes())
            .collect();
        let target = made.layout().slowest_first();
        let mut ordered = vec![0; values.len()];
        reorder(&group.shape(), (&values, order), (&mut ordered, target));
        made.write_bytes(group, &ordered)
    }

    /// Prints rows, in the order of the file.
    fn print(
        &self,
        (part, left): (&Part<'_>, &[usize]),
        (group, order): (&Section, &[usize]),
        found: &[Moments],
        first: bool,
    ) -> Result<()> {
        let mut text = String::new();
        match (first, self.json) {
            (true, true) => text += "{\"rows\": [\n",
            (true, false) => {
                text += &format!("{:<16}", "index");
                for column in COLUMNS {
                    text += &format!(" {:>16}", column.name());
                }
                text.push('\n');
            }
            _ => {}
        }
        for (at, found) in found.iter().enumerate() {
            let mut rest = at as u64;
            let mut index = vec![0; left.len()];
            for axis in order.iter().rev() {
                let taken = &group.axes()[*axis];
                let position = taken.index(rest % taken.count());
                index[*axis] = part.section.axes()[left[*axis]].index(position);
                rest /= taken.count();
            }
            let value = |column: Which| match column {
                Which::Count => Value::Integer(found.count.into()),
                Which::Nans => Value::Integer(found.nans.into()),
                _ => Value::Real(column.of(found)),
            };
            if self.json {
                let mut row = serde_json::Map::new();
                row.insert("at".into(), json!(index));
                for column in COLUMNS {
                    row.insert(column.name().into(), number(value(column)));
                }
                let comma = if first && at == 0 { "" } else { "," };
                text += &format!("{comma}{}\n", serde_json::Value::Object(row));
            } else {
                text += &format!("{:<16}", format!("{index:?}"));
                for column in COLUMNS {
                    text += &format!(" {:>16}", value(column).to_string());
                }
                text.push('\n');
            }
        }
        print(&text)
    }

    /// The end of what is told.
    pub(crate) fn close(&self, course: &Course<'_>, rows: u64) -> Result<()> {
        let axes: Vec<String> = self.axes.iter().map(usize::to_string).collect();
        let axes = axes.join(",");
        if !self.json {
            let made = match self.output {
                Some(output) => format!("{output}: {} along axes {axes} of ", self.of.name()),
                None => format!("{rows} rows along axes {axes} of "),
            };
            return print(&format!(
                "{made}{}; {}",
                course.title(),
                course.closing_text()
            ));
        }
        let mut facts = course.facts();
        facts.insert("axes".into(), json!(self.axes));
        if let Some(output) = self.output {
            facts.insert("output".into(), json!(output));
            facts.insert("of".into(), json!(self.of.name()));
        }
        let object = course.ended.json(facts);
        match (self.output, rows) {
            (Some(_), _) => print(&object),
            // The list of rows is still open, or was never begun.
            (None, 0) => print(&format!("{{\"rows\": [],\n{}", &object[1..])),
            (None, _) => print(&format!("],\n{}", &object[1..])),
        }
    }
}
