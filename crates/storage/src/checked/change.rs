//! [`Change`]: what becomes of the checksum of a block when some of its bytes do.
//!
//! A CRC is linear: bits are the coefficients of a polynomial over the field of two
//! elements, and what is kept of it is its remainder. So the checksums of two blocks
//! of one length differ by the remainder of their difference. Where that is zero but
//! in some bytes, it is the remainder of those, times x^8 for each byte behind them.
//! Hence the other bytes need not be known; and a checksum that was wrong stays wrong.

use crate::error::Result;
use crate::store::{ReadRequest, Store};

use super::{CheckedStore, grow};

/// The divisor of CRC32C without its first term; the lowest power is the highest bit.
const DIVISOR: u32 = 0x82F6_3B78;

/// A block whose bytes are read piece by piece has at least so many for each piece.
const WORTH: u64 = 4 << 10;

/// The difference of two blocks up to a place, as what is added to a checksum.
#[derive(Debug)]
struct Change {
    sum: u32,
    place: u64,
    /// The last distance that was gone, and the factor for it.
    step: (u64, u32),
}

impl Change {
    /// No difference, at the beginning.
    fn none() -> Self {
        let step = (0, zeros(0));
        Self {
            sum: 0,
            place: 0,
            step,
        }
    }

    /// Adds the difference of two pieces that begin at `place`, which is not before the
    /// last one.
    fn add(&mut self, place: u64, old: &[u8], new: &[u8]) {
        self.go(place + new.len() as u64);
        self.sum ^= crc32c::crc32c(old) ^ crc32c::crc32c(new);
    }

    /// All behind the last piece is the same up to `place`.
    fn go(&mut self, place: u64) {
        let distance = place - self.place;
        self.place = place;
        if self.sum != 0 {
            if self.step.0 != distance {
                self.step = (distance, zeros(distance));
            }
            self.sum = product(self.sum, self.step.1);
        }
    }
}

/// The product of two remainders.
fn product(one: u32, mut other: u32) -> u32 {
    let mut sum = 0;
    for power in (0..32).rev() {
        if one & (1 << power) != 0 {
            sum ^= other;
        }
        // Times x.
        other = (other >> 1) ^ if other & 1 != 0 { DIVISOR } else { 0 };
    }
    sum
}

/// The remainder of x^8 to the power of `count`: the factor for so many bytes of zeros.
fn zeros(mut count: u64) -> u32 {
    let (mut factor, mut square) = (1 << 31, 1 << 23);
    while count > 0 {
        if count & 1 == 1 {
            factor = product(factor, square);
        }
        square = product(square, square);
        count >>= 1;
    }
    factor
}

impl CheckedStore {
    /// Of a block that is written in more pieces, all is better read.
    pub(super) fn most_pieces(&self) -> usize {
        (self.block / WORTH) as usize
    }

    /// The checksum of the block that begins at `begin` when `pieces` of it are written,
    /// from the one that it has; `None` if all of the block is better read.
    pub(super) fn changed(
        &self,
        sum: u32,
        begin: u64,
        pieces: &[(u64, &[u8])],
        scratch: &mut Vec<u8>,
    ) -> Result<Option<u32>> {
        let apart = |two: &[(u64, &[u8])]| two[0].0 + two[0].1.len() as u64 <= two[1].0;
        if pieces.len() > self.most_pieces() || !pieces.windows(2).all(apart) {
            return Ok(None);
        }
        // 1. The bytes of before; behind the end of the data they are zeros.
        let len = self.data.len()?;
        grow(scratch, pieces.iter().map(|(_, data)| data.len()).sum());
        let (mut requests, mut rest) = (Vec::with_capacity(pieces.len()), &mut scratch[..]);
        for (offset, data) in pieces {
            let (old, later) = rest.split_at_mut(data.len());
            let there = len.saturating_sub(*offset).min(data.len() as u64);
            let (buffer, beyond) = old.split_at_mut(there as usize);
            beyond.fill(0);
            if !buffer.is_empty() {
                let offset = *offset;
                requests.push(ReadRequest { offset, buffer });
            }
            rest = later;
        }
        self.data.read_batch(&mut requests)?;
        // 2. What they add.
        let (mut change, mut rest) = (Change::none(), &scratch[..]);
        for (offset, data) in pieces {
            let (old, later) = rest.split_at(data.len());
            change.add(offset - begin, old, data);
            rest = later;
        }
        change.go(self.block);
        Ok(Some(sum ^ change.sum))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_checksum_of_the_whole(
            block in prop::collection::vec(any::<u8>(), 1..3000),
            pieces in prop::collection::vec((any::<prop::sample::Index>(), 1usize..99), 0..9),
            new in any::<u8>(),
        ) {
            let mut places: Vec<_> = pieces
                .iter()
                .map(|(at, len)| (at.index(block.len()), *len))
                .collect();
            places.sort_unstable();
            let (mut changed, mut change, mut end) = (block.clone(), Change::none(), 0);
            for (at, len) in places {
                let range = at.max(end)..(at + len).min(block.len());
                if range.is_empty() {
                    continue;
                }
                changed[range.clone()].fill(new);
                change.add(range.start as u64, &block[range.clone()], &changed[range.clone()]);
                end = range.end;
            }
            change.go(block.len() as u64);
            let sum = crc32c::crc32c(&block) ^ change.sum;
            prop_assert_eq!(sum, crc32c::crc32c(&changed));
        }
    }
}
