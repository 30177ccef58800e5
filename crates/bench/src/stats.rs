//! The bench `stats`: least, largest, sum, mean and deviation of a raw file of f32
//! that is in the page cache, beside reading it with `pread`, which is the limit,
//! and other systems.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use outcore::storage::forget;
use outcore::{
    Array, ArrayDescriptor, Comm, ElementType, Error, Fill, MemoryBudget, Pieces, Result,
};
use outcore_apps::Resources;
use outcore_apps::stats::{Part, Question, Summary, stats as summarise};

use crate::contest::{Contestant, contest};
use crate::io::{Scratch, prime_memory};
use crate::line::Line;
use crate::python_peer::PythonPeer;

const PROGRAM: &str = include_str!("../peers/py_stats.py");

/// Bytes of a `pread`.
const BLOCK: usize = 1 << 20;

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct StatsOptions {
    /// The bytes of the file.
    pub size: u64,
    /// The memory cap.
    pub memory: u64,
    /// Where the file is made for the time being.
    pub directory: PathBuf,
    /// Repetitions.
    pub repeats: usize,
    /// The Python that runs numpy.memmap and dask as well, if any.
    pub python: Option<PathBuf>,
}

/// Runs the bench with one rank and with two.
pub fn stats(options: &StatsOptions) -> Result<Vec<Line>> {
    if outcore::under_launcher() {
        return Err(Error::Invalid(
            "this bench starts its own ranks; start it without a launcher".into(),
        ));
    }
    let scratch = Scratch::new(&options.directory, "stats");
    let directory = PathBuf::from(scratch.name());
    std::fs::create_dir_all(&directory).map_err(|source| Error::File {
        action: "create",
        path: directory.clone(),
        source,
    })?;
    let work = Work {
        options,
        count: (options.size / 4).max(1),
        directory,
    };
    prime_memory(options.size)?;
    work.make_input()?;
    let mut lines = Vec::new();
    for ranks in [1, 2] {
        let measured = outcore::run(ranks, |comm| work.measure(comm))?;
        lines.extend(measured.into_iter().next().unwrap_or_default());
    }
    Ok(lines)
}

struct Work<'a> {
    options: &'a StatsOptions,
    count: u64,
    directory: PathBuf,
}

impl Work<'_> {
    fn path(&self) -> PathBuf {
        self.directory.join("data.bin")
    }

    fn name(&self) -> String {
        let path = self.path();
        format!("raw:{}?shape={}&type=f32", path.display(), self.count)
    }

    /// Makes the file, and reads it in blocks, so that the page cache holds it in
    /// large pieces.
    fn make_input(&self) -> Result<()> {
        let name = self.name();
        // The name of a raw file says everything.
        let descriptor = ArrayDescriptor::new(&[self.count], ElementType::F32);
        let array = Array::create(&name, &descriptor)?;
        let mut bytes = Vec::new();
        for piece in Pieces::new(&array.whole(), &[0], BLOCK as u64) {
            bytes.resize((piece.count() * 4) as usize, 0);
            Fill::Random(11).generate(&array, &piece, &mut bytes)?;
            array.write_bytes(&piece, &bytes)?;
        }
        array.sync()?;
        forget(&self.path())?;
        let file = self.open()?;
        self.read(&file, (0, 4 * self.count))
    }

    fn open(&self) -> Result<File> {
        let path = self.path();
        File::open(&path).map_err(|source| Error::File {
            action: "open",
            path,
            source,
        })
    }

    /// Reads a range in blocks, into the same memory.
    fn read(&self, file: &File, (start, end): (u64, u64)) -> Result<()> {
        let mut block = vec![0; BLOCK];
        let mut at = start;
        while at < end {
            let len = (end - at).min(BLOCK as u64) as usize;
            let read = file.read_exact_at(&mut block[..len], at);
            read.map_err(|source| Error::File {
                action: "read",
                path: self.path(),
                source,
            })?;
            std::hint::black_box(&block);
            at += len as u64;
        }
        Ok(())
    }

    fn line(&self, system: &str, strategy: &str, ranks: usize) -> Line {
        Line {
            system: system.into(),
            bench: "stats",
            case: format!("{} MiB f32 warm", self.options.size >> 20),
            op: "stats",
            strategy: strategy.into(),
            transport: "threads".into(),
            ranks,
            useful_bytes: 4 * self.count,
            best_s: 0.0,
            median_s: 0.0,
            ok: true,
        }
    }

    fn measure(&self, comm: &Comm) -> Result<Vec<Line>> {
        let mut contestants = vec![self.outcore(comm)?, self.pread(comm)?];
        if let (Some(python), 2) = (&self.options.python, comm.size()) {
            for peer in ["numpy.memmap", "dask"] {
                contestants.push(self.other_system(comm, python, peer)?);
            }
        }
        let lines = contest(comm, contestants, self.options.repeats)?;
        Ok(if comm.rank() == 0 { lines } else { Vec::new() })
    }

    /// Opens and sums, as the command does.
    fn outcore<'a>(&'a self, comm: &'a Comm) -> Result<Contestant<'a>> {
        let found: Rc<RefCell<Option<Summary>>> = Rc::default();
        let checked = Rc::clone(&found);
        let resources = Resources::of(MemoryBudget::of(self.options.memory));
        let name = self.name();
        Ok(Contestant {
            line: self.line("outcore", "stats", comm.size()),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || {
                let array = Array::open(&name)?;
                let part = Part {
                    array: &array,
                    section: &array.whole(),
                };
                let answer = summarise(comm, &part, &Question::default(), &resources)?;
                *found.borrow_mut() = Some(answer.summary);
                Ok(())
            }),
            check: Box::new(move || {
                // Random numbers between 0 and 1.
                checked.borrow().is_some_and(|found| {
                    let mean = found.mean();
                    found.count() == self.count && found.nans() == 0 && (0.4..0.6).contains(&mean)
                })
            }),
            batch: 1,
        })
    }

    /// The limit: each rank reads its part.
    fn pread<'a>(&'a self, comm: &'a Comm) -> Result<Contestant<'a>> {
        let file = self.open()?;
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let share = |rank: u64| 4 * (self.count * rank / ranks);
        let range = (share(rank), share(rank + 1));
        Ok(Contestant {
            line: self.line("pread", "limit", comm.size()),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || self.read(&file, range)),
            check: Box::new(|| true),
            batch: 1,
        })
    }

    /// Another system, with two threads if it can use them, which rank 0 asks.
    fn other_system<'a>(
        &'a self,
        comm: &'a Comm,
        python: &Path,
        peer: &'static str,
    ) -> Result<Contestant<'a>> {
        let start = || {
            let program = self.directory.join("py_stats.py");
            std::fs::write(&program, PROGRAM).map_err(|source| Error::File {
                action: "write",
                path: program.clone(),
                source,
            })?;
            let mut command = Command::new(python);
            command.arg(&program).arg(peer).arg(self.path());
            command.arg(self.count.to_string());
            PythonPeer::start_command(command, peer)
        };
        let process = comm.agree(match comm.rank() {
            0 => start().map(Some),
            _ => Ok(None),
        })?;
        let process = Rc::new(process);
        let ask = |command: &'static str| {
            let process = Rc::clone(&process);
            move || match process.as_ref() {
                Some(process) => process.ask(command),
                None => Ok(true),
            }
        };
        let (run, check) = (ask("run"), ask("check"));
        let threads = if peer == "dask" { 2 } else { 1 };
        Ok(Contestant {
            line: self.line(peer, "blocks", threads),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || run().map(drop)),
            check: Box::new(move || check().unwrap_or(false)),
            batch: 1,
        })
    }
}
