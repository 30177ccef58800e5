//! [`TaskPool`]: tasks of unequal length, done by whichever rank is free.
//!
//! Tasks are numbers from 0. Under [`Balance::Counter`] the ranks take the next
//! ones from a counter that all share, many at first and fewer towards the end
//! (guided chunks: of what is left, a share of half a rank's). Under
//! [`Balance::Stealing`] each rank begins with an equal share of its own, a range
//! that is one word in shared memory: it takes tasks from the lower end, and who
//! has none left takes the upper half of somebody else's. Both are elements of a
//! global array that change by compare-and-swap, so they work across nodes, too.
//!
//! Invariants: every task is done once, by one rank, unless one fails; then no
//! more are handed out, and all ranks return the same error with the lowest task
//! that failed. Every rank enters the gathering, whatever happened to it.

use bytemuck::Pod;
use outcore_geometry::{AxisDistribution, Distribution};
use outcore_transport::{Comm, panics};

use super::agreement::same_on_all;
use super::global_array::GlobalArray;
use super::procedure_call::Procedures;
use crate::error::{Error, Result};

/// The words of each rank: a line of the cache.
const WORDS: u64 = 8;

/// Which of them: a rank's range (of rank 0: the counter), and whether to stop.
const RANGE: u64 = 0;
const STOP: u64 = 1;

/// How tasks find ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Balance {
    /// A counter that all share, in guided chunks: in order, and fair.
    Counter,
    /// Equal shares, and stealing: neighbouring tasks stay together, and nobody
    /// waits for a common word.
    Stealing,
}

/// Tasks of unequal length, done by whichever rank is free.
///
/// ```
/// use outcore::{Balance, Comm, TaskPool};
/// outcore::run(3, |comm: &Comm| {
///     let pool = TaskPool::new(comm, None, Balance::Stealing)?;
///     let squares = pool.run(comm, 100, |task| Ok(task * task))?;
///     assert_eq!(squares[9], 81);
///     let failed = pool.run(comm, 100, |task| match task {
///         7 => Err(outcore::Error::Invalid("no good".into())),
///         _ => Ok(task),
///     });
///     assert!(failed.unwrap_err().to_string().contains("task 7"));
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug)]
pub struct TaskPool {
    words: GlobalArray<u64>,
    balance: Balance,
}

impl TaskPool {
    /// Collective: a pool for any number of runs. Ranks of different nodes need
    /// `procedures` of the same group.
    pub fn new(comm: &Comm, procedures: Option<&Procedures>, balance: Balance) -> Result<Self> {
        let ranks = comm.size() as u64;
        let block = [AxisDistribution::BlockSize(WORDS)];
        let words = Distribution::new(&[ranks * WORDS], &block, &[ranks]);
        let words = words.map_err(Error::geometry("a task pool"))?;
        Self::over(comm, GlobalArray::new(comm, procedures, words)?, balance)
    }

    /// Collective: the same, as if every rank were on a node of its own. For tests
    /// and measurements.
    pub fn apart(comm: &Comm, procedures: &Procedures, balance: Balance) -> Result<Self> {
        let ranks = comm.size() as u64;
        let block = [AxisDistribution::BlockSize(WORDS)];
        let words = Distribution::new(&[ranks * WORDS], &block, &[ranks]);
        let words = words.map_err(Error::geometry("a task pool"))?;
        Self::over(comm, GlobalArray::apart(comm, procedures, words)?, balance)
    }

    fn over(comm: &Comm, words: GlobalArray<u64>, balance: Balance) -> Result<Self> {
        let differ = "the ranks of a task pool balance in different ways";
        same_on_all(comm, balance, differ)?;
        Ok(Self { words, balance })
    }

    /// Collective: does tasks `0..tasks`, each on some rank, and gives all ranks
    /// the results in the order of the tasks.
    pub fn run<R: Pod>(
        &self,
        comm: &Comm,
        tasks: u64,
        task: impl FnMut(u64) -> Result<R>,
    ) -> Result<Vec<R>> {
        let (indices, results) = self.work(comm, tasks, task)?;
        let indices = comm.all_gatherv(&indices)?.concat();
        let results = match size_of::<R>() {
            0 => results,
            _ => comm.all_gatherv(&results)?.concat(),
        };
        Ok(in_order(tasks, &indices, &results))
    }

    /// Collective: the same, with the results for rank `root` only; `None` on the
    /// others.
    pub fn run_for<R: Pod>(
        &self,
        comm: &Comm,
        root: usize,
        tasks: u64,
        task: impl FnMut(u64) -> Result<R>,
    ) -> Result<Option<Vec<R>>> {
        same_on_all(comm, root, "the ranks name different ranks for the results")?;
        if root >= comm.size() {
            return Err(Error::Invalid(format!(
                "there is no rank {root} among {}",
                comm.size()
            )));
        }
        let (indices, results) = self.work(comm, tasks, task)?;
        let indices = comm.gatherv(root, &indices)?;
        let results = match size_of::<R>() {
            0 => indices.is_some().then(|| vec![results]),
            _ => comm.gatherv(root, &results)?,
        };
        let both = indices.zip(results);
        Ok(both.map(|(indices, results)| in_order(tasks, &indices.concat(), &results.concat())))
    }

    /// Collective: does tasks that leave their results elsewhere, as in a global
    /// array.
    pub fn each(&self, comm: &Comm, tasks: u64, task: impl FnMut(u64) -> Result<()>) -> Result<()> {
        self.work(comm, tasks, task).map(|_| ())
    }

    /// Collective: what this rank has done: the tasks and their results.
    fn work<R>(
        &self,
        comm: &Comm,
        tasks: u64,
        task: impl FnMut(u64) -> Result<R>,
    ) -> Result<(Vec<u64>, Vec<R>)> {
        // 1. All mean the same; then everybody's words are as at the beginning.
        same_on_all(comm, tasks, "the ranks have different numbers of tasks")?;
        let most = u64::from(u32::MAX);
        if self.balance == Balance::Stealing && tasks > most {
            return Err(Error::Invalid(format!(
                "{tasks} tasks are too many to be stolen: {most} can be"
            )));
        }
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let bound = |rank: u64| (u128::from(tasks) * u128::from(rank) / u128::from(ranks)) as u64;
        let first = match self.balance {
            Balance::Counter => 0,
            Balance::Stealing => pack(bound(rank), bound(rank + 1)),
        };
        self.words.put_one(&[rank * WORDS + RANGE], first)?;
        self.words.put_one(&[rank * WORDS + STOP], 0)?;
        self.words.sync(comm)?;
        // 2. Tasks until there are none; the first that fails stops all.
        let mut worker = Worker {
            words: &self.words,
            tasks,
            rank,
            ranks,
            taken: 0..0,
        };
        let mut done = (Vec::new(), Vec::new());
        let failure = worker.run(self.balance, task, &mut done);
        // 3. Everybody learns of failures.
        report(comm, failure)?;
        Ok(done)
    }
}

/// What went wrong on a rank, with the task if one did.
type Failure = Option<(u64, String)>;

/// The number of no task.
const NO_TASK: u64 = u64::MAX;

struct Worker<'a> {
    words: &'a GlobalArray<u64>,
    tasks: u64,
    rank: u64,
    ranks: u64,
    /// Taken from the counter, but not done yet.
    taken: std::ops::Range<u64>,
}

impl Worker<'_> {
    fn run<R>(
        &mut self,
        balance: Balance,
        mut task: impl FnMut(u64) -> Result<R>,
        done: &mut (Vec<u64>, Vec<R>),
    ) -> Failure {
        loop {
            let next = match balance {
                Balance::Counter => self.count(),
                Balance::Stealing => self.take_or_steal(),
            };
            let index = match next {
                Ok(Some(index)) => index,
                Ok(None) => return None,
                Err(error) => return Some((NO_TASK, error.to_string())),
            };
            // Contained: under MPI a panic would end the job.
            let cause = match panics::contain(|| task(index)) {
                Ok(Ok(result)) => {
                    done.0.push(index);
                    done.1.push(result);
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(said) => format!("panicked: {said}"),
            };
            for rank in 0..self.ranks {
                // Who cannot be told works on for nothing, but comes to the end.
                let _ = self.words.put_one(&[rank * WORDS + STOP], 1);
            }
            return Some((index, cause));
        }
    }

    fn is_stopped(&self) -> Result<bool> {
        Ok(self.words.get_one(&[self.rank * WORDS + STOP])? != 0)
    }

    /// The next task of the counter.
    fn count(&mut self) -> Result<Option<u64>> {
        if self.is_stopped()? {
            return Ok(None);
        }
        if let Some(index) = self.taken.next() {
            return Ok(Some(index));
        }
        let mut seen = self.words.get_one(&[RANGE])?;
        while seen < self.tasks {
            let chunk = ((self.tasks - seen) / (2 * self.ranks)).max(1);
            let found = self.words.compare_and_swap(&[RANGE], seen, seen + chunk)?;
            if found == seen {
                self.taken = seen + 1..seen + chunk;
                return Ok(Some(seen));
            }
            seen = found;
        }
        Ok(None)
    }

    /// The next task of the own range, or of somebody else's.
    fn take_or_steal(&mut self) -> Result<Option<u64>> {
        let own = self.rank * WORDS + RANGE;
        loop {
            if self.is_stopped()? {
                return Ok(None);
            }
            let mut seen = self.words.get_one(&[own])?;
            loop {
                let (lower, upper) = unpack(seen);
                if lower == upper {
                    break;
                }
                let rest = pack(lower + 1, upper);
                let found = self.words.compare_and_swap(&[own], seen, rest)?;
                if found == seen {
                    return Ok(Some(lower));
                }
                seen = found;
            }
            // Only its owner puts a range where there was none.
            match self.steal()? {
                Some(range) => self.words.compare_and_swap(&[own], seen, range)?,
                None => return Ok(None),
            };
        }
    }

    /// The upper half of a range of somebody else; `None` if nobody has one.
    fn steal(&self) -> Result<Option<u64>> {
        for further in 1..self.ranks {
            let victim = (self.rank + further) % self.ranks * WORDS + RANGE;
            let mut seen = self.words.get_one(&[victim])?;
            loop {
                let (lower, upper) = unpack(seen);
                if lower == upper {
                    break;
                }
                let middle = lower + (upper - lower) / 2;
                let rest = pack(lower, middle);
                let found = self.words.compare_and_swap(&[victim], seen, rest)?;
                if found == seen {
                    return Ok(Some(pack(middle, upper)));
                }
                seen = found;
            }
        }
        Ok(None)
    }
}

/// A range of tasks in one word.
fn pack(lower: u64, upper: u64) -> u64 {
    lower << 32 | upper
}

fn unpack(range: u64) -> (u64, u64) {
    (range >> 32, range & u64::from(u32::MAX))
}

/// Collective: fails on all ranks alike if any has failed.
fn report(comm: &Comm, failure: Failure) -> Result<()> {
    let mut own = Vec::new();
    if let Some((index, cause)) = failure {
        own.extend(index.to_ne_bytes());
        own.extend(cause.as_bytes());
    }
    let all = comm.all_gatherv(&own)?;
    let failed = all.iter().enumerate().filter_map(|(rank, text)| {
        let (index, cause) = text.split_first_chunk()?;
        let cause = String::from_utf8_lossy(cause).into_owned();
        Some((u64::from_ne_bytes(*index), rank, cause))
    });
    match failed.min() {
        None => Ok(()),
        Some((NO_TASK, rank, cause)) => {
            Err(outcore_transport::Error::Agreed { rank, cause }.into())
        }
        Some((index, rank, cause)) => Err(Error::Task { index, rank, cause }),
    }
}

/// Results in the order of their tasks.
fn in_order<R: Pod>(tasks: u64, indices: &[u64], results: &[R]) -> Vec<R> {
    let mut ordered = vec![R::zeroed(); tasks as usize];
    for (index, result) in indices.iter().zip(results) {
        ordered[*index as usize] = *result;
    }
    ordered
}
