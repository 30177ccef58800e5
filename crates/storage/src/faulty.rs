//! [`FaultyStore`]: an adapter that makes a store fail when a test wants it to.
//!
//! Reads and writes fail in `read_some_at` and `write_some_at`, beneath the
//! loops that every caller goes through, so each attempt of such a loop counts
//! as one request. Faults are set while the store is shared; where several
//! meet in one request, the one set first strikes and all of them are used up.
//! The store cannot be mapped, since accesses to a mapping would not fail.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::forward::forward;
use crate::store::Store;

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reads, also those of batches.
    Read,
    /// Writes, also those of batches.
    Write,
    /// Changes of the length.
    SetLen,
    /// Syncs.
    Sync,
}

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The device fails (EIO).
    Device,
    /// The device is full (ENOSPC).
    NoSpace,
    /// The request is interrupted by a signal (EINTR). Callers try again, so a
    /// lasting fault of this kind lets every second request pass.
    /// Changes of the length and syncs are not affected.
    Interrupted,
    /// Half of the bytes are transferred, but at least one. Changes of the
    /// length and syncs are not affected.
    Short,
}

#[derive(Debug)]
struct Injection {
    operation: Operation,
    fault: Fault,
    /// How many requests pass before the next that fails.
    pass: u64,
    /// How many pass between two that fail; `None` if just one fails.
    period: Option<u64>,
}

#[derive(Debug, Default)]
struct Faults {
    injections: Vec<Injection>,
    struck: u64,
}

impl Faults {
    /// Counts a request, and says how it fails if it does.
    fn next(&mut self, operation: Operation) -> Option<Fault> {
        let mut struck = None;
        self.injections.retain_mut(|injection| {
            if injection.operation != operation {
                return true;
            }
            if injection.pass > 0 {
                injection.pass -= 1;
                return true;
            }
            struck = struck.or(Some(injection.fault));
            injection.pass = injection.period.unwrap_or(0);
            injection.period.is_some()
        });
        self.struck += u64::from(struck.is_some());
        struck
    }
}

/// A store that fails on command.
#[derive(Debug)]
pub struct FaultyStore<S> {
    inner: S,
    faults: Arc<Mutex<Faults>>,
}

impl<S: Store> FaultyStore<S> {
    /// A store that does as `inner` does until told otherwise.
    pub fn new(inner: S) -> Self {
        FaultyStore {
            inner,
            faults: Arc::default(),
        }
    }

    /// The store beneath.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Lets `pass` requests of the kind `operation` pass from now on; the next
    /// one after them fails, once.
    pub fn fail_once(&self, operation: Operation, pass: u64, fault: Fault) {
        let injection = Injection {
            operation,
            fault,
            pass,
            period: None,
        };
        self.faults().injections.push(injection);
    }

    /// Lets `pass` requests of the kind `operation` pass from now on; all after
    /// them fail until [`clear`](Self::clear).
    pub fn fail_from(&self, operation: Operation, pass: u64, fault: Fault) {
        let period = Some(u64::from(fault == Fault::Interrupted));
        let injection = Injection {
            operation,
            fault,
            pass,
            period,
        };
        self.faults().injections.push(injection);
    }

    /// Takes back all faults that have not struck.
    pub fn clear(&self) {
        self.faults().injections.clear();
    }

    /// How many requests have failed.
    pub fn struck(&self) -> u64 {
        self.faults().struck
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many of `len` bytes the next request of the kind `operation` may
    /// transfer, or how it fails.
    fn admit(&self, operation: Operation, len: usize) -> io::Result<usize> {
        let code = match self.faults().next(operation) {
            None => return Ok(len),
            Some(Fault::Short) => return Ok(len.div_ceil(2)),
            Some(Fault::Device) => libc::EIO,
            Some(Fault::NoSpace) => libc::ENOSPC,
            Some(Fault::Interrupted) => libc::EINTR,
        };
        Err(io::Error::from_raw_os_error(code))
    }

    /// As `admit` for operations that transfer nothing.
    fn admit_whole(&self, operation: Operation) -> io::Result<()> {
        match self.admit(operation, 0) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}

impl<S: Store> Store for FaultyStore<S> {
    forward!(inner: name len cached forget fetch striping lock lock_shared time wait_until);
    forward!(inner: announce_writing);

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.admit(Operation::Read, buffer.len())?;
        self.inner.read_some_at(offset, &mut buffer[..len])
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        let len = self.admit(Operation::Write, data.len())?;
        self.inner.write_some_at(offset, &data[..len])
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let admitted = self.admit_whole(Operation::SetLen);
        admitted.map_err(|source| Error::set_length(self.name(), len, source))?;
        self.inner.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        let admitted = self.admit_whole(Operation::Sync);
        admitted.map_err(|source| Error::sync(self.name(), source))?;
        self.inner.sync()
    }

    fn background(&self) -> Option<Arc<dyn Store>> {
        let inner = self.inner.background()?;
        let faults = Arc::clone(&self.faults);
        Some(Arc::new(FaultyStore { inner, faults }))
    }
}
