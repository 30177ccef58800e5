//! [`MemoryStore`]: a store in the memory of this process, for tests and for
//! arrays that happen to fit.
//!
//! One lock guards the bytes: reads share it, and a write that extends the
//! store is seen by all or by none.

use std::fmt;
use std::io;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::{Error, Result};
use crate::range_lock::{LockTable, RangeLock};
use crate::store::{Store, check_long_range};

/// Bytes in memory; grows as it is written.
#[derive(Default)]
pub struct MemoryStore {
    bytes: RwLock<Vec<u8>>,
    locks: LockTable,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy of everything in the store.
    pub fn to_vec(&self) -> Vec<u8> {
        self.shared().clone()
    }

    // A panic elsewhere cannot leave a `Vec<u8>` half made, so a poisoned lock
    // is as good as any.
    fn shared(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Vec<u8>> {
        self.bytes.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Vec<u8>> for MemoryStore {
    fn from(bytes: Vec<u8>) -> Self {
        MemoryStore {
            bytes: RwLock::new(bytes),
            locks: LockTable::new(),
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("len", &self.shared().len())
            .finish()
    }
}

/// Extends `bytes` with zeros to `len`; memory that is not there is an error,
/// not the end of the process.
fn extend_to(bytes: &mut Vec<u8>, len: u64) -> io::Result<()> {
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    if len > bytes.len() {
        bytes
            .try_reserve(len - bytes.len())
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(len, 0);
    }
    Ok(())
}

impl Store for MemoryStore {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.shared();
        let start = usize::try_from(offset).map_or(bytes.len(), |start| start.min(bytes.len()));
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let end = offset
            .checked_add(data.len() as u64)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let mut bytes = self.exclusive();
        extend_to(&mut bytes, end)?;
        // `end` is now a valid index, and so is the smaller `offset`.
        let start = offset as usize;
        bytes[start..start + data.len()].copy_from_slice(data);
        Ok(data.len())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.shared().len() as u64)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut bytes = self.exclusive();
        if len < bytes.len() as u64 {
            bytes.truncate(len as usize);
            bytes.shrink_to_fit();
            return Ok(());
        }
        extend_to(&mut bytes, len).map_err(|source| Error::set_length(self.name(), len, source))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn cached(&self, offset: u64, len: u64) -> Option<f64> {
        (len > 0 && offset < self.shared().len() as u64).then_some(1.0)
    }

    fn lock_shared(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        check_long_range(self, offset, len)?;
        Ok(Some(self.locks.lock_shared(offset, len)))
    }

    fn lock(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        check_long_range(self, offset, len)?;
        Ok(Some(self.locks.lock(offset, len)))
    }
}
