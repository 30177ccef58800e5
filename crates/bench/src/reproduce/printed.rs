//! The numbers that the thesis prints, as they stand in `data`.

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
}
