//! The bench `sections`: every strategy on the sections of the papers' tables
//! (`data/cases.csv`), read or written by one rank, the middle one.

use std::collections::BTreeSet;
use std::path::Path;

use outcore::{
    Array, ArrayDescriptor, Direction, ElementType, Error, Fill, Pattern, Result, Section,
    Strategy, Tuning,
};

use crate::contest::{Contestant, contest};
use crate::io::Scratch;
use crate::line::Line;

const CASES: &str = include_str!("../data/cases.csv");

/// Sections with more runs are not read one by one: it would take minutes.
const MOST_REQUESTS: u64 = 300_000;

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct SectionsOptions {
    /// Where the array is made for the time being.
    pub directory: std::path::PathBuf,
    /// Repetitions.
    pub repeats: usize,
    /// Whether the array is dropped from the page cache before each repetition.
    pub cold: bool,
    /// Which way.
    pub direction: Direction,
}

/// Runs the bench.
pub fn sections(options: &SectionsOptions) -> Result<Vec<Line>> {
    let scratch = Scratch::new(&options.directory, "sections.oc");
    let descriptor = ArrayDescriptor::new(&[4096, 4096], ElementType::F32)
        .layout("column".parse().expect("a valid layout"));
    let array = Array::create(&scratch.name(), &descriptor)?;
    let mut values = vec![0; array.layout().byte_len() as usize];
    Fill::Index.generate(&array, &array.whole(), &mut values)?;
    array.write_bytes(&array.whole(), &values)?;
    array.sync()?;
    if outcore::under_launcher() {
        return Err(Error::Invalid(
            "this bench is for one rank; start it without a launcher".into(),
        ));
    }
    let lines = outcore::run(1, |comm| {
        let mut lines = Vec::new();
        for (text, section) in papers_sections(&array)? {
            let contestants = contestants(&scratch.name(), &text, &section, options)?;
            lines.extend(contest(comm, contestants, options.repeats)?);
        }
        Ok::<_, Error>(lines)
    })?;
    Ok(lines.into_iter().flatten().collect())
}

/// The distinct sections of the tables, of the rank in the middle.
fn papers_sections(array: &Array) -> Result<Vec<(String, Section)>> {
    let mut texts = BTreeSet::new();
    for row in CASES.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let [_, _, _, "4096", "4096", ranks, rows, columns, ..] = fields[..] else {
            continue;
        };
        let ranks: u64 = ranks
            .parse()
            .map_err(|_| Error::Invalid(format!("wrong case: {row}")))?;
        texts.insert((format!("({rows}, {columns})"), ranks));
    }
    let wrong = |error: outcore::GeometryError| Error::Invalid(error.to_string());
    let mut sections: Vec<(String, Section)> = Vec::new();
    for (text, ranks) in texts {
        let pattern: Pattern = text.parse().map_err(wrong)?;
        // Some tables' last ranks reach beyond the array; the middle does not.
        let section = pattern
            .section(array.shape(), ranks / 2, ranks)
            .map_err(wrong)?;
        if sections.iter().all(|(_, known)| *known != section) {
            sections.push((text, section));
        }
    }
    Ok(sections)
}

fn contestants<'a>(
    name: &str,
    text: &str,
    section: &Section,
    options: &'a SectionsOptions,
) -> Result<Vec<Contestant<'a>>> {
    let array = Array::open(name)?;
    let bytes = (section.count() * array.layout().element_size()) as usize;
    let mut expected = vec![0; bytes];
    Fill::Index.generate(&array, section, &mut expected)?;
    drop(array);
    let expected = std::rc::Rc::new(expected);
    let mut contestants = Vec::new();
    for strategy in Strategy::ALL {
        let tuning = Tuning {
            strategy,
            ..Tuning::default()
        };
        let array = Array::open_writable(name)?.tuned(tuning);
        if strategy == Strategy::Direct
            && array.plan(section, options.direction)?.requests() > MOST_REQUESTS
        {
            continue;
        }
        let found = std::rc::Rc::new(std::cell::RefCell::new(vec![0u8; bytes]));
        let (result, expected, target) = (found.clone(), expected.clone(), expected.clone());
        let section = section.clone();
        let direction = options.direction;
        // Cold, an array is open only in its own turn: what a mapping has
        // touched stays in the cache.
        let opened = (!options.cold).then_some(array);
        let opened = std::rc::Rc::new(std::cell::RefCell::new(opened));
        let array_name = name.to_string();
        let (prepared, checked) = (opened.clone(), opened.clone());
        let reread = section.clone();
        contestants.push(Contestant {
            line: Line {
                system: "outcore".into(),
                bench: "sections",
                case: text.into(),
                op: if direction == Direction::Read {
                    "read"
                } else {
                    "write"
                },
                strategy: strategy.name().into(),
                transport: "threads".into(),
                ranks: 1,
                useful_bytes: bytes as u64,
                best_s: 0.0,
                median_s: 0.0,
                ok: true,
            },
            prepare: Box::new(move || {
                if options.cold {
                    *prepared.borrow_mut() = Some(open_cold(&array_name)?.tuned(tuning));
                }
                Ok(())
            }),
            work: Box::new(move || {
                let array = opened.borrow();
                let array = array.as_ref().expect("prepared");
                match direction {
                    Direction::Read => array.read_bytes(&section, &mut found.borrow_mut()),
                    Direction::Write => array.write_bytes(&section, &target),
                }
            }),
            check: Box::new(move || {
                let mut result = result.borrow_mut();
                let mut array = checked.borrow_mut();
                if direction == Direction::Write {
                    let array = array.as_ref().expect("prepared");
                    if array.read_bytes(&reread, &mut result).is_err() {
                        return false;
                    }
                }
                if options.cold {
                    *array = None;
                }
                let right = *result == *expected;
                result.fill(0);
                right
            }),
            batch: 1,
        });
    }
    Ok(contestants)
}

/// Opens the array without a page of it in the cache.
fn open_cold(name: &str) -> Result<Array> {
    let left = outcore::storage::forget(Path::new(&format!("{name}/data.bin")))?;
    if left > 0.05 {
        let share = left * 100.0;
        return Err(Error::Invalid(format!(
            "{share:.0}% of the array stay in the page cache"
        )));
    }
    Array::open_writable(name)
}
