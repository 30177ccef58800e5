//! The bench `transpose`: a matrix in a file into a new file, transposed, within
//! a memory cap, beside `cp` of the same file, which is the limit, and other
//! systems.
//!
//! Nobody syncs. Warm: the input is in the page cache. Cold: it is dropped from
//! there before each turn. Outputs are removed after each turn, so that nobody
//! waits while the pages of another one are written.

use std::cell::RefCell;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use outcore::storage::forget;
use outcore::{
    Array, ArrayDescriptor, Comm, ElementType, Error, Fill, MemoryBudget, PeakMemory, Pieces,
    Relayout, Result, shape_text,
};

use crate::contest::{Contestant, contest};
use crate::io::{Scratch, prime_memory};
use crate::line::Line;
use crate::python_peer::PythonPeer;

/// One element is looked at in so many.
const SAMPLE: u64 = 99_991;

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct TransposeOptions {
    /// The shape of the matrix.
    pub shape: Vec<u64>,
    /// The type of its elements.
    pub element_type: ElementType,
    /// The memory cap.
    pub memory: u64,
    /// Whether the input is dropped from the page cache before each turn.
    pub cold: bool,
    /// The ranks.
    pub ranks: usize,
    /// Where files are made for the time being.
    pub directory: PathBuf,
    /// Repetitions.
    pub repeats: usize,
    /// The Python that runs NumPy and dask as well, if any.
    pub python: Option<PathBuf>,
    /// The Python that runs rechunker as well, if any.
    pub rechunker: Option<PathBuf>,
}

/// Runs the bench; returns the lines and the most memory that this process used
/// while it transposed, its own included.
pub fn transpose(options: &TransposeOptions) -> Result<(Vec<Line>, Option<u64>)> {
    if outcore::under_launcher() {
        return Err(Error::Invalid(
            "this bench starts its own ranks; start it without a launcher".into(),
        ));
    }
    let [rows, columns] = options.shape[..] else {
        return Err(Error::Invalid(format!(
            "a matrix has two axes, not shape {}",
            shape_text(&options.shape)
        )));
    };
    let peers = options.python.is_some() || options.rechunker.is_some();
    if peers && (rows != columns || options.element_type != ElementType::F32) {
        return Err(Error::Invalid(
            "other systems transpose square matrices of f32 here; leave --peers out".into(),
        ));
    }
    let scratch = Scratch::new(&options.directory, "transpose");
    let directory = PathBuf::from(scratch.name());
    std::fs::create_dir_all(&directory).map_err(|source| Error::File {
        action: "create",
        path: directory.clone(),
        source,
    })?;
    let work = Work { options, directory };
    prime_memory(work.bytes())?;
    work.make_input()?;
    let peak = PeakMemory::watch();
    let lines = outcore::run(options.ranks, |comm| {
        let mut contestants = vec![work.outcore(comm)?, work.cp(comm)];
        let python = options.python.as_deref();
        for (peer, python) in [
            ("memmap-transpose", python),
            ("panel-transpose", python),
            ("dask-transpose", python),
            ("rechunker-transpose", options.rechunker.as_deref()),
        ] {
            if let Some(python) = python {
                contestants.push(work.other_system(comm, python, peer)?);
            }
        }
        let lines = contest(comm, contestants, options.repeats)?;
        Ok::<_, Error>(if comm.rank() == 0 { lines } else { Vec::new() })
    })?;
    Ok((lines.into_iter().flatten().collect(), peak.bytes()))
}

struct Work<'a> {
    options: &'a TransposeOptions,
    directory: PathBuf,
}

impl Work<'_> {
    fn bytes(&self) -> u64 {
        let count: u64 = self.options.shape.iter().product();
        count.saturating_mul(self.options.element_type.size())
    }

    fn name(&self, file: &str) -> String {
        self.directory.join(file).to_string_lossy().to_string()
    }

    fn input(&self) -> PathBuf {
        self.directory.join("in.oc/data.bin")
    }

    /// Makes the input, and reads it in large blocks, so that the page cache holds
    /// it in large pieces.
    fn make_input(&self) -> Result<()> {
        let descriptor = ArrayDescriptor::new(&self.options.shape, self.options.element_type);
        let array = Array::create(&self.name("in.oc"), &descriptor)?;
        let size = self.options.element_type.size();
        let pieces = || Pieces::new(&array.whole(), &[0, 1], (16 << 20) / size);
        let mut bytes = Vec::new();
        for piece in pieces() {
            bytes.resize((piece.count() * size) as usize, 0);
            Fill::Random(7).generate(&array, &piece, &mut bytes)?;
            array.write_bytes(&piece, &bytes)?;
        }
        array.sync()?;
        if !self.options.cold {
            forget(&self.input())?;
            for piece in pieces() {
                bytes.resize((piece.count() * size) as usize, 0);
                array.read_bytes(&piece, &mut bytes)?;
            }
        }
        Ok(())
    }

    fn line(&self, system: &str, strategy: &str) -> Line {
        let state = if self.options.cold { "cold" } else { "warm" };
        Line {
            system: system.into(),
            bench: "transpose",
            case: format!(
                "{} {} {} {} MiB",
                shape_text(&self.options.shape),
                self.options.element_type,
                state,
                self.options.memory >> 20
            ),
            op: "transpose",
            strategy: strategy.into(),
            transport: "threads".into(),
            ranks: self.options.ranks,
            useful_bytes: 2 * self.bytes(),
            best_s: 0.0,
            median_s: 0.0,
            ok: true,
        }
    }

    /// The input as it is to be found: what is written elsewhere is on the disk.
    fn cool(&self, comm: &Comm) -> Result<()> {
        if self.options.cold && comm.rank() == 0 {
            // SAFETY: the call has no preconditions.
            unsafe { libc::sync() };
            forget(&self.input())?;
        }
        Ok(())
    }

    fn outcore<'a>(&'a self, comm: &'a Comm) -> Result<Contestant<'a>> {
        let (input, output) = (self.name("in.oc"), self.name("out.oc"));
        let descriptor = ArrayDescriptor::new(&self.options.shape, self.options.element_type);
        let descriptor = descriptor.transposed(&[1, 0])?;
        let budget = MemoryBudget::of(self.options.memory);
        let ends: Rc<RefCell<Option<(Array, Array)>>> = Rc::default();
        let (prepared, found) = (Rc::clone(&ends), Rc::clone(&ends));
        let made = output.clone();
        Ok(Contestant {
            line: self.line("outcore", "relayout"),
            prepare: Box::new(move || {
                let target = Array::create_all(comm, &output, &descriptor)?;
                self.cool(comm)?;
                *prepared.borrow_mut() = Some((Array::open(&input)?, target));
                Ok(())
            }),
            work: Box::new(move || {
                let ends = ends.borrow();
                let (source, target) = ends.as_ref().expect("prepared");
                let plan = Relayout::plan(comm, source, target, &[1, 0], &budget)?;
                plan.run(comm, &|_| ())
            }),
            check: Box::new(move || {
                let ends = found.borrow_mut().take();
                let right =
                    comm.rank() != 0 || self.is_transposed(&self.directory.join("out.oc/data.bin"));
                drop(ends);
                let together = comm.barrier().is_ok();
                if comm.rank() == 0 {
                    let _ = std::fs::remove_dir_all(&made);
                }
                right && together
            }),
            batch: 1,
        })
    }

    /// Looks at some elements.
    fn is_transposed(&self, output: &Path) -> bool {
        let size = self.options.element_type.size();
        let (rows, columns) = (self.options.shape[0], self.options.shape[1]);
        let open = |path: &Path| std::fs::File::open(path);
        let (Ok(from), Ok(to)) = (open(&self.input()), open(output)) else {
            return false;
        };
        let at = |file: &std::fs::File, number: u64| {
            let mut element = [0; 16];
            let read = file.read_exact_at(&mut element[..size as usize], number * size);
            read.is_ok().then_some(element)
        };
        (0..rows * columns).step_by(SAMPLE as usize).all(|number| {
            let (row, column) = (number / columns, number % columns);
            let (from, to) = (at(&from, number), at(&to, column * rows + row));
            from.is_some() && from == to
        })
    }

    /// The limit: the same bytes read and written once by the system's program.
    fn cp<'a>(&'a self, comm: &'a Comm) -> Contestant<'a> {
        let copied = self.directory.join("copy.bin");
        let checked = copied.clone();
        Contestant {
            line: self.line("cp", "limit"),
            prepare: Box::new(move || self.cool(comm)),
            work: Box::new(move || {
                if comm.rank() != 0 {
                    return Ok(());
                }
                let status = Command::new("cp").arg(self.input()).arg(&copied).status();
                match status {
                    Ok(status) if status.success() => Ok(()),
                    other => Err(Error::Invalid(format!("cp failed: {other:?}"))),
                }
            }),
            check: Box::new(move || {
                let made = std::fs::metadata(&checked).map_or(0, |file| file.len());
                if comm.rank() == 0 {
                    let _ = std::fs::remove_file(&checked);
                }
                comm.rank() != 0 || made == self.bytes()
            }),
            batch: 1,
        }
    }

    /// Another system, which rank 0 asks.
    fn other_system<'a>(
        &'a self,
        comm: &'a Comm,
        python: &Path,
        peer: &'static str,
    ) -> Result<Contestant<'a>> {
        let scratch = self.directory.join("peers");
        let input = self.input();
        let start = || {
            let matrix = (input.as_path(), self.options.shape[0]);
            PythonPeer::start(python, peer, matrix, &scratch, Some(self.options.memory))
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
        let (prepare, forget, run, check) =
            (ask("prepare"), ask("forget"), ask("run"), ask("check"));
        let clean = ask("prepare");
        Ok(Contestant {
            line: self.line(peer, "files"),
            prepare: Box::new(move || {
                prepare()?;
                if self.options.cold {
                    forget()?;
                }
                Ok(())
            }),
            work: Box::new(move || run().map(drop)),
            check: Box::new(move || check().unwrap_or(false) & clean().is_ok()),
            batch: 1,
        })
    }
}
