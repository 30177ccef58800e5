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
//! [`KEPT`] bytes go, and forgotten when it is written; one that can be read in parts
//! is kept when it is wanted a second time. A request for more chunks than can be kept
//! keeps none. Stores that may be written keep nothing, since others may write too.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::{Error, Result};
use crate::objects::Version;
use crate::range_lock::RangeLock;
use crate::store::{ReadRequest, Store, WriteRequest, check_range};
use crate::threads::for_each;

/// The bytes of decoded chunks that a store keeps for the next request.
const KEPT: usize = 8 << 20;

/// More chunks are not kept, however small: they are looked through one by one.
const MOST_KEPT: usize = 64;

/// Work of fewer bytes is not worth another thread.
const SMALL: u64 = 1 << 20;

/// A request to a chunk that can be read in parts is at least as much work as so many
/// bytes.
const REQUEST: u64 = 16 << 10;

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

/// The processors that this process may use; asked once, since the answer takes the
/// system longer than a short read.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Where the chunks of a store are, and how they are encoded.
pub trait Chunks: Debug + Send + Sync {
    /// What messages call it: a path or an address.
    fn name(&self) -> String;

    /// How many chunks there are.
    fn count(&self) -> u64;

    /// The bytes of a chunk once it is decoded.
    fn chunk_bytes(&self) -> usize;

    /// In how many forms a chunk is in memory at the same time while it is moved: as it is
    /// stored, and decoded, and what is between if it is decoded in steps.
    fn forms(&self) -> u64 {
        2
    }

    /// The memory for finding chunks.
    fn index_bytes(&self) -> u64 {
        0
    }

    /// The bytes of all chunks as they are stored; `None`: that is not known.
    fn stored_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// How many reads or writes at a time pay off.
    fn parallel(&self) -> usize;

    /// Whether parts of a chunk can be read without the rest.
    fn has_parts(&self) -> bool {
        false
    }

    /// Brings at least the bytes `wanted` of a chunk to their place in `out`, which
    /// has room for all of it. A chunk that was never written reads as whatever
    /// stands for that, and the answer is `false`.
    fn read(&self, index: u64, wanted: &[Range<usize>], out: &mut [u8]) -> Result<bool>;

    /// Reads a whole chunk that is to be changed, and says which one it is; `None`: it was
    /// never written.
    fn read_to_change(&self, index: u64, out: &mut [u8]) -> Result<Option<Version>> {
        let whole = 0..out.len();
        let found = self.read(index, std::slice::from_ref(&whole), out)?;
        Ok(found.then(Version::default))
    }

    /// Puts a whole chunk in its place.
    fn write(&self, index: u64, data: &[u8]) -> Result<()>;

    /// As `write`, by who holds its lock, if the chunk is still the one that was read.
    /// `false`: somebody whom the lock does not keep out has written another one.
    fn write_over(&self, index: u64, data: &[u8], old: Option<&Version>) -> Result<bool> {
        let _ = old;
        self.write(index, data).map(|()| true)
    }

    /// Keeps out others who change the chunk. Who replaces all of it locks it, too:
    /// who changes a part meanwhile would put back what it held before. `None`: there
    /// are no locks.
    fn lock(&self, index: u64) -> Result<Option<RangeLock<'_>>>;

    /// Keeps out those who change a chunk while it is read; `None`: who reads sees it
    /// before or after a change anyway.
    fn lock_shared(&self, index: u64) -> Result<Option<RangeLock<'_>>> {
        let _ = index;
        Ok(None)
    }

    /// Returns when every chunk written is on stable storage.
    fn sync(&self) -> Result<()>;
}

/// What is kept of earlier requests, the latest first.
#[derive(Debug, Default)]
struct Kept {
    /// Chunks, decoded.
    chunks: VecDeque<(u64, Arc<Vec<u8>>)>,
    /// Chunks of which only parts were read.
    seen: VecDeque<u64>,
}

/// A store of chunks.
#[derive(Debug)]
pub struct ChunkStore {
    chunks: Arc<dyn Chunks>,
    /// `None` if nothing is kept.
    kept: Option<Mutex<Kept>>,
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

    /// How many chunks are kept.
    fn most_kept(&self) -> usize {
        match (&self.kept, self.chunks.chunk_bytes()) {
            (Some(_), size) if 2 * size <= KEPT => (KEPT / size.max(1)).min(MOST_KEPT),
            _ => 0,
        }
    }

    /// Whether a request for so many chunks keeps them.
    pub fn keeps(&self, chunks: u64) -> bool {
        chunks <= self.most_kept() as u64
    }

    /// A chunk that was kept.
    pub fn kept_chunk(&self, index: u64) -> Option<Arc<Vec<u8>>> {
        let kept = self.kept()?;
        let mut all = kept.chunks.iter();
        let found = all.find(|(at, _)| *at == index)?;
        Some(Arc::clone(&found.1))
    }

    /// Whether a chunk of which parts can be read is wanted again, and so worth to be
    /// read whole; remembers that it was wanted.
    fn is_again(&self, index: u64) -> bool {
        let most = self.most_kept();
        let Some(mut kept) = self.kept() else {
            return false;
        };
        if let Some(at) = kept.seen.iter().position(|seen| *seen == index) {
            kept.seen.remove(at);
            return true;
        }
        kept.seen.truncate(most.saturating_sub(1));
        kept.seen.push_front(index);
        false
    }

    /// Shows a chunk of which at least the bytes `wanted` are there; `scratch` is
    /// used for it. With `keep` it is kept if it is used in part.
    pub fn view(
        &self,
        index: u64,
        wanted: &[Range<usize>],
        keep: bool,
        scratch: &mut Vec<u8>,
        see: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        if let Some(bytes) = self.kept_chunk(index) {
            see(&bytes);
            return Ok(());
        }
        let size = self.chunks.chunk_bytes();
        let used: usize = wanted.iter().map(|range| range.len()).sum();
        let keep = keep && used < size && (!self.chunks.has_parts() || self.is_again(index));
        let whole = 0..size;
        let wanted = match keep {
            true => std::slice::from_ref(&whole),
            false => wanted,
        };
        make_room(scratch, size).map_err(|source| Error::read(self.name(), 0, source))?;
        let lock = self.chunks.lock_shared(index)?;
        self.chunks.read(index, wanted, scratch)?;
        drop(lock);
        see(scratch);
        if keep {
            self.keep(index, scratch);
        }
        Ok(())
    }

    /// Reads a whole chunk straight into its place. `false`: it was never written, and
    /// reads as what stands for that.
    pub fn read_whole(&self, index: u64, out: &mut [u8]) -> Result<bool> {
        let whole = 0..out.len();
        let _lock = self.chunks.lock_shared(index)?;
        self.chunks.read(index, std::slice::from_ref(&whole), out)
    }

    /// Changes a part of a chunk, or all of it. `change` is called again if others have
    /// changed the chunk meanwhile, on what they have made of it.
    pub fn change(
        &self,
        index: u64,
        covered: bool,
        scratch: &mut Vec<u8>,
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<()> {
        let size = self.chunks.chunk_bytes();
        make_room(scratch, size).map_err(|source| Error::write(self.name(), 0, source))?;
        let _lock = self.chunks.lock(index)?;
        if covered {
            change(scratch);
            return self.replace(index, scratch);
        }
        loop {
            let old = self.chunks.read_to_change(index, scratch)?;
            change(scratch);
            if self.chunks.write_over(index, scratch, old.as_ref())? {
                self.forget(index);
                return Ok(());
            }
        }
    }

    /// Puts a whole chunk in its place.
    pub fn put(&self, index: u64, data: &[u8]) -> Result<()> {
        let _lock = self.chunks.lock(index)?;
        self.replace(index, data)
    }

    /// As `put`, by who holds the lock.
    fn replace(&self, index: u64, data: &[u8]) -> Result<()> {
        self.chunks.write(index, data)?;
        self.forget(index);
        Ok(())
    }

    fn forget(&self, index: u64) {
        if let Some(mut kept) = self.kept() {
            kept.chunks.retain(|(at, _)| *at != index);
        }
    }

    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        let kept = self.kept.as_ref()?;
        Some(kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps a chunk; the memory of one that is forgotten comes back for it.
    fn keep(&self, index: u64, bytes: &mut Vec<u8>) {
        let most = self.most_kept();
        let Some(mut kept) = self.kept() else {
            return;
        };
        if kept.chunks.iter().any(|(at, _)| *at == index) {
            return;
        }
        let mut room = Vec::new();
        while kept.chunks.len() >= most.max(1) {
            match kept
                .chunks
                .pop_back()
                .map(|(_, bytes)| Arc::try_unwrap(bytes))
            {
                Some(Ok(bytes)) => room = bytes,
                _ => continue,
            }
        }
        let bytes = std::mem::replace(bytes, room);
        kept.chunks.push_front((index, Arc::new(bytes)));
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

    /// The threads for work on `useful` bytes of so many chunks with `room` bytes for
    /// all of them.
    pub fn crew(&self, chunks: u64, useful: u64, room: u64) -> Crew {
        let (parallel, size) = (self.chunks.parallel(), self.chunks.chunk_bytes() as u64);
        let work = match self.chunks.has_parts() {
            true => useful.max(chunks.saturating_mul(REQUEST.min(size))),
            false => chunks.saturating_mul(size),
        };
        let worth = work > SMALL || parallel > cores();
        if chunks < 2 || !worth {
            return Crew::of(1);
        }
        let each = self.chunks.forms() * size + self.chunks.index_bytes();
        let fitting = (room / each.max(1)).max(1);
        let most = (parallel as u64).min(chunks).min(fitting) as usize;
        let busy = BUSY.load(Ordering::Relaxed);
        // Who waits for a network does not keep others from doing so.
        let least = if parallel > cores() { parallel / 4 } else { 1 };
        Crew::of(most.min(parallel.saturating_sub(busy).max(least)))
    }
}

/// Makes room for so many bytes or says that there is none. Zeros of the system take
/// memory only where they are used, and of a large chunk that may be little.
fn make_room(bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    if bytes.len() != len {
        *bytes = Vec::new();
        *bytes = bytemuck::try_zeroed_vec(len).map_err(|()| io::ErrorKind::OutOfMemory)?;
    }
    Ok(())
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
        let useful = parts.iter().map(|(_, range, _)| range.len() as u64).sum();
        let groups: Vec<_> = parts.chunk_by_mut(|a, b| a.0 == b.0).collect();
        let count = groups.len() as u64;
        let (crew, keep) = (self.crew(count, useful, ROOM), self.keeps(count));
        let scratch = Mutex::new(Vec::new());
        crew.each(groups.into_iter(), |group| {
            let index = group[0].0;
            if let [(_, range, piece)] = group
                && range.len() == self.chunks.chunk_bytes()
            {
                return self.read_whole(index, piece).map(drop);
            }
            let spare = scratch.lock().map_or(None, |mut all| all.pop());
            let mut room = spare.unwrap_or_default();
            let wanted: Vec<_> = group.iter().map(|(_, range, _)| range.clone()).collect();
            let done = self.view(index, &wanted, keep, &mut room, &mut |bytes| {
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
        let size = self.chunks.chunk_bytes();
        let count = groups.len() as u64;
        let crew = self.crew(count, count.saturating_mul(size as u64), ROOM);
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
