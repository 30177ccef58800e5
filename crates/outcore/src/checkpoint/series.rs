//! [`Checkpoints`]: a series of checkpoints in a directory.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use outcore_transport::Comm;

use super::manifest::{MANIFEST, Manifest};
use super::saved::Checkpoint;
use super::unfinished::{self, Lock, is_checkpoint};
use crate::draft::{parent, sync_directory};
use crate::error::{Error, Result};

/// A series of checkpoints in a directory.
///
/// A checkpoint can be seen there only when it is complete and on stable
/// storage, so a program that is killed at any moment finds the last one that
/// was complete:
///
/// ```
/// use outcore::{Checkpoints, Comm, DistributedArray, Distribution, Snapshot};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("run");
/// # let name = name.to_str().unwrap();
/// // However many ranks there are, and however the array is distributed now.
/// let program = |comm: &Comm, distribution: &str, until: u64| {
///     let ranks = comm.size() as u64;
///     let distribution = Distribution::parse(distribution, &[100, 80], ranks, None).expect("it fits");
///     let mut field = DistributedArray::<f64>::new(comm, distribution)?;
///     let series = Checkpoints::open(comm, name)?.keep(2);
///     let mut step = 0;
///     if let Some(last) = series.latest(comm)? {
///         last.load(comm, "field", &mut field)?;
///         step = last.note("step").and_then(|step| step.as_u64()).unwrap_or(0);
///     }
///     while step < until {
///         field.map(|value| value + 1.0);
///         step += 1;
///         let state = Snapshot::new().with("field", &field).note("step", step);
///         series.save(comm, &format!("step-{step:06}"), &state)?;
///     }
///     assert!(field.local().iter().all(|value| *value == step as f64));
///     Ok::<(), outcore::Error>(())
/// };
/// outcore::run(4, |comm| program(comm, "block,*", 3))?;
/// outcore::run(3, |comm| program(comm, "cyclic(7),*", 5))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Checkpoints {
    directory: String,
    keep: Option<usize>,
}

/// What is found in the directory of a series under one name.
#[derive(Debug)]
pub struct CheckpointEntry {
    /// The name.
    pub name: String,
    /// What it is; or why nobody can tell, as its manifest is damaged.
    pub state: Result<Checkpoint>,
}

impl CheckpointEntry {
    /// The number in the series, if it is known.
    fn sequence(&self) -> Option<u64> {
        self.state.as_ref().ok().map(Checkpoint::sequence)
    }
}

impl Checkpoints {
    /// Collective: the series in `directory`, which is made if it is missing.
    pub fn open(comm: &Comm, directory: &str) -> Result<Self> {
        let made = match comm.rank() {
            0 => make(Path::new(directory)),
            _ => Ok(()),
        };
        comm.agree(made)?;
        let mut directory = directory.to_string();
        comm.broadcast_string(0, &mut directory)?;
        Ok(Self::at(directory))
    }

    /// Not collective: the series in a directory that exists.
    pub fn existing(directory: &str) -> Result<Self> {
        let path = Path::new(directory);
        let found = std::fs::metadata(path).map_err(|source| Error::file("open", path, source))?;
        if !found.is_dir() {
            return Err(Error::format(directory, "this is no directory"));
        }
        Ok(Self::at(directory.into()))
    }

    pub(super) fn at(directory: String) -> Self {
        Self {
            directory,
            keep: None,
        }
    }

    /// With at most so many checkpoints kept: each [`save`](Self::save) then
    /// removes the oldest ones, but never its own. Without this, all are kept.
    pub fn keep(mut self, count: usize) -> Self {
        self.keep = Some(count.max(1));
        self
    }

    pub(super) fn kept(&self) -> Option<usize> {
        self.keep
    }

    /// The directory.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    pub(super) fn path(&self) -> &Path {
        Path::new(&self.directory)
    }

    /// Not collective: what is there, the newest last. Those whose manifest is
    /// damaged, so that nobody knows how old they are, come first.
    pub fn list(&self) -> Result<Vec<CheckpointEntry>> {
        let failed = |source| Error::file("read", self.path(), source);
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(self.path()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if name.starts_with('.') || !is_checkpoint(&entry.path()) {
                continue;
            }
            let state = Checkpoint::read(&entry.path());
            entries.push(CheckpointEntry { name, state });
        }
        entries.sort_by(|a, b| (a.sequence(), &a.name).cmp(&(b.sequence(), &b.name)));
        Ok(entries)
    }

    /// Not collective: directories that runs which were killed have left, and
    /// that of a run which saves just now. The next save removes them.
    pub fn leftovers(&self) -> Result<Vec<PathBuf>> {
        unfinished::leftovers(self.path())
    }

    /// Collective: the newest checkpoint; `None` if there is none.
    ///
    /// If that one's manifest is damaged, it is an error that names the newest
    /// good one. (Which is the newest is known from the numbers in the
    /// manifests, and for damaged ones from when they were written.) Data are
    /// compared with their checksums when they are loaded.
    pub fn latest(&self, comm: &Comm) -> Result<Option<Checkpoint>> {
        let found = match comm.rank() {
            0 => self.newest(),
            _ => Ok(None),
        };
        let mut name = comm.agree(found)?.unwrap_or_default();
        comm.broadcast_string(0, &mut name)?;
        if name.is_empty() {
            return Ok(None);
        }
        Checkpoint::open(comm, &format!("{}/{name}", self.directory)).map(Some)
    }

    /// Collective: the newest checkpoint of which every checksum is right;
    /// `None` if there is none. `progress` gets the bytes that this rank looks
    /// at. What it returns need not be verified again.
    pub fn newest_intact(&self, comm: &Comm, progress: &dyn Fn(u64)) -> Result<Option<Checkpoint>> {
        self.newest_intact_before(comm, u64::MAX, progress)
    }

    /// Collective: the same among those with a number below `sequence`.
    pub(super) fn newest_intact_before(
        &self,
        comm: &Comm,
        sequence: u64,
        progress: &dyn Fn(u64),
    ) -> Result<Option<Checkpoint>> {
        let listed = match comm.rank() {
            0 => self.list(),
            _ => Ok(Vec::new()),
        };
        let names: Vec<String> = comm
            .agree(listed)?
            .into_iter()
            .rev()
            .filter(|entry| entry.sequence().is_some_and(|number| number < sequence))
            .map(|entry| entry.name)
            .collect();
        // No name holds a slash.
        let mut names = names.join("/");
        comm.broadcast_string(0, &mut names)?;
        for name in names.split('/').filter(|name| !name.is_empty()) {
            let opened = Checkpoint::open(comm, &format!("{}/{name}", self.directory));
            let checkpoint = match opened {
                Ok(checkpoint) => checkpoint,
                // Removed or damaged meanwhile.
                Err(Error::Transport(outcore_transport::Error::Agreed { .. })) => continue,
                Err(error) => return Err(error),
            };
            if checkpoint.problem(comm, progress)?.is_none() {
                return Ok(Some(checkpoint.unverified()));
            }
        }
        Ok(None)
    }

    /// The name of the newest; `None` if there are none.
    fn newest(&self) -> Result<Option<String>> {
        let mut entries = self.list()?;
        let good = entries.pop_if(|entry| entry.state.is_ok());
        let since = good.as_ref().and_then(|good| self.written(&good.name));
        for entry in entries {
            let Err(problem) = &entry.state else {
                continue;
            };
            if good.is_some() && self.written(&entry.name) < since {
                continue;
            }
            let older = match &good {
                Some(good) => format!("the newest with a good manifest is '{}'", good.name),
                None => "there is no older one".into(),
            };
            return Err(Error::Invalid(format!(
                "the newest checkpoint, '{}', cannot be used: {problem}; {older}",
                entry.name
            )));
        }
        Ok(good.map(|good| good.name))
    }

    /// When the manifest of a checkpoint was written.
    fn written(&self, name: &str) -> Option<SystemTime> {
        let path = self.path().join(name).join(MANIFEST);
        path.metadata().and_then(|file| file.modified()).ok()
    }

    /// Not collective: removes all but the newest `keep` checkpoints, and what
    /// runs that were killed have left. Returns the names of those that are
    /// removed. Those whose manifest is damaged do not count and stay.
    pub fn prune(&self, keep: usize) -> Result<Vec<String>> {
        let lock = Lock::take(self.path())?;
        lock.clean(self.path());
        let mut removed = Vec::new();
        for name in self.superfluous(keep)? {
            unfinished::remove(self.path(), &name)?;
            removed.push(name);
        }
        Ok(removed)
    }

    /// All but the newest `keep`, the oldest first.
    pub(super) fn superfluous(&self, keep: usize) -> Result<Vec<String>> {
        let entries = self.list()?.into_iter();
        let mut good: Vec<String> = entries
            .filter(|entry| entry.state.is_ok())
            .map(|entry| entry.name)
            .collect();
        good.truncate(good.len().saturating_sub(keep));
        Ok(good)
    }

    /// The number of the next checkpoint.
    pub(super) fn next_sequence(&self) -> Result<u64> {
        let entries = self.list()?;
        let last = entries.last().and_then(CheckpointEntry::sequence);
        last.unwrap_or(0).checked_add(1).ok_or_else(|| {
            Error::format(
                &self.directory,
                "the newest checkpoint here has the highest possible number, so none can follow",
            )
        })
    }
}

impl Checkpoint {
    /// Not collective: what the manifest at `path` says.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let manifest = Manifest::parse(path, &Manifest::read(path)?)?;
        Ok(Self::new(path.display().to_string(), manifest))
    }
}

/// Makes the directory of a series, unless it is there.
fn make(directory: &Path) -> Result<()> {
    match std::fs::create_dir(directory) {
        Ok(()) => sync_directory(parent(directory)),
        Err(_) if directory.is_dir() => Ok(()),
        Err(source) => Err(Error::file("create", directory, source)),
    }
}
