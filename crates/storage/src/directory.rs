//! [`Directory`]: objects as the files of a local directory.
//!
//! A write goes to a hidden file beside the place, which then gets its name; so
//! an object is complete or not there, and readers of the old one keep it.
//! Hidden files that a killed program has left are not listed, and go with
//! [`Objects::remove_all`].
//!
//! Nothing is synced file by file, which would cost a device write for each
//! chunk; [`Objects::sync`] brings the file system to stable storage once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::chunked::cores;
use crate::error::{Error, Result};
use crate::file::{Access, FileStore};
use crate::objects::{Entry, Objects, Version, check_folder, check_key, too_long};
use crate::store::Store;

/// How the names of unfinished files end; they begin with a dot.
const UNFINISHED: &str = ".partial";

/// A local directory, which need not exist before the first write.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
    /// Whether what it holds is relied on: what is not complete has a hidden name, and
    /// is brought to stable storage as a whole before it gets another.
    finished: bool,
}

impl Directory {
    /// The directory at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Directory {
            finished: !is_hidden(&path),
            path,
        }
    }

    /// Its path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what programs were writing that were killed. Nobody may write meanwhile.
    pub fn remove_unfinished(&self) -> Result<()> {
        remove_unfinished(&self.path).map_err(failed("remove", &self.path))
    }

    /// Where the object `key` is.
    fn place(&self, key: &str) -> Result<PathBuf> {
        check_key(&self.name(), key)?;
        Ok(self.path.join(key))
    }

    /// Whether what is to replace the object at `path` must be on stable storage before:
    /// the system may bring the new name there before the bytes, and if it crashes in
    /// between, neither the old nor the new object is left.
    fn must_sync(&self, path: &Path) -> bool {
        self.finished && path.symlink_metadata().is_ok()
    }

    fn folder(&self, folder: &str) -> Result<PathBuf> {
        check_folder(&self.name(), folder)?;
        Ok(self.path.join(folder))
    }
}

/// Whether the name of a file or directory begins with a dot.
fn is_hidden(path: &Path) -> bool {
    let name = path.file_name();
    name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a file is not there, and no file can be where it would be.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory
    )
}

/// The answer `missing` if a file is not there, and else an error.
fn or_missing<T>(action: &'static str, path: &Path, source: io::Error, missing: T) -> Result<T> {
    match is_missing(&source) {
        true => Ok(missing),
        false => Err(failed(action, path)(source)),
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let object = path.display().to_string();
    move |source| Error::object(action, object, source)
}

/// Fills `buffer` from `offset` of an open file.
fn read_at(file: &File, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<bool> {
    match file.read_exact_at(buffer, offset) {
        Ok(()) => Ok(true),
        Err(source) if source.kind() == ErrorKind::UnexpectedEof => Err(Error::UnexpectedEnd {
            store: path.display().to_string(),
            offset,
            wanted: buffer.len() as u64,
            end: file.metadata().map_or(offset, |found| found.len()),
        }),
        Err(source) => or_missing("read", path, source, false),
    }
}

/// A new, hidden file in `folder`, which is made if need be.
fn unfinished(folder: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let process = std::process::id();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".{process}-{number}{UNFINISHED}"));
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        match file {
            Ok(file) => return Ok((path, file)),
            // A program on another machine has the same number, or had.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == ErrorKind::NotFound => fs::create_dir_all(folder)?,
            Err(error) => return Err(error),
        }
    }
}

/// Whether a file has the name of one that is not complete.
fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(UNFINISHED)
}

fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_unfinished(&entry.path())?;
        } else if is_unfinished(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Opens for reading, without waiting for the writer of a pipe.
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

impl Objects for Directory {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn parallel(&self) -> usize {
        cores()
    }

    fn length(&self, key: &str) -> Result<Option<u64>> {
        let path = self.place(key)?;
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(None),
            Ok(found) => Ok(Some(found.len())),
            Err(source) => or_missing("find", &path, source, None),
        }
    }

    fn read(&self, key: &str, most: u64, buffer: &mut Vec<u8>) -> Result<Option<Version>> {
        let path = self.place(key)?;
        buffer.clear();
        let read = |file: File| {
            let found = file.metadata()?;
            if found.is_dir() {
                return Err(ErrorKind::IsADirectory.into());
            }
            let length = found.len();
            // Room for all of it, and for the byte that shows that there is more.
            let room = length.min(most) as usize;
            if length <= most {
                buffer.try_reserve_exact(room + 1)?;
                file.take(most.saturating_add(1)).read_to_end(buffer)?;
            }
            match length.max(buffer.len() as u64) {
                length if length > most => Err(too_long(length, most)),
                _ => Ok(()),
            }
        };
        match open(&path).and_then(read) {
            Ok(()) => Ok(Some(Version::default())),
            Err(source) => {
                buffer.clear();
                or_missing("read", &path, source, None)
            }
        }
    }

    fn read_parts(&self, key: &str, parts: &[Range<usize>], buffer: &mut [u8]) -> Result<bool> {
        let path = self.place(key)?;
        let file = match open(&path) {
            Ok(file) => file,
            Err(source) => return or_missing("read", &path, source, false),
        };
        for part in parts {
            if !read_at(&file, &path, part.start as u64, &mut buffer[part.clone()])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write(&self, key: &str, data: &[u8]) -> Result<()> {
        let path = self.place(key)?;
        let folder = path.parent().unwrap_or(&self.path);
        let (hidden, mut file) = unfinished(folder).map_err(failed("write", &path))?;
        let mut fill = || {
            file.write_all(data)?;
            if self.must_sync(&path) {
                file.sync_data()?;
            }
            fs::rename(&hidden, &path)
        };
        let written = fill();
        written.map_err(|source| {
            let _ = fs::remove_file(&hidden);
            failed("write", &path)(source)
        })
    }

    fn remove(&self, key: &str) -> Result<()> {
        let path = self.place(key)?;
        match fs::remove_file(&path) {
            Err(_) if path.is_dir() => Ok(()),
            Err(source) => or_missing("remove", &path, source, ()),
            Ok(()) => Ok(()),
        }
    }

    fn remove_all(&self, folder: &str) -> Result<()> {
        let path = self.folder(folder)?;
        match fs::remove_dir_all(&path) {
            // An object has this name, and there is no folder.
            Err(source) => or_missing("remove", &path, source, ()),
            Ok(()) => Ok(()),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        let path = self.folder(folder)?;
        let names = match fs::read_dir(&path) {
            Ok(names) => names,
            Err(source) => return or_missing("list", &path, source, Vec::new()),
        };
        let mut entries = Vec::new();
        for found in names {
            let found = found.map_err(failed("list", &path))?;
            // No key names what is not Unicode.
            let Ok(name) = found.file_name().into_string() else {
                continue;
            };
            if is_unfinished(&name) {
                continue;
            }
            // A link to a folder that it is in would be listed without end.
            if found.file_type().is_ok_and(|kind| kind.is_symlink())
                && let (Ok(target), Ok(here)) = (found.path().canonicalize(), path.canonicalize())
                && here.starts_with(&target)
            {
                continue;
            }
            // Others are followed, as they are when an object is read.
            let length = match fs::metadata(found.path()) {
                Ok(found) if found.is_dir() => None,
                Ok(found) => Some(found.len()),
                // Removed meanwhile, or a link to nothing.
                Err(error) if is_missing(&error) => continue,
                Err(source) => return Err(failed("list", &found.path())(source)),
            };
            entries.push(Entry { name, length });
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Store>>> {
        let path = self.place(key)?;
        match FileStore::open(&path, Access::ReadOnly) {
            Err(Error::Open { source, .. }) if is_missing(&source) => Ok(None),
            Ok(_) if path.is_dir() => Ok(None),
            Ok(store) => Ok(Some(Arc::new(store))),
            Err(error) => Err(error),
        }
    }

    fn sync(&self) -> Result<()> {
        match File::open(&self.path).and_then(|directory| sync_file_system(&directory)) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(Error::sync(self.name(), source))
            }
            // Nothing was written, or all of it is there.
            _ => Ok(()),
        }
    }
}

/// Brings the file system that holds `directory` to stable storage.
#[cfg(target_os = "linux")]
fn sync_file_system(directory: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open during the call.
    match unsafe { libc::syncfs(directory.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Brings all file systems to stable storage.
#[cfg(not(target_os = "linux"))]
fn sync_file_system(_: &File) -> io::Result<()> {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::sync() };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_that_replace_others_are_synced_where_they_are_relied_on() {
        let place = tempfile::tempdir().unwrap();
        for (name, relied_on) in [("a.zarr", true), (".1f-a.zarr", false)] {
            let directory = Directory::new(place.path().join(name));
            let path = directory.place("c/0").unwrap();
            assert!(!directory.must_sync(&path), "{name}");
            directory.write("c/0", b"old").unwrap();
            assert_eq!(directory.must_sync(&path), relied_on, "{name}");
            directory.write("c/0", b"new").unwrap();
            assert_eq!(fs::read(path).unwrap(), b"new");
        }
        assert!(Directory::new(".").finished && Directory::new("../").finished);
    }
}
