//! `outcore relayout`: the same array in another order in its file.

use clap::Args;
use outcore::{Arrangement, Array, Result, default_ranks};

use crate::rearrange::{Rearrange, Wanted, like, with_layout};
use crate::transpose::no_layout_of_raw;

/// Copy an array into a file with its elements in another order
///
/// The array stays the same; what changes is which elements stand beside one
/// another in the file, and so which sections are read fast. Works on arrays far
/// larger than memory; a run that was interrupted leaves nothing under the name
/// OUT, and goes on where it was with --resume.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore relayout matrix.npy columns.npy --layout column
  outcore relayout matrix.npy tiles.oc --layout tiled:256x256 --memory 256MiB
  outcore relayout tiles.oc 'raw:m.bin?shape=4096x4096&type=f32&layout=row&byteorder=big'")]
pub(crate) struct Relayout {
    #[command(flatten)]
    rearrange: Rearrange,
    /// The new layout: row, column, axes:2,0,1 (slowest first), tiled:256x256 or
    /// tiled:256x256:column; a 'raw:' description says its own
    #[arg(long)]
    layout: Option<Arrangement>,
}

impl Relayout {
    pub(crate) fn check(&self) -> Result<(), String> {
        let raw = self.rearrange.output.starts_with("raw:");
        if self.layout.is_none() && !raw {
            return Err("relayout needs --layout: row, column, axes:2,0,1 or tiled:256x256".into());
        }
        no_layout_of_raw(self.layout.as_ref(), &self.rearrange.output)
    }

    pub(crate) fn run(&self) -> Result<()> {
        self.rearrange
            .run("rearranging", default_ranks(), |source: &Array, _| {
                let output = &self.rearrange.output;
                let same = like(source.descriptor(), output);
                let descriptor = with_layout(same, self.layout.as_ref(), output);
                let axes = (0..source.shape().len()).collect();
                Ok(Wanted {
                    axes,
                    descriptor,
                    conversion: None,
                })
            })
    }
}
