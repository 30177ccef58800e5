//! `outcore transpose`: an array with its axes in another order.

use clap::Args;
use outcore::{Arrangement, Array, Result, default_ranks};

use crate::rearrange::{Rearrange, Wanted, like, with_layout};
use crate::selection::parse_axis;

/// Make an array with the axes of another one in another order
///
/// Axis k of OUT is the k-th of the axes given. OUT is in the same layout as IN
/// (row stays row) unless --layout says otherwise. Works on arrays far larger than
/// memory; a run that was interrupted leaves nothing under the name OUT, and
/// goes on where it was with --resume.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore transpose matrix.npy turned.npy
  outcore transpose volume.oc turned.oc --axes 2,0,1 --memory 256MiB
  outcore transpose matrix.npy turned.npy --resume          (after an interruption)")]
pub(crate) struct Transpose {
    #[command(flatten)]
    rearrange: Rearrange,
    /// The axes of IN in the order of OUT, from 0 on [default: reversed]
    #[arg(long, value_delimiter = ',', value_parser = parse_axis, allow_hyphen_values = true)]
    axes: Option<Vec<usize>>,
    /// The layout of the output, as for 'create' [default: that of IN]
    #[arg(long)]
    layout: Option<Arrangement>,
}

impl Transpose {
    pub(crate) fn check(&self) -> Result<(), String> {
        no_layout_of_raw(self.layout.as_ref(), &self.rearrange.output)
    }

    pub(crate) fn run(&self) -> Result<()> {
        self.rearrange
            .run("transposing", default_ranks(), |source: &Array, _| {
                let reversed = || (0..source.shape().len()).rev().collect();
                let axes = self.axes.clone().unwrap_or_else(reversed);
                let output = &self.rearrange.output;
                let turned = like(source.descriptor(), output).transposed(&axes)?;
                let descriptor = with_layout(turned, self.layout.as_ref(), output);
                Ok(Wanted {
                    axes,
                    descriptor,
                    conversion: None,
                })
            })
    }
}

/// Fails if a layout is given for a file whose description has one.
pub(crate) fn no_layout_of_raw(layout: Option<&Arrangement>, output: &str) -> Result<(), String> {
    if layout.is_some() && output.starts_with("raw:") {
        return Err(
            "--layout cannot be used with a 'raw:' description, which says everything \
             about the file itself"
                .into(),
        );
    }
    Ok(())
}
