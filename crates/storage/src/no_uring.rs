//! Stands for `uring.rs` on systems other than Linux: there are no rings.

use std::fs::File;

use crate::batch::Batch;
use crate::error::Result;

pub(crate) fn is_available() -> bool {
    false
}

pub(crate) fn run(_file: &File, _batch: &mut impl Batch) -> Option<Result<()>> {
    None
}
