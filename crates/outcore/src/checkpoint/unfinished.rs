//! [`Unfinished`]: a checkpoint that does not have its name yet; and what is
//! hidden in the directory of a series.
//!
//! Rank 0 makes the files under a hidden name, in the same directory, so that
//! one rename gives them their name. While it works it holds the series' lock,
//! which the system takes back when its process ends, however that happens. So
//! whoever has the lock knows that everything hidden is left from runs that were
//! killed, and removes it.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::manifest::{self, MANIFEST, Manifest};
use super::snapshot::Snapshot;
use crate::draft::{exchange_names, rename_to_free, sync_directory};
use crate::error::{Error, Result};
use crate::format::native;

/// How long to wait for another program.
const PATIENCE: Duration = Duration::from_secs(60);

/// The right to save and remove in a series.
#[derive(Debug)]
pub(super) struct Lock {
    /// Holds the lock until it is closed.
    _file: File,
    /// Whether the file system has locks.
    exclusive: bool,
}

impl Lock {
    /// Waits until nobody else saves or removes in `directory`; fails if that
    /// takes long.
    pub(super) fn take(directory: &Path) -> Result<Self> {
        let path = directory.join(".lock");
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file
            .open(&path)
            .map_err(|source| Error::file("open", &path, source))?;
        let begun = Instant::now();
        loop {
            // SAFETY: the descriptor is open.
            let code = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
            let error = std::io::Error::last_os_error();
            let exclusive = match error.raw_os_error() {
                _ if code == 0 => true,
                Some(libc::EWOULDBLOCK | libc::EINTR) => {
                    if begun.elapsed() > PATIENCE {
                        return Err(Error::format(
                            directory.display(),
                            "another program has been saving or removing checkpoints here for a \
                             minute; a series is for one program at a time",
                        ));
                    }
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
                // A file system without locks.
                _ => false,
            };
            return Ok(Self {
                _file: file,
                exclusive,
            });
        }
    }

    /// Removes what runs that were killed have left in `directory`, as far as
    /// that can be; nothing without locks, since it might belong to a run that
    /// is not over.
    pub(super) fn clean(&self, directory: &Path) {
        if self.exclusive {
            for path in leftovers(directory).unwrap_or_default() {
                let _ = std::fs::remove_dir_all(path);
            }
        }
    }
}

/// What is being written or removed now, or was left by runs that were killed.
pub(super) fn leftovers(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::file("read", directory, source);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if is_hidden(&entry.file_name().to_string_lossy()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// A name nobody uses, for what will be `name` or was it.
fn hidden(directory: &Path, state: &str, name: &str) -> PathBuf {
    directory.join(format!(".{state}-{}-{name}", native::new_id()))
}

/// Whether [`hidden`] makes such names.
fn is_hidden(name: &str) -> bool {
    let rest = name.strip_prefix(".new-").or(name.strip_prefix(".old-"));
    rest.and_then(|rest| rest.split_at_checked(32))
        .is_some_and(|(id, name)| {
            id.bytes().all(|byte| byte.is_ascii_hexdigit()) && name.starts_with('-')
        })
}

/// Whether there is a checkpoint at `path`, be it a damaged one.
pub(super) fn is_checkpoint(path: &Path) -> bool {
    path.join(MANIFEST).is_file()
}

/// Removes the checkpoint `name`, first its name and then its files. Whoever
/// calls holds the lock.
pub(super) fn remove(directory: &Path, name: &str) -> Result<()> {
    let (from, to) = (directory.join(name), hidden(directory, "old", name));
    std::fs::rename(&from, &to).map_err(|source| Error::file("remove", &from, source))?;
    sync_directory(directory)?;
    std::fs::remove_dir_all(&to).map_err(|source| Error::file("remove", &to, source))
}

/// A checkpoint without its name; dropped, it is removed.
#[derive(Debug)]
pub(super) struct Unfinished {
    directory: PathBuf,
    path: PathBuf,
    place: PathBuf,
}

impl Unfinished {
    /// Makes the files of `snapshot`, filled with zeros. Whoever calls holds the
    /// lock.
    pub(super) fn begin(directory: &Path, name: &str, snapshot: &Snapshot<'_>) -> Result<Self> {
        let place = directory.join(name);
        if place.symlink_metadata().is_ok() && !is_checkpoint(&place) {
            return Err(Error::format(
                place.display(),
                "what has this name is no checkpoint, so it is not replaced",
            ));
        }
        let path = hidden(directory, "new", name);
        std::fs::create_dir(&path).map_err(|source| Error::file("create", &path, source))?;
        let unfinished = Self {
            directory: directory.into(),
            path,
            place,
        };
        for (name, descriptor) in snapshot.descriptors() {
            let path = unfinished.path.join(manifest::file(name));
            native::create(name, &path, &descriptor, &mut Vec::new())?;
        }
        Ok(unfinished)
    }

    /// Where the files are now.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, in place of a checkpoint that has it. The data are on
    /// stable storage already.
    pub(super) fn finish(self, manifest: &Manifest) -> Result<()> {
        manifest.write(&self.path)?;
        for array in &manifest.arrays {
            sync_directory(&self.path.join(array.file()))?;
        }
        sync_directory(&self.path)?;
        let failed = |source| Error::file("create", &self.place, source);
        if is_checkpoint(&self.place) {
            // The old one is removed under the hidden name.
            let exchanged = exchange_names(&self.path, &self.place).ok_or_else(|| {
                Error::format(
                    self.place.display(),
                    "a checkpoint of this name exists, and this file system cannot replace it in \
                     one step; save under another name, or remove it first",
                )
            })?;
            exchanged.map_err(failed)?;
        } else {
            rename_to_free(&self.path, &self.place).map_err(failed)?;
        }
        sync_directory(&self.directory)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_known_again_and_no_others() {
        let path = hidden(Path::new("run"), "new", "step-1");
        assert!(is_hidden(path.file_name().unwrap().to_str().unwrap()));
        for name in [".lock", ".new-", ".new-notes", "new-x", ".git", "step-1"] {
            assert!(!is_hidden(name), "{name}");
        }
        let id = "z".repeat(32);
        assert!(!is_hidden(&format!(".new-{id}-x")));
        assert!(!is_hidden(&format!(".new-{}-x", "é".repeat(16))));
    }
}
