//! Pass after pass, on files of any placement.
//!
//! How many sweeps a pass fuses is the same on all ranks, whatever the memory
//! of each: as many as all can. So all ranks do the same passes.

use outcore::{Comm, Error, MemoryBudget, Op, Result};

use super::average::larger;
use super::pass::{PURPOSE, Pass};
use super::problem::{Problem, Solution};
use crate::fit::largest;
use crate::float::Float;
use crate::resources::Resources;

/// One pass, by all ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// The result that is read; the source if `None`.
    pub(super) from: Option<usize>,
    /// The result that is written.
    pub(super) to: usize,
    pub(super) sweeps: u64,
}

/// The files of one placement: a source and results that take turns.
pub(super) trait Files {
    /// How many results there are.
    fn results(&self) -> usize;

    /// Whether the whole array has no elements.
    fn is_empty(&self) -> bool;

    /// The most sweeps in a pass that the files allow, or that are worth it.
    fn most_fused(&self) -> Result<u64>;

    /// The bytes that this rank needs for a turn at least.
    fn need<T: Float>(&self, turn: Turn) -> u64;

    /// What this rank does in a turn, within `budget`; the largest change of the
    /// last sweep.
    fn run<T: Float>(
        &self,
        turn: Turn,
        budget: &MemoryBudget,
        resources: &Resources<'_>,
    ) -> Result<f64>;

    /// Collective: makes what the turn reads ready.
    fn prepare(&self, turn: Turn) -> Result<()>;
}

/// Collective: passes until all sweeps are done or little changes.
pub(super) fn iterate<T: Float>(
    comm: &Comm,
    files: &impl Files,
    problem: &Problem,
    resources: &Resources<'_>,
) -> Result<Solution> {
    // 1. As many sweeps in a pass as files and memory of all ranks allow.
    let results = files.results();
    if results == 0 {
        return Err(too_few(1));
    }
    if files.is_empty() {
        // Any number of sweeps is done.
        return Ok(Solution {
            sweeps: problem.sweeps,
            passes: 0,
            change: 0.0,
            holder: 0,
        });
    }
    let most = problem.fused(files.most_fused()?);
    let need = |fused: u64| need::<T>(files, problem.sweeps, fused);
    let least = if problem.fuse.is_some() { most } else { 1 };
    let budget = resources.enough(comm, PURPOSE, |_| need(least))?;
    let fits = match problem.fuse {
        // Asked for: all of the memory if it must be.
        Some(_) => most,
        // Half of the memory may go to the front.
        None => largest(most, budget.limit() / 2, need).unwrap_or(1),
    };
    let fused = problem.fused(comm.all_reduce(&[fits], Op::Min)?[0]);
    if problem.sweeps > fused && results < 2 {
        return Err(too_few(2));
    }
    // 2. Pass after pass.
    let mut solution = Solution {
        sweeps: 0,
        passes: 0,
        change: 0.0,
        holder: 0,
    };
    let mut from = None;
    // So that the last pass ends in the first of them.
    let before = problem.sweeps.div_ceil(fused).saturating_sub(1) as usize % results;
    let first = (results - before) % results;
    while solution.sweeps < problem.sweeps {
        let turn = Turn {
            from,
            to: from.map_or(first, |from| (from + 1) % results),
            sweeps: fused.min(problem.sweeps - solution.sweeps),
        };
        files.prepare(turn)?;
        let change = files.run::<T>(turn, &budget, resources);
        solution = Solution {
            sweeps: solution.sweeps + turn.sweeps,
            passes: solution.passes + 1,
            change: largest_of_all(comm, comm.agree(change)?)?,
            holder: turn.to,
        };
        if problem.is_converged(solution.change) {
            break;
        }
        from = Some(turn.to);
    }
    Ok(solution)
}

/// The bytes that this rank needs for `sweeps` sweeps, so many in a pass.
fn need<T: Float>(files: &impl Files, sweeps: u64, fused: u64) -> u64 {
    // From the source into a result, and from each into the next.
    let results = files.results();
    let ways = (0..results).flat_map(|k| [(None, k), (Some(k), (k + 1) % results)]);
    // The last pass does what is left; its boxes are narrower, which may take
    // more, since a piece of each row must be picked.
    let turns =
        ways.flat_map(|(from, to)| [fused, sweeps % fused].map(|sweeps| Turn { from, to, sweeps }));
    let turns = turns.filter(|turn| turn.sweeps > 0);
    turns.map(|turn| files.need::<T>(turn)).max().unwrap_or(0)
}

/// What some passes of a rank need at least: the first takes as much memory as
/// any.
pub(super) fn need_of<'a, T: Float>(mut passes: impl Iterator<Item = Pass<'a>>) -> u64 {
    passes.next().map_or(0, |pass| pass.need::<T>(1))
}

/// Runs some passes; the largest change of all.
pub(super) fn run_all<'a, T: Float>(
    mut passes: impl Iterator<Item = Pass<'a>>,
    budget: &MemoryBudget,
    resources: &Resources<'_>,
) -> Result<f64> {
    passes.try_fold(0.0, |change, pass| {
        Ok(larger(change, pass.run::<T>(budget, resources)?))
    })
}

fn too_few(needed: usize) -> Error {
    Error::Invalid(format!(
        "{needed} arrays for results are needed, which take turns from pass to pass"
    ))
}

/// Collective: the largest change on any rank; NaN if it is one anywhere.
fn largest_of_all(comm: &Comm, change: f64) -> Result<f64> {
    let unknown = if change.is_nan() { 1.0 } else { 0.0 };
    let largest = comm.all_reduce(&[change, unknown], Op::Max)?;
    Ok(if largest[1] > 0.0 {
        f64::NAN
    } else {
        largest[0]
    })
}
