//! [`stored_bytes`]: what an array takes on its disk.
//!
//! Of files and directories that are an array it is what is allocated for them, but no more
//! than their lengths: holes and what only fills a block count for nothing. Of an array that
//! may share a file with others it is its chunks as they are encoded, or else the room for
//! its elements.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use outcore_storage::Access;

use crate::array::Array;
use crate::error::{Error, Result};
use crate::format::{Location, native, place};
use crate::interrupt;

/// The bytes of `array`, which has been opened by its name, where it is stored. `None`:
/// nobody knows without asking for each of its objects, or for each entry of an index that
/// others may change.
pub fn stored_bytes(array: &Array) -> Result<Option<u64>> {
    let location = Location::of_existing(array.name())?;
    let path = location.path();
    let shared = matches!(
        location,
        Location::Hdf5 { .. } | Location::Netcdf { .. } | Location::Tiff(_) | Location::Raw(_)
    );
    if shared {
        return Ok(match array.store().as_chunks() {
            Some(store) => store.chunks().stored_bytes()?,
            None => Some(array.layout().byte_len()),
        });
    }
    if place::is_address(path) {
        return match location {
            Location::Zarr { .. } => Ok(None),
            _ => Ok(Some(place::file(path, Access::ReadOnly)?.len()?)),
        };
    }
    let mut bytes = on_disk(path)?;
    if matches!(location, Location::Native(_)) {
        for file in native::files_outside(path)? {
            bytes += on_disk(&file)?;
        }
    }
    Ok(Some(bytes))
}

/// What is allocated for a file, or for all that are in a directory.
fn on_disk(path: &Path) -> Result<u64> {
    /// What the system counts blocks in, whatever they are.
    const BLOCK: u64 = 512;
    interrupt::check()?;
    let failed = |source| Error::file("open", path, source);
    let found = std::fs::metadata(path).map_err(failed)?;
    if !found.is_dir() {
        return Ok(found.len().min(found.blocks() * BLOCK));
    }
    let entries = std::fs::read_dir(path).map_err(failed)?;
    entries
        .map(|entry| on_disk(&entry.map_err(failed)?.path()))
        .sum()
}
