//! The [`Objects`] trait: named byte strings, in a directory or under a prefix
//! of a bucket. What stores many small pieces (a Zarr array its chunks, a
//! container its description) needs no more than this.
//!
//! A key is a path of names with `/` between them, relative to the place:
//! `temperature/c/0/3`. Folders are what keys have in common; nobody makes
//! them.
//!
//! Invariants:
//! - An object is complete or not there, whatever happens to its writer; who
//!   reads one while it is replaced gets all of the old or all of the new.
//! - If the system crashes, one that was replaced is the old or the new one; one that
//!   is new may be missing or cut short until [`Objects::sync`] has returned.
//! - What is not there is an answer (`None`, `false`), not an error; all else
//!   that keeps the bytes from coming is an error, never fewer bytes.
//! - Messages name the object and never hold credentials.
//! - Every method may be called by many threads at once, and where
//!   [`Objects::parallel`] is large that is how it becomes fast.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::store::Store;

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name, without that of the folder.
    pub name: String,
    /// The bytes of the object; `None`: the entry is a folder.
    pub length: Option<u64>,
}

impl Entry {
    /// Whether other keys begin with this name.
    pub fn is_folder(&self) -> bool {
        self.length.is_none()
    }
}

/// Which of the objects that a key names one after the other was read, as far as the
/// place tells them apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Version {
    /// What the protocols call an entity tag; never a weak one.
    pub(crate) tag: Option<String>,
    /// The number of it, where objects have such.
    pub(crate) number: Option<String>,
}

/// Named byte strings.
pub trait Objects: Debug + Send + Sync {
    /// What messages call the place: a path, or an address without credentials.
    fn name(&self) -> String;

    /// How many calls at a time pay off: cores for a directory, many more where
    /// each waits for a network.
    fn parallel(&self) -> usize;

    /// The number of bytes of an object; `None`: it is not there.
    fn length(&self, key: &str) -> Result<Option<u64>>;

    /// Makes `buffer` all of an object, whatever it held; one of more than `most`
    /// bytes is an error, whatever it holds. `None`: the object is not there, and
    /// the buffer is empty.
    fn read(&self, key: &str, most: u64, buffer: &mut Vec<u8>) -> Result<Option<Version>>;

    /// Brings the bytes `parts` of an object to the same places of `buffer`; past its
    /// end is [`Error::UnexpectedEnd`]. `false`: the object is not there.
    fn read_parts(&self, key: &str, parts: &[Range<usize>], buffer: &mut [u8]) -> Result<bool>;

    /// Makes an object of `data`, or replaces it.
    fn write(&self, key: &str, data: &[u8]) -> Result<()>;

    /// As `write`, if the object is still the one that was read, or still not there
    /// (`None`). `false`: it is another one now, and stays. A place that does not
    /// compare replaces whatever is there: locks must keep others out.
    fn write_over(&self, key: &str, data: &[u8], old: Option<&Version>) -> Result<bool> {
        let _ = old;
        self.write(key, data).map(|()| true)
    }

    /// Removes an object, if it is there.
    fn remove(&self, key: &str) -> Result<()>;

    /// Removes all objects of a folder and of those in it; `""` is the place
    /// itself. Not at once: who looks meanwhile may find some of them.
    fn remove_all(&self, folder: &str) -> Result<()>;

    /// The objects and folders of a folder, one level, by name; `""` is the
    /// place itself. A folder that nobody has written to is empty. What has
    /// lost its objects one by one may still be listed.
    fn list(&self, folder: &str) -> Result<Vec<Entry>>;

    /// One object as a store for reading, of the version that is there now, whoever
    /// replaces it meanwhile: its bytes, or errors. `None`: it is not there.
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Store>>>;

    /// Returns when all objects that were written are on stable storage.
    fn sync(&self) -> Result<()>;
}

/// The error of an object that is longer than it can be.
pub(crate) fn too_long(length: u64, most: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "it has {length} bytes, and cannot have more than {most}; it is damaged, or no part of this"
        ),
    )
}

/// Checks that `key` can name an object everywhere: names, none of them empty
/// or made of dots alone, with `/` between them.
pub(crate) fn check_key(place: &str, key: &str) -> Result<()> {
    let refuse = |reason| {
        Err(Error::Key {
            place: place.to_owned(),
            key: key.to_owned(),
            reason,
        })
    };
    if key.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return refuse("its names, with `/` between them, must not be empty, `.` or `..`");
    }
    if key.contains(|letter: char| letter.is_control()) {
        return refuse("it has control characters");
    }
    Ok(())
}

/// The same for a folder, which may be the place itself.
pub(crate) fn check_folder(place: &str, folder: &str) -> Result<()> {
    match folder {
        "" => Ok(()),
        _ => check_key(place, folder),
    }
}
