//! [`ChunkStore`]: a store of chunks that can be had only whole, because they are
//! compressed or carry checksums.
//!
//! [`Chunks`] says where they are and how they are encoded; chunk `i` is the bytes
//! from `i` times the length of a chunk on. The path of a read: of the requests of
//! a batch those in one chunk are served together; the chunk is decoded once and
//! the bytes copied out. A write that covers a chunk encodes it; one that covers a
//! part reads the chunk, changes the part and writes it back, under a lock of that
//! chunk. When a write returns, the chunk is in its place.
//!
//! A chunk that was used in part is kept decoded for the next request, as far as
//! [`KEPT`] bytes go, and forgotten when it is written. Stores that may be written
//! keep nothing, since others may write too.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::range_lock::RangeLock;
use crate::store::{ReadRequest, Store, WriteRequest, check_range};
use crate::threads::for_each;

/// The bytes of decoded chunks that a store keeps for the next request.
const KEPT: usize = 8 << 20;

/// Work of fewer bytes is not worth another thread.
const SMALL: u64 = 1 << 20;

/// The memory that the threads of a batch may use.
const ROOM: u64 = 32 << 20;

/// How many threads work on chunks now, in the whole process.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Threads that work on chunks at the same time; ranks and lanes that do so too
/// leave one another some.
#[derive(Debug)]
pub struct Crew {
    threads: usize,
}

impl Crew {
    fn of(threads: usize) -> Self {
        BUSY.fetch_add(threads, Ordering::Relaxed);
        Self { threads }
    }

    /// How many they are, the caller's among them.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Does `work` for every item. After a failure no further item is begun; one
    /// failure is returned.
    pub fn each<T: Send>(
        &self,
        items: impl Iterator<Item = T> + Send,
        work: impl Fn(T) -> Result<()> + Sync,
    ) -> Result<()> {
        for_each(items, self.threads, work)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        BUSY.fetch_sub(self.threads, Ordering::Relaxed);
    }
}

/// The processors of this machine.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Where the chunks of a store are, and how they are encoded.
pub trait Chunks: Debug + Send + Sync {
    /// What messages call it: a path or an address.
    fn name(&self) -> String;

    /// How many chunks there are.
    fn count(&self) -> u64;

    /// The bytes of a chunk once it is decoded.
    fn chunk_bytes(&self) -> usize;

    /// How many reads or writes at a time pay off.
    fn parallel(&self) -> usize;

    /// Whether parts of a chunk can be read without the rest.
    fn has_parts(&self) -> bool {
        false
    }

    /// Brings at least the bytes `wanted` of a chunk to their place in `out`, which
    /// has room for all of it. A chunk that was never written reads as whatever
    /// stands for that.
    fn read(&self, index: u64, wanted: &[Range<usize>], out: &mut [u8]) -> Result<()>;

    /// Puts a whole chunk in its place.
    fn write(&self, index: u64, data: &[u8]) -> Result<()>;

    /// Keeps out others who change parts of the chunk; `None`: there are no locks.
    fn lock(&self, index: u64) -> Result<Option<RangeLock<'_>>>;

    /// Returns when every chunk written is on stable storage.
    fn sync(&self) -> Result<()>;
}

/// A chunk that is kept decoded.
type Kept = (u64, Arc<Vec<u8>>);

/// A store of chunks.
#[derive(Debug)]
pub struct ChunkStore {
    chunks: Arc<dyn Chunks>,
    /// The latest first; `None` if nothing is kept.
    kept: Option<Mutex<VecDeque<Kept>>>,
}

/// The part of a transfer that lies in one chunk.
struct Part {
    index: u64,
    /// In the chunk.
    range: Range<usize>,
    /// In the buffer of the request.
    at: usize,
}

impl ChunkStore {
    /// A store that others may write meanwhile.
    pub fn new(chunks: Arc<dyn Chunks>) -> Self {
        Self { chunks, kept: None }
    }

    /// A store that nobody writes: chunks used in part are kept for a while.
    pub fn unchanging(chunks: Arc<dyn Chunks>) -> Self {
        let kept = Some(Mutex::default());
        Self { chunks, kept }
    }

    /// Where the chunks are.
    pub fn chunks(&self) -> &dyn Chunks {
        &*self.chunks
    }

    /// Shows a chunk of which at least the bytes `wanted` are there; `scratch` is
    /// used for it.
    pub fn view(
        &self,
        index: u64,
        wanted: &[Range<usize>],
        scratch: &mut Vec<u8>,
        see: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        let size = self.chunks.chunk_bytes();
        let parts = self.chunks.has_parts();
        if let Some(kept) = self.kept().filter(|_| !parts) {
            let found = kept.iter().position(|(kept, _)| *kept == index);
            if let Some(bytes) = found.map(|at| Arc::clone(&kept[at].1)) {
                drop(kept);
                see(&bytes);
                return Ok(());
            }
        }
        if scratch.len() != size {
            scratch.clear();
            reserve(scratch, size).map_err(|source| Error::read(self.name(), 0, source))?;
            scratch.resize(size, 0);
        }
        self.chunks.read(index, wanted, scratch)?;
        see(scratch);
        let used: usize = wanted.iter().map(|range| range.len()).sum();
        if !parts && used < size && 2 * size <= KEPT {
            self.keep(index, scratch);
        }
        Ok(())
    }

    /// Changes a part of a chunk, or all of it.
    pub fn change(
        &self,
        index: u64,
        covered: bool,
        scratch: &mut Vec<u8>,
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<()> {
        let size = self.chunks.chunk_bytes();
        if scratch.len() != size {
            scratch.clear();
            reserve(scratch, size).map_err(|source| Error::write(self.name(), 0, source))?;
            scratch.resize(size, 0);
        }
        let lock = match covered {
            true => None,
            false => self.chunks.lock(index)?,
        };
        if !covered {
            let whole = 0..size;
            self.chunks
                .read(index, std::slice::from_ref(&whole), scratch)?;
        }
        change(scratch);
        self.put(index, scratch)?;
        drop(lock);
        Ok(())
    }

    /// Puts a whole chunk in its place.
    pub fn put(&self, index: u64, data: &[u8]) -> Result<()> {
        self.chunks.write(index, data)?;
        if let Some(mut kept) = self.kept() {
            kept.retain(|(at, _)| *at != index);
        }
        Ok(())
    }

    fn kept(&self) -> Option<MutexGuard<'_, VecDeque<Kept>>> {
        let kept = self.kept.as_ref()?;
        Some(kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep(&self, index: u64, bytes: &[u8]) {
        let Some(mut kept) = self.kept() else {
            return;
        };
        if kept.iter().any(|(at, _)| *at == index) {
            return;
        }
        let most = (KEPT / bytes.len().max(1)).max(1);
        // What is dropped gives its memory to what comes.
        let mut room = Vec::new();
        while kept.len() >= most {
            match kept.pop_back().map(|(_, bytes)| Arc::try_unwrap(bytes)) {
                Some(Ok(bytes)) => room = bytes,
                _ => continue,
            }
        }
        room.clear();
        if reserve(&mut room, bytes.len()).is_ok() {
            room.extend_from_slice(bytes);
            kept.push_front((index, Arc::new(room)));
        }
    }

    /// The parts of a transfer of `len` bytes at `offset`, chunk by chunk.
    fn parts(&self, offset: u64, len: usize) -> impl Iterator<Item = Part> + use<> {
        let size = self.chunks.chunk_bytes();
        let mut at = 0;
        std::iter::from_fn(move || {
            if at >= len {
                return None;
            }
            let place = offset + at as u64;
            let start = (place % size as u64) as usize;
            let count = (size - start).min(len - at);
            let part = Part {
                index: place / size as u64,
                range: start..start + count,
                at,
            };
            at += count;
            Some(part)
        })
    }

    fn check(&self, offset: u64, len: usize) -> Result<()> {
        check_range(self, offset, len)?;
        let end = self.len()?;
        if offset + len as u64 > end {
            return Err(Error::UnexpectedEnd {
                store: self.name(),
                offset,
                wanted: len as u64,
                end,
            });
        }
        Ok(())
    }

    /// The threads for work on so many chunks with `room` bytes for
    /// all of them.
    pub fn crew(&self, chunks: u64, room: u64) -> Crew {
        let (parallel, size) = (self.chunks.parallel(), self.chunks.chunk_bytes() as u64);
        let worth = chunks.saturating_mul(size) > SMALL || parallel > cores();
        if chunks < 2 || !worth {
            return Crew::of(1);
        }
        // A chunk as it is stored, and decoded.
        let fitting = (room / (2 * size).max(1)).max(1);
        let most = (parallel as u64).min(chunks).min(fitting) as usize;
        let busy = BUSY.load(Ordering::Relaxed);
        // Who waits for a network does not keep others from doing so.
        let least = if parallel > cores() { parallel / 4 } else { 1 };
        Crew::of(most.min(parallel.saturating_sub(busy).max(least)))
    }
}

/// Makes room or says that there is none.
fn reserve(bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    bytes
        .try_reserve_exact(len)
        .map_err(|_| io::ErrorKind::OutOfMemory.into())
}

impl Store for ChunkStore {
    fn name(&self) -> String {
        self.chunks.name()
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.len().map_err(io::Error::other)?.saturating_sub(offset);
        let wanted = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        self.read_at(offset, &mut buffer[..wanted])
            .map_err(io::Error::other)?;
        Ok(wanted)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.write_at(offset, data).map_err(io::Error::other)?;
        Ok(data.len())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.chunks.count() * self.chunks.chunk_bytes() as u64)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        if len == self.len()? {
            return Ok(());
        }
        let source = io::Error::new(io::ErrorKind::Unsupported, "its length is fixed");
        Err(Error::set_length(self.name(), len, source))
    }

    fn sync(&self) -> Result<()> {
        self.chunks.sync()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_batch(&mut [ReadRequest { offset, buffer }])
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_batch(&[WriteRequest { offset, data }])
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        // 1. Parts of one chunk stand together.
        let mut parts = Vec::new();
        for request in &mut *requests {
            self.check(request.offset, request.buffer.len())?;
            let (offset, mut rest) = (request.offset, &mut *request.buffer);
            for part in self.parts(offset, rest.len()) {
                let (piece, after) = rest.split_at_mut(part.range.len());
                parts.push((part.index, part.range, piece));
                rest = after;
            }
        }
        parts.sort_by_key(|(index, range, _)| (*index, range.start));
        // 2. Each chunk is decoded once; one that is wanted whole, in place.
        let groups: Vec<_> = parts.chunk_by_mut(|a, b| a.0 == b.0).collect();
        let crew = self.crew(groups.len() as u64, ROOM);
        let scratch = Mutex::new(Vec::new());
        crew.each(groups.into_iter(), |group| {
            let index = group[0].0;
            if let [(_, range, piece)] = group
                && range.len() == self.chunks.chunk_bytes()
            {
                return self.chunks.read(index, std::slice::from_ref(range), piece);
            }
            let spare = scratch.lock().map_or(None, |mut all| all.pop());
            let mut room = spare.unwrap_or_default();
            let wanted: Vec<_> = group.iter().map(|(_, range, _)| range.clone()).collect();
            let done = self.view(index, &wanted, &mut room, &mut |bytes| {
                for (_, range, piece) in &mut *group {
                    piece.copy_from_slice(&bytes[range.clone()]);
                }
            });
            if let Ok(mut all) = scratch.lock() {
                all.push(room);
            }
            done
        })
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        let mut parts = Vec::new();
        for request in requests {
            self.check(request.offset, request.data.len())?;
            parts.extend(self.parts(request.offset, request.data.len()).map(|part| {
                (
                    part.index,
                    part.range.clone(),
                    &request.data[part.at..][..part.range.len()],
                )
            }));
        }
        parts.sort_by_key(|(index, range, _)| (*index, range.start));
        let groups: Vec<_> = parts.chunk_by(|a, b| a.0 == b.0).collect();
        let crew = self.crew(groups.len() as u64, ROOM);
        let size = self.chunks.chunk_bytes();
        crew.each(groups.into_iter(), |group| {
            if let [(index, _, piece)] = group
                && piece.len() == size
            {
                return self.put(*index, piece);
            }
            let covered = group.iter().map(|(_, range, _)| range.len()).sum::<usize>() == size;
            self.change(group[0].0, covered, &mut Vec::new(), &mut |bytes| {
                for (_, range, piece) in group {
                    bytes[range.clone()].copy_from_slice(piece);
                }
            })
        })
    }

    fn as_chunks(&self) -> Option<&ChunkStore> {
        Some(self)
    }
}
