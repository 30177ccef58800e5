//! The option `--checksums`.

use clap::Args;
use outcore::ArrayDescriptor;

use crate::bytes;

/// Whether the blocks of a new array get checksums.
#[derive(Args)]
pub(crate) struct Checksums {
    /// Keep a CRC32C for each block, compared by every read (.oc); BYTES a block
    /// [default: a tile of 4 KiB to 1 MiB, or else 256KiB]
    #[arg(
        long,
        value_name = "BYTES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        value_parser = parse
    )]
    checksums: Option<Length>,
}

/// The bytes of a block; `None`: whatever suits the array.
#[derive(Clone, Copy)]
struct Length(Option<u64>);

fn parse(text: &str) -> Result<Length, String> {
    match text {
        "auto" => Ok(Length(None)),
        _ => bytes::parse(text).map(|bytes| Length(Some(bytes))),
    }
}

impl Checksums {
    pub(crate) fn are_wanted(&self) -> bool {
        self.checksums.is_some()
    }

    /// Fails if the format of `output` has no such checksums.
    pub(crate) fn check(&self, output: &str) -> Result<(), String> {
        match self.are_wanted() && !output.trim_end_matches('/').ends_with(".oc") {
            true => Err(format!(
                "--checksums is for outcore's own format, and '{output}' does not end in .oc; a \
                 name ending in .zarr has --codec crc32c"
            )),
            false => Ok(()),
        }
    }

    /// Puts into `descriptor` what was asked for.
    pub(crate) fn apply(&self, descriptor: &mut ArrayDescriptor) {
        if let Some(Length(block)) = self.checksums {
            *descriptor = descriptor.clone().checksummed(block);
        }
    }
}
