//! The bench `remote`: sections of arrays in an object store, where every request
//! takes the time of a round trip, beside the same requests one at a time.
//!
//! The arrays are made at the address, and removed in the end as far as the store
//! removes. The peak is that of this process, which is no server.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use outcore::storage::{Address, Bucket, Objects};
use outcore::{
    Array, ArrayDescriptor, Comm, ElementType, Error, Fill, MemoryBudget, PeakMemory, Result,
    Section, Tuning,
};

use crate::contest::{Contestant, contest_within};
use crate::line::Line;
use crate::python_peer::PythonPeer;

/// The array, of 1000 chunks of 64 KiB.
const SHAPE: [u64; 2] = [3200, 5120];
const CHUNK: [u64; 2] = [128, 128];

/// Some elements of every chunk, and what another system is told of that.
const GRID: &str = "5::16, 7::16";
const GRID_NUMBERS: [&str; 3] = ["5", "7", "16"];

/// The program of another system.
const PEER: &str = include_str!("../peers/py_remote.py");

/// Rows that are so far apart that each is a request.
const ROWS: &str = "3::64, :";

/// Who has taken longer in all takes no more turns.
const PATIENCE: Duration = Duration::from_secs(60);

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Where the arrays are made for the time being, as in `s3://bucket/bench`.
    pub at: String,
    /// The memory cap of a call, besides what is read.
    pub memory: u64,
    /// Repetitions.
    pub repeats: usize,
    /// The Python that runs tensorstore as well, if any.
    pub python: Option<PathBuf>,
}

/// Runs the bench; returns the lines and the most memory that this process used.
pub fn remote(options: &RemoteOptions) -> Result<(Vec<Line>, Option<u64>)> {
    let address = Address::parse(&options.at)?;
    let bucket = Bucket::at(&address)?;
    let peak = PeakMemory::watch();
    let lines = outcore::run(1, |comm| {
        let mut lines = Vec::new();
        for (ending, section, case) in [
            ("zarr", GRID, "1000 chunks of a Zarr array"),
            ("npy", ROWS, "50 rows of an object"),
        ] {
            let own = format!("bench.{ending}");
            let name = format!("{}/{own}", options.at.trim_end_matches('/'));
            let _made = make(&bucket, &own, &name)?;
            lines.extend(compare(
                comm,
                options,
                &Array::open(&name)?,
                (section, case),
            )?);
        }
        Ok::<_, Error>(lines)
    })?;
    Ok((lines.into_iter().flatten().collect(), peak.bytes()))
}

/// An array that this bench has made, and removes.
struct Made<'a> {
    bucket: &'a Bucket,
    name: String,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        // Nothing depends on it.
        let _ = match self.name.ends_with(".zarr") {
            true => self.bucket.remove_all(&self.name),
            false => self.bucket.remove(&self.name),
        };
    }
}

/// Makes the array `name`, which is `own` in the bucket; fails if something else has that
/// name.
fn make<'a>(bucket: &'a Bucket, own: &str, name: &str) -> Result<Made<'a>> {
    let mut descriptor = ArrayDescriptor::new(&SHAPE, ElementType::F32);
    if name.ends_with(".zarr") {
        descriptor.arrangement.tile = Some(CHUNK.to_vec());
        descriptor.codecs = "zstd:1".parse()?;
    }
    let draft = Array::draft(name, &descriptor, false)?;
    let slab = SHAPE[1] * CHUNK[0] * 5;
    let mut bytes = Vec::new();
    for piece in outcore::Pieces::new(&draft.whole(), &[0, 1], slab) {
        bytes.resize(piece.count() as usize * 4, 0);
        Fill::Index.generate(&draft, &piece, &mut bytes)?;
        draft.write_bytes(&piece, &bytes)?;
    }
    draft.commit()?;
    Ok(Made {
        bucket,
        name: own.into(),
    })
}

/// The array read at once, and one request at a time.
fn compare(
    comm: &Comm,
    options: &RemoteOptions,
    array: &Array,
    (text, case): (&str, &str),
) -> Result<Vec<Line>> {
    let buffer = MemoryBudget::of(options.memory).limit() / 4;
    let array = &array.tuned(Tuning {
        buffer: Some(buffer),
        ..Tuning::default()
    });
    let section = array.section(text)?;
    let whole = vec![section.clone()];
    let single = singles(array, &section)?;
    let contestant = |system: &str, strategy: &str, parts: Vec<Section>| {
        let mut wanted = Vec::new();
        for part in &parts {
            let start = wanted.len();
            wanted.resize(start + part.count() as usize * 4, 0);
            Fill::Index.generate(array, part, &mut wanted[start..])?;
        }
        let found = Rc::new(RefCell::new(vec![0u8; wanted.len()]));
        let (emptied, filled) = (Rc::clone(&found), Rc::clone(&found));
        Ok::<_, Error>(Contestant {
            line: Line {
                system: system.into(),
                bench: "remote",
                case: format!("{case}: {text}"),
                op: "read",
                strategy: strategy.into(),
                transport: options.at.split("://").next().unwrap_or_default().into(),
                ranks: 1,
                useful_bytes: wanted.len() as u64,
                best_s: 0.0,
                median_s: 0.0,
                ok: true,
            },
            prepare: Box::new(move || {
                emptied.borrow_mut().fill(0);
                Ok(())
            }),
            work: Box::new(move || {
                let mut bytes = filled.borrow_mut();
                let mut rest = &mut bytes[..];
                for part in &parts {
                    let (place, after) = rest.split_at_mut(part.count() as usize * 4);
                    array.read_bytes(part, place)?;
                    rest = after;
                }
                Ok(())
            }),
            check: Box::new(move || *found.borrow() == wanted),
            batch: 1,
        })
    };
    let mut contestants = vec![
        contestant("outcore", "auto", whole)?,
        contestant("one-by-one", "a request at a time", single)?,
    ];
    if let Some(python) = options.python.as_ref().filter(|_| text == GRID) {
        let mut command = Command::new(python);
        command.args(["-c", PEER, array.name()]).args(GRID_NUMBERS);
        let mut line = contestants[0].line.clone();
        (line.system, line.strategy) = ("tensorstore".into(), "zarr3".into());
        contestants.push(PythonPeer::start_command(command, "tensorstore")?.contestant(line));
    }
    contest_within(comm, contestants, options.repeats, Some(PATIENCE))
}

/// The section in parts that are one request each: what is in each chunk, or row.
fn singles(array: &Array, section: &Section) -> Result<Vec<Section>> {
    let [rows, columns] = match array.layout().tile() {
        Some(_) => CHUNK,
        None => [1, SHAPE[1]],
    };
    let mut parts = Vec::new();
    for row in (0..SHAPE[0]).step_by(rows as usize) {
        for column in (0..SHAPE[1]).step_by(columns as usize) {
            let (below, right) = (row + rows, column + columns);
            let tile = array.section(&format!("{row}:{below}, {column}:{right}"))?;
            let part = section.intersect(&tile);
            let part = part.map_err(|error| Error::Invalid(error.to_string()))?;
            if !part.is_empty() {
                parts.push(part);
            }
        }
    }
    Ok(parts)
}
