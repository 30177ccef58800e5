//! Global arrays in memory: sections and elements that another rank owns, beside
//! copies in memory and Global Arrays.

mod peer;

use std::cell::{Cell, RefCell};
use std::time::Instant;

use outcore::{AxisSection, Comm, Distribution, Error, GlobalArray, Op, Result, Section};

use crate::contest::{Contestant, contest};
use crate::line::Line;

pub use peer::global_peers;

/// What is measured.
#[derive(Debug, Clone)]
pub struct GlobalOptions {
    /// The bytes of contiguous sections.
    pub bytes: Vec<usize>,
    /// The sides of square patches of a matrix.
    pub sides: Vec<u64>,
    /// Repetitions of each contestant.
    pub repeats: usize,
}

/// So long a repetition takes.
const REPETITION: f64 = 0.02;

/// The most calls in one.
const MOST_CALLS: f64 = 400_000.0;

/// The elements of a contiguous part, and the extents of the matrix.
const PART: u64 = 1 << 18;
const MATRIX: u64 = 2048;

/// Collective: rank 0 gets, puts and accumulates sections that the last rank owns,
/// while the others wait; then one rank, and all, increment a counter there.
pub fn global(comm: &Comm, options: &GlobalOptions) -> Result<Vec<Line>> {
    let ranks = comm.size() as u64;
    let parse = |text, shape: &[u64]| {
        let parsed = Distribution::parse(text, shape, ranks, None);
        parsed.map_err(|error| Error::Invalid(error.to_string()))
    };
    let mut lines = Vec::new();
    let line = GlobalArray::<f64>::new(comm, None, parse("block", &[PART * ranks])?)?;
    for &bytes in &options.bytes {
        let count = (bytes as u64 / 8).clamp(1, PART);
        let first = (ranks - 1) * PART;
        let section = Section::new(vec![AxisSection::span(first, first + count)]);
        let section = section.map_err(|error| Error::Invalid(error.to_string()))?;
        let case = format!("{} B", count * 8);
        lines.extend(sections(comm, (&line, &section, &case), options.repeats)?);
    }
    let matrix = GlobalArray::<f64>::new(comm, None, parse("block,block", &[MATRIX; 2])?)?;
    for &side in &options.sides {
        let corner = matrix.distribution().to_global(ranks - 1, &[1, 1]);
        let room = matrix.distribution().local_shape(ranks - 1);
        let (Some(corner), true) = (corner, room.iter().all(|room| *room > side)) else {
            continue;
        };
        let axes = corner.iter().map(|at| AxisSection::span(*at, at + side));
        let section = Section::new(axes.collect());
        let section = section.map_err(|error| Error::Invalid(error.to_string()))?;
        let case = format!("{side}x{side} f64");
        lines.extend(sections(comm, (&matrix, &section, &case), options.repeats)?);
    }
    let counter = GlobalArray::<i64>::new(comm, None, parse("block", &[ranks])?)?;
    lines.extend(counters(comm, &counter, options.repeats)?);
    Ok(lines)
}

/// What rank 0 does to a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Get,
    Put,
    Accumulate,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Get, Self::Put, Self::Accumulate];

    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Accumulate => "accumulate",
        }
    }
}

fn sections(
    comm: &Comm,
    (array, section, case): (&GlobalArray<f64>, &Section, &str),
    repeats: usize,
) -> Result<Vec<Line>> {
    let count = section.count() as usize;
    let works = comm.rank() == 0;
    let mut lines = Vec::new();
    for operation in Operation::ALL {
        let buffer = RefCell::new(vec![0.0; count]);
        // In own memory as wide as the owner's part.
        let owner = array.distribution().local_shape(comm.size() as u64 - 1);
        let row = section
            .axes()
            .last()
            .map_or(1, |axis| axis.count() as usize);
        let width = owner.last().map_or(1, |width| *width as usize);
        let other = RefCell::new(vec![0.0; (count / row - 1) * width + row]);
        let (buffer, other) = (&buffer, &other);
        let values: Vec<f64> = (0..count).map(|at| at as f64 + 0.5).collect();
        let values = &values;
        let ours = move || {
            match (works, operation) {
                (false, _) => {}
                (_, Operation::Get) => array.get(section, &mut buffer.borrow_mut())?,
                (_, Operation::Put) => array.put(section, values)?,
                (_, Operation::Accumulate) => array.accumulate(section, values, 1.0)?,
            }
            Ok(())
        };
        let limit = move || {
            match (works, operation) {
                (false, _) => {}
                (_, Operation::Get) => {
                    let (mut to, other) = (buffer.borrow_mut(), other.borrow());
                    let rows = to.chunks_exact_mut(row).zip(other.chunks(width));
                    rows.for_each(|(to, from)| plain_copy(to, &from[..row]));
                }
                _ => {
                    let mut other = other.borrow_mut();
                    let rows = other.chunks_mut(width).zip(values.chunks_exact(row));
                    match operation {
                        Operation::Put => {
                            rows.for_each(|(to, from)| plain_copy(&mut to[..row], from))
                        }
                        _ => rows.for_each(|(to, from)| plain_add(&mut to[..row], from)),
                    }
                }
            }
            Ok(())
        };
        let calls = calls(comm, ours)?;
        let sum = f64::from(calls);
        let expected = move |found: &[f64]| {
            let factor = if operation == Operation::Accumulate {
                sum
            } else {
                1.0
            };
            let mut pairs = found.iter().zip(values);
            !works || pairs.all(|(found, value)| *found == factor * value)
        };
        let limit_name = match operation {
            Operation::Accumulate => "loop",
            _ => "memcpy",
        };
        let line = |system: &str, strategy: &str| Line {
            system: system.into(),
            bench: "global",
            case: case.into(),
            op: operation.name(),
            strategy: strategy.into(),
            transport: carrier(comm).into(),
            ranks: comm.size(),
            useful_bytes: count as u64 * 8,
            best_s: 0.0,
            median_s: 0.0,
            ok: true,
        };
        let contestants = vec![
            Contestant {
                line: line("outcore", "global array"),
                prepare: Box::new(move || {
                    // Only by the rank that looks at it later.
                    if !works {
                        return Ok(());
                    }
                    buffer.borrow_mut().fill(0.0);
                    match operation {
                        Operation::Get => array.put(section, values),
                        _ => array.put(section, &vec![0.0; count]),
                    }
                }),
                work: Box::new(ours),
                check: Box::new(move || match operation {
                    Operation::Get => expected(&buffer.borrow()),
                    _ => array.read(section).is_ok_and(|found| expected(&found)),
                }),
                batch: calls,
            },
            Contestant {
                line: line(limit_name, "own memory"),
                prepare: Box::new(move || {
                    let mut other = other.borrow_mut();
                    other.fill(0.0);
                    buffer.borrow_mut().fill(0.0);
                    if operation == Operation::Get {
                        let rows = other.chunks_mut(width).zip(values.chunks_exact(row));
                        rows.for_each(|(to, from)| to[..row].copy_from_slice(from));
                    }
                    Ok(())
                }),
                work: Box::new(limit),
                check: Box::new(move || {
                    let other = other.borrow();
                    let rows = other.chunks(width).map(|line| &line[..row]);
                    match operation {
                        Operation::Get => expected(&buffer.borrow()),
                        _ => expected(&rows.collect::<Vec<_>>().concat()),
                    }
                }),
                batch: calls,
            },
        ];
        lines.extend(contest(comm, contestants, repeats)?);
    }
    Ok(lines)
}

/// Copies, as one call that is not looked into.
#[inline(never)]
fn plain_copy(to: &mut [f64], from: &[f64]) {
    to.copy_from_slice(from);
}

/// Adds, as one call that is not looked into.
#[inline(never)]
fn plain_add(to: &mut [f64], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

fn counters(comm: &Comm, counter: &GlobalArray<i64>, repeats: usize) -> Result<Vec<Line>> {
    let at = [comm.size() as u64 - 1];
    let mut lines = Vec::new();
    for everyone in [false, true] {
        counter.fill(comm, 0)?;
        let works = everyone || comm.rank() == 0;
        let made = Cell::new(0i64);
        let made = &made;
        let work = move || {
            if works {
                counter.read_increment(&at, 1)?;
                made.set(made.get() + 1);
            }
            Ok(())
        };
        let calls = calls(comm, work)?;
        let contestant = Contestant {
            line: Line {
                system: "outcore".into(),
                bench: "global",
                case: if everyone { "all ranks" } else { "one rank" }.into(),
                op: "read-increment",
                strategy: "global array".into(),
                transport: carrier(comm).into(),
                ranks: comm.size(),
                useful_bytes: 8,
                best_s: 0.0,
                median_s: 0.0,
                ok: true,
            },
            prepare: Box::new(|| Ok(())),
            work: Box::new(work),
            check: Box::new(|| true),
            batch: calls,
        };
        let mut found = contest(comm, vec![contestant], repeats)?;
        let sum = comm.all_reduce_one(made.get(), Op::Sum)?;
        let right = counter.get_one(&at)? == sum;
        found.iter_mut().for_each(|line| line.ok &= right);
        comm.barrier()?;
        lines.extend(found);
    }
    Ok(lines)
}

/// Collective: how many calls make a repetition.
fn calls(comm: &Comm, mut work: impl FnMut() -> Result<()>) -> Result<u32> {
    const TRIES: u32 = 20;
    work()?;
    comm.barrier()?;
    let start = Instant::now();
    let outcome = (0..TRIES).try_for_each(|_| work());
    let seconds = start.elapsed().as_secs_f64() / f64::from(TRIES);
    comm.agree(outcome)?;
    let slowest = comm.all_reduce_one(seconds, Op::Max)?;
    Ok((REPETITION / slowest).clamp(1.0, MOST_CALLS) as u32)
}

/// What carries messages between the ranks.
fn carrier(comm: &Comm) -> &'static str {
    match comm.transport().name() {
        name if name == "threads" => "threads",
        name if name.starts_with("Open MPI") => "openmpi",
        _ => "mpich",
    }
}

/// For each operation and case: outcore beside the limit and beside the peer.
pub fn global_summary(lines: &[Line]) -> String {
    let mut text = String::new();
    for ours in lines.iter().filter(|line| line.system == "outcore") {
        text += &format!("{} {}: {:.4} us", ours.op, ours.case, ours.best_s * 1e6);
        let same = |line: &&Line| (line.op, &line.case) == (ours.op, &ours.case);
        let others = lines
            .iter()
            .filter(same)
            .filter(|line| line.system != "outcore");
        for other in others {
            let ratio = other.best_s / ours.best_s;
            text += &format!(", {ratio:.2} times as fast as {}", other.system);
        }
        text += "\n";
    }
    text
}
