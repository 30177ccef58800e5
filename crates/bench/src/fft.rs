//! The case `fft` of the bench `apps`: the transform of a square array from a
//! file to a new file, beside the same transform in memory and other systems.
//!
//! The array is of c64 and in the page cache. Out of core means: memory for an
//! eighth of it. Everybody computes on two threads or ranks.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use outcore::{Array, ArrayDescriptor, Comm, Complex, ElementType, Error, MemoryBudget, Result};
use outcore_apps::Resources;
use outcore_apps::fft::{Fourier, transform, transform_in_memory};

use crate::apps::AppsOptions;
use crate::contest::{Contestant, contest};
use crate::io::{Scratch, prime_memory};
use crate::line::Line;
use crate::python_peer::PythonPeer;

/// The extent if nobody says.
const EXTENT: u64 = 4096;

/// The threads of every contestant.
const THREADS: usize = 2;

type Values = Vec<Complex<f32>>;

/// Runs the case.
pub(crate) fn fft(options: &AppsOptions) -> Result<Vec<Line>> {
    let extent = options.extent.unwrap_or(EXTENT);
    prime_memory(4 * extent * extent * 8)?;
    let scratch = Scratch::new(&options.directory, "fft");
    let directory = PathBuf::from(scratch.name());
    std::fs::create_dir_all(&directory).map_err(|source| Error::File {
        action: "create",
        path: directory.clone(),
        source,
    })?;
    let descriptor = ArrayDescriptor::new(&[extent, extent], ElementType::C64);
    let name = directory.join("in.oc").to_string_lossy().to_string();
    let array = Array::create(&name, &descriptor)?;
    let part = |number: u64| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / 1e7;
    let value = |number: u64| Complex::new(part(number), part(!number));
    let values: Values = (0..extent * extent).map(value).collect();
    array.write(&array.whole(), &values)?;
    // Read in large blocks, so that the page cache holds it in large pieces.
    let values: Values = array.read(&array.whole())?;
    let mut expected = values.clone();
    in_memory(&mut expected);
    let work = Arc::new(Work {
        extent,
        values,
        expected,
        directory,
        descriptor,
    });
    let lines = outcore::run(1, |comm| {
        let mut contestants = vec![
            work.kernel(),
            work.out_of_core(comm, 1),
            work.out_of_core(comm, THREADS),
        ];
        if let Some(python) = &options.python {
            for peer in ["scipy-fft", "dask-fft"] {
                contestants.push(work.other_system(python, peer)?);
            }
        }
        contest(comm, contestants, options.repeats)
    })?;
    Ok(lines.into_iter().flatten().collect())
}

fn in_memory(values: &mut [Complex<f32>]) {
    let extent = values.len().isqrt();
    transform_in_memory(values, &[extent, extent], &[1, 0], false, THREADS);
}

/// What all contestants do.
struct Work {
    extent: u64,
    values: Values,
    expected: Values,
    directory: PathBuf,
    descriptor: ArrayDescriptor,
}

impl Work {
    fn line(&self, system: &str, strategy: &str) -> Line {
        let extent = self.extent;
        Line {
            system: system.into(),
            bench: "apps",
            case: format!("transform of {extent}x{extent} c64"),
            op: "fft",
            strategy: strategy.into(),
            transport: "threads".into(),
            ranks: THREADS,
            useful_bytes: 2 * 8 * self.values.len() as u64,
            best_s: 0.0,
            median_s: 0.0,
            ok: true,
        }
    }

    /// The transform in memory: the limit.
    fn kernel<'a>(self: &Arc<Self>) -> Contestant<'a> {
        let result = Rc::new(RefCell::new(self.values.clone()));
        let [prepared, used, found] = [(); 3].map(|()| Rc::clone(&result));
        let [work, checked] = [(); 2].map(|()| Arc::clone(self));
        Contestant {
            line: self.line("memory", "kernel"),
            prepare: Box::new(move || {
                prepared.borrow_mut().copy_from_slice(&work.values);
                Ok(())
            }),
            work: Box::new(move || {
                in_memory(&mut used.borrow_mut());
                Ok(())
            }),
            check: Box::new(move || *found.borrow() == checked.expected),
            batch: 1,
        }
    }

    /// From a file to a new file, with memory for an eighth of it.
    fn out_of_core<'a>(self: &Arc<Self>, comm: &'a Comm, ranks: usize) -> Contestant<'a> {
        let strategy = if ranks == 1 { "1 rank" } else { "2 ranks" };
        let [prepared, work, checked] = [(); 3].map(|()| Arc::clone(self));
        let output = self.directory.join("out.oc");
        let [made, used, found] = [(); 3].map(|()| output.to_string_lossy().to_string());
        let budget = MemoryBudget::of(8 * self.values.len() as u64 / 8);
        Contestant {
            line: self.line("outcore", strategy),
            prepare: Box::new(move || {
                let _ = std::fs::remove_dir_all(&made);
                Array::create(&made, &prepared.descriptor).map(drop)
            }),
            work: Box::new(move || {
                let source = Array::open(&work.directory.join("in.oc").to_string_lossy())?;
                let target = Array::open_writable(&used)?;
                let resources = Resources::of(budget.clone());
                let (into, whole) = ((&target, None), Fourier::default());
                if ranks == 1 {
                    return transform(comm, &source, into, &whole, &resources).map(drop);
                }
                let rank = |comm: &Comm| transform(comm, &source, into, &whole, &resources);
                outcore::run(ranks, rank).map(drop)
            }),
            check: Box::new(move || {
                let values = Array::open(&found).and_then(|found| found.read(&found.whole()));
                values.is_ok_and(|values: Values| values == checked.expected)
            }),
            batch: 1,
        }
    }

    /// Another system.
    fn other_system<'a>(&self, python: &Path, peer: &'static str) -> Result<Contestant<'a>> {
        let input = self.directory.join("in.oc/data.bin");
        let scratch = self.directory.join("peers");
        let process = PythonPeer::start(python, peer, (&input, self.extent), &scratch, None)?;
        Ok(process.contestant(self.line(peer, "files")))
    }
}
