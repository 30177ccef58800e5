//! [`solve`]: Jacobi sweeps on one global file, by ranks that divide it.
//!
//! Pass after pass, two files change roles: each pass reads what the one before
//! wrote, the first one the source. A rank reads the planes of its share and,
//! for `t` fused sweeps, `t` planes of its neighbours' on both sides; so passes
//! are independent on all ranks, and between them everybody waits for
//! everybody.

use outcore::{Array, Comm, ElementType, Error, MemoryBudget, Result, Section, divide};

use super::average::Float;
use super::pass::{PURPOSE, Pass};
use super::passes::iterate;
use super::problem::{Problem, Solution, wrong_type};
use super::region::Region;
use crate::file_order::check_alike;
use crate::fit::largest;
use crate::resources::Resources;

/// Collective: does the sweeps of `problem` on `source`, which stays as it is.
/// The result is in the one of `results` that [`Solution::holder`] names; there
/// must be two unless there is only one sweep or `fuse` takes all in one pass.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget};
/// use outcore_apps::{Resources, laplace};
/// # let directory = tempfile::tempdir()?;
/// # let name = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
/// let descriptor = ArrayDescriptor::new(&[50, 50], ElementType::F64);
/// let plate = Array::create(&name("plate.oc"), &descriptor)?;
/// plate.write(&plate.section("0, :")?, &[1.0; 50])?;
/// let results = [Array::create(&name("a.oc"), &descriptor)?, Array::create(&name("b.oc"), &descriptor)?];
/// let problem = laplace::Problem { tolerance: Some(1e-9), ..laplace::Problem::new(100_000) };
/// let solutions = outcore::run(2, |comm| {
///     let resources = Resources::of(MemoryBudget::of(1 << 20));
///     laplace::solve(comm, &plate, &results.each_ref(), &problem, &resources)
/// })?;
/// let solution = solutions[0];
/// assert!(solution.change <= 1e-9 && solution.sweeps < 100_000);
/// let result = &results[solution.holder];
/// let centre = result.read::<f64>(&result.section("25, 25")?)?;
/// assert!(0.2 < centre[0] && centre[0] < 0.25);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn solve(
    comm: &Comm,
    source: &Array,
    results: &[&Array],
    problem: &Problem,
    resources: &Resources<'_>,
) -> Result<Solution> {
    match source.element_type() {
        ElementType::F32 => solve_typed::<f32>(comm, source, results, problem, resources),
        ElementType::F64 => solve_typed::<f64>(comm, source, results, problem, resources),
        _ => Err(wrong_type(source)),
    }
}

fn solve_typed<T: Float>(
    comm: &Comm,
    source: &Array,
    results: &[&Array],
    problem: &Problem,
    resources: &Resources<'_>,
) -> Result<Solution> {
    // 1. What all ranks see alike.
    problem.check(source)?;
    results
        .iter()
        .try_for_each(|result| check_alike(source, result))?;
    let budget = resources.budget.for_rank(comm);
    if results.is_empty() {
        return Err(too_few(1));
    }
    let fused = fused::<T>(source, results, problem, (comm.size(), &budget))?;
    if problem.sweeps > fused && results.len() < 2 {
        return Err(too_few(2));
    }
    // 2. Pass after pass.
    iterate(comm, problem, (fused, results.len()), |turn| {
        let from = turn.from.map_or(source, |from| results[from]);
        let share = share(from, comm.rank(), comm.size());
        let pass = Pass {
            source: from,
            target: results[turn.to],
            region: Region::of_file(from, &share, problem.edges, turn.sweeps),
        };
        Ok(comm.agree(pass.run::<T>(&budget, resources))?)
    })
}

/// A rank's share of the planes.
fn share(array: &Array, rank: usize, ranks: usize) -> Section {
    // Along the slowest axis only, also if some ranks get nothing.
    let slowest = &array.layout().slowest_first()[..1];
    divide(&array.whole(), slowest, ranks as u64).swap_remove(rank)
}

/// How many sweeps a pass fuses: half of the memory may go to the front, and a
/// rank should not compute much more of its neighbours' shares than of its own.
fn fused<T: Float>(
    source: &Array,
    results: &[&Array],
    problem: &Problem,
    (ranks, budget): (usize, &MemoryBudget),
) -> Result<u64> {
    // From the source into a result, and from one result into the other.
    let firsts = std::iter::once(&source).chain(results);
    let pairs: Vec<[&Array; 2]> = firsts
        .zip(results.iter().cycle())
        .map(|(a, b)| [*a, *b])
        .collect();
    let passes = |sweeps: u64| {
        pairs.iter().map(move |[source, target]| Pass {
            source,
            target,
            region: Region::of_file(source, &share(source, 0, ranks), problem.edges, sweeps),
        })
    };
    let need = |sweeps: u64| {
        passes(sweeps)
            .map(|pass| pass.need::<T>(1))
            .max()
            .unwrap_or(0)
    };
    if problem.fuse.is_some() {
        // Asked for: all of the memory if it must be.
        let asked = problem.fused(u64::MAX);
        budget.require(need(asked), PURPOSE)?;
        return Ok(asked);
    }
    budget.require(need(1), PURPOSE)?;
    let planes = passes(1).map(|pass| pass.region.planes()).min();
    let most = problem.fused(planes.map_or(1, |planes| planes / 4));
    Ok(problem.fused(largest(most, budget.limit() / 2, need).unwrap_or(1)))
}

pub(super) fn too_few(needed: usize) -> Error {
    Error::Invalid(format!(
        "{needed} arrays for results are needed, which take turns from pass to pass"
    ))
}
