//! [`Sums`]: the checksums of blocks, and whether a block is being written.
//!
//! Eight bytes for each block, one after the other and nothing else: the CRC32C,
//! little-endian, and a word that says what it is worth. Eight zeros, which is
//! what a sparse file reads as and what is beyond its end, stand for a block
//! that nobody has written: it holds zeros. An unknown word is no state, so
//! flipped bits of an entry are found as well.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::range_lock::RangeLock;
use crate::store::{ReadRequest, Store};

/// The bytes of one entry.
pub(super) const ENTRY: u64 = 8;

/// The word of a block that is as its checksum says.
const WRITTEN: u32 = u32::from_le_bytes(*b"sum\0");

/// The word of a block whose write has begun and not ended.
const WRITING: u32 = u32::from_le_bytes(*b"now\0");

/// The word of a block that was found damaged when a part of it was written.
const BROKEN: u32 = u32::from_le_bytes(*b"bad\0");

/// What is known of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// Nobody has written it.
    Unwritten,
    /// It has this checksum.
    Written(u32),
    /// It is being written, or was when the writer died.
    Writing,
    /// It was damaged, and since then written in part.
    Broken,
    /// The entry itself is damaged.
    Unknown,
}

impl Entry {
    fn decode(bytes: [u8; 8]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        let sum = u32::from_le_bytes([a, b, c, d]);
        match (sum, u32::from_le_bytes([e, f, g, h])) {
            (0, 0) => Entry::Unwritten,
            (sum, WRITTEN) => Entry::Written(sum),
            (0, WRITING) => Entry::Writing,
            (0, BROKEN) => Entry::Broken,
            _ => Entry::Unknown,
        }
    }

    fn encode(self) -> [u8; 8] {
        let (sum, word) = match self {
            Entry::Unwritten => (0, 0),
            Entry::Written(sum) => (sum, WRITTEN),
            Entry::Writing => (0, WRITING),
            Entry::Broken => (0, BROKEN),
            Entry::Unknown => (u32::MAX, u32::MAX),
        };
        let [a, b, c, d] = sum.to_le_bytes();
        let [e, f, g, h] = word.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }
}

/// The store that holds the entries.
#[derive(Debug, Clone)]
pub(super) struct Sums {
    pub(super) store: Arc<dyn Store>,
}

impl Sums {
    /// The entries of several ranges of blocks, one after the other.
    pub(super) fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Entry>> {
        // 1. Ranges that follow one another are one request.
        let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match joined.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => joined.push(range.clone()),
            }
        }
        let count: u64 = joined.iter().map(|range| range.end - range.start).sum();
        let mut bytes = vec![0; (count * ENTRY) as usize];
        let mut requests = Vec::with_capacity(joined.len());
        let mut rest = &mut bytes[..];
        for range in joined {
            let (buffer, after) = rest.split_at_mut(((range.end - range.start) * ENTRY) as usize);
            let offset = range.start * ENTRY;
            requests.push(ReadRequest { offset, buffer });
            rest = after;
        }
        // 2. What is beyond the end was never written.
        match self.store.read_batch(&mut requests) {
            Err(Error::UnexpectedEnd { .. }) => self.read_until_end(&mut requests)?,
            other => other?,
        }
        let (entries, _) = bytes.as_chunks();
        Ok(entries.iter().map(|entry| Entry::decode(*entry)).collect())
    }

    fn read_until_end(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        let len = self.store.len()?;
        for request in requests {
            let there = len.saturating_sub(request.offset);
            let there = there.min(request.buffer.len() as u64) as usize;
            let (buffer, beyond) = request.buffer.split_at_mut(there);
            self.store.read_at(request.offset, buffer)?;
            beyond.fill(0);
        }
        Ok(())
    }

    /// The entry of one block.
    pub(super) fn of(&self, block: u64) -> Result<Entry> {
        let entries = self.read(std::slice::from_ref(&(block..block + 1)))?;
        Ok(entries.first().copied().unwrap_or(Entry::Unknown))
    }

    /// Writes the entries of blocks from `first` on.
    pub(super) fn write(&self, first: u64, entries: &[Entry]) -> Result<()> {
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.encode()).collect();
        self.store.write_at(first * ENTRY, &bytes)
    }

    /// Keeps out all others who write or check these blocks.
    pub(super) fn lock(&self, blocks: Range<u64>) -> Result<Option<RangeLock<'_>>> {
        let len = (blocks.end - blocks.start) * ENTRY;
        self.store.lock(blocks.start * ENTRY, len)
    }

    /// Keeps out those who write these blocks, where that is possible: a file
    /// that is open for reading, on a file system whose locks are messages, has
    /// no such lock.
    pub(super) fn hold(&self, blocks: Range<u64>) -> Result<Option<RangeLock<'_>>> {
        let len = (blocks.end - blocks.start) * ENTRY;
        match self.store.lock_shared(blocks.start * ENTRY, len)? {
            Some(lock) => Ok(Some(lock)),
            None => Ok(self.lock(blocks).unwrap_or(None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_written_and_flipped_bits_are_no_other_state() {
        for entry in [
            Entry::Unwritten,
            Entry::Written(0),
            Entry::Written(u32::MAX),
            Entry::Writing,
            Entry::Broken,
        ] {
            assert_eq!(Entry::decode(entry.encode()), entry);
            for bit in 0..64 {
                let mut bytes = entry.encode();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let found = Entry::decode(bytes);
                // Another sum is found when the block is compared with it.
                let known = matches!(found, Entry::Written(_)) && bit < 32;
                assert!(found == Entry::Unknown || known, "{entry:?} {bit}");
            }
        }
    }
}
