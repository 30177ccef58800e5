//! A real file, summed slab by slab: by a sweep, which decides itself whether
//! to read ahead; by one that is told to; and by plain reads. In the page cache
//! there is nothing to hide, and a sweep should cost no more than plain reads;
//! cold, it should be as fast as one that reads ahead.

use std::cell::Cell;
use std::rc::Rc;

use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget, Result, Sweep};

use super::{SweepOptions, line};
use crate::contest::{Contestant, contest};
use crate::io::Scratch;
use crate::line::Line;

const SIDE: u64 = 8192;
const BYTES: u64 = SIDE * SIDE * 4;
/// Rows of a slab of plain reads: 4 MiB, as in a sweep.
const ROWS: u64 = 128;

/// Who sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    PlainReads,
    Sweep,
    ReadAhead,
}

/// Runs the cases, warm and cold.
pub(super) fn summed(options: &SweepOptions) -> Result<Vec<Line>> {
    let scratch = Scratch::new(&options.directory, "sweep.oc");
    let descriptor = ArrayDescriptor::new(&[SIDE, SIDE], ElementType::F32);
    let array = Array::create(&scratch.name(), &descriptor)?;
    let rows = vec![1f32; (ROWS * SIDE) as usize];
    for row in (0..SIDE).step_by(ROWS as usize) {
        array.write(&array.whole().slice(0, row, row + ROWS), &rows)?;
    }
    array.sync()?;
    let mut lines = Vec::new();
    for cold in [false, true] {
        let measured = outcore::run(1, |comm| {
            let ways = [Way::PlainReads, Way::Sweep, Way::ReadAhead];
            let contestants = ways.map(|way| way.contestant(&array, cold));
            contest(comm, contestants.into(), options.repeats)
        })?;
        lines.extend(measured.into_iter().flatten());
    }
    Ok(lines)
}

impl Way {
    fn contestant<'a>(self, array: &'a Array, cold: bool) -> Contestant<'a> {
        let state = if cold { "cold" } else { "in the page cache" };
        let strategy = match self {
            Self::PlainReads => "read_into",
            Self::Sweep => "auto",
            Self::ReadAhead => "prefetch",
        };
        let case = format!("256 MiB {state} summed");
        let sum = Rc::new(Cell::new(0.0));
        let found = Rc::clone(&sum);
        Contestant {
            line: line(self != Self::PlainReads, case, strategy, BYTES),
            prepare: Box::new(move || match cold {
                true => Ok(array.store().forget()?),
                false => Ok(()),
            }),
            work: Box::new(move || {
                sum.set(self.sum(array)?);
                Ok(())
            }),
            check: Box::new(move || found.replace(0.0) == (BYTES / 4) as f64),
            batch: 1,
        }
    }

    fn sum(self, array: &Array) -> Result<f64> {
        let mut sum = 0.0;
        if self == Self::PlainReads {
            let mut buffer = vec![0f32; (ROWS * SIDE) as usize];
            for row in (0..SIDE).step_by(ROWS as usize) {
                array.read_into(&array.whole().slice(0, row, row + ROWS), &mut buffer)?;
                sum += add(&buffer);
            }
            return Ok(sum);
        }
        let mut plan = Sweep::<f32>::of(array).budget(&MemoryBudget::of(16 << 20));
        if self == Self::ReadAhead {
            plan = plan.ahead(1);
        }
        for tile in plan.start::<f32>()? {
            sum += add(tile?.values());
        }
        Ok(sum)
    }
}

/// The sum of small whole numbers, with what a processor does at once.
fn add(values: &[f32]) -> f64 {
    let mut sums = [0f32; 32];
    let (chunks, rest) = values.as_chunks::<32>();
    for chunk in chunks {
        let pairs = sums.iter_mut().zip(chunk);
        pairs.for_each(|(sum, value)| *sum += value);
    }
    let all = sums.iter().chain(rest);
    all.map(|value| f64::from(*value)).sum()
}
