//! Shards: objects that hold several chunks and an index, which says for each, in
//! row-major order, where it begins and how long it is: two 64-bit numbers, least
//! byte first; all bits set stand for a chunk that is not there.
//!
//! Chunks are read out of the shard whose index was read: it is kept open with its
//! index. If it is replaced meanwhile, a file keeps its bytes, and an object far away
//! refuses; then the new one is opened.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use outcore_geometry::{Layout, Order, Section};
use outcore_storage::{Error, Objects, Store};

use super::metadata::{Metadata, Shard};
use crate::execute::copy::{gather, scatter};

/// Where the chunks of a shard are.
type Index = Vec<Option<(u64, u64)>>;

/// The memory for one entry of it.
const PLACE: u64 = size_of::<Option<(u64, u64)>>() as u64;

/// The memory for indices of shards that are kept open, of at least so many.
const KEPT_BYTES: usize = 8 << 20;
const LEAST_KEPT: usize = 4;

/// More shards than this are not kept open: files, of which a process may have few, and
/// objects far away.
const KEPT: usize = 32;
const KEPT_FAR: usize = 256;

/// A shard with its index.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) store: Arc<dyn Store>,
    index: Index,
}

impl Open {
    /// Where a chunk begins and how long it is; `None`: it is not there.
    pub(super) fn chunk(&self, inner: usize) -> Option<(u64, u64)> {
        self.index.get(inner).copied().flatten()
    }
}

/// A shard that is opened once, however many ask for it at the same time; `Some(None)`:
/// it is not there.
type Slot = Arc<Mutex<Option<Option<Arc<Open>>>>>;

/// Reading chunks out of shards.
#[derive(Debug)]
pub(super) struct Shards {
    /// Chunks along each axis of a shard.
    extents: Vec<u64>,
    shard: Shard,
    most: usize,
    kept: Mutex<HashMap<String, Slot>>,
}

fn extents(object: &[u64], shard: &Shard) -> Vec<u64> {
    let both = object.iter().zip(&shard.chunk);
    both.map(|(object, chunk)| object / chunk).collect()
}

impl Shards {
    pub(super) fn new(object: &[u64], shard: &Shard, far: bool) -> Self {
        Self {
            extents: extents(object, shard),
            shard: shard.clone(),
            most: if far { KEPT_FAR } else { KEPT },
            kept: Mutex::default(),
        }
    }

    /// Which shard holds the chunk at `place` of the array, and its number there.
    pub(super) fn place(&self, place: &[u64]) -> (Vec<u64>, usize) {
        let both = || place.iter().zip(&self.extents);
        let inner = both().fold(0, |inner, (at, extent)| inner * extent + at % extent);
        let shard = both().map(|(at, extent)| at / extent).collect();
        (shard, inner as usize)
    }

    /// Chunks of a shard.
    fn count(&self) -> u64 {
        self.extents.iter().product()
    }

    /// How many shards are kept open.
    fn most_kept(&self) -> usize {
        let bytes = (PLACE * self.count()) as usize;
        (KEPT_BYTES / bytes.max(1)).clamp(LEAST_KEPT, self.most)
    }

    /// The memory for an index that is read, and for those that are kept whatever their
    /// length.
    pub(super) fn index_bytes(&self) -> u64 {
        let read = index_bytes(self.count() as usize, &self.shard) as u64;
        read + PLACE * self.count() * (LEAST_KEPT as u64 + 1)
    }

    /// A shard; `None`: it is not there.
    pub(super) fn open(
        &self,
        objects: &dyn Objects,
        key: &str,
        damaged: &dyn Fn(String) -> Error,
    ) -> outcore_storage::Result<Option<Arc<Open>>> {
        let slot = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= self.most_kept()
                && !kept.contains_key(key)
                && let Some(any) = kept.keys().next().cloned()
            {
                kept.remove(&any);
            }
            Arc::clone(kept.entry(key.into()).or_default())
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*slot {
            return Ok(known.clone());
        }
        let open = match objects.open(key)? {
            None => None,
            Some(store) => {
                let length = index_bytes(self.count() as usize, &self.shard);
                let start = store.len()?.checked_sub(length as u64);
                let start = start.ok_or_else(|| damaged("it is too short for its index".into()))?;
                let mut bytes = vec![0; length];
                let start = if self.shard.index_at_end { start } else { 0 };
                store.read_at(start, &mut bytes)?;
                let index = parse(&bytes, &self.shard).map_err(damaged)?;
                Some(Arc::new(Open { store, index }))
            }
        };
        *slot = Some(open.clone());
        Ok(open)
    }

    /// Opens a shard anew when it is next asked for.
    pub(super) fn forget(&self, key: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(key);
    }
}

/// The most bytes that a shard of `count` chunks, `bytes` in all, is believed to have.
pub(super) fn most_bytes(shard: &Shard, count: u64, bytes: u64) -> u64 {
    // What a codec may put around a chunk.
    const AROUND: u64 = 256;
    let around = count.saturating_mul(AROUND);
    bytes
        .saturating_mul(2)
        .saturating_add(around)
        .saturating_add(index_bytes(count as usize, shard) as u64)
}

fn index_bytes(count: usize, shard: &Shard) -> usize {
    16 * count + if shard.index_checked { 4 } else { 0 }
}

fn parse(bytes: &[u8], shard: &Shard) -> Result<Index, String> {
    let numbers = match (shard.index_checked, bytes.split_last_chunk::<4>()) {
        (true, Some((numbers, sum))) => {
            if crc32c::crc32c(numbers) != u32::from_le_bytes(*sum) {
                return Err("the checksum of its index does not fit; it is damaged".into());
            }
            numbers
        }
        _ => bytes,
    };
    let (pairs, _) = numbers.as_chunks::<16>();
    let pairs = pairs.iter().map(|pair| {
        let (start, length) = (u64_at(pair, 0), u64_at(pair, 8));
        ((start, length) != (u64::MAX, u64::MAX)).then_some((start, length))
    });
    Ok(pairs.collect())
}

fn u64_at(pair: &[u8; 16], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&pair[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// The chunks of a shard as sections of it, in row-major order; there may be too many
/// to list them.
fn sections(
    metadata: &Metadata,
    shard: &Shard,
) -> Result<(Layout, impl ExactSizeIterator<Item = Section>), String> {
    let size = metadata.element_type.size();
    let order = Order::from_slowest_first(&metadata.encoding.slowest_first);
    let layout = Layout::new(&metadata.object, size, &order, None).map_err(|e| e.to_string())?;
    let extents = extents(&metadata.object, shard);
    let count = extents.iter().product::<u64>() as usize;
    let shape = shard.chunk.clone();
    let whole = Section::whole(&metadata.object).map_err(|e| e.to_string())?;
    let sections = (0..count).map(move |number| {
        let (mut section, mut rest) = (whole.clone(), number as u64);
        for axis in (0..extents.len()).rev() {
            let at = rest % extents[axis] * shape[axis];
            rest /= extents[axis];
            section = section.slice(axis, at, at + shape[axis]);
        }
        section
    });
    Ok((layout, sections))
}

/// Decodes all chunks of a shard into their places.
pub(super) fn split(
    stored: &[u8],
    shard: &Shard,
    metadata: &Metadata,
    out: &mut [u8],
) -> Result<(), String> {
    let (layout, sections) = sections(metadata, shard)?;
    let length = index_bytes(sections.len(), shard);
    if stored.len() < length {
        return Err("it is too short for its index".into());
    }
    let index = match shard.index_at_end {
        true => &stored[stored.len() - length..],
        false => &stored[..length],
    };
    let mut chunk = vec![0; out.len() / sections.len().max(1)];
    for (place, section) in parse(index, shard)?.iter().zip(sections) {
        match place {
            None => {
                let fill = &metadata.fill;
                let elements = chunk.chunks_mut(fill.len());
                elements.for_each(|element| element.copy_from_slice(fill));
            }
            Some((start, length)) => {
                let range = usize::try_from(*start)
                    .ok()
                    .zip(start.checked_add(*length).map(|end| end as usize));
                let bytes = range.and_then(|(start, end)| stored.get(start..end));
                let bytes = bytes.ok_or("its index leads beyond its end; it is damaged")?;
                metadata.encoding.codecs.decode(bytes, &mut chunk)?;
            }
        }
        for pass in layout.runs(&section).map_err(|e| e.to_string())?.passes() {
            scatter(&pass, &chunk, out, 0);
        }
    }
    Ok(())
}

/// A shard of all its chunks, encoded.
pub(super) fn join(data: &[u8], shard: &Shard, metadata: &Metadata) -> Result<Vec<u8>, String> {
    let (layout, sections) = sections(metadata, shard)?;
    let length = index_bytes(sections.len(), shard);
    let mut joined = vec![0; if shard.index_at_end { 0 } else { length }];
    let mut index = Vec::with_capacity(length);
    let mut chunk = vec![0; data.len() / sections.len().max(1)];
    for section in sections {
        for pass in layout.runs(&section).map_err(|e| e.to_string())?.passes() {
            gather(&pass, data, 0, &mut chunk);
        }
        let start = joined.len() as u64;
        let codecs = &metadata.encoding.codecs;
        codecs.encode(&chunk, |encoded| joined.extend_from_slice(encoded))?;
        index.extend_from_slice(&start.to_le_bytes());
        index.extend_from_slice(&(joined.len() as u64 - start).to_le_bytes());
    }
    if shard.index_checked {
        index.extend_from_slice(&crc32c::crc32c(&index).to_le_bytes());
    }
    match shard.index_at_end {
        true => joined.extend_from_slice(&index),
        false => joined[..length].copy_from_slice(&index),
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_kept_by_their_bytes() {
        for (chunks, expected) in [(1, 256), (10_000, 34), (1 << 20, 4)] {
            let shard = Shard {
                chunk: vec![1],
                index_at_end: true,
                index_checked: true,
            };
            assert_eq!(Shards::new(&[chunks], &shard, true).most_kept(), expected);
        }
    }
}
