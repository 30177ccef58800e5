//! [`IndexInFile`]: the index of a dataset whose filtered chunks are written.
//!
//! The path of a chunk that is written: it is encoded, its bytes are written where no entry
//! leads, and only then the entry of the index is changed, in its place. So a program that
//! dies leaves the old chunk or the new one. The place that the chunk had before is where
//! it is written the next time, if it fits there; else space at the end of the file is
//! claimed. So a chunk that is written again and again takes turns between two places.
//! Such a place is known to the handle that moved the entry off it, and to nobody else,
//! which is why no two can write to the same; with the handle it is forgotten, and the
//! space is left (h5repack gives it back).
//!
//! Ranks may be processes that share nothing but the file, so an entry is read from
//! the file whenever it is needed, and nothing of it is kept. Two kinds of locks, both
//! far behind the data: one of each chunk, held while it is read or written, and one
//! of everything that chunks share (blocks of entries with a checksum, the end of the
//! file), held for a few microseconds, and while a dataset is opened. Who holds the
//! second waits for nobody, so nobody waits for ever.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outcore_storage::{Error, RangeLock, Result, Store};

use super::chunk_index::Place;
use super::end_of_file::EndOfFile;
use super::slot::{Addresses, Slot};

/// The locks of chunks begin here; that of what they share comes before.
const LOCKS: u64 = 1 << 62;
const SHARED: u64 = LOCKS - 1;

/// The places of so many chunks are remembered.
const MOST_MOVED: usize = 1 << 16;

/// Keeps out those who change what chunks share while an index is read.
pub(crate) fn lock_for_reading(store: &dyn Store) -> Result<Option<RangeLock<'_>>> {
    store.lock_shared(SHARED, 1)
}

/// Keeps out others who read or change what all share.
pub(crate) fn lock_shared_parts(store: &dyn Store) -> Result<Option<RangeLock<'_>>> {
    store.lock(SHARED, 1)
}

/// Space for a chunk: where it begins, and its bytes.
type Room = (u64, u64);

/// Where the entries of a dataset stand.
#[derive(Debug)]
pub(crate) struct IndexInFile {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) addresses: Addresses,
    pub(crate) end: EndOfFile,
    /// In the order of the numbers of chunks.
    pub(crate) slots: Vec<(u64, Slot)>,
    /// Stored chunks of more bytes are not believed.
    pub(crate) most: u64,
    /// The chunks whose entries were moved here: where to, and where from, which is free.
    pub(crate) moved: Mutex<HashMap<u64, [Room; 2]>>,
}

impl IndexInFile {
    fn slot(&self, number: u64) -> Option<&Slot> {
        let at = self.slots.binary_search_by_key(&number, |slot| slot.0);
        at.ok().map(|at| &self.slots[at].1)
    }

    /// Where a chunk is; `None` if it was never written.
    pub(crate) fn place(&self, number: u64) -> Result<Option<Place>> {
        let Some(slot) = self.slot(number) else {
            return Ok(None);
        };
        let place = slot.read(&*self.store, self.addresses)?;
        match place {
            Some(place) if place.len > self.most => {
                let source = io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("chunk {number} of {} bytes is not believed", place.len),
                );
                Err(Error::read(self.store.name(), slot.offset, source))
            }
            place => Ok(place),
        }
    }

    /// Puts the bytes of a chunk into the file. The caller holds its lock.
    pub(crate) fn put(&self, number: u64, bytes: &[u8]) -> Result<()> {
        let refused = |problem: String| {
            let source = io::Error::new(io::ErrorKind::Unsupported, problem);
            Error::write(self.store.name(), 0, source)
        };
        let slot = self.slot(number).ok_or_else(|| {
            refused(format!(
                "chunk {number} was never written and its index has no entry for it, which \
                 outcore does not add; copy the dataset with 'outcore convert', and write the copy"
            ))
        })?;
        let len = bytes.len() as u64;
        if len > slot.most() {
            return Err(refused(format!(
                "chunk {number} takes {len} bytes, more than its entry can say"
            )));
        }
        let old = self.place(number)?;
        // If something fails below, nobody knows which place is in use: both are forgotten.
        let known = self.moved().remove(&number);
        let now = old.map(|old| match known {
            // It may have more room than the chunk takes now.
            Some([now, _]) if now.0 == old.offset => now,
            _ => (old.offset, old.len),
        });
        let free = known.map(|[_, free]| free).filter(|(_, room)| *room >= len);
        let target = match free {
            Some(free) => free,
            None => {
                let _shared = lock_shared_parts(&*self.store)?;
                (self.end.claim(&*self.store, len)?, len)
            }
        };
        self.store.write_at(target.0, bytes)?;
        let place = Place {
            offset: target.0,
            len,
            skipped: 0,
        };
        {
            let _shared = lock_shared_parts(&*self.store)?;
            slot.write(&*self.store, self.addresses, place)?;
        }
        let mut moved = self.moved();
        if let Some(now) = now
            && moved.len() < MOST_MOVED
        {
            moved.insert(number, [target, now]);
        }
        Ok(())
    }

    fn moved(&self) -> MutexGuard<'_, HashMap<u64, [Room; 2]>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps out others who read or change the chunk.
    pub(crate) fn lock(&self, number: u64) -> Result<Option<RangeLock<'_>>> {
        match self.slot(number) {
            Some(slot) => self.store.lock(LOCKS + slot.offset, 1),
            None => Ok(None),
        }
    }

    /// Keeps out others who change the chunk.
    pub(crate) fn lock_shared(&self, number: u64) -> Result<Option<RangeLock<'_>>> {
        match self.slot(number) {
            Some(slot) => match self.store.lock_shared(LOCKS + slot.offset, 1)? {
                Some(lock) => Ok(Some(lock)),
                // Where shared locks are not to be had, others wait.
                None => self.store.lock(LOCKS + slot.offset, 1),
            },
            None => Ok(None),
        }
    }
}
