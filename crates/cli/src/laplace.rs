//! `outcore laplace`: Jacobi sweeps for Laplace's equation.

use clap::{Args, ValueEnum};
use outcore::{Array, Error, LocalArray, Relayout, Result};
use outcore_apps::Resources;
use outcore_apps::laplace::{Edges, Problem, Solution, solve, solve_local, solve_together};

use crate::application::{Application, Command, Input, Output, Run};
use crate::counted::counted;

/// Solve Laplace's equation: in each sweep, an element becomes the average of its neighbours
///
/// An element has two neighbours along each axis. Several sweeps are done in
/// one pass over the file: as many as the memory allows or, on one file a rank,
/// as the overlap areas are deep. For f32 and f64.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore laplace plate.oc hot.oc --sweeps 100
  outcore laplace plate.npy hot.npy --sweeps 100000 --tolerance 1e-4 --memory 256MiB --ranks 4
  outcore laplace ring.oc smooth.oc --sweeps 50 --boundary periodic --fuse 10")]
pub(crate) struct Laplace {
    #[command(flatten)]
    application: Application,
    /// The most sweeps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sweeps: u64,
    /// Stop when a sweep, the last of a pass, changed no element by more
    #[arg(long, value_name = "CHANGE", allow_hyphen_values = true)]
    tolerance: Option<f64>,
    /// What happens at the edges of the array
    #[arg(long, value_enum, default_value = "fixed")]
    boundary: Boundary,
    /// Sweeps in one pass [default: by memory, at most 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    fuse: Option<u64>,
    /// Who reads and writes
    #[arg(long, value_enum, default_value = "own")]
    io: Io,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Io {
    /// Every rank for itself: slabs, which are contiguous in the file
    Own,
    /// All ranks together: blocks, as the papers divide the array
    Collective,
}

#[derive(Clone, Copy, ValueEnum)]
enum Boundary {
    /// The outermost elements keep their values
    Fixed,
    /// The array goes on at its other end
    Periodic,
}

impl Laplace {
    pub(crate) fn run(&self) -> Result<()> {
        self.application.run(self)
    }
}

impl Command for Laplace {
    const LABEL: &'static str = "sweeping";

    fn rounds(&self) -> u64 {
        self.sweeps
    }

    fn make(&self, run: &Run<'_>, resources: &Resources<'_>) -> Result<(String, u64)> {
        let problem = Problem {
            sweeps: self.sweeps,
            tolerance: self.tolerance,
            edges: match self.boundary {
                Boundary::Fixed => Edges::Fixed,
                Boundary::Periodic => Edges::Periodic,
            },
            fuse: self.fuse,
        };
        let solution = match run.input {
            Input::Global(source) => self.global(run, source, &problem, resources)?,
            Input::Local(source) if self.io == Io::Collective => {
                return Err(Error::Invalid(format!(
                    "{} has one file a rank, which no other rank reads; --io collective is for one \
                     file that all share",
                    source.name()
                )));
            }
            Input::Local(source) => {
                // Passes go to and fro between two arrays; one keeps the result.
                let arrays = if self.sweeps > 1 { 2 } else { 1 };
                let mut outputs = (0..arrays)
                    .map(|_| run.begin())
                    .collect::<Result<Vec<_>>>()?;
                let results: Vec<&LocalArray> = outputs.iter().filter_map(Output::local).collect();
                let solution = solve_local(run.comm, source, &results, &problem, resources)?;
                outputs.swap_remove(solution.holder).commit(run.comm)?;
                solution
            }
        };
        let told = format!(
            "{} of {} in {}; last change {:.3e}",
            counted(solution.sweeps, "sweep"),
            run.what(),
            counted(solution.passes, "pass"),
            solution.change
        );
        Ok((told, solution.sweeps))
    }
}

impl Laplace {
    /// Collective: solves in one array for all ranks. Passes go to and fro between the
    /// output and another array; the last of all is one into the output.
    fn global(
        &self,
        run: &Run<'_>,
        source: &Array,
        problem: &Problem,
        resources: &Resources<'_>,
    ) -> Result<Solution> {
        let output = run.begin()?;
        let Some(target) = output.global() else {
            return Err(Error::Invalid("the result is one array".into()));
        };
        let between = || run.scratch(target, target.element_type());
        let scratch = (self.sweeps > 1).then(between).transpose()?;
        let results: Vec<&Array> = [Some(target), scratch.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        let solved = match self.io {
            Io::Own => solve(run.comm, source, &results, problem, resources),
            Io::Collective => solve_together(run.comm, source, &results, problem, resources),
        };
        let solution = solved?;
        if solution.holder != 0 {
            // So little changed that no more passes were made.
            let axes: Vec<usize> = (0..target.shape().len()).collect();
            let held = results[solution.holder];
            let copy = Relayout::plan(run.comm, held, target, &axes, &resources.budget)?;
            copy.run(run.comm, &|_| ())?;
        }
        output.commit(run.comm)?;
        Ok(solution)
    }
}
