//! [`solve`]: Jacobi sweeps on one global file, by ranks that divide it.
//!
//! Pass after pass, two files change roles: each pass reads what the one before
//! wrote, the first one the source. A rank reads the planes of its share and,
//! for `t` fused sweeps, `t` planes of its neighbours' on both sides; so passes
//! are independent on all ranks, and between them everybody waits for
//! everybody.

use outcore::{Array, Comm, ElementType, MemoryBudget, Result, Section, divide};

use super::pass::Pass;
use super::passes::{Files, Turn, iterate, need_of, run_all};
use super::problem::{Problem, Solution, wrong_type};
use super::region::Region;
use crate::file_order::check_alike;
use crate::float::Float;
use crate::resources::Resources;
use crate::slab_writer::depth;

/// Collective: does the sweeps of `problem` on `source`, which stays as it is.
/// The result is in the one of `results` that [`Solution::holder`] names, the first
/// unless fewer sweeps than asked for were enough; there
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
        other => Err(wrong_type(source.name(), other)),
    }
}

fn solve_typed<T: Float>(
    comm: &Comm,
    source: &Array,
    results: &[&Array],
    problem: &Problem,
    resources: &Resources<'_>,
) -> Result<Solution> {
    problem.check(source.name(), source.shape())?;
    results
        .iter()
        .try_for_each(|result| check_alike(source, result))?;
    let files = GlobalFiles {
        comm,
        source,
        results,
        problem,
        behind: depth(results, source.descriptor()),
    };
    iterate::<T>(comm, &files, problem, resources)
}

/// Files that hold the whole array, shared by all ranks.
struct GlobalFiles<'a> {
    comm: &'a Comm,
    source: &'a Array,
    results: &'a [&'a Array],
    problem: &'a Problem,
    /// Slabs in flight to a result.
    behind: usize,
}

impl GlobalFiles<'_> {
    /// A rank's share of the planes.
    fn share(&self, array: &Array, rank: usize) -> Section {
        // Along the slowest axis only, also if some ranks get nothing.
        let slowest = &array.layout().slowest_first()[..1];
        divide(&array.whole(), slowest, self.comm.size() as u64).swap_remove(rank)
    }

    /// What this rank does in a turn.
    fn passes(&self, turn: Turn) -> impl Iterator<Item = Pass<'_>> {
        let from = turn.from.map_or(self.source, |from| self.results[from]);
        let share = self.share(from, self.comm.rank());
        std::iter::once(Pass {
            source: from,
            target: self.results[turn.to],
            region: Region::of_file(from, &share, self.problem.edges, turn.sweeps),
            behind: self.behind,
        })
    }
}

impl Files for GlobalFiles<'_> {
    fn results(&self) -> usize {
        self.results.len()
    }

    fn is_empty(&self) -> bool {
        self.source.whole().is_empty()
    }

    /// A rank should not compute much more of its neighbours' shares than of
    /// its own.
    fn most_fused(&self) -> Result<u64> {
        if self.problem.fuse.is_some() {
            return Ok(u64::MAX);
        }
        let arrays = std::iter::once(&self.source).chain(self.results);
        let planes = arrays.map(|array| {
            let slowest = array.layout().slowest_first()[0];
            self.share(array, 0).axes()[slowest].count()
        });
        Ok(planes.min().unwrap_or(0) / 4)
    }

    fn need<T: Float>(&self, turn: Turn) -> u64 {
        need_of::<T>(self.passes(turn))
    }

    fn run<T: Float>(
        &self,
        turn: Turn,
        budget: &MemoryBudget,
        resources: &Resources<'_>,
    ) -> Result<f64> {
        run_all::<T>(self.passes(turn), budget, resources)
    }

    fn prepare(&self, _: Turn) -> Result<()> {
        Ok(())
    }
}
