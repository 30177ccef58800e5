//! The writes of a [`CheckedStore`], a round at a time.

use std::ops::Range;

use super::sums::Entry;
use super::{CheckedStore, grow, padded};
use crate::error::Result;
use crate::store::{Store, WriteRequest};

impl CheckedStore {
    /// Writes the pieces of a round, whose blocks follow one another.
    pub(super) fn write_round(&self, round: &[(u64, &[u8])], scratch: &mut Vec<u8>) -> Result<()> {
        let (Some((start, _)), Some((last, data))) = (round.first(), round.last()) else {
            return Ok(());
        };
        let end = last + data.len() as u64;
        let blocks = start / self.block..end.div_ceil(self.block);
        let _alone = self.sums.lock(blocks.clone())?;
        let new = self.new_entries(round, blocks.clone(), scratch)?;
        let marks = vec![Entry::Writing; new.len()];
        self.sums.write(blocks.start, &marks)?;
        match round {
            [(offset, data)] => self.data.write_at(*offset, data)?,
            _ => {
                let requests = round.iter().map(|(offset, data)| WriteRequest {
                    offset: *offset,
                    data,
                });
                self.data.write_batch(&requests.collect::<Vec<_>>())?;
            }
        }
        self.sums.write(blocks.start, &new)
    }

    /// What the entries of `blocks`, which are locked, will be when `round`, which
    /// has bytes of each, is written.
    fn new_entries(
        &self,
        round: &[(u64, &[u8])],
        blocks: Range<u64>,
        scratch: &mut Vec<u8>,
    ) -> Result<Vec<Entry>> {
        let now = self.blocks()?;
        let mut old = None;
        let mut entries = Vec::with_capacity((blocks.end - blocks.start) as usize);
        // The first piece that has not ended before the block.
        let mut next = 0;
        for block in blocks.clone() {
            let begin = block * self.block;
            let end = begin + self.block;
            while next < round.len() && round[next].0 + round[next].1.len() as u64 <= begin {
                next += 1;
            }
            // 1. What of the block is written, and whether that is all of it.
            let within = move |(offset, data): &(u64, &'_ [u8])| {
                let from = begin.saturating_sub(*offset).min(data.len() as u64);
                let to = end.saturating_sub(*offset).min(data.len() as u64);
                (offset + from, from as usize..to as usize)
            };
            let pieces = || {
                let pieces = round[next..].iter().take_while(move |(at, _)| *at < end);
                pieces.map(move |piece| (within(piece), piece.1))
            };
            let covered: usize = pieces().map(|((_, range), _)| range.len()).sum();
            let reach = pieces().map(|((at, range), _)| at + range.len() as u64);
            let reach = reach.max().unwrap_or(begin).max(now.bytes.min(end));
            if covered as u64 == reach - begin {
                let sum = pieces().fold(0, |sum, ((_, range), data)| {
                    crc32c::crc32c_append(sum, &data[range])
                });
                entries.push(Entry::Written(padded(sum, covered as u64, self.block)));
                continue;
            }
            // 2. The other bytes are those of before; if they are wrong, that stays.
            let old = match &old {
                Some(old) => old,
                None => old.insert(self.sums.read(std::slice::from_ref(&blocks))?),
            };
            let entry = old[(block - blocks.start) as usize];
            if matches!(entry, Entry::Writing | Entry::Broken) {
                entries.push(entry);
                continue;
            }
            let parts: Vec<(u64, &[u8])> = pieces()
                .take(self.most_pieces() + 1)
                .map(|((at, range), data)| (at, &data[range]))
                .collect();
            let sum = match entry {
                Entry::Unwritten => Some(self.of_zeros),
                Entry::Written(sum) => Some(sum),
                _ => None,
            };
            if let Some(sum) = sum
                && let Some(sum) = self.changed(sum, begin, &parts, scratch)?
            {
                entries.push(Entry::Written(sum));
                continue;
            }
            let there = now.range(block..block + 1);
            grow(scratch, self.block as usize);
            let scratch = &mut scratch[..self.block as usize];
            let (bytes, beyond) = scratch.split_at_mut((there.end - there.start) as usize);
            beyond.fill(0);
            self.data.read_at(there.start, bytes)?;
            if self.fault(entry, self.sum(bytes)).is_some() {
                entries.push(Entry::Broken);
                continue;
            }
            for ((at, range), data) in pieces() {
                let place = (at - begin) as usize;
                scratch[place..place + range.len()].copy_from_slice(&data[range]);
            }
            entries.push(Entry::Written(self.sum(scratch)));
        }
        Ok(entries)
    }
}
