//! `outcore adi`: the heat equation by alternating directions.

use clap::Args;
use outcore::{Error, Result};
use outcore_apps::Resources;
use outcore_apps::adi::{Heat, solve_heat};

use crate::application::{Application, Command, Input, Run};
use crate::counted::counted;

/// Let heat flow through an array: time steps of the heat equation by alternating directions
///
/// Each step solves a tridiagonal system for every line along every axis; lines
/// along the axis that ends a step and begins the next are done in one pass over
/// the file. The outermost elements keep their values. Any ratio is stable.
/// For f32 and f64.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore adi plate.oc later.oc --steps 100 --ratio 0.5
  outcore adi room.npy later.npy --steps 20 --ratio 2 --memory 256MiB --ranks 4")]
pub(crate) struct Adi {
    #[command(flatten)]
    application: Application,
    /// The time steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// The length of a step: diffusivity times time by the square of the distance of elements
    #[arg(
        long,
        value_name = "R",
        default_value = "0.5",
        allow_hyphen_values = true
    )]
    ratio: f64,
}

impl Adi {
    pub(crate) fn run(&self) -> Result<()> {
        self.application.run(self)
    }
}

impl Command for Adi {
    const LABEL: &'static str = "stepping";
    const APART: bool = false;

    fn rounds(&self) -> u64 {
        self.steps.saturating_add(1)
    }

    fn make(&self, run: &Run<'_>, resources: &Resources<'_>) -> Result<(String, u64)> {
        let heat = Heat {
            steps: self.steps,
            ratio: self.ratio,
        };
        let output = run.begin()?;
        let (Input::Global(source), Some(target)) = (run.input, output.global()) else {
            return Err(Error::Invalid("heat flows through one array".into()));
        };
        let passes = solve_heat(run.comm, source, target, &heat, resources)?;
        output.commit(run.comm)?;
        let what = run.what();
        let steps = counted(self.steps, "step");
        let told = format!("{steps} of {what} in {}", counted(passes, "pass"));
        Ok((told, passes))
    }
}
