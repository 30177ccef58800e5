//! Fixed arrays: the index of chunks of an array that cannot grow.
//!
//! A header leads to a block that has an entry for each chunk, in one piece or
//! in pages; each has a checksum behind it.

use super::chunk_index::{Entry, Place};
use super::object_header::check_block;
use super::slot::{Form, Slot};
use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// Entries of chunks: what one holds, and how wide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entries {
    /// Bytes of an entry.
    pub(crate) len: usize,
    /// Whether it has the bytes of the chunk and what was skipped.
    pub(crate) filtered: bool,
}

impl Entries {
    pub(crate) fn parse(source: &Source, client: u8, len: u8) -> Parsed<Self> {
        let len = usize::from(len);
        let least = source.offset_size;
        match client {
            0 if len == least => Ok(Self {
                len,
                filtered: false,
            }),
            1 if (least + 5..=least + 12).contains(&len) => Ok(Self {
                len,
                filtered: true,
            }),
            _ => Err("the entries of a chunk index are damaged".into()),
        }
    }

    /// The entry in `bytes` at `address`, in a block from an address on of which a
    /// checksum covers so many bytes.
    pub(crate) fn entry(
        self,
        source: &Source,
        bytes: &[u8],
        chunk_bytes: u64,
        (address, block): (u64, (u64, u64)),
    ) -> Parsed<Entry> {
        let width = self.len.saturating_sub(source.offset_size + 4) as u8;
        Ok(Entry {
            place: self.place(source, bytes, chunk_bytes)?,
            slot: Slot {
                offset: source.place(address)?,
                form: Form::AddressFirst { width },
                covered: Some((source.place(block.0)?, block.1 as u32)),
            },
        })
    }

    /// The entry in `bytes`, its offset being an address; `None` for a chunk
    /// that is not there.
    fn place(self, source: &Source, bytes: &[u8], chunk_bytes: u64) -> Parsed<Option<Place>> {
        let mut fields = Fields::little("an entry of a chunk index", bytes);
        let Some(offset) = source.address(&mut fields)? else {
            return Ok(None);
        };
        let (len, skipped) = match self.filtered {
            true => (
                fields.uint(self.len - source.offset_size - 4)?,
                fields.u32()?,
            ),
            false => (chunk_bytes, 0),
        };
        Ok(Some(Place {
            offset,
            len,
            skipped,
        }))
    }
}

/// The header of a fixed array and where its entries are.
#[derive(Debug)]
pub(crate) struct FixedArray {
    pub(crate) entries: Entries,
    /// Entries of a page if there are more of them.
    page: u64,
    pub(crate) count: u64,
    /// The block of entries; nowhere if no chunk was ever written.
    block: Option<u64>,
}

impl FixedArray {
    pub(crate) fn read(source: &Source, address: u64) -> Parsed<Self> {
        let len = 12 + source.length_size as u64 + source.offset_size as u64;
        let head = source.read(address, len)?;
        check_block(&head, "a chunk index")?;
        let mut fields = Fields::little("a chunk index", &head);
        fields.signature(b"FAHD")?;
        fields.version(0)?;
        let entries = Entries::parse(source, fields.u8()?, fields.u8()?)?;
        let bits = fields.u8()?;
        if bits > 63 {
            return Err("a chunk index is damaged".into());
        }
        Ok(Self {
            entries,
            page: 1 << bits,
            count: source.length(&mut fields)?,
            block: source.address(&mut fields)?,
        })
    }

    /// Bytes of the block before its entries or bitmap.
    fn prefix(source: &Source) -> u64 {
        6 + source.offset_size as u64
    }

    /// Calls `found` with the position and entry of each chunk.
    pub(crate) fn walk(
        &self,
        source: &Source,
        chunk_bytes: u64,
        found: &mut dyn FnMut(u64, Entry) -> Parsed<()>,
    ) -> Parsed<()> {
        let Some(block) = self.block else {
            return Ok(());
        };
        let prefix = Self::prefix(source);
        let pages = match self.count > self.page {
            true => self.count.div_ceil(self.page),
            false => 0,
        };
        let bitmap = pages.div_ceil(8);
        let head = source.read(block, prefix + bitmap)?;
        let mut fields = Fields::little("a block of a chunk index", &head);
        fields.signature(b"FADB")?;
        fields.version(0)?;
        if pages == 0 {
            let bytes = self.count.checked_mul(self.entries.len as u64);
            let bytes = bytes.ok_or("a chunk index is damaged")?;
            let run = Run {
                entries: self.entries,
                first: 0,
                start: block,
                head: prefix,
            };
            return run.walk(source, bytes, chunk_bytes, found);
        }
        let mut start = block + prefix + bitmap + 4;
        for page in 0..pages {
            let first = page * self.page;
            let count = (self.count - first).min(self.page);
            let bytes = count.saturating_mul(self.entries.len as u64);
            let written = head[(prefix + page / 8) as usize] & (0x80 >> (page % 8)) != 0;
            if written {
                let run = Run {
                    entries: self.entries,
                    first,
                    start,
                    head: 0,
                };
                run.walk(source, bytes, chunk_bytes, found)?;
            }
            start = start.saturating_add(bytes).saturating_add(4);
        }
        Ok(())
    }
}

/// Entries in one piece, with a checksum behind them.
pub(crate) struct Run {
    pub(crate) entries: Entries,
    /// The position of the first.
    pub(crate) first: u64,
    /// The address of what the checksum covers.
    pub(crate) start: u64,
    /// How much of that comes before the entries.
    pub(crate) head: u64,
}

impl Run {
    /// Calls `found` with the position and entry of each chunk of the `len`
    /// bytes of entries.
    pub(crate) fn walk(
        &self,
        source: &Source,
        len: u64,
        chunk_bytes: u64,
        found: &mut dyn FnMut(u64, Entry) -> Parsed<()>,
    ) -> Parsed<()> {
        let all = len.saturating_add(self.head + 4);
        let bytes = source.read_long(self.start, all)?;
        check_block(&bytes, "a chunk index")?;
        let entries = &bytes[self.head as usize..bytes.len() - 4];
        let block = (self.start, all - 4);
        let mut address = self.start + self.head;
        for (bytes, position) in entries.chunks_exact(self.entries.len).zip(self.first..) {
            let entry = self
                .entries
                .entry(source, bytes, chunk_bytes, (address, block))?;
            found(position, entry)?;
            address += self.entries.len as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outcore_storage::MemoryStore;

    use super::*;
    use crate::format::fields::Problem;

    #[test]
    fn pages_beyond_64_bits_are_missing() {
        let mut block = b"FADB\0\0".to_vec();
        block.extend([0; 8]);
        for written in [0xff, 0x7f] {
            let mut file = block.clone();
            file.extend([written, 0, 0, 0, 0]);
            let source = Source::new(Arc::new(MemoryStore::from(file))).unwrap();
            for (page_bits, count) in [(63, u64::MAX), (62, u64::MAX), (60, 3 << 60), (61, 3 << 60)]
            {
                let array = FixedArray {
                    entries: Entries {
                        len: 20,
                        filtered: true,
                    },
                    page: 1 << page_bits,
                    count,
                    block: Some(0),
                };
                let outcome = array.walk(&source, 8, &mut |_, _| Ok(()));
                let problem = Problem::of("a.h5")(outcome.unwrap_err()).to_string();
                assert!(problem.contains("truncated or damaged"), "{problem}");
            }
        }
    }
}
