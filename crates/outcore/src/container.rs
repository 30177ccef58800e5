//! [`create_groups`]: containers that hold nothing yet but groups and what is kept with
//! them. All of them are there, or none: like a new array, a container is made under a
//! hidden name and renamed. Arrays are then made in it one by one, each with its own name.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::draft::{beside, parent, rename_to_free, sync_directory};
use crate::error::{Error, Result};
use crate::format::{Location, hdf5, native, place, zarr};

/// Groups by the names on the way to them, with what is kept with each.
pub(crate) type Groups = BTreeMap<Vec<String>, Map<String, Value>>;

/// Makes the container `name`, a Zarr directory or an HDF5 file, with these groups by their
/// paths in it and with what is kept with each; the path of the container itself is empty.
/// Groups on the way are made. Nothing of that name may exist.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("climate.h5");
/// # let name = name.to_str().unwrap();
/// let title = serde_json::json!({ "title": "a run" });
/// outcore::create_groups(name, [("", title.as_object().unwrap().clone())])?;
/// assert_eq!(outcore::list(name)?[0].attributes["title"], "a run");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create_groups<'a>(
    name: &str,
    groups: impl IntoIterator<Item = (&'a str, Map<String, Value>)>,
) -> Result<()> {
    let groups = with_those_on_the_way(groups);
    let location = Location::of_new(name)?;
    let taken = || {
        Error::format(
            name,
            "something of this name exists already; remove it, or take another name",
        )
    };
    let path = location.path();
    if place::exists(path)? {
        return Err(taken());
    }
    let make = |path: &Path| match &location {
        Location::Zarr { version, .. } => zarr::create_groups(path, &groups, *version),
        Location::Hdf5 { .. } if !name.contains(":/") => hdf5::create_groups(path, &groups),
        _ => Err(Error::format(
            name,
            "a container is a new Zarr directory or a new HDF5 file: name one that ends in .zarr \
             or .h5",
        )),
    };
    if place::is_address(path) {
        return match location {
            Location::Zarr { .. } => make(path),
            _ => Err(Error::format(
                name,
                "only Zarr containers are made at an address; name one that ends in .zarr",
            )),
        };
    }
    let hidden = beside(path, &native::new_id())?;
    let made = make(&hidden).and_then(|()| {
        rename_to_free(&hidden, path).map_err(|source| match source.kind() {
            std::io::ErrorKind::AlreadyExists => taken(),
            _ => Error::file("create", path, source),
        })
    });
    if made.is_err() {
        // What is left has a hidden name.
        let _ = std::fs::remove_dir_all(&hidden).or_else(|_| std::fs::remove_file(&hidden));
    }
    made?;
    sync_directory(parent(path))
}

fn with_those_on_the_way<'a>(
    groups: impl IntoIterator<Item = (&'a str, Map<String, Value>)>,
) -> Groups {
    let mut all = Groups::from([(Vec::new(), Map::new())]);
    for (path, kept) in groups {
        let names = path.split('/').filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        for len in 1..names.len() {
            all.entry(names[..len].to_vec()).or_default();
        }
        all.insert(names, kept);
    }
    all
}
