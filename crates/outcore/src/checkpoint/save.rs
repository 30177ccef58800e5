//! Saving a checkpoint, by all ranks.
//!
//! Every step is agreed upon, so an error on one rank is the same error on all,
//! and what was begun is removed; the checkpoints before are not touched.

use std::path::Path;
use std::time::SystemTime;

use outcore_storage::{Blocks, Store};
use outcore_transport::{Comm, Error as TransportError};

use super::checksum::{checksums, cut};
use super::manifest::{self, Manifest, SavedArray};
use super::series::Checkpoints;
use super::snapshot::Snapshot;
use super::unfinished::{self, Lock, Unfinished};
use crate::array::Array;
use crate::error::{Error, Result};

/// What was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Its number in the series.
    pub sequence: u64,
    /// The bytes of all arrays.
    pub bytes: u64,
    /// Older checkpoints that were removed; known to rank 0 alone.
    pub removed: Vec<String>,
}

impl Checkpoints {
    /// Collective: saves the state of all ranks as the checkpoint `name`. When it
    /// returns, the checkpoint is on stable storage. One of the same name is
    /// replaced, in one step; older ones beyond those that are
    /// [kept](Self::keep) are removed, as far as that can be.
    ///
    /// Until then nothing can be seen of it. If it fails, it does so on all
    /// ranks with the same error, and all earlier checkpoints are as they were.
    pub fn save(&self, comm: &Comm, name: &str, snapshot: &Snapshot<'_>) -> Result<Saved> {
        // 1. All ranks save the same.
        snapshot.check(comm, name)?;
        // 2. Files under a hidden name.
        let begun = match comm.rank() {
            0 => self.begin(name, snapshot).map(Some),
            _ => Ok(None),
        };
        let begun = comm.agree(begun)?;
        let path = begun.as_ref().map(|(_, unfinished, _)| unfinished.path());
        let mut path = path.map_or(String::new(), |path| path.display().to_string());
        comm.broadcast_string(0, &mut path)?;
        // 3. All data, in global order, to stable storage.
        let arrays = write(comm, Path::new(&path), snapshot)?;
        comm.agree(sync_own(comm, &arrays))?;
        drop(arrays);
        // 4. Checksums of what is in the files now.
        let described = describe(comm, Path::new(&path), snapshot)?;
        // 5. The manifest, and the name.
        let named = match begun {
            Some((lock, unfinished, sequence)) => {
                let manifest = Manifest {
                    sequence,
                    created: now(),
                    ranks: comm.size() as u64,
                    notes: snapshot.notes.clone(),
                    arrays: described,
                };
                let named = unfinished.finish(&manifest);
                named.map(|()| Some((lock, sequence, manifest.bytes())))
            }
            None => Ok(None),
        };
        let named = comm.agree(named)?;
        // 6. Older ones, which whoever has the lock may remove.
        let (mut numbers, mut removed) = ([0, 0], Vec::new());
        if let Some((_lock, sequence, bytes)) = &named {
            numbers = [*sequence, *bytes];
            removed = self.remove_older();
        }
        comm.broadcast(0, &mut numbers)?;
        Ok(Saved {
            sequence: numbers[0],
            bytes: numbers[1],
            removed,
        })
    }

    fn begin(&self, name: &str, snapshot: &Snapshot<'_>) -> Result<(Lock, Unfinished, u64)> {
        let lock = Lock::take(self.path())?;
        lock.clean(self.path());
        let sequence = self.next_sequence()?;
        let unfinished = Unfinished::begin(self.path(), name, snapshot)?;
        Ok((lock, unfinished, sequence))
    }

    /// Removes what need not be kept. What cannot be removed stays for the next
    /// time: the checkpoint that was saved is there all the same.
    fn remove_older(&self) -> Vec<String> {
        let Some(keep) = self.kept() else {
            return Vec::new();
        };
        let mut names = self.superfluous(keep).unwrap_or_default();
        names.retain(|name| unfinished::remove(self.path(), name).is_ok());
        names
    }
}

/// Collective: has each variable write its array in `directory`.
fn write(comm: &Comm, directory: &Path, snapshot: &Snapshot<'_>) -> Result<Vec<Array>> {
    let arrays = open(comm, directory, snapshot, Array::open_writable)?;
    for ((_, variable), array) in snapshot.variables.iter().zip(&arrays) {
        agreed(comm, variable.write(comm, array))?;
    }
    Ok(arrays)
}

/// Collective: the outcome of something collective. What fails on all ranks is
/// agreed upon already, and knows its rank.
fn agreed(comm: &Comm, outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error @ Error::Transport(TransportError::Agreed { .. })) => Err(error),
        other => Ok(comm.agree(other)?),
    }
}

/// Collective: opens the array of each variable in `directory`.
fn open(
    comm: &Comm,
    directory: &Path,
    snapshot: &Snapshot<'_>,
    open: fn(&str) -> Result<Array>,
) -> Result<Vec<Array>> {
    let paths = snapshot
        .variables
        .iter()
        .map(|(name, _)| directory.join(manifest::file(name)));
    let opened: Result<Vec<Array>> = paths.map(|path| open(&path.to_string_lossy())).collect();
    Ok(comm.agree(opened)?)
}

/// Collective: what the manifest will say of the arrays. They are opened anew:
/// only then do file systems of several machines show what others have written.
fn describe(comm: &Comm, directory: &Path, snapshot: &Snapshot<'_>) -> Result<Vec<SavedArray>> {
    let arrays = open(comm, directory, snapshot, Array::open)?;
    let file = |array: &Array| cut(array.layout().byte_len());
    let files: Vec<(&dyn Store, Blocks)> = arrays
        .iter()
        .map(|array| (&**array.store(), file(array)))
        .collect();
    let sums = checksums(comm, &files, &|_| ())?;
    let described = snapshot.descriptors().zip(files).zip(sums);
    let saved = described.map(|(((name, descriptor), (_, blocks)), sums)| SavedArray {
        name: name.into(),
        descriptor,
        blocks,
        sums,
    });
    Ok(saved.collect())
}

/// Syncs what this rank must: threads divide the files, since one system writes
/// back all of a file; processes may be on different machines.
fn sync_own(comm: &Comm, arrays: &[Array]) -> Result<()> {
    let divided = comm.transport().shares_memory();
    let own = |at: &usize| !divided || at % comm.size() == comm.rank();
    let numbered = arrays.iter().enumerate();
    let mut own = numbered.filter(|(at, _)| own(at));
    own.try_for_each(|(_, array)| array.sync())
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
