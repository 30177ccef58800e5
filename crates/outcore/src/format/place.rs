//! Where named byte strings are: a directory.

use std::path::Path;
use std::sync::Arc;

use outcore_storage::{Directory, Objects};

use crate::error::Result;

/// The objects under `path`.
pub(crate) fn objects(path: &Path) -> Result<Arc<dyn Objects>> {
    Ok(Arc::new(Directory::new(path)))
}
