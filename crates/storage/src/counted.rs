//! [`CountedStore`]: an adapter that counts the requests to a store, and can
//! log them, so that tests assert how many happened, where and how long.
//!
//! Every read and write is one request, whether it comes alone or in a batch,
//! and is counted when it is made, whether or not it succeeds. The store cannot be
//! mapped, since accesses to a mapping would not be seen.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::forward::forward;
use crate::store::{ReadRequest, Store, WriteRequest};

/// What a logged request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// It read.
    Read,
    /// It wrote.
    Write,
}

/// A request as it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// What it did.
    pub kind: RequestKind,
    /// Its first byte.
    pub offset: u64,
    /// Its number of bytes.
    pub len: u64,
}

/// How much was asked of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Read requests, those in batches included.
    pub reads: u64,
    /// Write requests, those in batches included.
    pub writes: u64,
    /// Bytes asked for by all reads.
    pub bytes_read: u64,
    /// Bytes given by all writes.
    pub bytes_written: u64,
    /// Batches of reads.
    pub read_batches: u64,
    /// Batches of writes.
    pub write_batches: u64,
    /// Changes of the length.
    pub set_lens: u64,
    /// Syncs.
    pub syncs: u64,
}

#[derive(Debug, Default)]
struct Record {
    counts: Counts,
    log: Option<Vec<Request>>,
    /// Where the requests of each call begin in the log.
    calls: Vec<usize>,
}

impl Record {
    fn begin_call(&mut self) {
        if let Some(log) = &self.log {
            self.calls.push(log.len());
        }
    }

    fn note(&mut self, kind: RequestKind, offset: u64, len: usize) {
        let len = len as u64;
        let (requests, bytes) = match kind {
            RequestKind::Read => (&mut self.counts.reads, &mut self.counts.bytes_read),
            RequestKind::Write => (&mut self.counts.writes, &mut self.counts.bytes_written),
        };
        *requests += 1;
        *bytes += len;
        if let Some(log) = &mut self.log {
            log.push(Request { kind, offset, len });
        }
    }
}

/// A store whose requests are counted.
#[derive(Debug)]
pub struct CountedStore<S> {
    inner: S,
    record: Arc<Mutex<Record>>,
}

impl<S: Store> CountedStore<S> {
    /// Counts the requests to `inner`.
    pub fn new(inner: S) -> Self {
        CountedStore {
            inner,
            record: Arc::default(),
        }
    }

    /// Counts the requests to `inner` and logs each of them.
    pub fn with_log(inner: S) -> Self {
        let record = Record {
            log: Some(Vec::new()),
            ..Record::default()
        };
        CountedStore {
            inner,
            record: Arc::new(Mutex::new(record)),
        }
    }

    /// The store beneath.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The counts since the beginning or the last [`reset`](Self::reset).
    pub fn counts(&self) -> Counts {
        self.record().counts
    }

    /// The requests since then, in the order they were made; those of a batch
    /// in its order. Empty if the store was made without a log.
    pub fn log(&self) -> Vec<Request> {
        self.record().log.clone().unwrap_or_default()
    }

    /// The same by calls: the requests of a batch, or a single one.
    pub fn calls(&self) -> Vec<Vec<Request>> {
        let record = self.record();
        let log = record.log.as_deref().unwrap_or_default();
        let ends = record.calls.iter().skip(1).copied().chain([log.len()]);
        let calls = record.calls.iter().zip(ends);
        calls
            .map(|(start, end)| log[*start..end].to_vec())
            .collect()
    }

    /// Forgets all counts and the log.
    pub fn reset(&self) {
        let mut record = self.record();
        record.counts = Counts::default();
        record.calls.clear();
        if let Some(log) = &mut record.log {
            log.clear();
        }
    }

    fn single(&self, kind: RequestKind, offset: u64, len: usize) {
        let mut record = self.record();
        record.begin_call();
        record.note(kind, offset, len);
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> Store for CountedStore<S> {
    forward!(inner: name len cached forget fetch striping lock lock_shared time wait_until);
    forward!(inner: announce_writing);

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.single(RequestKind::Read, offset, buffer.len());
        self.inner.read_some_at(offset, buffer)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.single(RequestKind::Write, offset, data.len());
        self.inner.write_some_at(offset, data)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.record().counts.set_lens += 1;
        self.inner.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        self.record().counts.syncs += 1;
        self.inner.sync()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.single(RequestKind::Read, offset, buffer.len());
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.single(RequestKind::Write, offset, data.len());
        self.inner.write_at(offset, data)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        let mut record = self.record();
        record.begin_call();
        record.counts.read_batches += 1;
        for request in requests.iter() {
            record.note(RequestKind::Read, request.offset, request.buffer.len());
        }
        drop(record);
        self.inner.read_batch(requests)
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        let mut record = self.record();
        record.begin_call();
        record.counts.write_batches += 1;
        for request in requests {
            record.note(RequestKind::Write, request.offset, request.data.len());
        }
        drop(record);
        self.inner.write_batch(requests)
    }

    fn background(&self) -> Option<Arc<dyn Store>> {
        let inner = self.inner.background()?;
        let record = Arc::clone(&self.record);
        Some(Arc::new(CountedStore { inner, record }))
    }
}
