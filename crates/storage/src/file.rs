//! [`FileStore`]: a local file with positioned reads and writes.
//!
//! A single transfer is one `pread` or `pwrite` of the caller's buffer. A
//! batch goes the way that was fastest for its kind when measured (two cores,
//! ext4 on a virtual disk, 64 Ki reads of a cached 64 MiB file and 8 Ki random
//! transfers of 4 KiB in a 1 GiB file; time a request):
//!
//! | batch                    | one by one | 16 threads | io_uring, depth 128 |
//! |--------------------------|-----------:|-----------:|--------------------:|
//! | cached reads of 64 B     |    0.82 us |    0.54 us |             0.68 us |
//! | cached reads of 512 B    |    0.89 us |    0.57 us |             0.69 us |
//! | cached reads of 4 KiB    |    0.98 us |    0.84 us |             0.93 us |
//! | cold reads of 4 KiB      |      58 us |      10 us |              7-9 us |
//! | direct reads of 4 KiB    |      57 us |      11 us |              6-7 us |
//! | direct reads of 64 KiB   |     136 us |      30 us |               25 us |
//! | cached writes of 4 KiB   |     2.9 us |     2.9 us |            3.1-6 us |
//! | direct writes of 4 KiB   |      98 us |      34 us |               31 us |
//! | direct writes of 64 KiB  |     121 us |      56 us |               39 us |
//!
//! So reads and direct writes take io_uring, or threads where there is none;
//! writes into the page cache, which the file system serialises anyway, go one
//! by one. Threads win on cached reads only by using both cores, which the
//! ranks of a program do already, and cost some 50 us each to start. A single
//! long read gains nothing from being cut up for io_uring (4-5 GB/s cold, 12
//! GB/s cached, either way), and a batch of two cached reads loses 1 us.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::batch::{Batch, Direction, Transfer};
use crate::direct::DirectFile;
use crate::error::{Error, Result};
use crate::file_system::{is_local, share_whole};
use crate::forget::{drop_pages, fetch_pages};
use crate::mapping::{Mapping, file_len};
use crate::range_lock::{FileLocks, Kind, RangeLock};
use crate::residency::{Lately, cached_share};
use crate::store::{
    Own, ReadRequest, Store, WriteRequest, check_long_range, check_range, read_exactly,
    write_exactly,
};
use crate::{threads, uring};

/// What a file may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Reads alone; writes fail.
    ReadOnly,
    /// Reads and writes.
    #[default]
    ReadWrite,
}

/// How the requests of a batch are performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Batching {
    /// The fastest way for the kind of batch.
    #[default]
    Automatic,
    /// One after the other.
    OneByOne,
    /// Several threads at once.
    Threads,
    /// io_uring; opening a file so fails where the system has none.
    Ring,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOptions {
    /// What the file is used for.
    pub access: Access,
    /// Whether transfers bypass the page cache. Memory, offsets and lengths
    /// that are multiples of [`DIRECT_ALIGNMENT`](crate::DIRECT_ALIGNMENT) are
    /// transferred without a copy; all others work, too.
    pub direct: bool,
    /// How batches are performed.
    pub batching: Batching,
    /// Whether [`Store::map`] gives the file's bytes as memory, where the
    /// system can. Files that bypass the page cache are never mapped.
    pub mapping: bool,
}

impl Default for FileOptions {
    /// Reads and writes through the page cache, with everything that makes
    /// them fast.
    fn default() -> Self {
        FileOptions {
            access: Access::default(),
            direct: false,
            batching: Batching::default(),
            mapping: true,
        }
    }
}

/// A local file.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    file: Arc<File>,
    direct: Option<DirectFile>,
    options: FileOptions,
    /// The latest mapping, if one was asked for.
    mapping: Mutex<Option<Arc<Mapping>>>,
    locks: FileLocks,
    /// What was found in the page cache.
    lately: Lately,
    /// Whether its locks are a matter of this machine alone, and so cheap.
    is_local: bool,
}

/// Fails if there is a pipe at `path`: opening it would wait for its writer.
pub fn refuse_pipe(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        true => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a pipe, not a file",
        )),
        false => Ok(()),
    }
}

impl FileStore {
    /// Opens an existing file.
    pub fn open(path: impl AsRef<Path>, access: Access) -> Result<Self> {
        Self::open_with(
            path,
            FileOptions {
                access,
                ..FileOptions::default()
            },
        )
    }

    /// Opens an existing file in a chosen way.
    pub fn open_with(path: impl AsRef<Path>, options: FileOptions) -> Result<Self> {
        let mut open = OpenOptions::new();
        open.read(true).write(options.access == Access::ReadWrite);
        Self::from_open_options(path.as_ref(), &mut open, options)
    }

    /// Creates an empty file for reads and writes; fails if the path exists.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::create_with(path, FileOptions::default())
    }

    /// Creates an empty file in a chosen way, which must allow writes; fails
    /// if the path exists.
    pub fn create_with(path: impl AsRef<Path>, options: FileOptions) -> Result<Self> {
        if options.access == Access::ReadOnly {
            let reason = "a new file must allow writes".to_owned();
            return Err(Error::Settings {
                store: "file",
                reason,
            });
        }
        let mut open = OpenOptions::new();
        open.read(true).write(true).create_new(true);
        Self::from_open_options(path.as_ref(), &mut open, options)
    }

    fn from_open_options(
        path: &Path,
        open: &mut OpenOptions,
        options: FileOptions,
    ) -> Result<Self> {
        let FileOptions {
            direct, batching, ..
        } = options;
        if batching == Batching::Ring && !uring::is_available() {
            let reason = "this system offers no io_uring".to_owned();
            return Err(Error::Settings {
                store: "file",
                reason,
            });
        }
        let failed = |source| Error::Open {
            path: path.to_owned(),
            source,
        };
        refuse_pipe(path).map_err(failed)?;
        let file = open.open(path).map_err(failed)?;
        // The file exists now; the same options without `create_new` open it again.
        let again = open.create_new(false);
        let direct = direct
            .then(|| DirectFile::open(path, again))
            .transpose()
            .map_err(failed)?;
        let locks = FileLocks::of(&file).map_err(failed)?;
        let is_local = is_local(&file);
        Ok(FileStore {
            path: path.to_owned(),
            file: Arc::new(file),
            direct,
            options,
            mapping: Mutex::default(),
            locks,
            lately: Lately::default(),
            is_local,
        })
    }

    /// The file's path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file, by the cheapest call.
    fn file_len(&self) -> Result<u64> {
        file_len(&self.file).map_err(|source| Error::Length {
            store: self.name(),
            source,
        })
    }

    fn kept_mapping(&self) -> MutexGuard<'_, Option<Arc<Mapping>>> {
        self.mapping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_as(&self, kind: Kind, offset: u64, len: u64) -> Result<RangeLock<'_>> {
        check_long_range(self, offset, len)?;
        let lock = self.locks.lock(kind, &self.file, (offset, len));
        lock.map_err(|source| Error::Lock {
            store: self.name(),
            offset,
            len,
            source,
        })
    }

    /// Performs a read batch with io_uring; `None`, with some of it undone,
    /// where there is no ring.
    fn read_by_ring(&self, requests: &mut [ReadRequest<'_>]) -> Option<Result<()>> {
        match &self.direct {
            Some(direct) => direct.read_batch(self, requests),
            None => uring::run(
                &self.file,
                &mut Reads {
                    store: self,
                    requests,
                },
            ),
        }
    }

    /// As `read_by_ring`, for writes.
    fn write_by_ring(&self, requests: &[WriteRequest<'_>]) -> Option<Result<()>> {
        match &self.direct {
            Some(direct) => direct.write_batch(self, requests),
            None => uring::run(
                &self.file,
                &mut Writes {
                    store: self,
                    requests,
                },
            ),
        }
    }
}

/// How many threads serve `requests` requests where there is no ring: starting
/// one takes about as long as a cold read, so each gets several requests.
fn thread_count(requests: usize) -> usize {
    (requests / 16).clamp(1, 16)
}

impl Store for FileStore {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.direct {
            Some(direct) => direct.read_some(offset, buffer),
            None => self.file.read_at(buffer, offset),
        }
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        match &self.direct {
            Some(direct) => direct.write_some(&self.file, offset, data),
            None => self.file.write_at(data, offset),
        }
    }

    fn fills_or_fails(&self, _: Own) -> bool {
        true
    }

    fn len(&self) -> Result<u64> {
        self.file_len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(|source| Error::set_length(self.name(), len, source))
    }

    fn sync(&self) -> Result<()> {
        self.file
            .sync_all()
            .map_err(|source| Error::sync(self.name(), source))
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        for request in requests.iter() {
            check_range(self, request.offset, request.buffer.len())?;
        }
        let ring = match self.options.batching {
            Batching::Automatic => requests.len() > 1,
            Batching::Ring => true,
            Batching::Threads | Batching::OneByOne => false,
        };
        if ring && let Some(result) = self.read_by_ring(requests) {
            return result;
        }
        let threads = match self.options.batching {
            Batching::OneByOne => 1,
            _ => thread_count(requests.len()),
        };
        threads::for_each(requests.iter_mut(), threads, |request| {
            self.read_at(request.offset, request.buffer)
        })
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        for request in requests {
            check_range(self, request.offset, request.data.len())?;
        }
        let overlap = match self.options.batching {
            Batching::Automatic => self.direct.is_some() && requests.len() > 1,
            Batching::Ring | Batching::Threads => true,
            Batching::OneByOne => false,
        };
        if overlap
            && self.options.batching != Batching::Threads
            && let Some(result) = self.write_by_ring(requests)
        {
            return result;
        }
        let threads = if overlap {
            thread_count(requests.len())
        } else {
            1
        };
        threads::for_each(requests.iter(), threads, |request| {
            self.write_at(request.offset, request.data)
        })
    }

    fn map(&self) -> Result<Option<Arc<Mapping>>> {
        if !self.options.mapping || self.options.direct || !cfg!(target_os = "linux") {
            return Ok(None);
        }
        let len = self.file_len()?;
        let mut kept = self.kept_mapping();
        if let Some(mapping) = &*kept
            && mapping.len() as u64 >= len
        {
            return Ok(Some(Arc::clone(mapping)));
        }
        let mapping = Mapping::new(&self.file, &self.path, self.options.access, len);
        *kept = mapping.map(Arc::new);
        Ok(kept.clone())
    }

    fn cached(&self, offset: u64, len: u64) -> Option<f64> {
        let end = offset.saturating_add(len);
        if len > 0 && self.lately.has(offset, end) {
            return Some(1.0);
        }
        let end = end.min(self.file_len().ok()?);
        if offset >= end {
            return None;
        }
        if self.options.direct {
            // Nothing that direct reads take comes from the page cache.
            return Some(0.0);
        }
        let share = cached_share(&self.file, || self.map().ok().flatten(), offset, end)?;
        self.lately.note(offset, end, share);
        Some(share)
    }

    fn fetch(&self, offset: u64, len: u64) {
        if !self.options.direct {
            fetch_pages(&self.file, offset, len);
        }
    }

    fn forget(&self) -> Result<()> {
        self.lately.clear();
        // Pages stay as long as they are mapped.
        *self.kept_mapping() = None;
        self.sync()?;
        drop_pages(&self.file).map_err(|source| Error::sync(self.name(), source))
    }

    fn lock(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        self.lock_as(Kind::Exclusive, offset, len).map(Some)
    }

    fn lock_shared(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        match self.is_local {
            true => self.lock_as(Kind::Shared, offset, len).map(Some),
            false => Ok(None),
        }
    }

    fn announce_writing(&self) -> Result<()> {
        if !self.is_local {
            return Ok(());
        }
        share_whole(&self.file).map_err(|_| Error::Open {
            path: self.path.clone(),
            source: io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another program has it open for writing; close it there first",
            ),
        })
    }
}

/// A batch of reads through the page cache, straight into the callers' buffers.
struct Reads<'a, 'b> {
    store: &'a FileStore,
    requests: &'a mut [ReadRequest<'b>],
}

// SAFETY: the buffers are borrowed for longer than the batch lives, and one is
// used again only when its transfer is complete.
unsafe impl Batch for Reads<'_, '_> {
    fn len(&self) -> usize {
        self.requests.len()
    }

    fn transfer(&mut self, index: usize) -> Transfer {
        let ReadRequest { offset, buffer } = &mut self.requests[index];
        let (memory, len) = (buffer.as_mut_ptr(), buffer.len());
        Transfer {
            direction: Direction::Read,
            offset: *offset,
            memory,
            len,
        }
    }

    fn complete(&mut self, index: usize, done: usize) -> Result<()> {
        let ReadRequest { offset, buffer } = &mut self.requests[index];
        read_exactly(self.store, *offset, buffer, done)
    }
}

/// A batch of writes into the page cache, straight from the callers' data.
struct Writes<'a, 'b> {
    store: &'a FileStore,
    requests: &'a [WriteRequest<'b>],
}

// SAFETY: the data is borrowed for longer than the batch lives.
unsafe impl Batch for Writes<'_, '_> {
    fn len(&self) -> usize {
        self.requests.len()
    }

    fn transfer(&mut self, index: usize) -> Transfer {
        let WriteRequest { offset, data } = self.requests[index];
        let (memory, len) = (data.as_ptr().cast_mut(), data.len());
        Transfer {
            direction: Direction::Write,
            offset,
            memory,
            len,
        }
    }

    fn complete(&mut self, index: usize, done: usize) -> Result<()> {
        let WriteRequest { offset, data } = self.requests[index];
        write_exactly(self.store, offset, data, done)
    }
}
