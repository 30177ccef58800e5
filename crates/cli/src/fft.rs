//! `outcore fft`: Fourier transforms.

use clap::Args;
use outcore::{Error, Result};
use outcore_apps::Resources;
use outcore_apps::fft::{Fourier, spectrum_type, transform};

use crate::application::{Application, Command, Input, Run};
use crate::counted::counted;
use crate::selection::parse_axis;

/// The discrete Fourier transform along some axes, or along all
///
/// Each pass over the file transforms lines along one axis, or along as many as
/// fit the memory together. Real numbers become complex ones; integers of up to
/// 16 bits, f16 and f32 become c64, wider ones c128. The inverse is divided by
/// the number of elements of a transform, as in NumPy. A single line along each
/// axis must fit the memory.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore fft image.npy spectrum.npy
  outcore fft spectrum.npy again.npy --inverse --real
  outcore fft volume.oc lines.oc --axes 2 --memory 256MiB --ranks 4")]
pub(crate) struct Fft {
    #[command(flatten)]
    application: Application,
    /// The axes, from 0, as in 0,2 [default: all]
    #[arg(long, value_delimiter = ',', value_name = "AXES", value_parser = parse_axis,
          allow_hyphen_values = true)]
    axes: Vec<usize>,
    /// The inverse transform
    #[arg(long)]
    inverse: bool,
    /// Keep the real part of the result only
    #[arg(long)]
    real: bool,
}

impl Fft {
    pub(crate) fn run(&self) -> Result<()> {
        self.application.run(self)
    }
}

impl Command for Fft {
    const LABEL: &'static str = "transforming";
    const APART: bool = false;

    fn rounds(&self) -> u64 {
        self.axes.len().max(2) as u64
    }

    fn make(&self, run: &Run<'_>, resources: &Resources<'_>) -> Result<(String, u64)> {
        let Input::Global(source) = run.input else {
            return Err(Error::Invalid("a transform works on one array".into()));
        };
        let (name, element_type) = (source.name(), source.element_type());
        let output = run.begin_of(spectrum_type(name, element_type, self.real)?)?;
        let fourier = Fourier {
            axes: self.axes.clone(),
            inverse: self.inverse,
        };
        let passes = match output.global() {
            Some(target) => {
                // Complex values that are only passed on from pass to pass.
                let complex = || run.scratch(target, spectrum_type(name, element_type, false)?);
                let between = self.real.then(complex).transpose()?;
                transform(
                    run.comm,
                    source,
                    (target, between.as_deref()),
                    &fourier,
                    resources,
                )?
            }
            None => 0,
        };
        output.commit(run.comm)?;
        let kind = if self.inverse { "inverse " } else { "" };
        let told = format!(
            "{kind}transform of {} in {}",
            run.what(),
            counted(passes, "pass")
        );
        Ok((told, passes))
    }
}
