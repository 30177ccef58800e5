//! [`ZarrChunks`]: the chunks of an array, by their objects.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use outcore_geometry::Layout;
use outcore_storage::{
    Access, Chunks, Error, FileStore, LockTable, Objects, RangeLock, Result, Store, Version,
};

use super::metadata::Metadata;
use super::shard::{Open, Shards, join, most_bytes, split};
use super::{V2_ARRAY, V3};
use crate::error;
use crate::format::place;

thread_local! {
    /// An object as it is stored.
    static STORED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A larger buffer is given back after its use.
const SMALL: usize = 4 << 20;

/// What a stored chunk may have besides twice its bytes.
const MORE: u64 = 64 << 10;

/// The chunks of an array.
#[derive(Debug)]
pub(super) struct ZarrChunks {
    name: String,
    objects: Arc<dyn Objects>,
    metadata: Metadata,
    grid: Grid,
    chunk_bytes: usize,
    /// The chunks in shards, if those are what is moved.
    shards: Option<Shards>,
    lock: Lock,
    /// Whether one request for all of a chunk in a shard is better than several for
    /// parts of it.
    far: bool,
}

/// What is locked for changes of parts of chunks.
#[derive(Debug)]
enum Lock {
    /// Nothing: chunks are not changed.
    None,
    /// The description, a file, against threads and other programs.
    File(FileStore),
    /// Object stores have no locks; one against the threads of this process. Other
    /// programs are noticed when a chunk is written over.
    Process(Arc<LockTable>),
}

impl Lock {
    fn of(path: &Path, access: Access) -> Result<Self> {
        if access == Access::ReadOnly {
            return Ok(Self::None);
        }
        if place::is_address(path) {
            return Ok(Self::Process(LockTable::named(&path.to_string_lossy())));
        }
        let mut files = [V3, V2_ARRAY].iter().map(|file| path.join(file));
        match files.find(|file| file.is_file()) {
            Some(file) => Ok(Self::File(FileStore::open(file, access)?)),
            None => Ok(Self::None),
        }
    }
}

/// The chunks of an array in the order of its layout.
#[derive(Debug, Clone)]
struct Grid {
    slowest_first: Vec<usize>,
    /// Chunks along each axis.
    extents: Vec<u64>,
}

impl Grid {
    fn new(shape: &[u64], chunk: &[u64], slowest_first: &[usize]) -> Self {
        let extents = shape.iter().zip(chunk).map(|(n, chunk)| n.div_ceil(*chunk));
        Self {
            slowest_first: slowest_first.to_vec(),
            extents: extents.collect(),
        }
    }

    fn count(&self) -> u64 {
        self.extents.iter().product()
    }

    /// Where a chunk is along each axis.
    fn place(&self, index: u64) -> Vec<u64> {
        let (mut place, mut rest) = (vec![0; self.extents.len()], index);
        for axis in self.slowest_first.iter().rev() {
            place[*axis] = rest % self.extents[*axis];
            rest /= self.extents[*axis];
        }
        place
    }
}

impl ZarrChunks {
    pub(super) fn new(
        path: &Path,
        objects: Arc<dyn Objects>,
        metadata: Metadata,
        access: Access,
    ) -> error::Result<Self> {
        let chunk = metadata.chunk(access);
        let grid = Grid::new(&metadata.shape, chunk, &metadata.encoding.slowest_first);
        let name = path.display().to_string();
        let of = error::Error::geometry(&name);
        let size = metadata.element_type.size();
        let layout = Layout::arranged(chunk, size, &Default::default()).map_err(of)?;
        let far = place::is_address(path);
        let shards = match (&metadata.shard, access) {
            (Some(shard), Access::ReadOnly) => Some(Shards::new(&metadata.object, shard, far)),
            _ => None,
        };
        Ok(Self {
            name,
            objects,
            grid,
            chunk_bytes: layout.byte_len() as usize,
            shards,
            lock: Lock::of(path, access)?,
            far,
            metadata,
        })
    }

    fn fill(&self, wanted: &[Range<usize>], out: &mut [u8]) {
        let fill = &self.metadata.fill;
        let zero = fill.iter().all(|byte| *byte == 0);
        for part in wanted {
            let (phase, part) = (part.start % fill.len(), &mut out[part.clone()]);
            if zero {
                part.fill(0);
                continue;
            }
            // A part may begin in the middle of an element.
            let (first, rest) = part.split_at_mut(part.len().min(fill.len() - phase));
            first.copy_from_slice(&fill[phase..phase + first.len()]);
            rest.chunks_mut(fill.len())
                .for_each(|element| element.copy_from_slice(&fill[..element.len()]));
        }
    }

    /// The error of bytes that cannot be decoded.
    fn damaged(&self, key: &str, problem: String) -> Error {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, problem);
        Error::object("decode", format!("{}/{key}", self.name), source)
    }

    /// The most bytes that an object is believed to have.
    fn most_bytes(&self) -> u64 {
        let bytes = self.chunk_bytes as u64;
        let most = match &self.metadata.shard {
            None => bytes.saturating_mul(2),
            Some(shard) => {
                let (object, chunk) = (self.metadata.object.iter(), shard.chunk.iter());
                let count = object.zip(chunk).map(|(object, chunk)| object / chunk);
                most_bytes(shard, count.product(), bytes)
            }
        };
        most.saturating_add(MORE)
    }

    fn read_object(&self, key: &str, wanted: &[Range<usize>], out: &mut [u8]) -> Result<bool> {
        let codecs = &self.metadata.encoding.codecs;
        let all = wanted.iter().map(Range::len).sum::<usize>() == out.len();
        let found = match (codecs.is_empty(), &self.metadata.shard) {
            // Far away the length of an object is another request, unless all comes.
            (true, None) if !(all && self.far) => {
                let found = self.objects.read_parts(key, wanted, out)?;
                if found && all {
                    self.check_length(key)?;
                }
                found
            }
            _ => self.read_all(key, out)?.is_some(),
        };
        if !found {
            self.fill(wanted, out);
        }
        Ok(found)
    }

    /// Reads all of an object, and says which one it is.
    fn read_all(&self, key: &str, out: &mut [u8]) -> Result<Option<Version>> {
        with_stored(|stored| {
            let Some(version) = self.objects.read(key, self.most_bytes(), stored)? else {
                return Ok(None);
            };
            let decoded = match &self.metadata.shard {
                None => self.metadata.encoding.codecs.decode(stored, out),
                Some(shard) => split(stored, shard, &self.metadata, out),
            };
            decoded.map_err(|problem| self.damaged(key, problem))?;
            Ok(Some(version))
        })
    }

    /// Encodes a chunk for `put`, which gets the key of its object, too.
    fn encode<T>(
        &self,
        index: u64,
        data: &[u8],
        put: impl FnOnce(&str, &[u8]) -> Result<T>,
    ) -> Result<T> {
        let key = self.metadata.keys.name(&self.grid.place(index));
        let refused = |problem: String| {
            let source = std::io::Error::other(problem);
            Error::object("encode", format!("{}/{key}", self.name), source)
        };
        if let Some(shard) = &self.metadata.shard {
            let joined = join(data, shard, &self.metadata).map_err(refused)?;
            return put(&key, &joined);
        }
        let codecs = &self.metadata.encoding.codecs;
        let encoded = codecs.encode(data, |encoded| put(&key, encoded));
        encoded.map_err(refused)?
    }

    /// Fails if a chunk that is stored as it is has more bytes than it can have.
    fn check_length(&self, key: &str) -> Result<()> {
        match self.objects.length(key)? {
            Some(length) if length > self.chunk_bytes as u64 => Err(self.damaged(
                key,
                format!(
                    "it has {length} bytes instead of {}; it is damaged",
                    self.chunk_bytes
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Reads a chunk out of its shard; once more if that is not what its index says, as
    /// it may have been replaced since.
    fn read_inner(
        &self,
        shards: &Shards,
        place: &[u64],
        wanted: &[Range<usize>],
        out: &mut [u8],
    ) -> Result<bool> {
        let (shard, inner) = shards.place(place);
        let key = self.metadata.keys.name(&shard);
        let mut read = || -> Result<bool> {
            let damaged = |problem| self.damaged(&key, problem);
            let open = shards.open(&*self.objects, &key, &damaged)?;
            let Some((at, open)) = open.and_then(|open| Some((open.chunk(inner)?, open))) else {
                return Ok(false);
            };
            self.read_at(&open, at, wanted, out, &damaged)?;
            Ok(true)
        };
        let found = match read() {
            Err(error) if is_another(&error) => {
                shards.forget(&key);
                read()?
            }
            other => other?,
        };
        if !found {
            self.fill(wanted, out);
        }
        Ok(found)
    }

    /// Reads the chunk that stands at these bytes of a shard.
    fn read_at(
        &self,
        shard: &Open,
        (offset, length): (u64, u64),
        wanted: &[Range<usize>],
        out: &mut [u8],
        damaged: &dyn Fn(String) -> Error,
    ) -> Result<()> {
        let beyond = || damaged("its index leads beyond its end; it is damaged".into());
        let end = offset.checked_add(length).ok_or_else(beyond)?;
        if end > shard.store.len()? {
            return Err(beyond());
        }
        let codecs = &self.metadata.encoding.codecs;
        if codecs.is_empty() {
            if length != out.len() as u64 {
                return Err(damaged(format!(
                    "a chunk has {length} bytes instead of {}",
                    out.len()
                )));
            }
            let whole = 0..out.len();
            let wanted = match self.far {
                true => std::slice::from_ref(&whole),
                false => wanted,
            };
            return wanted.iter().try_for_each(|part| {
                let at = offset + part.start as u64;
                shard.store.read_at(at, &mut out[part.clone()])
            });
        }
        with_stored(|stored| {
            if length > 2 * self.chunk_bytes as u64 + MORE {
                return Err(damaged(format!("a chunk of {length} bytes is too long")));
            }
            stored.resize(length as usize, 0);
            shard.store.read_at(offset, stored)?;
            codecs.decode(stored, out).map_err(damaged)
        })
    }
}

/// Whether an error may come of an object that was replaced by another.
fn is_another(error: &Error) -> bool {
    use std::io::ErrorKind::{InvalidData, NotFound};
    match error {
        Error::UnexpectedEnd { .. } => true,
        Error::Object { source, .. } => matches!(source.kind(), InvalidData | NotFound),
        _ => false,
    }
}

fn with_stored<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut stored = STORED.take();
    let done = work(&mut stored);
    if stored.capacity() <= SMALL {
        STORED.set(stored);
    }
    done
}

impl Chunks for ZarrChunks {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn count(&self) -> u64 {
        self.grid.count()
    }

    fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    fn forms(&self) -> u64 {
        let forms = match self.metadata.shard {
            // Its chunks are small beside it.
            Some(_) if self.shards.is_none() => 2,
            _ => self.metadata.encoding.codecs.forms(),
        };
        // What is written far away is there as it is sent, too.
        forms + u64::from(matches!(self.lock, Lock::Process(_)))
    }

    fn index_bytes(&self) -> u64 {
        self.shards.as_ref().map_or(0, Shards::index_bytes)
    }

    fn parallel(&self) -> usize {
        self.objects.parallel()
    }

    fn has_parts(&self) -> bool {
        self.metadata.encoding.codecs.is_empty()
            && (self.metadata.shard.is_none() || self.shards.is_some())
    }

    fn read(&self, index: u64, wanted: &[Range<usize>], out: &mut [u8]) -> Result<bool> {
        let place = self.grid.place(index);
        match &self.shards {
            Some(shards) => self.read_inner(shards, &place, wanted, out),
            None => self.read_object(&self.metadata.keys.name(&place), wanted, out),
        }
    }

    fn read_to_change(&self, index: u64, out: &mut [u8]) -> Result<Option<Version>> {
        let whole = 0..out.len();
        let whole = std::slice::from_ref(&whole);
        if !self.far {
            // Its lock keeps all others out.
            return Ok(self.read(index, whole, out)?.then(Version::default));
        }
        let key = self.metadata.keys.name(&self.grid.place(index));
        let found = self.read_all(&key, out)?;
        if found.is_none() {
            self.fill(whole, out);
        }
        Ok(found)
    }

    fn write(&self, index: u64, data: &[u8]) -> Result<()> {
        self.encode(index, data, |key, bytes| self.objects.write(key, bytes))
    }

    fn write_over(&self, index: u64, data: &[u8], old: Option<&Version>) -> Result<bool> {
        let put = |key: &str, bytes: &[u8]| self.objects.write_over(key, bytes, old);
        self.encode(index, data, put)
    }

    fn lock(&self, index: u64) -> Result<Option<RangeLock<'_>>> {
        match &self.lock {
            Lock::File(file) => file.lock(index, 1),
            Lock::Process(table) => Ok(Some(table.lock(index, 1))),
            Lock::None => Ok(None),
        }
    }

    fn sync(&self) -> Result<()> {
        self.objects.sync()
    }
}
