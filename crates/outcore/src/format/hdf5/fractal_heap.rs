//! Fractal heaps: links and attributes of groups and datasets that have many.
//!
//! Objects lie in blocks of a doubling table: rows of `width` blocks, of which
//! the first two have the starting size and each further one twice that of the
//! row before. Blocks beyond a size are tables themselves.

use super::datatype::width_of;
use super::object_header::check_block;
use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// Objects longer than this are not believed.
const LONGEST: u64 = 1 << 20;

/// A heap whose objects are read.
#[derive(Debug)]
pub(crate) struct FractalHeap<'a> {
    source: &'a Source,
    id_len: usize,
    offset_width: usize,
    length_width: usize,
    width: u64,
    starting_size: u64,
    largest_direct: u64,
    root: Option<u64>,
    /// Rows of the root if it is a table; 0 if it is a block.
    rows: u16,
}

impl<'a> FractalHeap<'a> {
    pub(crate) fn read(source: &'a Source, address: u64) -> Parsed<Self> {
        let (offset, length) = (source.offset_size as u64, source.length_size as u64);
        let head = source.read(address, 26 + 3 * offset + 12 * length)?;
        let mut fields = Fields::little("a heap", &head);
        fields.signature(b"FRHP")?;
        fields.version(0)?;
        let id_len = usize::from(fields.u16()?);
        if fields.u16()? != 0 {
            return Err("heaps with filters are not supported".into());
        }
        check_block(&head, "a heap")?;
        fields.skip(1)?;
        let largest_object = u64::from(fields.u32()?);
        source.length(&mut fields)?;
        source.address(&mut fields)?;
        source.length(&mut fields)?;
        source.address(&mut fields)?;
        for _ in 0..8 {
            source.length(&mut fields)?;
        }
        let width = u64::from(fields.u16()?);
        let starting_size = source.length(&mut fields)?;
        let largest_direct = source.length(&mut fields)?;
        let bits = fields.u16()?;
        fields.skip(2)?;
        let root = source.address(&mut fields)?;
        let rows = fields.u16()?;
        let powers = [width, starting_size, largest_direct];
        if powers.iter().any(|size| !size.is_power_of_two())
            || bits > 64
            || starting_size > largest_direct
            || id_len == 0
        {
            return Err("the header of a heap is damaged".into());
        }
        let block_width = (largest_direct.ilog2() as usize).div_ceil(8);
        Ok(Self {
            source,
            id_len,
            offset_width: usize::from(bits).div_ceil(8),
            length_width: block_width.min(width_of(largest_object)),
            width,
            starting_size,
            largest_direct,
            root,
            rows,
        })
    }

    /// The bytes of an id in records.
    pub(crate) fn id_len(&self) -> usize {
        self.id_len
    }

    /// The object with this id.
    pub(crate) fn object(&self, id: &[u8]) -> Parsed<Vec<u8>> {
        let mut fields = Fields::little("an id of a heap", id);
        let start = fields.u8()?;
        match start >> 4 & 3 {
            0 => {
                let offset = fields.uint(self.offset_width)?;
                let len = fields.uint(self.length_width)?;
                if len > LONGEST {
                    return Err(format!("an object of {len} bytes is not believed").into());
                }
                self.managed(offset, len)
            }
            2 => {
                let len = match self.id_len > 18 {
                    true => u64::from(start & 15) << 8 | u64::from(fields.u8()?),
                    false => u64::from(start & 15),
                };
                Ok(fields.stated(len + 1)?.to_vec())
            }
            _ => Err("objects outside of a heap's blocks are not supported".into()),
        }
    }

    /// The `len` bytes at `offset` of the heap's own space.
    fn managed(&self, offset: u64, len: u64) -> Parsed<Vec<u8>> {
        let mut address = self.root.ok_or("a heap is empty; the file is damaged")?;
        let mut within = offset;
        let mut rows = u64::from(self.rows);
        // Each table is smaller than the one it is in.
        let mut size = u64::MAX;
        while rows > 0 {
            let (row, column, below) = self.locate(within)?;
            if row >= rows {
                return Err("an object is beyond its heap; the file is damaged".into());
            }
            let block_size = self.block_size(row);
            if block_size >= size {
                return Err("a heap leads back to itself; the file is damaged".into());
            }
            size = block_size;
            let head = 5 + self.source.offset_size as u64 + self.offset_width as u64;
            let entry = (row * self.width + column) * self.source.offset_size as u64;
            let head = head
                .checked_add(entry)
                .and_then(|at| at.checked_add(address));
            let entry = self.source.read(
                head.ok_or("a heap is damaged")?,
                self.source.offset_size as u64,
            )?;
            address = self.source.defined(&mut Fields::little("a heap", &entry))?;
            within = below;
            rows = match block_size > self.largest_direct {
                true => {
                    let first_row = self.starting_size.saturating_mul(self.width);
                    u64::from(block_size.ilog2()).saturating_sub(first_row.ilog2().into()) + 1
                }
                false => 0,
            };
        }
        if self.source.read(address, 4)? != b"FHDB" {
            return Err("a block of a heap is not where it belongs; the file is damaged".into());
        }
        let at = address.checked_add(within);
        self.source.read(at.ok_or("a heap is damaged")?, len)
    }

    /// The row and column of the block that holds an offset of a table, and
    /// the offset in that block.
    fn locate(&self, offset: u64) -> Parsed<(u64, u64, u64)> {
        let first_row = self
            .starting_size
            .checked_mul(self.width)
            .ok_or("a heap is damaged")?;
        if offset < first_row {
            return Ok((0, offset / self.starting_size, offset % self.starting_size));
        }
        // Row r from 1 on begins at first_row * 2^(r-1) and is as long.
        let row = u64::from((offset / first_row).ilog2()) + 1;
        let size = self.block_size(row);
        let start = first_row << (row - 1);
        Ok((row, (offset - start) / size, (offset - start) % size))
    }

    /// The bytes of a block of a row that exists.
    fn block_size(&self, row: u64) -> u64 {
        self.starting_size << row.saturating_sub(1).min(63)
    }
}
