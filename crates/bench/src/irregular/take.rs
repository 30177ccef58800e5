//! One rank that takes and puts elements at random places of a long file, warm,
//! beside Python's packages; and schedules of more and more indices.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use bytemuck::cast_slice;
use outcore::{Array, ArrayDescriptor, Comm, ElementType, Error, Result, Schedule};

use super::PATIENCE;
use crate::contest::{Contestant, contest, contest_within};
use crate::files::plain;
use crate::io::{Scratch, prime_memory};
use crate::line::Line;
use crate::python_peer::PythonPeer;

const PROGRAM: &str = include_str!("../../peers/py_take.py");

/// The elements of the file, and how many of them are taken.
const ELEMENTS: u64 = 1 << 26;
const TAKEN: usize = 1 << 20;

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct TakeOptions {
    /// Repetitions.
    pub repeats: usize,
    /// The Python whose packages take part, if some do.
    pub python: Option<PathBuf>,
    /// Where files are made for the time being.
    pub directory: PathBuf,
}

fn line(system: &str, op: &'static str, strategy: &str, (case, bytes): (String, u64)) -> Line {
    Line {
        system: system.into(),
        bench: "irregular",
        case,
        op,
        strategy: strategy.into(),
        transport: "threads".into(),
        ranks: 1,
        useful_bytes: bytes,
        best_s: 0.0,
        median_s: 0.0,
        ok: false,
    }
}

/// Numbers below `below`, which is a power of two, by Knuth's linear congruential
/// generator; its high bits are random.
fn random(count: usize, below: u64) -> Vec<u64> {
    let mut state = 1u64;
    let shift = 64 - below.trailing_zeros();
    let next = |_| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state >> shift
    };
    (0..count).map(next).collect()
}

/// Makes a file in which each element has its number.
fn make(path: &Path) -> Result<()> {
    let file = File::create(path).map_err(plain)?;
    let mut block = vec![0f64; 1 << 17];
    for first in (0..ELEMENTS).step_by(block.len()) {
        for (at, value) in block.iter_mut().enumerate() {
            *value = (first + at as u64) as f64;
        }
        file.write_all_at(cast_slice(&block), first * 8)
            .map_err(plain)?;
    }
    Ok(())
}

/// `take` and `put`, by one rank.
pub fn irregular_take(options: &TakeOptions) -> Result<Vec<Line>> {
    if outcore::under_launcher() {
        return Err(Error::Invalid(
            "take and put are calls of one rank; start the bench without a launcher".into(),
        ));
    }
    let all = outcore::run(1, |comm| measure(comm, options))?;
    Ok(all.into_iter().flatten().collect())
}

fn measure(comm: &Comm, options: &TakeOptions) -> Result<Vec<Line>> {
    prime_memory(ELEMENTS * 8 / 2)?;
    let scratch = Scratch::new(&options.directory, "take");
    let directory = PathBuf::from(scratch.name());
    std::fs::create_dir_all(&directory).map_err(plain)?;
    let path = directory.join("elements.bin");
    make(&path)?;
    let indices = random(TAKEN, ELEMENTS);
    let (list, program) = (directory.join("indices.bin"), directory.join("py_take.py"));
    std::fs::write(&list, cast_slice::<u64, u8>(&indices)).map_err(plain)?;
    std::fs::write(&program, PROGRAM).map_err(plain)?;
    let name = format!("raw:{}?shape={ELEMENTS}&type=f64", path.display());
    let array = Array::open_writable(&name)?;
    let values: Vec<f64> = indices.iter().map(|index| *index as f64).collect();
    let mut peers = Vec::new();
    if let Some(python) = &options.python {
        for system in ["numpy.memmap", "h5py"] {
            let mut command = Command::new(python);
            command.arg(&program).arg(system).arg(&path);
            command.arg(ELEMENTS.to_string()).arg(&list).arg(&directory);
            peers.push((system, Rc::new(PythonPeer::start_command(command, system)?)));
        }
    }
    let case = || {
        let case = format!("{TAKEN} of {ELEMENTS} f64");
        (case, TAKEN as u64 * 8)
    };
    let mut lines = Vec::new();
    for op in ["take", "put"] {
        let mut all = own(
            &array,
            (&indices, &values),
            line("outcore", op, "auto", case()),
        );
        for (system, process) in &peers {
            let ask = |command: &'static str| {
                let process = Rc::clone(process);
                move || process.ask(command)
            };
            let (run, check) = (ask(op), ask("check"));
            all.push(Contestant {
                line: line(system, op, "own", case()),
                prepare: Box::new(|| Ok(())),
                work: Box::new(move || run().map(drop)),
                check: match op {
                    "take" => Box::new(move || check().unwrap_or(false)),
                    _ => Box::new(|| true),
                },
                batch: 1,
            });
        }
        lines.extend(contest_within(comm, all, options.repeats, Some(PATIENCE))?);
    }
    Ok(lines)
}

/// outcore's own contestant.
fn own<'a>(
    array: &'a Array,
    (indices, values): (&'a Vec<u64>, &'a [f64]),
    line: Line,
) -> Vec<Contestant<'a>> {
    let takes = line.op == "take";
    let found = Rc::new(std::cell::RefCell::new(Vec::new()));
    let (made, seen) = (Rc::clone(&found), found);
    vec![Contestant {
        line,
        prepare: Box::new(|| Ok(())),
        work: Box::new(move || match takes {
            true => {
                *made.borrow_mut() = array.take::<f64>(indices)?;
                Ok(())
            }
            false => array.put(indices, values),
        }),
        check: Box::new(move || match takes {
            true => std::mem::take(&mut *seen.borrow_mut()) == values,
            // Each element has its number again.
            false => array
                .take::<f64>(indices)
                .is_ok_and(|found| found == values),
        }),
        batch: 1,
    }]
}

/// Schedules of 2^20 to 2^26 indices, by `ranks` ranks; the second result tells
/// what they cost an index in time and memory.
pub fn irregular_scaling(options: &TakeOptions, ranks: usize) -> Result<(Vec<Line>, Vec<String>)> {
    prime_memory(ELEMENTS * 8)?;
    let scratch = Scratch::new(&options.directory, "scaling.oc");
    let name = scratch.name();
    let all = outcore::run(ranks, |comm: &Comm| {
        let descriptor = ArrayDescriptor::new(&[ELEMENTS], ElementType::F64);
        let array = Array::create_all(comm, &name, &descriptor)?;
        let (mut lines, mut notes) = (Vec::new(), Vec::new());
        for log in [20, 22, 24, 26] {
            let count = (1usize << log) / comm.size();
            // Each rank another part of the same random numbers.
            let mut indices = random(count * (comm.rank() + 1), ELEMENTS);
            indices.drain(..count * comm.rank());
            indices.shrink_to_fit();
            let kept = Rc::new(std::cell::RefCell::new(None));
            let (made, gone) = (Rc::clone(&kept), Rc::clone(&kept));
            let bytes = std::cell::Cell::new(0);
            let contestant = Contestant {
                line: Line {
                    ranks: comm.size(),
                    ..line(
                        "outcore",
                        "schedule",
                        "schedule",
                        (format!("2^{log} indices of {ELEMENTS}"), 8 << log),
                    )
                },
                prepare: Box::new(|| Ok(())),
                work: Box::new(|| {
                    *made.borrow_mut() = Some(Schedule::new(comm, &array, &indices)?);
                    Ok(())
                }),
                check: Box::new(|| {
                    let schedule = gone.borrow_mut().take();
                    bytes.set(schedule.as_ref().map_or(0, Schedule::memory) as u64);
                    schedule.is_some_and(|schedule| schedule.count() == count)
                }),
                batch: 1,
            };
            lines.extend(contest(comm, vec![contestant], options.repeats)?);
            let memory = comm.all_reduce(&[bytes.get()], outcore::Op::Sum)?[0];
            let indices = (1u64 << log) as f64;
            if let Some(line) = lines.last() {
                notes.push(format!(
                    "2^{log} indices: {:.2} ns an index, {:.2} bytes an index",
                    Duration::from_secs_f64(line.best_s).as_nanos() as f64 / indices,
                    memory as f64 / indices
                ));
            }
        }
        Ok::<_, outcore::Error>((lines, notes))
    })?;
    Ok(all.into_iter().next().unwrap_or_default())
}
