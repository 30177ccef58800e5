//! [`identities`]: what changes if the files of an array, or of a container, do. Whoever
//! goes on with what another run has begun compares them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::{Location, native, place};
use crate::interrupt;

/// A file, or a directory with all that is in it: lengths, times and numbers, folded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Identity {
    path: PathBuf,
    bytes: u64,
    /// The time of the last change, in nanoseconds.
    changed: i128,
    numbers: u64,
}

/// The identities of the files of `name`; none of what is in a store without a name, or at
/// an address: objects do not say when they changed in a way that all stores share.
pub(crate) fn identities(name: &str) -> Result<Vec<Identity>> {
    let Ok(location) = Location::of_existing(name) else {
        return Ok(Vec::new());
    };
    let paths = match location.path() {
        path if place::is_address(path) => Vec::new(),
        path if matches!(location, Location::Native(_)) => {
            let mut paths = native::files_outside(path)?;
            paths.extend(entries(path)?);
            paths.sort();
            paths
        }
        path => vec![path.into()],
    };
    paths.iter().map(|path| Identity::of(path)).collect()
}

impl Identity {
    fn of(path: &Path) -> Result<Self> {
        let mut found = Self {
            path: path.canonicalize().unwrap_or_else(|_| path.into()),
            bytes: 0,
            changed: 0,
            numbers: 0,
        };
        found.add(path, true)?;
        Ok(found)
    }

    /// Adds a file, or a directory and what is in it.
    fn add(&mut self, path: &Path, first: bool) -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        interrupt::check()?;
        let found = std::fs::metadata(path).map_err(|source| Error::file("open", path, source))?;
        let changed = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
        self.bytes = self.bytes.wrapping_add(found.len());
        self.changed = self.changed.max(changed);
        // A sum does not depend on the order of entries.
        let number = match first {
            true => found.ino(),
            false => (changed as u64 ^ found.ino()).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        };
        self.numbers = self.numbers.wrapping_add(number);
        if found.is_dir() {
            for entry in entries(path)? {
                self.add(&entry, false)?;
            }
        }
        Ok(())
    }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::file("open", directory, source);
    let entries = std::fs::read_dir(directory).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry.map_err(failed)?.path()));
    paths.collect()
}
