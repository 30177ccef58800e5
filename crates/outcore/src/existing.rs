//! [`Array::existing`]: what has the name of a new array already.

use outcore_storage::Access;

use crate::array::Array;
use crate::error::Result;
use crate::format::{Location, hdf5, netcdf, place};

impl Array {
    /// Opens the array that has the place of a new one named `name`, for reading; `None`:
    /// that place is free. Fails if what is there cannot be opened.
    ///
    /// ```
    /// use outcore::{Array, ArrayDescriptor, ElementType};
    /// # let directory = tempfile::tempdir()?;
    /// # let name = directory.path().join("all.h5:/sums");
    /// # let name = name.to_str().unwrap();
    /// assert!(Array::existing(name)?.is_none());
    /// Array::create(name, &ArrayDescriptor::new(&[4, 4], ElementType::F32))?;
    /// assert!(Array::existing(name)?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn existing(name: &str) -> Result<Option<Self>> {
        let place = Location::of_new(name)?;
        match Self::open_at(&place, Access::ReadOnly) {
            Ok(found) => Ok(Some(found)),
            Err(error) => match is_taken(&place)? {
                true => Err(error),
                false => Ok(None),
            },
        }
    }
}

/// Whether anything is at `place`.
fn is_taken(place: &Location) -> Result<bool> {
    let path = place.path();
    // An object is in no folder of its name.
    let there = place::is_object(path)? || place::exists(path)?;
    let (true, Some(inner)) = (there, place.inner()) else {
        return Ok(there);
    };
    let is_it = |path: &str| hdf5::same_name(Some(path), Some(inner));
    Ok(match place {
        Location::Netcdf { .. } => netcdf::list(path)?.iter().any(|item| is_it(&item.path)),
        _ => hdf5::list(path, "")?
            .iter()
            .any(|listed| is_it(&listed.path)),
    })
}
