//! The case `matmul` of the bench `apps`: `C = A B` from files to a new file,
//! beside the same kernel in memory and other systems.
//!
//! Matrices are square, of f64, in the page cache. Out of core means: memory for
//! an eighth of the three matrices. Everybody computes on two threads: one rank
//! with two, or two ranks with one each.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use outcore::{Array, ArrayDescriptor, Comm, ElementType, Error, Fill, MemoryBudget, Result};
use outcore_apps::Resources;
use outcore_apps::matmul::{Form, Matrix, multiply, multiply_in_memory};

use crate::apps::AppsOptions;
use crate::contest::{Contestant, contest};
use crate::io::{Scratch, prime_memory};
use crate::line::Line;
use crate::python_peer::PythonPeer;

/// The extent if nobody says.
const EXTENT: u64 = 4096;

/// The threads of every contestant.
const THREADS: usize = 2;

/// Runs the case.
pub(crate) fn matmul(options: &AppsOptions) -> Result<Vec<Line>> {
    let extent = options.extent.unwrap_or(EXTENT);
    let bytes = extent * extent * 8;
    prime_memory(bytes)?;
    let scratch = Scratch::new(&options.directory, "matmul");
    let directory = PathBuf::from(scratch.name());
    std::fs::create_dir_all(&directory).map_err(|source| Error::File {
        action: "create",
        path: directory.clone(),
        source,
    })?;
    let descriptor = ArrayDescriptor::new(&[extent, extent], ElementType::F64);
    let make = |file: &str, seed: u64| {
        let name = directory.join(file).to_string_lossy().to_string();
        let array = Array::create(&name, &descriptor)?;
        let mut values = vec![0; bytes as usize];
        Fill::Random(seed).generate(&array, &array.whole(), &mut values)?;
        array.write_bytes(&array.whole(), &values)?;
        drop(values);
        array.read::<f64>(&array.whole())
    };
    let (a, b) = (make("a.oc", 1)?, make("b.oc", 2)?);
    let mut expected = vec![0.0; a.len()];
    in_memory(&a, &b, &mut expected)?;
    let work = Arc::new(Work {
        extent,
        a,
        b,
        expected,
        directory,
        descriptor,
    });
    let lines = outcore::run(1, |comm| {
        let mut contestants = vec![
            work.kernel(),
            work.out_of_core(comm, 1, Form::Blocked),
            work.out_of_core(comm, THREADS, Form::Blocked),
            work.out_of_core(comm, THREADS, Form::Gaxpy),
        ];
        if let Some(python) = &options.python {
            for peer in ["memmap-matmul", "dask-matmul"] {
                contestants.push(work.other_system(python, peer)?);
            }
        }
        contest(comm, contestants, options.repeats)
    })?;
    Ok(lines.into_iter().flatten().collect())
}

/// What all contestants do.
struct Work {
    extent: u64,
    a: Vec<f64>,
    b: Vec<f64>,
    expected: Vec<f64>,
    directory: PathBuf,
    descriptor: ArrayDescriptor,
}

fn in_memory(a: &[f64], b: &[f64], c: &mut [f64]) -> Result<()> {
    let extent = a.len().isqrt();
    let shape = (extent, extent);
    let matrix = |values| Matrix {
        values,
        shape,
        by_rows: true,
    };
    let result = Matrix {
        values: c,
        shape,
        by_rows: true,
    };
    multiply_in_memory(result, matrix(a), matrix(b), THREADS)
}

impl Work {
    fn line(&self, system: &str, strategy: &str) -> Line {
        let extent = self.extent;
        Line {
            system: system.into(),
            bench: "apps",
            case: format!("product of {extent}x{extent} f64"),
            op: "matmul",
            strategy: strategy.into(),
            transport: "threads".into(),
            ranks: THREADS,
            useful_bytes: 3 * 8 * self.a.len() as u64,
            best_s: 0.0,
            median_s: 0.0,
            ok: true,
        }
    }

    /// Whether a product is right, as far as the order of sums lets it be.
    fn is_right(&self, found: &[f64]) -> bool {
        let tolerance = 1e-13 * (self.extent * self.extent) as f64;
        let mut pairs = found.iter().zip(&self.expected);
        found.len() == self.expected.len()
            && pairs.all(|(found, expected)| (found - expected).abs() <= tolerance)
    }

    /// The kernel on matrices in memory: the limit.
    fn kernel<'a>(self: &Arc<Self>) -> Contestant<'a> {
        let result = Rc::new(RefCell::new(vec![0.0; self.a.len()]));
        let [prepared, used, found] = [(); 3].map(|()| Rc::clone(&result));
        let [work, checked] = [(); 2].map(|()| Arc::clone(self));
        Contestant {
            line: self.line("memory", "kernel"),
            prepare: Box::new(move || {
                prepared.borrow_mut().fill(0.0);
                Ok(())
            }),
            work: Box::new(move || in_memory(&work.a, &work.b, &mut used.borrow_mut())),
            check: Box::new(move || checked.is_right(&found.borrow())),
            batch: 1,
        }
    }

    /// From files to a new file, with memory for an eighth of the matrices.
    fn out_of_core<'a>(
        self: &Arc<Self>,
        comm: &'a Comm,
        ranks: usize,
        form: Form,
    ) -> Contestant<'a> {
        let strategy = match (form, ranks) {
            (Form::Blocked, 1) => "blocked by 1 rank",
            (Form::Blocked, _) => "blocked by 2 ranks",
            (Form::Gaxpy, _) => "gaxpy by 2 ranks",
        };
        let [prepared, work, checked] = [(); 3].map(|()| Arc::clone(self));
        let output = self.directory.join("out.oc");
        let [made, used, found] = [(); 3].map(|()| output.to_string_lossy().to_string());
        let budget = MemoryBudget::of(3 * 8 * self.a.len() as u64 / 8);
        Contestant {
            line: self.line("outcore", strategy),
            prepare: Box::new(move || {
                let _ = std::fs::remove_dir_all(&made);
                Array::create(&made, &prepared.descriptor).map(drop)
            }),
            work: Box::new(move || {
                let open = |file: &str| Array::open(&work.directory.join(file).to_string_lossy());
                let (a, b, c) = (open("a.oc")?, open("b.oc")?, Array::open_writable(&used)?);
                let resources = Resources::of(budget.clone());
                if ranks == 1 {
                    return multiply(comm, &a, &b, &c, form, &resources);
                }
                outcore::run(ranks, |comm| multiply(comm, &a, &b, &c, form, &resources)).map(drop)
            }),
            check: Box::new(move || {
                let values = Array::open(&found).and_then(|c| c.read::<f64>(&c.whole()));
                values.is_ok_and(|values| checked.is_right(&values))
            }),
            batch: 1,
        }
    }

    /// Another system.
    fn other_system<'a>(&self, python: &Path, peer: &'static str) -> Result<Contestant<'a>> {
        let input = self.directory.join("a.oc/data.bin");
        let scratch = self.directory.join("peers");
        let process = PythonPeer::start(python, peer, (&input, self.extent), &scratch, None)?;
        Ok(process.contestant(self.line(peer, "files")))
    }
}
