//! Containers that are made as a whole.
//!
//! [`create_groups`] makes one that holds nothing yet but groups and what is kept with them.
//! All of them are there, or none: like a new array, a container is made under a hidden
//! name and renamed. Arrays are then made in it one by one, each with its own name.
//!
//! A [`Filling`] does that with the arrays of another container. A note beside the new one
//! says of what and how it is made, until all arrays are there; so a run that was stopped
//! can be continued, by the same job only.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::distinct::distinct;
use crate::draft::{beside, groups_on_the_way, parent, rename_to_free, sync_directory};
use crate::error::{Error, Result};
use crate::format::{Location, hdf5, native, place, zarr};
use crate::hidden_name::hidden_name;
use crate::identity::{Identity, identities};

/// Groups by their paths (`a/b`; that of the container is empty) with what is kept with each.
/// Those on the way to one are among them.
pub(crate) type Groups = BTreeMap<String, Map<String, Value>>;

/// Makes the container `name`, a Zarr directory or an HDF5 file, with these groups by their
/// paths in it and with what is kept with each; the path of the container itself is empty.
/// Groups on the way are made. Nothing of that name may exist. All groups are there at once,
/// but at an address, where objects have no names that can be changed.
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
    if let Location::Zarr { version, .. } = &location {
        for group in groups_on_the_way(path) {
            zarr::check_group(name, group, *version)?;
        }
    }
    let make = |path: &Path| match &location {
        Location::Zarr { version, .. } => zarr::create_groups(path, &groups, *version),
        Location::Hdf5 { .. } if is_whole_file(name) => hdf5::create_groups(path, &groups),
        _ => Err(Error::format(
            name,
            "a container is a new Zarr directory or a new HDF5 file: name one that ends in .zarr \
             or .h5, or .nc4 for NetCDF-4",
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

/// Whether a name says no dataset of an HDF5 file.
fn is_whole_file(name: &str) -> bool {
    let endings = [".h5", ".hdf5", ".nc4"];
    endings.iter().any(|ending| name.ends_with(ending))
}

fn with_those_on_the_way<'a>(
    groups: impl IntoIterator<Item = (&'a str, Map<String, Value>)>,
) -> Groups {
    let mut all = Groups::from([(String::new(), Map::new())]);
    for (path, kept) in groups {
        let names = path.split('/').filter(|name| !name.is_empty());
        let path = names.collect::<Vec<_>>().join("/");
        let mut group = &path[..];
        // Where one is known, so are those on the way to it.
        while let Some((around, _)) = group.rsplit_once('/')
            && !all.contains_key(around)
        {
            all.insert(around.into(), Map::new());
            group = around;
        }
        all.insert(path, kept);
    }
    all
}

/// A container that is being filled with the arrays of another one. Dropped, it can be
/// continued.
#[derive(Debug)]
pub struct Filling {
    note: PathBuf,
    resumed: bool,
}

/// What a note says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    input: String,
    files: Vec<Identity>,
    options: String,
}

impl Filling {
    /// Begins to fill the new container `output`, which gets these groups, with the arrays of
    /// `input`; with `resume`, goes on with what a run has left that had the same input and
    /// the same `options`, if there is such.
    pub fn begin<'a>(
        (input, output): (&str, &str),
        options: &str,
        groups: impl IntoIterator<Item = (&'a str, Map<String, Value>)>,
        resume: bool,
    ) -> Result<Self> {
        distinct(input, output)?;
        let location = Location::of_new(output)?;
        let exists = place::exists(location.path())?;
        let note = note_of(&place::local(location.path())?);
        let left = exists && note.exists();
        if left && !resume {
            return Err(Error::format(
                output,
                format!(
                    "an interrupted run has left a part of it; --resume goes on with that; to begin \
                     anew, remove it and {}",
                    note.display()
                ),
            ));
        }
        let files = identities(input).map_err(|error| match left {
            true => error.or_unfinished(output),
            false => error,
        });
        let job = Job {
            input: input.into(),
            files: files?,
            options: options.into(),
        };
        if left {
            job.check(output, &note)?;
            // At an address not all groups need be there.
            if let Location::Zarr { path, version } = &location
                && place::is_address(path)
            {
                zarr::create_groups(path, &with_those_on_the_way(groups), *version)?;
            }
        } else {
            // What is there is somebody else's, which is told below.
            if !exists {
                job.write(&note)?;
            }
            if let Err(error) = create_groups(output, groups) {
                // At an address some of the groups may be there; another run goes on with them.
                let path = location.path();
                let begun = place::is_address(path) && place::exists(path).unwrap_or(true);
                if !exists && !begun {
                    let _ = std::fs::remove_file(&note);
                }
                return Err(error);
            }
        }
        Ok(Self {
            note,
            resumed: left,
        })
    }

    /// Whether it goes on with what another run has left.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// All arrays are there.
    pub fn finish(self) -> Result<()> {
        std::fs::remove_file(&self.note).map_err(|source| Error::file("remove", &self.note, source))
    }
}

impl Job {
    fn write(&self, note: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).expect("a job is plain data");
        let write = || {
            let mut file = std::fs::File::create(note)?;
            file.write_all(&text)?;
            file.sync_all()
        };
        write().map_err(|source| Error::file("write", note, source))
    }

    /// Fails if the note is of another job.
    fn check(&self, output: &str, note: &Path) -> Result<()> {
        let text = std::fs::read(note).map_err(|source| Error::file("read", note, source))?;
        let left: Option<Self> = serde_json::from_slice(&text).ok();
        let problem = match left {
            Some(left) if left == *self => return Ok(()),
            Some(left) if left.input == self.input && left.files != self.files => {
                "its input has changed since it was begun"
            }
            Some(_) => "it was begun with another input or other options",
            None => "the note beside it is damaged",
        };
        Err(Error::format(
            output,
            format!(
                "this cannot be continued: {problem}; to begin anew, remove it and {}",
                note.display()
            ),
        ))
    }
}

/// Where the note of the container at `path` is.
fn note_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    parent(path).join(hidden_name("", &name, ".filling"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_in_groups_in_groups() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("deep.h5");
        let name = name.to_str().unwrap();
        let paths: Vec<String> = (1..2000).map(|deep| vec!["g"; deep].join("/")).collect();
        create_groups(name, paths.iter().map(|path| (&**path, Map::new()))).unwrap();
        let listed = crate::list(name).unwrap();
        let listed: Vec<String> = listed.into_iter().map(|item| item.path).collect();
        assert_eq!(listed[0], "");
        assert_eq!(listed[1..], paths);
    }
}
