//! [`solve_local`]: Jacobi sweeps on local placement, one file a rank.
//!
//! With overlap areas `d` deep, up to `d` sweeps fit between two shifts: each
//! pass of `t` sweeps
//! 1. fills `t` planes of the overlap areas of the file it reads, corners
//!    included,
//! 2. does the sweeps of each block, into the rank's other file.
//!
//! With every sweep one plane of the overlap areas loses its meaning, so what
//! the rank owns comes out right. Overlap areas at the fixed edges of the array
//! are never used.

use outcore::{Array, Boundary, Comm, ElementType, Error, LocalArray, MemoryBudget, Result};

use super::grid::Edges;
use super::pass::Pass;
use super::passes::{Files, Turn, iterate, need_of, run_all};
use super::problem::{Problem, Solution, wrong_type};
use super::region::Region;
use crate::float::Float;
use crate::overlap::{check_placed_alike, deepest_fill, depth_along, fill, is_divided};
use crate::resources::Resources;
use crate::slab_writer::depth;

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
        other => Err(wrong_type(source.name(), other)),
    }
}

fn solve_typed<T: Float>(
    comm: &Comm,
    source: &LocalArray,
    results: &[&LocalArray],
    problem: &Problem,
    resources: &Resources<'_>,
) -> Result<Solution> {
    problem.check(source.name(), &source.whole().shape)?;
    results
        .iter()
        .try_for_each(|result| check_placed_alike(source, result))?;
    let parts: Vec<&Array> = results.iter().map(|result| result.part()).collect();
    let files = LocalFiles {
        comm,
        source,
        results,
        problem,
        behind: depth(&parts, source.whole()),
    };
    let solution = iterate::<T>(comm, &files, problem, resources)?;
    let result = results[solution.holder];
    fill(comm, result, files.boundary(), |axis| {
        deepest_fill(result, axis)
    })?;
    Ok(solution)
}

/// Files of which each rank has its own.
struct LocalFiles<'a> {
    comm: &'a Comm,
    source: &'a LocalArray,
    results: &'a [&'a LocalArray],
    problem: &'a Problem,
    /// Slabs in flight to a result.
    behind: usize,
}

impl LocalFiles<'_> {
    fn read_in(&self, turn: Turn) -> &LocalArray {
        turn.from.map_or(self.source, |from| self.results[from])
    }

    fn boundary(&self) -> Boundary {
        match self.problem.edges {
            Edges::Fixed => Boundary::Keep,
            Edges::Periodic => Boundary::Circular,
        }
    }

    /// A pass for each block of the rank.
    fn passes(&self, turn: Turn) -> impl Iterator<Item = Pass<'_>> {
        let (from, to) = (self.read_in(turn), self.results[turn.to]);
        let (shape, edges) = (&from.whole().shape, self.problem.edges);
        from.blocks().map(move |block| Pass {
            source: from.part(),
            target: to.part(),
            region: Region::of_block(from.part(), &block, shape, edges, turn.sweeps),
            behind: self.behind,
        })
    }
}

impl Files for LocalFiles<'_> {
    fn results(&self) -> usize {
        self.results.len()
    }

    fn is_empty(&self) -> bool {
        self.source.whole().shape.contains(&0)
    }

    /// As many as the overlap areas are deep.
    fn most_fused(&self) -> Result<u64> {
        let source = self.source;
        let divided = (0..source.whole().shape.len()).filter(|axis| is_divided(source, *axis));
        let Some((axis, depth)) = divided
            .clone()
            .map(|axis| (axis, depth_along(source, axis)))
            .min_by_key(|(_, depth)| *depth)
        else {
            return Ok(u64::MAX);
        };
        let asked = self.problem.fuse.unwrap_or(1).min(self.problem.sweeps);
        if depth < asked {
            return Err(Error::Invalid(format!(
                "{asked} sweeps in a pass need overlap areas of {asked} elements, but those of {} \
                 are {depth} deep along axis {axis}; 'outcore convert {} NEW.oc --placement local' \
                 with a deeper --overlap makes such files",
                source.name(),
                source.name()
            )));
        }
        // Neighbours with short blocks may have less to give.
        let fillable = divided.map(|axis| deepest_fill(source, axis)).min();
        let short = fillable.filter(|_| self.problem.fuse.is_none());
        Ok(short.map_or(depth, |short| depth.min(short)))
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

    /// The neighbours' rims come into the overlap areas.
    fn prepare(&self, turn: Turn) -> Result<()> {
        let array = self.read_in(turn);
        fill(self.comm, array, self.boundary(), |axis| {
            match is_divided(array, axis) {
                true => turn.sweeps,
                false => 0,
            }
        })
    }
}
