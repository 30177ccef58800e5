//! The numbers that the thesis and the papers print, as they stand in `data`.

use outcore::{Direction, Error, Pattern, Result, Section};

use super::geometry;
use crate::papers::CASES;

const SIEVING: &str = include_str!("../../data/sieving.csv");
const APPLICATIONS: &str = include_str!("../../data/apps.csv");

/// One section of tables 5.2 and 5.3.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SievedSection {
    pub(super) text: String,
    /// Seconds: read directly, read by sieving, written directly, by sieving.
    pub(super) seconds: [f64; 4],
    /// Requests in the same order; those of writes by the thesis' formulas.
    pub(super) requests: [f64; 4],
    /// Elements moved in the same order.
    pub(super) elements: [f64; 4],
}

/// The sections of tables 5.2 and 5.3.
pub(super) fn sieved_sections() -> Vec<SievedSection> {
    let rows = SIEVING.lines().skip(1).filter_map(|line| {
        let (text, rest) = line.strip_prefix('"')?.split_once("\",")?;
        let fields: Vec<f64> = rest
            .split(',')
            .map(|field| field.parse().unwrap_or(0.0))
            .collect();
        let at = |first: usize, count: usize| fields.get(first..first + count);
        let (seconds, reads, read, writes) = (at(10, 4)?, at(14, 2)?, at(16, 2)?, at(18, 3)?);
        Some(SievedSection {
            text: text.into(),
            seconds: seconds.try_into().ok()?,
            requests: [reads[0], reads[1], writes[0], writes[1]],
            // A direct write moves one element a request.
            elements: [read[0], read[1], writes[0], writes[2]],
        })
    });
    rows.collect()
}

/// The seconds of an application: in which table, with which method, for which
/// columns of the file.
pub(super) fn seconds(table: &str, method: &str, wanted: &[(&str, u64)]) -> Option<f64> {
    let mut lines = APPLICATIONS.lines();
    let header: Vec<&str> = lines.next()?.split(',').collect();
    let column = |name: &str| header.iter().position(|title| *title == name);
    let (tables, methods, times) = (column("table")?, column("method")?, column("seconds")?);
    let row = lines
        .map(|line| line.split(',').collect::<Vec<_>>())
        .find(|row| {
            let is = |(name, value): &(&str, u64)| {
                column(name).is_some_and(|at| row[at].parse() == Ok(*value))
            };
            row[tables] == table && row[methods] == method && wanted.iter().all(is)
        })?;
    row[times].parse().ok()
}

/// One row of tables 1 to 8 of the two-phase papers.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// The table, the row, and where several are in one row, how many
    /// processors: `T7 V write 64`.
    pub(super) table: String,
    pub(super) row: String,
    pub(super) direction: Direction,
    pub(super) extent: u64,
    pub(super) processors: u64,
    pub(super) pattern: Pattern,
    /// Seconds: direct, static, dynamic.
    pub(super) seconds: [Option<f64>; 3],
    /// Whether it is the thesis that prints them, and the papers others.
    pub(super) thesis: bool,
}

impl Case {
    /// The section of every rank.
    pub(super) fn sections(&self) -> Result<Vec<Section>> {
        let shape = [self.extent; 2];
        let of_rank = |rank| self.pattern.section(&shape, rank, self.processors);
        let sections: std::result::Result<_, _> = (0..self.processors).map(of_rank).collect();
        sections.map_err(geometry)
    }
}

/// The rows of a table, `T1` to `T8`. Those of the thesis that differ stand
/// behind those of the papers.
pub(super) fn cases(table: &str) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for line in CASES.lines().skip(1) {
        let case = case(line).ok_or_else(|| Error::Invalid(format!("wrong case: {line}")))?;
        if case.table == table {
            cases.push(case);
        }
    }
    Ok(cases)
}

/// `paper1-T7-V-write-p64,...` or `thesis-T6.4-II,...`: the thesis counts by
/// chapters.
fn case(line: &str) -> Option<Case> {
    let fields: Vec<&str> = line.split(',').collect();
    let [
        id,
        _,
        op,
        extent,
        _,
        processors,
        rows,
        columns,
        direct,
        fixed,
        dynamic,
        ..,
    ] = fields[..]
    else {
        return None;
    };
    let mut parts = id.split('-');
    let thesis = parts.next()? == "thesis";
    let table = parts.next()?.replace("T6.", "T");
    let mut row = parts.collect::<Vec<_>>().join(" ").replace(" p", " ");
    if thesis {
        row += " (thesis)";
    }
    let seconds = |text: &str| text.parse().ok();
    Some(Case {
        table,
        row,
        direction: match op {
            "read" => Direction::Read,
            "write" => Direction::Write,
            _ => return None,
        },
        extent: extent.parse().ok()?,
        processors: processors.parse().ok()?,
        pattern: format!("({rows}, {columns})").parse().ok()?,
        seconds: [seconds(direct), seconds(fixed), seconds(dynamic)],
        thesis,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_thesis() {
        let sections = sieved_sections();
        assert_eq!(sections.len(), 5);
        assert_eq!(sections[2].text, "(10:1024:3,3:22:3)");
        assert_eq!(sections[2].seconds, [8.07, 1.352, 7.551, 4.825]);
        assert_eq!(sections[2].requests, [2373.0, 2.0, 2373.0, 4.0]);
        assert_eq!(sections[2].elements, [2373.0, 40960.0, 2373.0, 81920.0]);
        let found = seconds("T5.4", "prefetch", &[("procs", 16), ("slabs", 8)]);
        assert_eq!(found, Some(8.73));
        assert_eq!(seconds("T5.6", "reuse", &[("rows", 4096)]), Some(269.1));
        assert_eq!(seconds("T5.6", "reuse", &[("rows", 1)]), None);
    }
    #[test]
    fn there_are_160_cases_in_eight_tables() {
        let rows = |table: usize| cases(&format!("T{table}")).unwrap();
        let counts: Vec<usize> = (1..=8).map(|table| rows(table).len()).collect();
        assert_eq!(counts, [6, 8, 7, 9, 5, 5, 72, 48]);
        let last = rows(8).pop().unwrap();
        assert_eq!((last.row.as_str(), last.processors), ("VI write 128", 128));
        assert_eq!(last.seconds, [Some(746.6), None, Some(164.2)]);
        assert_eq!(
            last.sections().unwrap()[127].to_string(),
            "2540:2556, 3999:12000"
        );
        let thesis: Vec<_> = rows(4).into_iter().filter(|case| case.thesis).collect();
        assert_eq!(thesis.len(), 3);
        assert_eq!(thesis[2].row, "III (thesis)");
    }
}
