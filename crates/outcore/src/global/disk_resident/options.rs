//! [`DiskOptions`] and [`Disks`]: where the parts of a disk-resident array are, and
//! how their holders work.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_storage::Store;

use crate::budget::MemoryBudget;
use crate::error::{Error, Result};

/// More parts than this are not believed: a damaged description must not ask for all
/// memory.
const MOST_PARTS: usize = 1 << 20;

/// The directories of the parts, which usually lie on the disks of several machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disks {
    /// One directory for each part by a pattern, in which `{rank}` is the rank of the
    /// holder and `{part}` the number of the part.
    Pattern(String),
    /// Part `k` is in directory `k`; if there are more parts than directories,
    /// they are used in turn.
    List(Vec<PathBuf>),
    /// No disk: parts are in the ordinary memory of their holders, for as long as
    /// the program runs.
    Memory,
}

impl Disks {
    /// Directories by a pattern: `/scratch/{rank}`.
    pub fn pattern(text: impl Into<String>) -> Self {
        Self::Pattern(text.into())
    }

    /// Directories in a list.
    pub fn list(directories: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let directories = directories.into_iter();
        Self::List(
            directories
                .map(|path| path.as_ref().to_path_buf())
                .collect(),
        )
    }

    /// The directory of a part; `None` if parts are in memory.
    pub(crate) fn directory(&self, part: usize, rank: usize) -> Result<Option<PathBuf>> {
        match self {
            Self::Memory => Ok(None),
            Self::Pattern(text) => {
                let text = text.replace("{rank}", &rank.to_string());
                Ok(Some(text.replace("{part}", &part.to_string()).into()))
            }
            Self::List(list) if list.is_empty() => Err(Error::Invalid(
                "a list of disks needs at least one directory".into(),
            )),
            Self::List(list) => Ok(Some(list[part % list.len()].clone())),
        }
    }

    /// The same, made if it does not exist.
    pub(crate) fn made(&self, part: usize, rank: usize) -> Result<Option<PathBuf>> {
        let directory = self.directory(part, rank)?;
        if let Some(path) = &directory {
            std::fs::create_dir_all(path).map_err(|source| Error::file("create", path, source))?;
        }
        Ok(directory)
    }
}

/// What becomes of a read of a block that nobody has ever written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Unwritten {
    /// It gives zeros.
    #[default]
    Zeros,
    /// It is an error.
    Error,
}

impl Unwritten {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zeros => "zeros",
            Self::Error => "error",
        }
    }
}

/// An adapter over the store of a part: counted, throttled, or one that fails.
pub(crate) type Adapter = Arc<dyn Fn(usize, Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync>;

/// Where the parts of a disk-resident array are, and how their holders work.
///
/// ```
/// use outcore::{DiskOptions, Disks, MemoryBudget, Unwritten};
/// let options = DiskOptions::new(Disks::pattern("/scratch/{rank}"))
///     .block(&[256, 256])
///     .cache(&MemoryBudget::of(64 << 20))
///     .write_back(true)
///     .unwritten(Unwritten::Error);
/// # let _ = options;
/// ```
#[derive(Clone)]
pub struct DiskOptions {
    pub(crate) disks: Disks,
    pub(crate) holders: Option<Vec<usize>>,
    pub(crate) block: Option<Vec<u64>>,
    pub(crate) cache: Option<MemoryBudget>,
    pub(crate) write_back: bool,
    pub(crate) unwritten: Unwritten,
    pub(crate) replace: bool,
    pub(crate) adapter: Option<Adapter>,
}

impl DiskOptions {
    /// Parts on these disks; otherwise as follows: part `k` is held by rank `k`
    /// (modulo the number of ranks), its elements are in row-major order, it has no
    /// cache but the system's, and what was never written is zero.
    pub fn new(disks: Disks) -> Self {
        Self {
            disks,
            holders: None,
            block: None,
            cache: None,
            write_back: false,
            unwritten: Unwritten::default(),
            replace: false,
            adapter: None,
        }
    }

    /// Part `k` is held by rank `holders[k]`: so some ranks have their disks allotted
    /// to the array, and all others reach it.
    pub fn holders(mut self, holders: &[usize]) -> Self {
        self.holders = Some(holders.to_vec());
        self
    }

    /// Parts are kept in blocks of this shape, each in one piece of the file; caches
    /// keep such blocks, and it is for such blocks that it is known whether they were
    /// ever written. Without it the file is row-major, and blocks are boxes of about
    /// 512 KiB of it. Blocks of the user's choice ([`crate::Blocks`]) are kept in one
    /// piece each, and are divided into such blocks only by caches.
    pub fn block(mut self, shape: &[u64]) -> Self {
        self.block = Some(shape.to_vec());
        self
    }

    /// Holders keep blocks in memory, each within `budget` (a budget for
    /// each rank, as from [`MemoryBudget::for_rank`]): a block is read from
    /// the disk once, whoever asks for it, until it must make room. Without this
    /// the system's page cache does that, and data go straight from there to the
    /// buffer of who asks.
    pub fn cache(mut self, budget: &MemoryBudget) -> Self {
        self.cache = Some(budget.clone());
        self
    }

    /// Whether what is put stays in the holder's cache until it must make room, or
    /// until the array is synced or closed; without a cache it makes no difference.
    pub fn write_back(mut self, write_back: bool) -> Self {
        self.write_back = write_back;
        self
    }

    /// What becomes of a read of a block that nobody has ever written.
    pub fn unwritten(mut self, unwritten: Unwritten) -> Self {
        self.unwritten = unwritten;
        self
    }

    /// Whether an array of the same name is replaced.
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// The store of each part is used through an adapter: one that counts requests
    /// or lets them fail, for instance. `adapter` gets the number of the part.
    pub fn adapter(
        mut self,
        adapter: impl Fn(usize, Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync + 'static,
    ) -> Self {
        self.adapter = Some(Arc::new(adapter));
        self
    }

    /// Which rank holds each of so many parts, in a group of `ranks`.
    pub(crate) fn holders_of(&self, parts: usize, ranks: usize) -> Result<Vec<usize>> {
        if parts > MOST_PARTS {
            return Err(Error::Invalid(format!(
                "{parts} parts are too many: there can be {MOST_PARTS}"
            )));
        }
        let holders = match &self.holders {
            None => (0..parts).map(|part| part % ranks).collect(),
            Some(holders) => holders.clone(),
        };
        if holders.len() != parts {
            return Err(Error::Invalid(format!(
                "{} holders are named for {parts} parts",
                holders.len()
            )));
        }
        match holders.iter().find(|rank| **rank >= ranks) {
            None => Ok(holders),
            Some(rank) => Err(Error::Invalid(format!(
                "a part is to be held by rank {rank}, but there are {ranks} ranks"
            ))),
        }
    }
}

impl fmt::Debug for DiskOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskOptions")
            .field("disks", &self.disks)
            .field("holders", &self.holders)
            .field("block", &self.block)
            .field("cache", &self.cache)
            .field("write_back", &self.write_back)
            .field("unwritten", &self.unwritten)
            .field("replace", &self.replace)
            .finish_non_exhaustive()
    }
}
