//! Extensible arrays: the index of chunks of an array that can grow along one
//! axis.
//!
//! An index block has the first entries and leads to data blocks, further ones
//! through secondary blocks. Super block `k` stands for `2^(k/2)` data blocks of
//! `2^((k+1)/2)` times the least number of entries.

use super::chunk_index::Entry;
use super::fixed_array::{Entries, Run};
use super::object_header::check_block;
use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// What the header says.
struct Array<'a> {
    source: &'a Source,
    address: u64,
    entries: Entries,
    chunk_bytes: u64,
    /// Bytes of the position of a block.
    position_width: usize,
    /// Entries of the smallest data block.
    least: u64,
    /// Entries of a page of a data block that has more.
    page: u64,
    /// Positions from here on have no entry: blocks may have room for more of them, where
    /// libraries never look.
    end: u64,
}

/// Calls `found` with the position and entry of each chunk that has one.
pub(crate) fn walk(
    source: &Source,
    address: u64,
    chunk_bytes: u64,
    found: &mut dyn FnMut(u64, Entry) -> Parsed<()>,
) -> Parsed<()> {
    let (offset, length) = (source.offset_size, source.length_size);
    let head = source.read(address, (16 + 6 * length + offset) as u64)?;
    check_block(&head, "a chunk index")?;
    let mut fields = Fields::little("a chunk index", &head);
    fields.signature(b"EAHD")?;
    fields.version(0)?;
    let entries = Entries::parse(source, fields.u8()?, fields.u8()?)?;
    let bits = fields.u8()?;
    let in_index = u64::from(fields.u8()?);
    let least = u64::from(fields.u8()?);
    let least_pointers = u64::from(fields.u8()?);
    let page_bits = fields.u8()?;
    for _ in 0..4 {
        source.length(&mut fields)?;
    }
    let end = source.length(&mut fields)?;
    source.length(&mut fields)?;
    let Some(index) = source.address(&mut fields)? else {
        return Ok(());
    };
    if bits > 64
        || page_bits > 63
        || !least.is_power_of_two()
        || !least_pointers.is_power_of_two()
        || u32::from(bits) < least.ilog2()
    {
        return Err("a chunk index is damaged".into());
    }
    let array = Array {
        source,
        address,
        entries,
        chunk_bytes,
        position_width: usize::from(bits).div_ceil(8),
        least,
        page: 1 << page_bits,
        end,
    };
    let supers = 1 + u64::from(bits) - u64::from(least.ilog2());
    // The index block leads to the data blocks of the first super blocks itself.
    let direct = (2 * u64::from(least_pointers.ilog2())).min(supers);
    let data_blocks = 2 * (least_pointers - 1);
    let entry_bytes = in_index * entries.len as u64;
    let prefix = 6 + offset as u64;
    let pointers = (data_blocks + supers - direct) * offset as u64;
    let block = source.read(index, prefix + entry_bytes + pointers + 4)?;
    check_block(&block, "a chunk index")?;
    let mut fields = array.block(&block, b"EAIB")?;
    let covered = (index, block.len() as u64 - 4);
    let mut at = index + prefix;
    for (bytes, position) in fields
        .stated(entry_bytes)?
        .chunks_exact(entries.len)
        .zip(0..end)
    {
        let entry = entries.entry(source, bytes, chunk_bytes, (at, covered))?;
        found(position, entry)?;
        at += entries.len as u64;
    }
    let mut position = in_index;
    for number in 0..supers {
        let (blocks, each) = array.super_block(number)?;
        if position >= end {
            return Ok(());
        }
        if number < direct {
            for _ in 0..blocks {
                if let Some(block) = source.address(&mut fields)? {
                    array.data_block(block, (position, each), None, found)?;
                }
                position = position.saturating_add(each);
            }
            continue;
        }
        if let Some(block) = source.address(&mut fields)? {
            array.secondary(block, position, (blocks, each), found)?;
        }
        position = position.saturating_add(blocks.saturating_mul(each));
    }
    Ok(())
}

impl Array<'_> {
    /// The data blocks of a super block, and the entries of each.
    fn super_block(&self, number: u64) -> Parsed<(u64, u64)> {
        let each = 1u64
            .checked_shl((number as u32).div_ceil(2))
            .and_then(|factor| factor.checked_mul(self.least));
        let blocks = 1u64.checked_shl(number as u32 / 2);
        blocks
            .zip(each)
            .ok_or_else(|| "a chunk index is damaged".into())
    }

    /// The fields of a block after its prefix, which is checked.
    fn block<'b>(&self, block: &'b [u8], signature: &[u8; 4]) -> Parsed<Fields<'b>> {
        let mut fields = Fields::little("a block of a chunk index", block);
        fields.signature(signature)?;
        fields.version(0)?;
        fields.skip(1)?;
        if self.source.defined(&mut fields)? != self.address {
            return Err("a block belongs to another chunk index; the file is damaged".into());
        }
        Ok(fields)
    }

    /// The data blocks that a secondary block leads to, in pages or not.
    fn secondary(
        &self,
        address: u64,
        first: u64,
        (blocks, each): (u64, u64),
        found: &mut dyn FnMut(u64, Entry) -> Parsed<()>,
    ) -> Parsed<()> {
        let source = self.source;
        let prefix = 6 + source.offset_size as u64 + self.position_width as u64;
        // A bit for each page of each data block says whether it is written.
        let bitmap = match each > self.page {
            true => (each / self.page).div_ceil(8),
            false => 0,
        };
        let bitmaps = blocks.saturating_mul(bitmap);
        let pointers = blocks.saturating_mul(source.offset_size as u64);
        let len = prefix.saturating_add(bitmaps).saturating_add(pointers);
        let block = source.read(address, len.saturating_add(4))?;
        check_block(&block, "a chunk index")?;
        let mut fields = self.block(&block, b"EASB")?;
        fields.skip(self.position_width)?;
        let bitmaps = fields.stated(bitmaps)?;
        let mut position = first;
        for number in 0..blocks {
            if let Some(block) = source.address(&mut fields)? {
                // The bits of all data blocks follow one another.
                let first_bit = number * (each / self.page);
                self.data_block(block, (position, each), Some((bitmaps, first_bit)), found)?;
            }
            position = position.saturating_add(each);
        }
        Ok(())
    }

    /// The entries of a data block; `written` tells of its pages if it has any.
    fn data_block(
        &self,
        address: u64,
        (first, count): (u64, u64),
        written: Option<(&[u8], u64)>,
        found: &mut dyn FnMut(u64, Entry) -> Parsed<()>,
    ) -> Parsed<()> {
        let source = self.source;
        let prefix = 6 + source.offset_size as u64 + self.position_width as u64;
        let head = source.read(address, prefix)?;
        self.block(&head, b"EADB")?;
        let end = self.end;
        let found = &mut |position, entry| match position < end {
            true => found(position, entry),
            false => Ok(()),
        };
        let entries = self.entries;
        let bytes = |count: u64| count.saturating_mul(entries.len as u64);
        if count <= self.page {
            let run = Run {
                entries,
                first,
                start: address,
                head: prefix,
            };
            return run.walk(source, bytes(count), self.chunk_bytes, found);
        }
        let (written, first_bit) = written.ok_or("a chunk index is damaged")?;
        let page_bytes = bytes(self.page);
        let mut start = address + prefix + 4;
        for page in 0..count / self.page {
            let position = first.saturating_add(page * self.page);
            if position >= self.end {
                break;
            }
            let bit = first_bit + page;
            let byte = written.get((bit / 8) as usize).copied().unwrap_or(0);
            if byte & (0x80 >> (bit % 8)) != 0 {
                let run = Run {
                    entries,
                    first: position,
                    start,
                    head: 0,
                };
                run.walk(source, page_bytes, self.chunk_bytes, found)?;
            }
            start = start.saturating_add(page_bytes).saturating_add(4);
        }
        Ok(())
    }
}
