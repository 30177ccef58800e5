//! Pass after pass, on files of any placement.

use outcore::{Comm, Op, Result};

use super::problem::{Problem, Solution};

/// One pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// The result that is read; the source if `None`.
    pub(super) from: Option<usize>,
    /// The result that is written.
    pub(super) to: usize,
    pub(super) sweeps: u64,
}

/// Collective: passes of at most `fused` sweeps until all are done or little
/// changes. `run` does one on all ranks, and returns this rank's largest change.
pub(super) fn iterate(
    comm: &Comm,
    problem: &Problem,
    (fused, results): (u64, usize),
    run: impl Fn(Turn) -> Result<f64>,
) -> Result<Solution> {
    let mut solution = Solution {
        sweeps: 0,
        passes: 0,
        change: 0.0,
        holder: 0,
    };
    let mut from = None;
    while solution.sweeps < problem.sweeps {
        let turn = Turn {
            from,
            to: from.map_or(0, |from| (from + 1) % results),
            sweeps: fused.min(problem.sweeps - solution.sweeps),
        };
        let change = run(turn)?;
        solution = Solution {
            sweeps: solution.sweeps + turn.sweeps,
            passes: solution.passes + 1,
            change: largest_of_all(comm, change)?,
            holder: turn.to,
        };
        if problem.is_converged(solution.change) {
            break;
        }
        from = Some(turn.to);
    }
    Ok(solution)
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
