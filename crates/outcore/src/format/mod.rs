//! From the name of an array to its descriptor and its bytes, one file per
//! format. Everything above sees only an [`Opened`].

pub(crate) mod fields;
pub(crate) mod hdf5;
pub(crate) mod location;
pub(crate) mod native;
pub(crate) mod netcdf;
pub(crate) mod npy;
pub(crate) mod place;
pub(crate) mod raw;
pub(crate) mod tiff;
pub(crate) mod value;
pub(crate) mod zarr;

use std::path::Path;
use std::sync::Arc;

use outcore_storage::{Access, Store};
use serde_json::{Map, Value};

use crate::descriptor::ArrayDescriptor;
use crate::error::{Error, Result};
pub(crate) use location::Location;

/// What a container holds under one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What opens it if it is an array: `climate.zarr/t`, `results.h5:/u`.
    pub name: String,
    /// The path inside the container; empty for what the container is itself.
    pub path: String,
    /// What describes the array; `None`: a group, or what cannot be opened.
    pub array: Option<ArrayDescriptor>,
    /// Why it cannot be opened as an array, though it is none of the groups.
    pub problem: Option<String>,
    /// What its maker keeps with it.
    pub attributes: Map<String, Value>,
}

/// All groups and arrays of the container `name`; of an array, that alone.
///
/// ```no_run
/// for item in outcore::list("climate.zarr")? {
///     println!("{} {}", item.path, if item.array.is_some() { "array" } else { "group" });
/// }
/// # Ok::<(), outcore::Error>(())
/// ```
pub fn list(name: &str) -> Result<Vec<Item>> {
    match Location::of_existing(name)? {
        Location::Zarr { path, .. } => zarr::list(&path),
        Location::Hdf5 { path, inner: None } => list_hdf5(&path, ""),
        Location::Hdf5 {
            path,
            inner: Some(inner),
        } if hdf5::is_group(&path, &inner)? => list_hdf5(&path, &inner),
        Location::Netcdf { path, inner: None } => netcdf::list(&path),
        location => {
            let descriptor = open(&location, Access::ReadOnly)?.descriptor;
            Ok(vec![Item {
                name: location.to_string(),
                path: String::new(),
                attributes: descriptor.attributes.clone(),
                array: Some(descriptor),
                problem: None,
            }])
        }
    }
}

/// What is in the group `inner` of the file, or the group itself.
fn list_hdf5(path: &Path, inner: &str) -> Result<Vec<Item>> {
    let group = hdf5::plain_path(inner);
    let item = |listed: hdf5::Listed| {
        let below = listed.path[group.len()..]
            .trim_start_matches('/')
            .to_owned();
        let (array, problem) = match listed.dataset {
            Some(Ok(descriptor)) => (Some(descriptor), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        let inner = (!listed.path.is_empty()).then(|| listed.path.clone());
        let path = path.into();
        Item {
            name: Location::Hdf5 { path, inner }.to_string(),
            path: below,
            array,
            problem,
            attributes: listed.attributes,
        }
    };
    let listed = hdf5::list(path, inner)?.into_iter();
    Ok(listed.map(item).collect())
}

/// The format that the name of a new array says: `native`, `npy`, `raw`, `zarr`, `hdf5` (as a
/// file of NetCDF-4 is) or `netcdf`; `None`: none that arrays are made in.
///
/// ```
/// assert_eq!(outcore::format_of_new("climate.h5:/t"), Some("hdf5"));
/// assert_eq!(outcore::format_of_new("climate.txt"), None);
/// ```
pub fn format_of_new(name: &str) -> Option<&'static str> {
    Location::of_new(name)
        .ok()
        .map(|location| location.format())
}

/// What can be done with an input of several arrays besides naming one.
pub(crate) const COPY_ALL: &str = "'outcore convert --all' copies all of them";

/// The arrays of a file as a part of a sentence, in which each is called `noun`.
pub(crate) fn choices(noun: &str, names: &[&str]) -> String {
    const SHOWN: usize = 20;
    match names {
        [] => format!("it has no {noun}s"),
        [one] => format!("its only {noun} is {one}"),
        some if some.len() <= SHOWN => format!("its {noun}s are {}", some.join(", ")),
        some => format!(
            "its {noun}s are {} and {} more",
            some[..SHOWN].join(", "),
            some.len() - SHOWN
        ),
    }
}

/// An array's descriptor and its bytes.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) descriptor: ArrayDescriptor,
    pub(crate) store: Arc<dyn Store>,
    /// Where the data begin in the store.
    pub(crate) start: u64,
}

impl Opened {
    /// Fails if the store is too short for the data that the descriptor names.
    fn check(self, array: &str, file: &Path) -> Result<Self> {
        let layout = self.descriptor.check(array)?;
        let needed = self.start.checked_add(layout.byte_len()).ok_or_else(|| {
            Error::format(
                array,
                format!("offset {} and the data exceed 2^64 bytes", self.start),
            )
        })?;
        let found = self.store.len()?;
        if found < needed {
            return Err(Error::format(
                array,
                format!(
                    "{} has {found} bytes, but shape {} of {} in layout {} needs {needed}; \
                     the file is truncated or the description is wrong",
                    file.display(),
                    outcore_geometry::shape_text(&self.descriptor.shape),
                    self.descriptor.element_type,
                    self.descriptor.arrangement,
                ),
            ));
        }
        Ok(self)
    }
}

/// Opens an array of any format.
pub(crate) fn open(location: &Location, access: Access) -> Result<Opened> {
    match location {
        Location::Native(path) => native::open(path, access),
        Location::Npy(path) => npy::open(path, access),
        Location::Raw(raw) => raw.open(access),
        Location::Zarr { path, .. } => zarr::open(path, access),
        Location::Hdf5 { path, inner } => hdf5::open(path, inner.as_deref(), access),
        Location::Netcdf { path, inner } => netcdf::open(path, inner.as_deref(), access),
        Location::Tiff(path) => tiff::open(path, access),
    }
}

pub(crate) fn open_file(path: &Path, access: Access) -> Result<Arc<dyn Store>> {
    place::file(path, access)
}

/// What a file begins with; `None`: it is shorter.
pub(crate) fn first_bytes(path: &Path) -> Result<Option<[u8; 4]>> {
    let mut start = [0; 4];
    let store = open_file(path, Access::ReadOnly)?;
    if store.len()? < start.len() as u64 {
        return Ok(None);
    }
    store.read_at(0, &mut start)?;
    Ok(Some(start))
}

/// Whether the file at `path` has these bytes at one of the offsets.
pub(crate) fn has_at(path: &Path, bytes: &[u8], offsets: &[u64]) -> Result<bool> {
    let store = open_file(path, Access::ReadOnly)?;
    let (length, mut found) = (store.len()?, vec![0; bytes.len()]);
    for at in offsets {
        if at + bytes.len() as u64 <= length {
            store.read_at(*at, &mut found)?;
            if found == bytes {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
