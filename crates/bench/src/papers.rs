//! The distinct sections of the papers' tables (`data/cases.csv`): each table
//! has a section for every rank, of which the one in the middle is taken.

use std::collections::BTreeSet;

use outcore::{Error, Pattern, Result, Section};

pub(crate) const CASES: &str = include_str!("../data/cases.csv");

/// A section of the tables.
#[derive(Debug, Clone)]
pub(crate) struct PapersSection {
    /// Its text, whose rank it is, and of how many.
    pub(crate) text: String,
    pub(crate) section: Section,
}

/// The sections of arrays of `extent` x `extent` elements.
pub(crate) fn papers_sections(extent: u64) -> Result<Vec<PapersSection>> {
    let mut texts = BTreeSet::new();
    for row in CASES.lines().skip(1) {
        let wrong = || Error::Invalid(format!("wrong case: {row}"));
        let fields: Vec<&str> = row.split(',').collect();
        let [_, _, _, lines, _, ranks, rows, columns, ..] = fields[..] else {
            return Err(wrong());
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        if number(lines)? == extent {
            texts.insert((format!("({rows}, {columns})"), number(ranks)?));
        }
    }
    let wrong = |error: outcore::GeometryError| Error::Invalid(error.to_string());
    let mut sections: Vec<PapersSection> = Vec::new();
    for (pattern, ranks) in texts {
        let parsed: Pattern = pattern.parse().map_err(wrong)?;
        // Some tables' last ranks reach beyond the array; the middle does not.
        let section = parsed.section(&[extent, extent], ranks / 2, ranks);
        let section = section.map_err(wrong)?;
        if sections.iter().all(|known| known.section != section) {
            let text = format!("{extent} {pattern} {}/{ranks}", ranks / 2);
            sections.push(PapersSection { text, section });
        }
    }
    Ok(sections)
}
