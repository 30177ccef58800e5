//! The bench `sections`: every strategy on the sections of the papers' tables,
//! read or written by one rank, on this machine or on simulated devices; or the
//! sections of other systems' programs beside those.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use outcore::storage::{MemoryStore, Store};
use outcore::{
    Array, ArrayDescriptor, Comm, Direction, ElementType, Error, Fill, Pieces, Result, Strategy,
    Tuning,
};

use crate::contest::{Contestant, contest};
use crate::io::Scratch;
use crate::line::Line;
use crate::papers::{PapersSection, papers_sections};
use crate::simulated::{device, direction_name, on_device};

/// Sections with more runs are not read one by one: it would take minutes.
const MOST_REQUESTS: u64 = 300_000;

/// The extents of the papers' arrays.
const EXTENTS: [u64; 2] = [4096, 16384];

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct SectionsOptions {
    /// Where the arrays are made for the time being.
    pub directory: PathBuf,
    /// Repetitions; of the larger array half as many.
    pub repeats: usize,
    /// Whether the array is dropped from the page cache before each repetition.
    pub cold: bool,
    /// Which way.
    pub direction: Direction,
    /// A simulated device instead of this machine's.
    pub device: Option<String>,
    /// The extent of the arrays, if not both of the papers'.
    pub extent: Option<u64>,
}

/// Runs the bench.
pub fn sections(options: &SectionsOptions) -> Result<Vec<Line>> {
    if outcore::under_launcher() {
        return Err(Error::Invalid(
            "this bench is for one rank; start it without a launcher".into(),
        ));
    }
    let mut lines = Vec::new();
    for extent in EXTENTS {
        if options.extent.is_some_and(|only| only != extent) {
            continue;
        }
        let descriptor = ArrayDescriptor::new(&[extent, extent], ElementType::F32)
            .layout("column".parse().expect("a valid layout"));
        if let Some(name) = &options.device {
            let model =
                device(name).ok_or_else(|| Error::Invalid(format!("there is no device {name}")))?;
            let values = Arc::new(MemoryStore::new());
            let size = extent * extent * descriptor.element_type.size();
            values.set_len(size)?;
            fill(&Array::in_store("values", &descriptor, values.clone())?)?;
            let device = (name.as_str(), model);
            lines.extend(on_device(device, &descriptor, &values, options.direction)?);
        } else {
            lines.extend(on_disk(options, &descriptor)?);
        }
    }
    Ok(lines)
}

/// On how many sections `auto` is within 1.15 times (or 0.05 ms) of the best
/// strategy, by the best times and by the medians.
pub fn summary(lines: &[Line]) -> String {
    let autos = lines.iter().filter(|line| line.strategy == "auto");
    let mut text = String::new();
    let (mut count, mut by_best, mut by_median) = (0, 0, 0);
    let mut worst = (0.0, String::new());
    for auto in autos {
        let others = || {
            let same = |line: &&Line| line.case == auto.case && line.op == auto.op;
            let forced = lines.iter().filter(same);
            forced.filter(|line| line.system == auto.system && line.strategy != "auto")
        };
        let least = |time: fn(&Line) -> f64| others().map(time).fold(f64::INFINITY, f64::min);
        let (best, median) = (least(|line| line.best_s), least(|line| line.median_s));
        let within = |took: f64, bar: f64| took <= (bar * 1.15).max(bar + 5e-5);
        count += 1;
        by_best += usize::from(within(auto.best_s, best));
        by_median += usize::from(within(auto.median_s, median));
        if auto.best_s - best > 5e-5 && auto.best_s / best > worst.0 {
            worst = (auto.best_s / best, auto.case.clone());
        }
    }
    if count > 0 {
        text = format!(
            "auto is within 1.15x (or 0.05 ms) of the best strategy on {by_best} of {count} \
             sections ({by_median} by the medians)"
        );
    }
    if worst.0 > 0.0 {
        text += &format!("; the worst is {:.2}x on {}", worst.0, worst.1);
    }
    text
}

/// Gives every element its number, piece by piece.
pub(crate) fn fill(array: &Array) -> Result<()> {
    let size = array.layout().element_size();
    let mut values = Vec::new();
    let order = array.layout().slowest_first();
    for piece in Pieces::new(&array.whole(), order, (64 << 20) / size) {
        values.resize((piece.count() * size) as usize, 0);
        Fill::Index.generate(array, &piece, &mut values)?;
        array.write_bytes(&piece, &values)?;
    }
    Ok(())
}

fn on_disk(options: &SectionsOptions, descriptor: &ArrayDescriptor) -> Result<Vec<Line>> {
    let scratch = Scratch::new(&options.directory, "sections.oc");
    let array = Array::create(&scratch.name(), descriptor)?;
    fill(&array)?;
    array.sync()?;
    drop(array);
    let extent = descriptor.shape[0];
    let repeats = match extent {
        4096 => options.repeats,
        _ => options.repeats.div_ceil(2),
    };
    let lines = outcore::run(1, |comm: &Comm| {
        let mut lines = Vec::new();
        for case in papers_sections(extent)? {
            let contestants = contestants(&scratch.name(), &case, options)?;
            lines.extend(contest(comm, contestants, repeats)?);
        }
        Ok::<_, Error>(lines)
    })?;
    Ok(lines.into_iter().flatten().collect())
}

fn contestants<'a>(
    name: &str,
    case: &PapersSection,
    options: &'a SectionsOptions,
) -> Result<Vec<Contestant<'a>>> {
    let array = Array::open(name)?;
    let section = &case.section;
    let bytes = (section.count() * array.layout().element_size()) as usize;
    let mut expected = vec![0; bytes];
    Fill::Index.generate(&array, section, &mut expected)?;
    drop(array);
    let expected = Rc::new(expected);
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
        let found = Rc::new(RefCell::new(vec![0u8; bytes]));
        let (result, expected, target) = (found.clone(), expected.clone(), expected.clone());
        let (section, reread) = (section.clone(), section.clone());
        let direction = options.direction;
        // Cold, an array is open only in its own turn: what a mapping has
        // touched stays in the cache.
        let opened = (!options.cold).then_some(array);
        let opened = Rc::new(RefCell::new(opened));
        let array_name = name.to_string();
        let (prepared, checked) = (opened.clone(), opened.clone());
        contestants.push(Contestant {
            line: Line {
                system: "outcore".into(),
                bench: "sections",
                case: case.text.clone(),
                op: direction_name(direction),
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
