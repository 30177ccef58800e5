//! [`distinct`]: whether a new array would take the place of the one that it is
//! made of.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::{Location, hdf5, place};

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
/// assert!(distinct(name, &format!("{name}/new.oc")).is_err());
/// assert!(distinct(name, &format!("{name}.npy")).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn distinct(input: &str, output: &str) -> Result<()> {
    // What has no name that says where it is, has no place that could be taken.
    let Ok(from) = Location::of_existing(input) else {
        return Ok(());
    };
    let to = Location::of_new(output)?;
    let (source, target) = (real(from.path()), real(to.path()));
    let apart = match (from.inner(), to.inner()) {
        (Some(one), Some(other)) => !hdf5::same_name(Some(one), Some(other)),
        _ => false,
    };
    let same = source.starts_with(&target) || target.starts_with(&source);
    if same && !apart {
        return Err(Error::format(
            output,
            "the output would take the place of the input; give it another name",
        ));
    }
    Ok(())
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    // An address is its own canonical form.
    if place::is_address(path) {
        return path.into();
    }
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let found = whole.ancestors().find_map(|ancestor| {
        let rest = whole.strip_prefix(ancestor).ok()?;
        let ancestor = ancestor.canonicalize().ok()?;
        Some(match rest == Path::new("") {
            true => ancestor,
            false => ancestor.join(rest),
        })
    });
    found.unwrap_or(whole)
}
