//! The [`Store`] trait: bytes at offsets.
//!
//! A backend supplies two primitives that may transfer fewer bytes than asked
//! for or fail with `Interrupted`, as the system calls under them do. The
//! provided methods turn these into exact transfers, so the retry rule stands
//! here once and an adapter that injects faults below it exercises it for
//! every backend.
//!
//! Invariants:
//! - `read_at` fills the whole buffer or fails; reading past the end is
//!   [`Error::UnexpectedEnd`], never zeros.
//! - A request that reaches beyond `i64::MAX` is [`Error::OutOfRange`].
//! - `write_at` beyond the end extends the store; the gap reads as zeros.
//! - The requests of one batch may run in any order and at the same time;
//!   those of a write batch must not overlap.
//! - Every method may be called by many threads at once.
//!
//! A store may live in virtual time (`time`, `wait_until`, `background`); then
//! work beside the caller's needs a handle of its own, and what is handed from
//! one to the other carries the time at which it was ready.
//!
//! Some capabilities are optional, and the provided methods say that they are
//! missing: `map`, `as_chunks`, `as_checked`, `cached`, `fetch`, `striping`, `lock`, `lock_shared` and
//! `announce_writing`. An adapter that watches or changes the transfers must not pass `map`, `as_chunks` or
//! `as_checked` on, since it would not see those of a mapping, of chunks or of blocks.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::checked::CheckedStore;
use crate::chunked::ChunkStore;
use crate::error::{Error, Result};
use crate::mapping::Mapping;
use crate::range_lock::RangeLock;
use crate::striping::Striping;

mod own {
    /// What only this crate can name: a method that takes it can be neither
    /// called nor overridden by others.
    #[derive(Debug)]
    pub struct Own(pub(super) ());
}
pub(crate) use own::Own;

/// Whether a read of `store` never looks at what the buffer holds, and fills
/// all of it whenever it succeeds, however wrong the programs around it are:
/// what unsafe code that hands out memory without values relies on.
pub fn fills_or_fails(store: &dyn Store) -> bool {
    store.fills_or_fails(Own(()))
}

/// One piece of a batch of reads.
#[derive(Debug)]
pub struct ReadRequest<'a> {
    /// First byte to read.
    pub offset: u64,
    /// Filled completely.
    pub buffer: &'a mut [u8],
}

/// One piece of a batch of writes.
#[derive(Debug, Clone, Copy)]
pub struct WriteRequest<'a> {
    /// First byte to write.
    pub offset: u64,
    /// Written completely.
    pub data: &'a [u8],
}

/// Bytes at offsets, of any length up to `i64::MAX`.
pub trait Store: Debug + Send + Sync {
    /// What messages call this store: a path, or `memory`.
    fn name(&self) -> String;

    /// Reads some bytes at `offset`; 0 means the end of the store. May be
    /// short or interrupted: callers use [`Store::read_at`].
    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes some bytes at `offset`. May be short or interrupted: callers
    /// use [`Store::write_at`].
    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize>;

    /// See [`fills_or_fails`]: for stores of this crate to say.
    #[doc(hidden)]
    fn fills_or_fails(&self, _: Own) -> bool {
        false
    }

    /// The number of bytes in the store.
    fn len(&self) -> Result<u64>;

    /// Whether the store holds no byte.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the store or extends it with zeros (sparsely where possible).
    fn set_len(&self, len: u64) -> Result<()>;

    /// Returns when everything written is on stable storage.
    fn sync(&self) -> Result<()>;

    /// Fills `buffer` from `offset`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        read_exactly(self, offset, buffer, 0)
    }

    /// Writes all of `data` at `offset`.
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        write_exactly(self, offset, data, 0)
    }

    /// Performs every read of the batch; a backend may overlap them.
    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        for request in requests {
            self.read_at(request.offset, request.buffer)?;
        }
        Ok(())
    }

    /// Performs every write of the batch; a backend may overlap them.
    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        for request in requests {
            self.write_at(request.offset, request.data)?;
        }
        Ok(())
    }

    /// The bytes as memory, up to the length of the store at this moment;
    /// `None` if the store cannot give them so. Calls are cheap, as the store
    /// keeps its mapping until it has grown. See [`Mapping`] for what it
    /// protects against and what not.
    fn map(&self) -> Result<Option<Arc<Mapping>>> {
        Ok(None)
    }

    /// About what share of the `len` bytes at `offset`, as far as the store
    /// has them, is in memory already, so that reading them takes no device:
    /// 0.0 to 1.0, and `None` where that is unknown or the store has none of
    /// the bytes. A guess from samples, in some 10 us; the next moment may
    /// change it.
    fn cached(&self, offset: u64, len: u64) -> Option<f64> {
        let _ = (offset, len);
        None
    }

    /// Writes back what is not yet on stable storage, and asks the system to
    /// drop the bytes from memory, for measuring what cold reads cost. What
    /// somebody has mapped and touched may stay; [`Store::cached`] tells.
    fn forget(&self) -> Result<()> {
        Ok(())
    }

    /// Says that the `len` bytes at `offset` will be read soon (or written in
    /// part), so that a store that can do so begins to bring them into memory,
    /// without waiting. Whether it does makes no difference but in time.
    fn fetch(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// How the bytes lie on several disks; `None` where that is unknown.
    fn striping(&self) -> Option<Striping> {
        None
    }

    /// Waits until nobody else has locked any of the `len` bytes at `offset`,
    /// and locks them until the answer is dropped: what a read-modify-write
    /// needs. It keeps out other threads and stores of the same bytes in this
    /// process, and for files other programs, if they lock, too; see
    /// [`RangeLock`]. The bytes need not exist yet. A thread must not ask for
    /// a lock of a store while it holds one. `None`: the store has no locks.
    fn lock(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        let _ = (offset, len);
        Ok(None)
    }

    /// The same bytes for work that goes on beside the caller's, if the store
    /// lives in virtual time: a handle with a clock of its own, which begins at
    /// the caller's time. `None`: time is real, and the caller's store will do.
    fn background(&self) -> Option<Arc<dyn Store>> {
        None
    }

    /// The caller's virtual time; `None` if time is real.
    fn time(&self) -> Option<Duration> {
        None
    }

    /// Lets the caller's virtual time pass until `time`, unless it is later
    /// already, as when the caller waits for work in the background.
    fn wait_until(&self, time: Duration) {
        let _ = time;
    }

    /// The chunks that the bytes come in, if they can be had only whole.
    fn as_chunks(&self) -> Option<&ChunkStore> {
        None
    }

    /// The store itself, if its blocks have checksums.
    fn as_checked(&self) -> Option<&CheckedStore> {
        None
    }

    /// How many reads at a time pay off: one a core, or many more where each
    /// waits for a network.
    fn parallel(&self) -> usize {
        crate::chunked::cores()
    }

    /// As [`lock`](Store::lock), but shared: it keeps out those who lock alone,
    /// not others who share. What those need who write nothing but their own
    /// bytes, so that a read-modify-write of the neighbourhood does not undo
    /// it. `None`: the store has none, or they cost more than a write.
    fn lock_shared(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        let _ = (offset, len);
        Ok(None)
    }

    /// Says that the store is written for as long as it lives, to programs that lock
    /// files as a whole (`flock`) while they write, as the HDF5 library does; fails if
    /// one of them has it open. Others who announce the same are not kept out. Without
    /// such locks nothing happens.
    fn announce_writing(&self) -> Result<()> {
        Ok(())
    }
}

/// Fills `buffer`, whose first `done` bytes are read already, from `offset`.
pub(crate) fn read_exactly<S: Store + ?Sized>(
    store: &S,
    offset: u64,
    buffer: &mut [u8],
    mut done: usize,
) -> Result<()> {
    check_range(store, offset, buffer.len())?;
    while done < buffer.len() {
        let at = offset + done as u64;
        match store.read_some_at(at, &mut buffer[done..]) {
            Ok(0) => {
                return Err(Error::UnexpectedEnd {
                    store: store.name(),
                    offset,
                    wanted: buffer.len() as u64,
                    end: at,
                });
            }
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::read(store.name(), at, source)),
        }
    }
    Ok(())
}

/// Writes `data`, whose first `done` bytes are written already, at `offset`.
pub(crate) fn write_exactly<S: Store + ?Sized>(
    store: &S,
    offset: u64,
    data: &[u8],
    mut done: usize,
) -> Result<()> {
    check_range(store, offset, data.len())?;
    while done < data.len() {
        let at = offset + done as u64;
        match store.write_some_at(at, &data[done..]) {
            Ok(0) => {
                let source = io::ErrorKind::WriteZero.into();
                return Err(Error::write(store.name(), at, source));
            }
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::write(store.name(), at, source)),
        }
    }
    Ok(())
}

/// Checks that a transfer of `len` bytes at `offset` ends where a store can.
pub(crate) fn check_range<S: Store + ?Sized>(store: &S, offset: u64, len: usize) -> Result<()> {
    check_long_range(store, offset, len as u64)
}

/// As `check_range`, for a range that need not fit in memory.
pub(crate) fn check_long_range<S: Store + ?Sized>(store: &S, offset: u64, len: u64) -> Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= i64::MAX as u64 => Ok(()),
        _ => Err(Error::OutOfRange {
            store: store.name(),
            offset,
            len,
        }),
    }
}
