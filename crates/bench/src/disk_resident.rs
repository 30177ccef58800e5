//! The bench `disk-resident`: sections of an array of 4096x4096 f64 on the disks of
//! several ranks, got by any rank without the others' help.
//!
//! Random blocks of 256x256 are got by all ranks at once: by outcore, with the
//! system's page cache and with caches of its own, and by plain preads of the same
//! blocks, row by row, by the ranks that hold them. The regions that Disk Resident
//! Arrays read collectively (`peers/dra.c`) are got by one rank alone, which holds none or
//! few of their rows.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use outcore::{
    Comm, DiskOptions, DiskResident, Disks, Distribution, Error, MemoryBudget, Procedures, Result,
    Section,
};

use crate::contest::{Contestant, contest};
use crate::io::{Scratch, prime_memory};
use crate::line::Line;
use crate::peers::{build, failed, launcher};

const SIDE: u64 = 4096;
const BLOCK: u64 = 256;

/// The blocks that each rank gets in one repetition.
const BLOCKS: u64 = 32;

const DRA: &str = include_str!("../peers/dra.c");

/// The regions of the peer, from row 64 and column 128 on.
const REGIONS: [(u64, u64); 4] = [(100, 100), (1024, 1024), (16, 3840), (3840, 16)];

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct DiskResidentOptions {
    /// How many ranks; under an MPI launcher that knows it.
    pub ranks: usize,
    /// Repetitions.
    pub repeats: usize,
    /// Whether Disk Resident Arrays (Open MPI) are measured as well.
    pub peers: bool,
    /// Where the disks of the ranks are, for the time being.
    pub directory: PathBuf,
}

/// Runs the bench; under an MPI launcher, only rank 0 returns something.
pub fn disk_resident(options: &DiskResidentOptions) -> Result<Vec<Line>> {
    prime_memory(SIDE * SIDE * 8 / 2)?;
    let lines = outcore::run(options.ranks, |comm: &Comm| {
        let lines = measure(comm, options)?;
        Ok::<_, Error>(if comm.rank() == 0 { lines } else { Vec::new() })
    });
    let mut lines = lines?.into_iter().next().unwrap_or_default();
    if options.peers && !lines.is_empty() {
        let scratch = Scratch::new(&options.directory, "dra");
        lines.extend(dra(
            Path::new(&scratch.name()),
            lines[0].ranks,
            options.repeats,
        )?);
    }
    Ok(lines)
}

type Disk = DiskResident<f64>;

fn measure(comm: &Comm, options: &DiskResidentOptions) -> Result<Vec<Line>> {
    let scratch = (comm.rank() == 0).then(|| Scratch::new(&options.directory, "disk-resident"));
    let mut directory = scratch.as_ref().map(Scratch::name).unwrap_or_default();
    comm.broadcast_string(0, &mut directory)?;
    let calls = Procedures::start(comm)?;
    let spread = Distribution::parse("block,*", &[SIDE, SIDE], comm.size() as u64, None)
        .map_err(|error| Error::Invalid(error.to_string()))?;
    let disks = || DiskOptions::new(Disks::pattern(format!("{directory}/{{rank}}")));
    // The cache of a rank has room for its part.
    let room = MemoryBudget::of(2 * SIDE * SIDE * 8 / comm.size() as u64);
    let plain = Disk::create(comm, &calls, "plain", spread.clone(), &disks())?;
    let cached = Disk::create(
        comm,
        &calls,
        "cached",
        spread.clone(),
        &disks().cache(&room),
    )?;
    let rows = spread.local_shape(comm.rank() as u64)[0];
    let first = rows_before(&spread, comm.rank());
    for array in [&plain, &cached] {
        fill(array, first, rows)?;
    }
    comm.barrier()?;
    let mut lines = contest(
        comm,
        blocks(comm, &plain, &cached, &directory)?,
        options.repeats,
    )?;
    for region in REGIONS {
        lines.extend(contest(
            comm,
            regions(comm, &plain, &cached, region)?,
            options.repeats,
        )?);
    }
    plain.close(comm)?;
    cached.close(comm)?;
    calls.close()?;
    comm.barrier()?;
    drop(scratch);
    Ok(lines)
}

fn rows_before(spread: &Distribution, rank: usize) -> u64 {
    (0..rank as u64)
        .map(|rank| spread.local_shape(rank)[0])
        .sum()
}

fn value(row: u64, column: u64) -> f64 {
    (row * SIDE + column) as f64
}

fn boxed(row: u64, rows: u64, column: u64, columns: u64) -> Section {
    use outcore::AxisSection;
    let axes = [(row, rows), (column, columns)];
    let axes = axes.map(|(start, count)| AxisSection::span(start, start + count));
    Section::new(axes.to_vec()).expect("it is part of an array")
}

fn fill(array: &Disk, first: u64, rows: u64) -> Result<()> {
    for row in (first..first + rows).step_by(64) {
        let count = 64.min(first + rows - row);
        let values: Vec<f64> = (row * SIDE..(row + count) * SIDE)
            .map(|at| at as f64)
            .collect();
        array.put(&boxed(row, count, 0, SIDE), &values)?;
    }
    Ok(())
}

/// The corners of the blocks that a rank gets, the same in every run.
fn corners(rank: usize) -> Vec<(u64, u64)> {
    let mut state = rank as u64 + 1;
    let mut below = |end: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % end
    };
    let mut corner = || (below(SIDE - BLOCK), below(SIDE - BLOCK));
    (0..BLOCKS).map(|_| corner()).collect()
}

fn line(comm: &Comm, system: &str, case: String, strategy: &str, bytes: u64) -> Line {
    let transport = match outcore::under_launcher() {
        true => crate::library::mpi_library(),
        false => "threads",
    };
    Line {
        system: system.into(),
        bench: "disk-resident",
        case,
        op: "get",
        strategy: strategy.into(),
        transport: transport.into(),
        ranks: comm.size(),
        useful_bytes: bytes,
        best_s: 0.0,
        median_s: 0.0,
        ok: true,
    }
}

fn is_right(values: &[f64], (row, column): (u64, u64), columns: u64) -> bool {
    values
        .iter()
        .enumerate()
        .all(|(at, found)| *found == value(row + at as u64 / columns, column + at as u64 % columns))
}

/// Random blocks by all ranks at once.
fn blocks<'a>(
    comm: &'a Comm,
    plain: &'a Disk,
    cached: &'a Disk,
    directory: &str,
) -> Result<Vec<Contestant<'a>>> {
    let bytes = BLOCKS * comm.size() as u64 * BLOCK * BLOCK * 8;
    let case = format!("{BLOCKS} random blocks of 256x256 a rank");
    let mut all = Vec::new();
    for (array, strategy) in [(plain, "page cache"), (cached, "own cache")] {
        let corners = corners(comm.rank());
        let wanted = corners.clone();
        let mut buffer = vec![0.0; (BLOCK * BLOCK) as usize];
        all.push(Contestant {
            line: line(comm, "outcore", case.clone(), strategy, bytes),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || {
                corners.iter().try_for_each(|(row, column)| {
                    array.get(&boxed(*row, BLOCK, *column, BLOCK), &mut buffer)
                })
            }),
            // Every block once more, off the clock.
            check: Box::new(move || {
                let mut seen = vec![0.0; (BLOCK * BLOCK) as usize];
                wanted.iter().all(|(row, column)| {
                    let got = array.get(&boxed(*row, BLOCK, *column, BLOCK), &mut seen);
                    got.is_ok() && is_right(&seen, (*row, *column), BLOCK)
                })
            }),
            batch: 1,
        });
    }
    // The rows of all blocks, by the ranks that hold them.
    let (_, part) = &plain.parts()[0];
    let rows = part.shape()[0];
    let first = SIDE.div_ceil(comm.size() as u64) * comm.rank() as u64;
    let file = format!(
        "{directory}/{}/plain-{}.oc/data.bin",
        comm.rank(),
        comm.rank()
    );
    let file = File::open(&file).map_err(|source| Error::File {
        action: "open",
        path: file.into(),
        source,
    })?;
    let corners: Vec<(u64, u64)> = (0..comm.size()).flat_map(corners).collect();
    let owned = move |row: u64| row.max(first)..(row + BLOCK).min(first + rows);
    let last = corners
        .iter()
        .rev()
        .find(|(row, _)| !owned(*row).is_empty());
    let last = last.map(|(row, column)| (owned(*row), *column));
    let buffer = Rc::new(RefCell::new(vec![0.0f64; (BLOCK * BLOCK) as usize]));
    let seen = Rc::clone(&buffer);
    all.push(Contestant {
        line: line(comm, "pread", case, "by the owner", bytes),
        prepare: Box::new(|| Ok(())),
        work: Box::new(move || {
            let mut buffer = buffer.borrow_mut();
            for (row, column) in &corners {
                for (row, room) in owned(*row).zip(buffer.chunks_exact_mut(BLOCK as usize)) {
                    let offset = ((row - first) * SIDE + column) * 8;
                    let read = file.read_exact_at(bytemuck::cast_slice_mut(room), offset);
                    read.map_err(|error| Error::Invalid(error.to_string()))?;
                }
            }
            Ok(())
        }),
        check: Box::new(move || {
            last.as_ref().is_none_or(|(rows, column)| {
                let count = rows.clone().count() * BLOCK as usize;
                is_right(&seen.borrow()[..count], (rows.start, *column), BLOCK)
            })
        }),
        batch: 1,
    });
    Ok(all)
}

/// A region by the last rank alone, which does not hold its first rows.
fn regions<'a>(
    comm: &'a Comm,
    plain: &'a Disk,
    cached: &'a Disk,
    (rows, columns): (u64, u64),
) -> Result<Vec<Contestant<'a>>> {
    let section = boxed(64, rows, 128, columns);
    let mut all = Vec::new();
    for (array, strategy) in [(plain, "page cache"), (cached, "own cache")] {
        let buffer = Rc::new(RefCell::new(vec![0.0; section.count() as usize]));
        let (seen, section) = (Rc::clone(&buffer), section.clone());
        let alone = comm.rank() + 1 == comm.size();
        all.push(Contestant {
            line: line(
                comm,
                "outcore",
                format!("{rows}x{columns} by one rank"),
                strategy,
                section.count() * 8,
            ),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || match alone {
                true => array.get(&section, &mut buffer.borrow_mut()),
                false => Ok(()),
            }),
            check: Box::new(move || !alone || is_right(&seen.borrow(), (64, 128), columns)),
            batch: 1,
        });
    }
    Ok(all)
}

/// Disk Resident Arrays: collective reads of the same regions, warm.
fn dra(directory: &Path, ranks: usize, repeats: usize) -> Result<Vec<Line>> {
    let libraries = [
        "-lga-openmpi",
        "-lscalapack-openmpi",
        "-llapack",
        "-lblas",
        "-larmci-openmpi",
        "-lgfortran",
        "-lm",
    ];
    let program = build(directory, ("dra", DRA), &libraries)?;
    let ran = launcher(ranks)
        .arg(&program)
        .arg(directory)
        .arg(repeats.to_string())
        .output()
        .map_err(|error| failed("cannot run mpirun.openmpi", error.to_string()))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    let mut lines = Vec::new();
    for fields in text.lines().map(|line| line.split(',').collect::<Vec<_>>()) {
        let [_, case, _, bytes, best, median, verdict] = fields[..] else {
            continue;
        };
        let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        lines.push(Line {
            system: "dra".into(),
            bench: "disk-resident",
            case: format!("{} by all ranks", case.trim_start_matches("read:")),
            op: "get",
            strategy: "collective read".into(),
            transport: "openmpi".into(),
            ranks,
            useful_bytes: number(bytes) as u64,
            best_s: number(best),
            median_s: number(median),
            ok: verdict == "ok",
        });
    }
    match lines.is_empty() {
        true => {
            let why = String::from_utf8_lossy(&ran.stderr).into();
            Err(failed("the peer program said nothing", why))
        }
        false => Ok(lines),
    }
}
