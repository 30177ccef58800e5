//! [`contract`]: the tasks of a contraction, each done by the rank that takes it.
//!
//! A rank takes a group of tasks, and goes through the segments of the indices
//! summed over: at each, all tasks of the group add their product, so blocks that
//! they share are fetched once. It takes the next group when it has asked for all
//! blocks of the one before; so blocks are on their way while others are multiplied,
//! from group to group. Every second group goes backwards: what the one before used
//! last, and is still in memory, comes first. If ranks divide the sums instead
//! ([`Division`]), each adds to all blocks of the result, and these are added up and
//! written when there are no more groups.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use outcore::{Comm, Error, Op, Result};

use super::blocks::Blocks;
use super::contraction::{Contraction, Extents, Pair, Task};
use super::division::Division;
use super::matrix_form::Side;
use super::shelf::Shelf;
use super::tensor::permuted;
use crate::matmul::Number;
use crate::matmul::{Before, Matrix, kernel_memory, multiply_add};
use crate::resources::Resources;

/// So many pairs are on their way at most.
const AHEAD: usize = 8;

/// Where the blocks of the tensors are.
pub struct Tensors<'a, T> {
    /// Those of the result.
    pub output: &'a dyn Blocks<T>,
    /// Those of the left factor.
    pub left: &'a dyn Blocks<T>,
    /// Those of the right factor.
    pub right: &'a dyn Blocks<T>,
}

impl<T> std::fmt::Debug for Tensors<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tensors")
    }
}

/// What the ranks have done, and what with their time: the sums over all ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Contracted {
    /// The tasks, which are blocks of the result.
    pub tasks: u64,
    /// The products of two blocks.
    pub pairs: u64,
    /// The bytes of blocks that were fetched; others were in memory still.
    pub fetched: u64,
    /// Seconds in which matrices were multiplied.
    pub multiplying: f64,
    /// Seconds in which a rank waited for blocks, or copied them itself.
    pub fetching: f64,
    /// Seconds in which blocks were permuted.
    pub permuting: f64,
    /// Seconds in which blocks of the result were written.
    pub storing: f64,
    /// Seconds of all ranks from the first task to the last.
    pub running: f64,
}

/// Who gives out the numbers of groups.
pub trait Tasks {
    /// The next number that no rank has got yet, from 0 to one less than
    /// [`Contraction::groups`], which are the most groups that there can be; `None` if
    /// there is none. All must be given out, or the contraction fails.
    fn next(&self) -> Result<Option<u64>>;

    /// A task has failed, and no more should be given out.
    fn stop(&self) {}
}

/// Collective: computes the blocks of the result in groups, each by the rank that gets
/// its number from `tasks`. A block is written as soon as it is there; where the result is
/// small, ranks divide the sums, and write it at the end. All ranks succeed, or all
/// return the same error. One thread a rank multiplies.
pub fn contract<T: Number>(
    comm: &Comm,
    contraction: &Contraction,
    tensors: &Tensors<'_, T>,
    tasks: &dyn Tasks,
    resources: &Resources<'_>,
) -> Result<Contracted> {
    let chunks = [tensors.output, tensors.left, tensors.right].map(Blocks::decoded_bytes);
    let chunks = chunks.into_iter().fold(0, u64::saturating_add);
    let least = least_memory::<T>(contraction).saturating_add(chunks);
    let budget = resources.enough(comm, "the contraction", |_| least)?;
    let (size, pair) = (size_of::<T>() as u64, 2 * largest(contraction));
    // 1. A quarter of what is not needed is for the results of groups, of which all
    // ranks must have the same; the rest is for blocks.
    let (output, free) = (contraction.output(), (budget.limit() - least) / size);
    let quarter = comm.all_reduce(&[free / 4], Op::Min)?[0];
    let more = quarter.min(output.len() - output.largest());
    // Sums have to be received, too.
    let by_sums = contraction.sums_pay(comm.size()) && quarter / 2 >= output.len();
    let (groups, received) = match by_sums {
        true => (contraction.by_sums(comm.size()), output.len()),
        false => (
            contraction.by_tasks(comm.size(), output.largest() + more),
            0,
        ),
    };
    let whole = contraction.left().len() + contraction.right().len();
    let blocks = (free - more - received + pair).min(whole.max(pair));
    let bytes = least + (more + received + blocks - pair) * size;
    let _memory = comm.agree(budget.reserve(bytes, "the contraction"))?;
    // 2. The groups.
    let form = contraction.form();
    let turned = form.output.order.as_ref().map_or(0, |_| output.largest());
    let permutes = form.left.order.is_some() || form.right.order.is_some();
    let spare = if permutes { largest(contraction) } else { 0 };
    let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
    let mut rank = Rank {
        contraction,
        tensors,
        numbers: tasks,
        resources,
        groups,
        shelf: Shelf::new([tensors.left, tensors.right], blocks),
        steps: VecDeque::new(),
        given: 0,
        ended: false,
        backwards: false,
        results: vec![T::zeroed(); (output.largest() + more) as usize],
        turned: vec![T::zeroed(); turned as usize],
        old: Some(Vec::with_capacity(output.largest() as usize)),
        spare: vec![T::zeroed(); spare as usize],
        done: Contracted::default(),
    };
    let start = Instant::now();
    let outcome = rank.run().inspect_err(|_| tasks.stop());
    let mut running = start.elapsed();
    comm.agree(outcome)?;
    // 3. All groups must have been given out.
    let (given, expected) = (rank.given, rank.groups.len() as u64);
    let given = comm.all_reduce(&[given], Op::Sum)?[0];
    if given != expected {
        return Err(Error::Invalid(format!(
            "{given} of the {expected} groups of tasks were given out: a counter serves for one \
             contraction, and counts as many groups as it may have"
        )));
    }
    // 4. The sums of all ranks.
    let mut outcome = Ok(());
    if by_sums {
        outcome = rank.add_up(comm);
        running = start.elapsed();
    }
    let mut done = rank.done;
    done.fetched = rank.shelf.fetched * size;
    done.fetching = rank.shelf.waited.as_secs_f64();
    done.running = running.as_secs_f64();
    drop(rank);
    comm.agree(outcome)?;
    done.of_all(comm)
}

/// The least memory that a rank can contract with, in bytes: a pair of blocks,
/// the block of the result (as it is, as it was, and permuted), a permuted block
/// and what the kernel packs.
pub fn least_memory<T: Number>(contraction: &Contraction) -> u64 {
    let form = contraction.form();
    let results = 2 + u64::from(form.output.order.is_some());
    let spare = u64::from(form.left.order.is_some() || form.right.order.is_some());
    let elements = (2 + spare) * largest(contraction) + results * contraction.output().largest();
    let kernel = kernel_memory::<T>([u64::MAX; 3], 1);
    elements * size_of::<T>() as u64 + kernel
}

/// The elements of the largest block of a factor.
fn largest(contraction: &Contraction) -> u64 {
    contraction
        .left()
        .largest()
        .max(contraction.right().largest())
}

impl Contracted {
    /// Collective: the sums over all ranks.
    fn of_all(self, comm: &Comm) -> Result<Self> {
        let counts = comm.all_reduce(&[self.tasks, self.pairs, self.fetched], Op::Sum)?;
        let seconds = [
            self.multiplying,
            self.fetching,
            self.permuting,
            self.storing,
            self.running,
        ];
        let seconds = comm.all_reduce(&seconds, Op::Sum)?;
        Ok(Self {
            tasks: counts[0],
            pairs: counts[1],
            fetched: counts[2],
            multiplying: seconds[0],
            fetching: seconds[1],
            permuting: seconds[2],
            storing: seconds[3],
            running: seconds[4],
        })
    }

    /// The part of the time of all ranks in which they multiplied.
    pub fn multiplying_share(&self) -> f64 {
        self.multiplying / self.running.max(f64::MIN_POSITIVE)
    }
}

/// One rank at work.
struct Rank<'a, T> {
    contraction: &'a Contraction,
    tensors: &'a Tensors<'a, T>,
    numbers: &'a dyn Tasks,
    resources: &'a Resources<'a>,
    groups: Division,
    shelf: Shelf<'a, T>,
    /// What is to be done next; blocks of all but the last few are on their way.
    steps: VecDeque<Step>,
    /// How many groups this rank was given.
    given: u64,
    /// Whether there are no more groups.
    ended: bool,
    backwards: bool,
    /// The blocks of the result that the group makes, in matrix form; or all of them,
    /// if ranks divide the sums.
    results: Vec<T>,
    /// One of them in the order of its tensor, if that is another.
    turned: Vec<T>,
    /// Memory for the block of the result as it was.
    old: Option<Vec<T>>,
    /// Memory for a permuted block of a factor.
    spare: Vec<T>,
    done: Contracted,
}

/// Tasks that are done together.
struct Group {
    tasks: Vec<Task>,
    /// Where the result of each stands among those of the group.
    places: Vec<usize>,
}

impl Group {
    fn new(tasks: Vec<Task>) -> Self {
        let mut end = 0;
        let places = tasks.iter().map(|task| {
            let start = end;
            end += task.output.len as usize;
            start
        });
        let places = places.collect();
        Self { tasks, places }
    }

    /// Where the result of a task stands.
    fn result(&self, task: usize) -> Range<usize> {
        let start = self.places[task];
        start..start + self.tasks[task].output.len as usize
    }

    /// Which pair of which task comes when: by the segments summed over, then by
    /// task. A task without pairs comes once.
    fn sequence(&self) -> Vec<(usize, Option<usize>)> {
        let mut all = Vec::new();
        for (at, task) in self.tasks.iter().enumerate() {
            match task.pairs.is_empty() {
                true => all.push((at, None)),
                false => all.extend((0..task.pairs.len()).map(|pair| (at, Some(pair)))),
            }
        }
        all.sort_by_key(|(at, pair)| pair.map(|pair| (&self.tasks[*at].pairs[pair].summed, *at)));
        all
    }
}

/// A pair of blocks of a task.
struct Step {
    group: Rc<Group>,
    task: usize,
    /// Which pair; `None` if the task has none.
    pair: Option<usize>,
    /// Whether its blocks are asked for.
    wanted: bool,
    /// Whether it is the first one of its task, and the last.
    first: bool,
    last: bool,
}

impl Step {
    fn pair(&self) -> Option<&Pair> {
        self.pair
            .map(|pair| &self.group.tasks[self.task].pairs[pair])
    }
}

impl<T: Number> Rank<'_, T> {
    /// Takes and does groups until there are no more.
    fn run(&mut self) -> Result<()> {
        loop {
            // 1. Ask for the blocks of this step and the next ones.
            self.look_ahead()?;
            let Some(step) = self.steps.pop_front() else {
                return Ok(());
            };
            // 2. A new block of the result.
            let result = step.group.result(step.task);
            if step.first && !self.groups.is_by_sums() {
                self.results[result.clone()].fill(T::zeroed());
            }
            // 3. One product more.
            let task = &step.group.tasks[step.task];
            if let Some(pair) = step.pair() {
                self.multiply(task, pair, result.clone())?;
                self.done.pairs += 1;
                let bytes = (pair.left.len + pair.right.len) * size_of::<T>() as u64;
                self.resources.tell(bytes);
            }
            // 4. The block is complete.
            if step.last && !self.groups.is_by_sums() {
                self.store(task, result)?;
            }
        }
    }

    /// Collective: adds up the sums of all ranks, and writes every so many blocks.
    fn add_up(&mut self, comm: &Comm) -> Result<()> {
        let add = |mut sum: T, more: T| {
            sum += more;
            sum
        };
        self.results = comm.all_reduce_with(&self.results, add)?;
        let group = Group::new(self.contraction.tasks_of(&[]));
        let own = (comm.rank()..group.tasks.len()).step_by(comm.size());
        own.into_iter()
            .try_for_each(|task| self.store(&group.tasks[task], group.result(task)))
    }

    /// Asks for the blocks of the first step, and of as many more as is good.
    fn look_ahead(&mut self) -> Result<()> {
        let mut at = 0;
        let mut coming = 0;
        let many = self.shelf.room() / 4;
        loop {
            // The step that is done now and one more; others if they are small.
            if at >= 2 && (coming > many || at > AHEAD) {
                return Ok(());
            }
            if at == self.steps.len() && !self.take_group()? {
                return Ok(());
            }
            let step = &self.steps[at];
            if let (Some(pair), false) = (step.pair(), step.wanted) {
                let (left, right) = (pair.left, pair.right);
                let keys = [(0, left.start), (1, right.start)];
                let new = |side: usize, len: u64| match self.shelf.has(keys[side]) {
                    true => 0,
                    false => len as usize,
                };
                let room = new(0, left.len) + new(1, right.len) <= self.shelf.room();
                if !room && at > 0 {
                    return Ok(());
                }
                if !self.shelf.want(0, left)? {
                    return Ok(());
                }
                if !self.shelf.want(1, right)? {
                    self.shelf.release(keys[0]);
                    return Ok(());
                }
                coming += (left.len + right.len) as usize;
            }
            self.steps[at].wanted = true;
            at += 1;
        }
    }

    /// Takes the next group; `false` if there is none.
    fn take_group(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let number = self
            .numbers
            .next()?
            .and_then(|number| usize::try_from(number).ok());
        let tasks = number.and_then(|number| match &self.groups {
            Division::Tasks(groups) => {
                let tasks = groups.get(number)?.clone();
                Some(tasks.map(|task| self.contraction.task(task)).collect())
            }
            Division::Sums(groups) => Some(self.contraction.tasks_of(groups.get(number)?)),
        });
        let Some(tasks) = tasks else {
            self.ended = true;
            return Ok(false);
        };
        self.given += 1;
        let group = Rc::new(Group::new(tasks));
        let mut sequence = group.sequence();
        if self.backwards {
            sequence.reverse();
        }
        self.backwards = !self.backwards;
        let mut left: Vec<usize> = group.tasks.iter().map(|task| task.pairs.len()).collect();
        for (task, pair) in sequence {
            let all = group.tasks[task].pairs.len();
            let first = left[task] == all;
            left[task] = left[task].saturating_sub(1);
            self.steps.push_back(Step {
                group: Rc::clone(&group),
                task,
                pair,
                wanted: false,
                first,
                last: left[task] == 0,
            });
        }
        Ok(true)
    }

    /// Adds the product of a pair to the result.
    fn multiply(&mut self, task: &Task, pair: &Pair, result: Range<usize>) -> Result<()> {
        let shapes = self.contraction.shapes(task, pair);
        let form = self.contraction.form();
        let keys = [(0, pair.left.start), (1, pair.right.start)];
        let mut permuting = Duration::ZERO;
        for ((key, shape), side) in keys.into_iter().zip(&shapes).zip([&form.left, &form.right]) {
            let spare = &mut self.spare;
            self.shelf.wait(key, |values| {
                if let Some(order) = &side.order {
                    let start = Instant::now();
                    let own: Vec<usize> = (0..shape.len()).collect();
                    let len = values.len();
                    permuted(shape, (values, &own), (&mut spare[..len], order));
                    values.copy_from_slice(&spare[..len]);
                    permuting += start.elapsed();
                }
            })?;
        }
        self.done.permuting += permuting.as_secs_f64();
        let start = Instant::now();
        let Extents {
            batch,
            rows,
            columns,
            between,
        } = self.contraction.extents(task, pair);
        let (left, right) = (self.shelf.values(keys[0])?, self.shelf.values(keys[1])?);
        let results = self.results[result].chunks_exact_mut((rows * columns).max(1));
        let lefts = left.chunks_exact((rows * between).max(1));
        let rights = right.chunks_exact((between * columns).max(1));
        debug_assert_eq!(results.len(), batch);
        for ((result, left), right) in results.zip(lefts).zip(rights) {
            let matrix = |values, shape, side: &Side| Matrix {
                values,
                shape,
                by_rows: side.by_rows,
            };
            let result = Matrix {
                values: result,
                shape: (rows, columns),
                by_rows: form.output.by_rows,
            };
            let left = matrix(left, (rows, between), &form.left);
            let right = matrix(right, (between, columns), &form.right);
            multiply_add(result, left, right, Before::AddedTo, 1)?;
        }
        self.done.multiplying += start.elapsed().as_secs_f64();
        keys.into_iter().for_each(|key| self.shelf.release(key));
        Ok(())
    }

    /// Writes the block of the result, added to what was there if it should be.
    fn store(&mut self, task: &Task, result: Range<usize>) -> Result<()> {
        let start = Instant::now();
        let len = result.len();
        let result = &mut self.results[result];
        let side = &self.contraction.form().output;
        let block = match &side.order {
            Some(order) => {
                let shape = self.contraction.output().shape(&task.segments);
                let own: Vec<usize> = (0..shape.len()).collect();
                let turned = &mut self.turned[..len];
                permuted(&shape, (result, order), (&mut *turned, &own));
                turned
            }
            None => result,
        };
        if self.contraction.expression().adds {
            let mut old = self.old.take().unwrap_or_default();
            old.resize(len, T::zeroed());
            let old = self.tensors.output.fetch(task.output, old)?.wait()?;
            for (value, old) in block.iter_mut().zip(&old) {
                *value += *old;
            }
            self.old = Some(old);
        }
        self.tensors.output.store(task.output, block)?;
        self.done.storing += start.elapsed().as_secs_f64();
        self.done.tasks += 1;
        Ok(())
    }
}
