//! The bench `apps`: applications out of core beside the same work in memory,
//! simpler programs, and other systems.
//!
//! Jacobi: 10 sweeps of 8192x8192 f32. Median: 3x3 window on 4096x4096 f32. The
//! product of matrices is in `matmul.rs`, the Fourier transform in `fft.rs`, the
//! mesh in `edges.rs`. Out of core means: from a file in the page cache into a new file, with two ranks
//! and memory for an eighth of the data. Contestants in memory use two threads.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use outcore::{
    Array, ArrayDescriptor, Comm, ElementType, Error, Fill, MemoryBudget, Result, Section,
};
use outcore_apps::laplace::{Edges, Grid, Problem, relax, solve};
use outcore_apps::median::{MedianKernel, Window, filter};
use outcore_apps::{Block, Resources};

use crate::contest::{Contestant, contest};
use crate::edges::edges;
use crate::fft::fft;
use crate::io::{Scratch, prime_memory};
use crate::line::Line;
use crate::matmul::matmul;
use crate::python_peer::PythonPeer;

/// The ranks out of core, and the threads in memory.
const RANKS: usize = 2;

/// The sweeps of the Jacobi case.
const SWEEPS: usize = 10;

/// Which application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppsCase {
    /// The 3x3 median filter.
    Median,
    /// Ten Jacobi sweeps.
    Jacobi,
    /// The product of two matrices.
    Matmul,
    /// The Fourier transform along both axes.
    Fft,
    /// Steps over the edges of a mesh.
    Edges,
}

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct AppsOptions {
    /// The application.
    pub case: AppsCase,
    /// The extent of the matrices to multiply or transform, 4096 if `None`; or
    /// the nodes along each side of the mesh, 2000 if `None`.
    pub extent: Option<u64>,
    /// Where files are made for the time being.
    pub directory: PathBuf,
    /// Repetitions.
    pub repeats: usize,
    /// The Python that runs other systems as well, if any.
    pub python: Option<PathBuf>,
}

/// Runs the bench.
pub fn apps(options: &AppsOptions) -> Result<Vec<Line>> {
    if outcore::under_launcher() {
        return Err(Error::Invalid(
            "this bench starts its own ranks; start it without a launcher".into(),
        ));
    }
    let (case, extent) = match options.case {
        AppsCase::Median => (FilterCase::Median, 4096u64),
        AppsCase::Jacobi => (FilterCase::Jacobi, 8192),
        AppsCase::Matmul => return matmul(options),
        AppsCase::Fft => return fft(options),
        AppsCase::Edges => return edges(options),
    };
    let bytes = extent * extent * 4;
    prime_memory(2 * bytes)?;
    let scratch = Scratch::new(&options.directory, "apps");
    let directory = PathBuf::from(scratch.name());
    std::fs::create_dir_all(&directory).map_err(|source| Error::File {
        action: "create",
        path: directory.clone(),
        source,
    })?;
    let name = directory.join("in.oc").to_string_lossy().to_string();
    let source = Array::create(
        &name,
        &ArrayDescriptor::new(&[extent, extent], ElementType::F32),
    )?;
    let mut values = vec![0; bytes as usize];
    Fill::Random(6).generate(&source, &source.whole(), &mut values)?;
    source.write_bytes(&source.whole(), &values)?;
    drop(values);
    // Read in large blocks, so that the page cache holds it in large pieces.
    let values: Vec<f32> = source.read(&source.whole())?;
    let work = Arc::new(Work {
        case,
        extent: extent as usize,
        expected: expected(case, &values, extent as usize)?,
        values,
        directory,
    });
    let lines = outcore::run(RANKS, |comm| {
        let mut contestants = vec![out_of_core(comm, &work)?];
        contestants.extend(work.in_memory(comm));
        if let Some(python) = &options.python {
            for peer in work.peers() {
                contestants.push(other_system(comm, &work, python, peer)?);
            }
        }
        let lines = contest(comm, contestants, options.repeats)?;
        Ok::<_, Error>(if comm.rank() == 0 { lines } else { Vec::new() })
    })?;
    Ok(lines.into_iter().flatten().collect())
}

/// The applications that make one array of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterCase {
    Median,
    Jacobi,
}

/// Two arrays in memory: what is read, and what is written.
type Pair = (Vec<f32>, Vec<f32>);

/// The work that all contestants do.
struct Work {
    case: FilterCase,
    extent: usize,
    values: Vec<f32>,
    expected: Vec<f32>,
    directory: PathBuf,
}

fn expected(case: FilterCase, values: &[f32], extent: usize) -> Result<Vec<f32>> {
    let mut result = vec![0.0; values.len()];
    match case {
        FilterCase::Median => median_in_memory(values, extent, &mut result)?,
        FilterCase::Jacobi => {
            // The slow and simple way, which the others must match bit for bit.
            let mut old = values.to_vec();
            plain_sweeps(&mut old, &mut result, extent);
            result = old;
        }
    }
    Ok(result)
}

impl Work {
    fn line(&self, system: &str, strategy: &str) -> Line {
        Line {
            system: system.into(),
            bench: "apps",
            case: match self.case {
                FilterCase::Median => "median 3x3 of 4096x4096 f32".into(),
                FilterCase::Jacobi => "10 Jacobi sweeps of 8192x8192 f32".into(),
            },
            op: match self.case {
                FilterCase::Median => "median",
                FilterCase::Jacobi => "jacobi",
            },
            strategy: strategy.into(),
            transport: "threads".into(),
            ranks: RANKS,
            useful_bytes: 2 * 4 * self.values.len() as u64,
            best_s: 0.0,
            median_s: 0.0,
            ok: true,
        }
    }

    fn peers(&self) -> &'static [&'static str] {
        match self.case {
            FilterCase::Median => &["scipy-median", "dask-image-median"],
            FilterCase::Jacobi => &["numpy-jacobi", "memmap-jacobi", "dask-jacobi"],
        }
    }

    /// Contestants of one rank, which start threads of their own.
    fn in_memory<'a>(self: &Arc<Self>, comm: &Comm) -> Vec<Contestant<'a>> {
        type Way = fn(&Work, &mut [f32], &mut [f32]) -> Result<()>;
        let ways: &[(&str, &str, Way)] = match self.case {
            FilterCase::Median => &[
                ("memory", "kernel", |work, _, new| {
                    median_in_memory(&work.values, work.extent, new)
                }),
                ("limit", "read + kernel + write", |work, old, new| {
                    work.read_halves(old)?;
                    median_in_memory(old, work.extent, new)?;
                    work.write_halves(new)
                }),
                ("limit", "read + write", |work, old, _| {
                    work.read_halves(old)?;
                    work.write_halves(old)
                }),
            ],
            FilterCase::Jacobi => &[
                ("memory", "fused sweeps", |work, _, new| {
                    fused_sweeps(work, new)
                }),
                ("memory", "plain sweeps", |work, old, new| {
                    plain_sweeps(old, new, work.extent);
                    // Ten sweeps end where they began.
                    Ok(())
                }),
            ],
        };
        let first = comm.rank() == 0;
        let buffers: Rc<RefCell<Option<Pair>>> = Rc::default();
        let contestants = ways.iter().map(|(system, strategy, way)| {
            let (work, checked) = (Arc::clone(self), Arc::clone(self));
            let fresh = Arc::clone(self);
            let [prepared, used, found] = [(); 3].map(|()| Rc::clone(&buffers));
            let in_place = *strategy == "plain sweeps";
            let copied = *strategy == "read + write";
            Contestant {
                line: self.line(system, strategy),
                prepare: Box::new(move || {
                    if first {
                        let mut buffers = prepared.borrow_mut();
                        let (old, new) = buffers
                            .get_or_insert_with(|| (fresh.values.clone(), fresh.values.clone()));
                        old.copy_from_slice(&fresh.values);
                        new.fill(0.0);
                        let _ = std::fs::remove_file(fresh.directory.join("limit.bin"));
                    }
                    Ok(())
                }),
                work: Box::new(move || match used.borrow_mut().as_mut() {
                    Some((old, new)) => way(&work, old, new),
                    None => Ok(()),
                }),
                check: Box::new(move || match found.borrow().as_ref() {
                    Some((old, _)) if copied => *old == checked.values,
                    Some((old, _)) if in_place => *old == checked.expected,
                    Some((_, new)) => *new == checked.expected,
                    None => true,
                }),
                batch: 1,
            }
        });
        contestants.collect()
    }

    /// Two threads read the file by plain `pread`s.
    fn read_halves(&self, into: &mut [f32]) -> Result<()> {
        let path = self.directory.join("in.oc/data.bin");
        let file = std::fs::File::open(&path);
        let file = file.map_err(|source| Error::File {
            action: "open",
            path: path.clone(),
            source,
        })?;
        let half = into.len() / 2;
        in_halves(into, half, |at, part| {
            use std::os::unix::fs::FileExt;
            let mut offset = at as u64 * 4;
            for block in bytemuck::cast_slice_mut::<f32, u8>(part).chunks_mut(1 << 20) {
                file.read_exact_at(block, offset)?;
                offset += block.len() as u64;
            }
            Ok(())
        })
        .map_err(|source| Error::File {
            action: "read",
            path,
            source,
        })
    }

    /// Two threads write a new file by plain `pwrite`s.
    fn write_halves(&self, from: &mut [f32]) -> Result<()> {
        let path = self.directory.join("limit.bin");
        let failed = |source| Error::File {
            action: "write",
            path: path.clone(),
            source,
        };
        let file = std::fs::File::create(&path).map_err(failed)?;
        let half = from.len() / 2;
        in_halves(from, half, |at, part| {
            use std::os::unix::fs::FileExt;
            let mut offset = at as u64 * 4;
            for block in bytemuck::cast_slice::<f32, u8>(part).chunks(1 << 20) {
                file.write_all_at(block, offset)?;
                offset += block.len() as u64;
            }
            Ok(())
        })
        .map_err(failed)
    }
}

/// Two threads, each with its half and where that begins.
fn in_halves<T: Send, E: Send>(
    values: &mut [T],
    half: usize,
    work: impl Fn(usize, &mut [T]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let (low, high) = values.split_at_mut(half);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| work(half, high));
        work(0, low)?;
        other.join().expect("the thread does not panic")
    })
}

fn median_in_memory(values: &[f32], extent: usize, result: &mut [f32]) -> Result<()> {
    in_halves(result, values.len() / 2, |at, half| {
        let first = at / extent;
        let block = Block {
            values,
            shape: &[extent, extent],
            core: &[first..first + half.len() / extent, 0..extent],
        };
        MedianKernel::<f32>::new(&[3, 3]).filter(&block, half)
    })
}

/// All sweeps in one pass over memory.
fn fused_sweeps(work: &Work, result: &mut [f32]) -> Result<()> {
    let extent = work.extent;
    let grid = Grid::new(&[extent, extent], Edges::Fixed);
    in_halves(result, work.values.len() / 2, |at, half| {
        let first = at / extent;
        let core = first..first + half.len() / extent;
        relax(&grid, &work.values, core, SWEEPS, half).map(drop)
    })
}

/// One sweep after the other over all of memory; the result is in `old`.
fn plain_sweeps(old: &mut [f32], new: &mut [f32], extent: usize) {
    fn sweep(old: &[f32], new: &mut [f32], extent: usize) {
        let half = new.len() / 2;
        let done = in_halves(new, half, |at, rows| {
            for (k, row) in rows.chunks_exact_mut(extent).enumerate() {
                let r = at / extent + k;
                let of = |r: usize| &old[r * extent..(r + 1) * extent];
                row.copy_from_slice(of(r));
                if r == 0 || r + 1 == extent {
                    continue;
                }
                let inside = extent - 2;
                let (up, down) = (&of(r - 1)[1..][..inside], &of(r + 1)[1..][..inside]);
                let (left, right) = (&of(r)[..inside], &of(r)[2..][..inside]);
                let row = &mut row[1..][..inside];
                for j in 0..inside {
                    row[j] = (((up[j] + down[j]) + left[j]) + right[j]) * 0.25;
                }
            }
            Ok::<(), ()>(())
        });
        done.expect("no sweep fails");
    }
    for _ in 0..SWEEPS / 2 {
        sweep(old, new, extent);
        sweep(new, old, extent);
    }
}

/// From file to file, with memory for an eighth of the data.
fn out_of_core<'a>(comm: &'a Comm, work: &Arc<Work>) -> Result<Contestant<'a>> {
    let name = |file: &str| work.directory.join(file).to_string_lossy().to_string();
    let (input, output) = (name("in.oc"), name("out.oc"));
    let source = Array::open(&input)?;
    let descriptor = source.descriptor().clone();
    let budget = MemoryBudget::of(4 * work.values.len() as u64 / 8);
    let target: Rc<RefCell<Option<Array>>> = Rc::default();
    let (prepared, found) = (Rc::clone(&target), Rc::clone(&target));
    let (case, checked) = (work.case, Arc::clone(work));
    Ok(Contestant {
        line: work.line("outcore", "out of core"),
        prepare: Box::new(move || {
            *prepared.borrow_mut() = None;
            comm.barrier()?;
            let made = match comm.rank() {
                0 => {
                    let _ = std::fs::remove_dir_all(&output);
                    Array::create(&output, &descriptor).map(drop)
                }
                _ => Ok(()),
            };
            comm.agree(made)?;
            *prepared.borrow_mut() = Some(Array::open_writable(&output)?);
            Ok(())
        }),
        work: Box::new(move || {
            let target = target.borrow();
            let target = target.as_ref().expect("prepared");
            let resources = Resources::of(budget.clone());
            match case {
                FilterCase::Median => {
                    let window = Window::new(&[3, 3])?;
                    filter(comm, &source, target, &window, &resources)
                }
                FilterCase::Jacobi => {
                    let problem = Problem {
                        fuse: Some(SWEEPS as u64),
                        ..Problem::new(SWEEPS as u64)
                    };
                    solve(comm, &source, &[target], &problem, &resources).map(drop)
                }
            }
        }),
        check: Box::new(move || {
            let target = found.borrow();
            let read = |section: &Section| target.as_ref()?.read::<f32>(section).ok();
            let whole = target.as_ref().map(Array::whole);
            let values = whole
                .filter(|_| comm.rank() == 0)
                .and_then(|whole| read(&whole));
            comm.rank() != 0 || values.is_some_and(|values| values == checked.expected)
        }),
        batch: 1,
    })
}

/// Another system, which rank 0 asks.
fn other_system<'a>(
    comm: &Comm,
    work: &Work,
    python: &Path,
    peer: &'static str,
) -> Result<Contestant<'a>> {
    let input = work.directory.join("in.oc/data.bin");
    let start = || {
        let scratch = work.directory.join("peers");
        PythonPeer::start(python, peer, (&input, work.extent as u64), &scratch, None)
    };
    let process = comm.agree(if comm.rank() == 0 {
        start().map(Some)
    } else {
        Ok(None)
    })?;
    let process = Rc::new(process);
    let ask = |command: &'static str| {
        let process = Rc::clone(&process);
        move || {
            process
                .as_ref()
                .as_ref()
                .map_or(Ok(true), |process| process.ask(command))
        }
    };
    let (prepare, run, check) = (ask("prepare"), ask("run"), ask("check"));
    Ok(Contestant {
        line: work.line(peer, "files"),
        prepare: Box::new(move || prepare().map(drop)),
        work: Box::new(move || run().map(drop)),
        check: Box::new(move || check().unwrap_or(false)),
        batch: 1,
    })
}
