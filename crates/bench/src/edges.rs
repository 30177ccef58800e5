//! The case `edges` of the bench `apps`: steps over the edges of a mesh of
//! triangles whose nodes have numbers in random order, beside the same loop in
//! memory.
//!
//! Edges and nodes are in files, in the page cache. Out of core means: memory
//! for an eighth of them, in which schedules are made anew in each step; or for
//! all of them, in which schedules are kept. Everybody computes on two threads
//! or ranks. Values are such that sums are exact, so results are equal.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use outcore::{Array, ArrayDescriptor, Comm, ElementType, Error, MemoryBudget, Result};
use outcore_apps::Resources;
use outcore_apps::edge_sweep::{EdgeSweep, Mesh, copy_nodes, sweep_edges, sweep_in_memory};

use crate::apps::AppsOptions;
use crate::contest::{Contestant, contest};
use crate::io::{Scratch, prime_memory};
use crate::line::Line;

/// The nodes along each side if nobody says.
const EXTENT: u64 = 2000;

/// The threads or ranks of every contestant.
const THREADS: usize = 2;

const SWEEP: EdgeSweep = EdgeSweep {
    done: 0,
    steps: 10,
    step_size: 0.125,
};

/// Runs the case.
pub(crate) fn edges(options: &AppsOptions) -> Result<Vec<Line>> {
    let extent = options.extent.unwrap_or(EXTENT);
    let mesh = Mesh {
        nodes: extent * extent,
        seed: 6,
    };
    prime_memory(mesh.nodes * 8 * 8)?;
    let scratch = Scratch::new(&options.directory, "edges");
    let directory = PathBuf::from(scratch.name());
    std::fs::create_dir_all(&directory).map_err(|source| Error::File {
        action: "create",
        path: directory.clone(),
        source,
    })?;
    let name = |name: &str| directory.join(name).to_string_lossy().to_string();
    let edges = Array::create(&name("edges.oc"), &mesh.edge_descriptor())?;
    outcore::run(THREADS, |comm| mesh.write_edges(comm, &edges, &|_| ()))?;
    let descriptor = ArrayDescriptor::new(&[mesh.nodes], ElementType::F64);
    let nodes = Array::create(&name("nodes.oc"), &descriptor)?;
    let value = |node: u64| (node.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as f64;
    let values: Vec<f64> = (0..mesh.nodes).map(value).collect();
    nodes.write(&nodes.whole(), &values)?;
    let pairs: Vec<u32> = edges.read(&edges.whole())?;
    let pairs: Vec<[u32; 2]> = pairs.as_chunks::<2>().0.to_vec();
    let mut expected = values.clone();
    sweep_in_memory(&pairs, &mut expected, 1, &SWEEP);
    let work = Arc::new(Work {
        arrays: [edges, nodes],
        results: [
            Array::create(&name("a.oc"), &descriptor)?,
            Array::create(&name("b.oc"), &descriptor)?,
        ],
        pairs,
        values,
        expected,
    });
    let lines = outcore::run(1, |comm| {
        let contestants = vec![
            work.kernel(),
            work.out_of_core(8, "memory for 1/8"),
            work.out_of_core(1, "memory for all"),
        ];
        contest(comm, contestants, options.repeats)
    })?;
    Ok(lines.into_iter().flatten().collect())
}

/// What all contestants do.
struct Work {
    /// Edges and nodes.
    arrays: [Array; 2],
    /// They take turns.
    results: [Array; 2],
    pairs: Vec<[u32; 2]>,
    values: Vec<f64>,
    expected: Vec<f64>,
}

impl Work {
    /// The bytes of edges and nodes.
    fn bytes(&self) -> u64 {
        let [edges, nodes] = &self.arrays;
        edges.layout().byte_len() + nodes.layout().byte_len()
    }

    fn line(&self, system: &str, strategy: &str) -> Line {
        let [edges, nodes] = [self.pairs.len(), self.values.len()];
        Line {
            system: system.into(),
            bench: "apps",
            case: format!("{} steps over {edges} edges of {nodes} f64", SWEEP.steps),
            op: "edges",
            strategy: strategy.into(),
            transport: "threads".into(),
            ranks: THREADS,
            useful_bytes: self.bytes() * SWEEP.steps,
            best_s: 0.0,
            median_s: 0.0,
            ok: true,
        }
    }

    /// The loop in memory: the limit.
    fn kernel<'a>(self: &Arc<Self>) -> Contestant<'a> {
        let result = Rc::new(RefCell::new(self.values.clone()));
        let [prepared, used, found] = [(); 3].map(|()| Rc::clone(&result));
        let [first, work, checked] = [(); 3].map(|()| Arc::clone(self));
        let mut sums = vec![vec![0.0; self.values.len()]; THREADS];
        Contestant {
            line: self.line("memory", "loop"),
            prepare: Box::new(move || {
                prepared.borrow_mut().copy_from_slice(&first.values);
                Ok(())
            }),
            work: Box::new(move || {
                for _ in 0..SWEEP.steps {
                    step_in_memory(&work.pairs, &mut used.borrow_mut(), &mut sums);
                }
                Ok(())
            }),
            check: Box::new(move || *found.borrow() == checked.expected),
            batch: 1,
        }
    }

    /// From files to a file, with memory for one of so many parts of the data.
    fn out_of_core<'a>(self: &Arc<Self>, parts: u64, strategy: &str) -> Contestant<'a> {
        let [work, checked] = [(); 2].map(|()| Arc::clone(self));
        let budget = MemoryBudget::of(self.bytes() / parts);
        let holder = Rc::new(RefCell::new(0));
        let found = Rc::clone(&holder);
        Contestant {
            line: self.line("outcore", strategy),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || {
                let [edges, nodes] = &work.arrays;
                let values = [&work.results[0], &work.results[1]];
                let rank = |comm: &Comm| {
                    let resources = Resources::of(budget.clone());
                    copy_nodes(comm, nodes, values[0], &resources)?;
                    sweep_edges(comm, edges, values, &SWEEP, &resources, &|_, _| Ok(()))
                };
                *holder.borrow_mut() = outcore::run(THREADS, rank)?[0].holder;
                Ok(())
            }),
            check: Box::new(move || {
                let result = &checked.results[*found.borrow()];
                let values: Result<Vec<f64>> = result.read(&result.whole());
                values.is_ok_and(|values| values == checked.expected)
            }),
            batch: 1,
        }
    }
}

/// Each thread has some of the edges, and sums of its own for all nodes.
fn step_in_memory(edges: &[[u32; 2]], values: &mut [f64], sums: &mut [Vec<f64>]) {
    let old = &*values;
    std::thread::scope(|scope| {
        let shares = edges.chunks(edges.len().div_ceil(THREADS).max(1));
        for (edges, sums) in shares.zip(&mut *sums) {
            scope.spawn(move || {
                sums.fill(0.0);
                for [a, b] in edges {
                    let (a, b) = (*a as usize, *b as usize);
                    let amount = SWEEP.step_size * (old[b] - old[a]);
                    sums[a] += amount;
                    sums[b] -= amount;
                }
            });
        }
    });
    let share = values.len().div_ceil(THREADS).max(1);
    let sums = &*sums;
    std::thread::scope(|scope| {
        for (at, values) in values.chunks_mut(share).enumerate() {
            scope.spawn(move || {
                for sums in sums {
                    let sums = &sums[at * share..];
                    for (value, sum) in values.iter_mut().zip(sums) {
                        *value += sum;
                    }
                }
            });
        }
    });
}
