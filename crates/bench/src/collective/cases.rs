//! The distinct sections of the papers' tables 1 to 6.

use outcore::{Error, Pattern, Result};

use crate::papers::CASES;

/// The sections of tables 1 to 6 of the papers, of arrays of 4096 x 4096
/// elements, by the table that has them first: `T1-I`, `T1-II`, ...
pub fn papers_cases() -> Result<Vec<(String, Pattern)>> {
    let mut cases: Vec<(String, Pattern)> = Vec::new();
    for row in CASES.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let [id, _, _, _, _, _, rows, columns, ..] = fields[..] else {
            return Err(Error::Invalid(format!("wrong case: {row}")));
        };
        let Some(id) = id.strip_prefix("paper1-") else {
            continue;
        };
        let table = id.split('-').next().unwrap_or_default();
        if !matches!(table, "T1" | "T2" | "T3" | "T4" | "T5" | "T6") {
            continue;
        }
        let text = format!("({rows}, {columns})");
        let pattern: Pattern = text
            .parse()
            .map_err(|error: outcore::GeometryError| Error::Invalid(error.to_string()))?;
        let known = |(_, other): &(String, Pattern)| other.to_string() == pattern.to_string();
        if !cases.iter().any(known) {
            cases.push((id.into(), pattern));
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_1_to_6_have_25_distinct_sections() {
        let cases = papers_cases().unwrap();
        assert_eq!(cases.len(), 25);
        assert_eq!(cases[0].0, "T1-I");
        for (name, pattern) in cases {
            for rank in 0..16 {
                let section = pattern.section(&[4096, 4096], rank, 16);
                assert!(section.is_ok(), "{name} {pattern}, rank {rank}");
            }
        }
    }
}
