//! `outcore median`: the median filter.

use clap::Args;
use outcore::Result;
use outcore_apps::Resources;
use outcore_apps::median::{Window, filter, filter_local};

use crate::application::{Application, Command, Input, Run};

/// Replace each element by the median of the window around it
///
/// The window has an odd number of elements along each axis; beyond the edges
/// of the array the nearest element counts. For integers and floats; a NaN
/// counts as larger than everything. An array in one file a rank is filtered
/// file by file, after neighbours have exchanged their rims.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore median image.npy smooth.npy --window 3x3
  outcore median volume.oc smooth.oc --window 1x5x5 --memory 256MiB --ranks 4
  outcore median parts.oc smooth.oc --window 3x3                (one file a rank)")]
pub(crate) struct Median {
    #[command(flatten)]
    application: Application,
    /// The window, as in 3x3: an odd extent for each axis
    #[arg(long, value_parser = parse_window)]
    window: Window,
}

fn parse_window(text: &str) -> Result<Window, String> {
    text.parse()
        .map_err(|error: outcore::Error| error.to_string())
}

impl Median {
    pub(crate) fn run(&self) -> Result<()> {
        self.application.run(self)
    }
}

impl Command for Median {
    const LABEL: &'static str = "filtering";

    fn rounds(&self) -> u64 {
        1
    }

    fn make(&self, run: &Run<'_>, resources: &Resources<'_>) -> Result<(String, u64)> {
        let output = run.begin()?;
        if let (Input::Global(source), Some(target)) = (run.input, output.global()) {
            filter(run.comm, source, target, &self.window, resources)?;
        }
        if let (Input::Local(source), Some(target)) = (run.input, output.local()) {
            filter_local(run.comm, source, target, &self.window, resources)?;
        }
        output.commit(run.comm)?;
        Ok((format!("median {} of {}", self.window, run.what()), 1))
    }
}
