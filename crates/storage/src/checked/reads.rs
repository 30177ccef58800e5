//! The reads of a [`CheckedStore`], a round at a time.

use std::ops::Range;

use super::sums::Entry;
use super::{CheckedStore, grow};
use crate::blocks::Blocks;
use crate::error::Result;
use crate::store::{ReadRequest, Store};

/// A piece of a read: whole blocks, or bytes of one.
struct Part<'a> {
    blocks: Range<u64>,
    /// Where it begins in the first block.
    start: usize,
    piece: &'a mut [u8],
    whole: bool,
}

impl CheckedStore {
    /// The parts of a read of `piece` at `offset`, which ends within `len` bytes.
    fn parts<'a>(&self, offset: u64, piece: &'a mut [u8], len: u64, parts: &mut Vec<Part<'a>>) {
        let (mut at, mut rest) = (offset, piece);
        while !rest.is_empty() {
            let end = at + rest.len() as u64;
            let first = at / self.block;
            let start = (at % self.block) as usize;
            let until = ((first + 1) * self.block).min(len);
            let whole = start == 0 && end >= until;
            let until = match whole {
                true if end == len => end,
                true => end / self.block * self.block,
                false => until.min(end),
            };
            let (piece, later) = rest.split_at_mut((until - at) as usize);
            parts.push(Part {
                blocks: first..until.div_ceil(self.block),
                start,
                piece,
                whole,
            });
            (at, rest) = (until, later);
        }
    }

    /// Reads the pieces of a round into place, of a store of `len` bytes.
    pub(super) fn read_round(
        &self,
        round: Vec<(u64, &mut [u8])>,
        len: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        // 1. Whole blocks go where they are wanted, the others aside, each once.
        let mut parts = Vec::with_capacity(round.len());
        for (offset, piece) in round {
            self.parts(offset, piece, len, &mut parts);
        }
        let mut groups: Vec<&mut [Part<'_>]> = parts
            .chunk_by_mut(|a, b| !a.whole && !b.whole && a.blocks == b.blocks)
            .collect();
        let aside = groups.iter().filter(|group| !group[0].whole).count();
        grow(scratch, aside * self.block as usize);
        let mut room = scratch.chunks_exact_mut(self.block as usize);
        let blocks = Blocks {
            bytes: len,
            block: self.block,
        };
        let ranges: Vec<_> = groups.iter().map(|group| group[0].blocks.clone()).collect();
        let mut requests = Vec::with_capacity(groups.len());
        let mut copies = Vec::with_capacity(aside);
        for group in &mut groups {
            let bytes = blocks.range(group[0].blocks.clone());
            let offset = bytes.start;
            if group[0].whole {
                let buffer = &mut *group[0].piece;
                requests.push(ReadRequest { offset, buffer });
            } else {
                let buffer = room
                    .next()
                    .expect("there is room for each that is read aside");
                copies.push((requests.len(), group));
                let buffer = &mut buffer[..(bytes.end - bytes.start) as usize];
                requests.push(ReadRequest { offset, buffer });
            }
        }
        // 2. Data and checksums; what does not match may be in the making.
        let entries = self.sums.read(&ranges)?;
        match &mut requests[..] {
            [one] => self.data.read_at(one.offset, one.buffer)?,
            several => self.data.read_batch(several)?,
        }
        let mut entries = entries.into_iter();
        for request in &mut requests {
            let first = request.offset / self.block;
            let bytes = request.buffer.chunks_mut(self.block as usize);
            for (block, bytes) in (first..).zip(bytes) {
                let entry = entries.next().unwrap_or(Entry::Unknown);
                if self.fault(entry, self.sum(bytes)).is_none() {
                    continue;
                }
                let (now, fault) = self.read_held(block)?;
                match (fault, now.get(..bytes.len())) {
                    (None, Some(now)) => bytes.copy_from_slice(now),
                    (Some(fault), _) => return Err(self.error(block, fault)),
                    // The store was cut meanwhile.
                    (None, None) => self.data.read_at(block * self.block, bytes)?,
                }
            }
        }
        // 3. Out of the blocks that were read aside.
        for (index, group) in copies {
            for Part { start, piece, .. } in &mut **group {
                piece.copy_from_slice(&requests[index].buffer[*start..][..piece.len()]);
            }
        }
        Ok(())
    }
}
