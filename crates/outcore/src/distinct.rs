//! [`distinct`]: whether a new array would take the place of the one that it is
//! made of.

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::{Location, hdf5};

/// Fails if a new array named `output` would take the place of the array `input`,
/// however that is named, or one of them would lie in the other.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, distinct};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("grid.oc");
/// # let name = name.to_str().unwrap();
/// Array::create(name, &ArrayDescriptor::new(&[4, 4], ElementType::F32))?;
/// assert!(distinct(name, &format!("{name}/")).is_err());
/// assert!(distinct(name, &format!("{name}.npy")).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn distinct(input: &str, output: &str) -> Result<()> {
    // What has no name that says where it is, has no place that could be taken.
    let Ok(from) = Location::of_existing(input) else {
        return Ok(());
    };
    let to = Location::of_new(output)?;
    // An address is its own canonical form.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
    let (source, target) = (real(from.path()), real(to.path()));
    let apart = match (from.inner(), to.inner()) {
        (Some(one), Some(other)) => !hdf5::same_name(Some(one), Some(other)),
        _ => false,
    };
    // What does not exist yet takes nobody's place.
    let exists = source == target || target.exists();
    let same = source.starts_with(&target) || (exists && target.starts_with(&source));
    if same && !apart {
        return Err(Error::format(
            output,
            "the output would take the place of the input; give it another name",
        ));
    }
    Ok(())
}
