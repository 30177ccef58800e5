//! [`solve_local`]: Jacobi sweeps on local placement, one file a rank.
//!
//! With overlap areas `d` deep, `d` sweeps fit between two shifts: each pass
//! 1. fills the overlap areas of the file it reads, corners included,
//! 2. does up to `d` fused sweeps of each block, into the rank's other file.
//!
//! With every sweep one plane of the overlap areas loses its meaning, so what
//! the rank owns comes out right. Overlap areas at the fixed edges of the array
//! are never used.

use outcore::{Boundary, Comm, ElementType, Error, LocalArray, Op, Result};

use super::average::Float;
use super::global::too_few;
use super::grid::Edges;
use super::pass::{PURPOSE, Pass};
use super::passes::{Turn, iterate};
use super::problem::{Problem, Solution, wrong_type};
use super::region::Region;
use crate::fit::largest;
use crate::overlap::{check_placed_alike, depth_along, is_divided};
use crate::resources::Resources;

/// Collective: does the sweeps of `problem` on `source`, of which only the
/// overlap areas change. The result is in the one of `results` that
/// [`Solution::holder`] names; they must be placed like the source, and there
/// must be two unless one pass is enough. All must be open for writing.
pub fn solve_local(
    comm: &Comm,
    source: &LocalArray,
    results: &[&LocalArray],
    problem: &Problem,
    resources: &Resources<'_>,
) -> Result<Solution> {
    match source.whole().element_type {
        ElementType::F32 => solve_typed::<f32>(comm, source, results, problem, resources),
        ElementType::F64 => solve_typed::<f64>(comm, source, results, problem, resources),
        _ => Err(wrong_type(source.part())),
    }
}

fn solve_typed<T: Float>(
    comm: &Comm,
    source: &LocalArray,
    results: &[&LocalArray],
    problem: &Problem,
    resources: &Resources<'_>,
) -> Result<Solution> {
    // 1. What all ranks see alike.
    problem.check(source.part())?;
    results
        .iter()
        .try_for_each(|result| check_placed_alike(source, result))?;
    if results.is_empty() {
        return Err(too_few(1));
    }
    // 2. As many sweeps in a pass as overlap areas and memory of all allow.
    let deepest = deepest(source, problem)?;
    let need = |sweeps: u64| need::<T>(source, problem.edges, sweeps);
    let most = problem.fused(deepest);
    let least = if problem.fuse.is_some() { most } else { 1 };
    let budget = resources.enough(comm, PURPOSE, |_| need(least))?;
    let fused = match problem.fuse {
        Some(_) => most,
        None => problem.fused(largest(most, budget.limit() / 2, need).unwrap_or(1)),
    };
    let fused = comm.all_reduce(&[fused], Op::Min)?[0];
    if problem.sweeps > fused && results.len() < 2 {
        return Err(too_few(2));
    }
    // 3. Pass after pass.
    let boundary = match problem.edges {
        Edges::Fixed => Boundary::Keep,
        Edges::Periodic => Boundary::Circular,
    };
    let solution = iterate(comm, problem, (fused, results.len()), |turn: Turn| {
        let from = turn.from.map_or(source, |from| results[from]);
        from.exchange_overlap(comm, boundary)?;
        let mut change = 0.0;
        let outcome =
            passes(from, results[turn.to], problem.edges, turn.sweeps).try_for_each(|pass| {
                change = super::average::larger(change, pass.run::<T>(&budget, resources)?);
                Ok::<(), Error>(())
            });
        comm.agree(outcome)?;
        Ok(change)
    })?;
    results[solution.holder].exchange_overlap(comm, boundary)?;
    Ok(solution)
}

/// The passes of this rank: one for each of its blocks.
fn passes<'a>(
    from: &'a LocalArray,
    to: &'a LocalArray,
    edges: Edges,
    sweeps: u64,
) -> impl Iterator<Item = Pass<'a>> {
    from.blocks().map(move |block| Pass {
        source: from.part(),
        target: to.part(),
        region: Region::of_block(from.part(), &block, &from.whole().shape, edges, sweeps),
    })
}

/// The most sweeps between two shifts.
fn deepest(source: &LocalArray, problem: &Problem) -> Result<u64> {
    let divided = (0..source.whole().shape.len()).filter(|axis| is_divided(source, *axis));
    let Some((axis, depth)) = divided
        .map(|axis| (axis, depth_along(source, axis)))
        .min_by_key(|(_, depth)| *depth)
    else {
        return Ok(u64::MAX);
    };
    let asked = problem.fuse.unwrap_or(1).min(problem.sweeps);
    if depth < asked {
        return Err(Error::Invalid(format!(
            "{asked} sweeps in a pass need overlap areas of {asked} elements, but those of {} are \
             {depth} deep along axis {axis}; 'outcore convert {} NEW.oc --placement local' with a \
             deeper --overlap makes such files",
            source.name(),
            source.name()
        )));
    }
    Ok(depth)
}

/// The bytes that passes of so many sweeps need on this rank.
fn need<T: Float>(source: &LocalArray, edges: Edges, sweeps: u64) -> u64 {
    // The first block of a rank is as large as any.
    let first = passes(source, source, edges, sweeps).next();
    first.map_or(0, |pass| pass.need::<T>(1))
}
