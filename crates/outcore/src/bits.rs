//! [`Bits`]: one bit for each of some things in a row.

use std::ops::Range;

/// A bit for each of some things in a row.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Begins with `count` bits that are not set.
    pub(crate) fn clear(&mut self, count: usize) {
        self.words.clear();
        self.words.resize(count.div_ceil(64), 0);
    }

    /// Sets one bit.
    #[inline(always)]
    pub(crate) fn set(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
    }

    /// Sets all bits of a range.
    pub(crate) fn set_all(&mut self, Range { start, end }: Range<usize>) {
        let mut at = start;
        while at < end {
            let (word, bit) = (at / 64, at % 64);
            let count = (64 - bit).min(end - at);
            self.words[word] |= (u64::MAX >> (64 - count)) << bit;
            at += count;
        }
    }

    /// The first from `at` on, but before `end`, whose bit is as given; `end` if
    /// there is none.
    pub(crate) fn find(&self, mut at: usize, end: usize, set: bool) -> usize {
        while at < end {
            let word = self.words[at / 64] ^ if set { 0 } else { u64::MAX };
            match (word >> (at % 64)).trailing_zeros() as usize {
                64 => at = (at / 64 + 1) * 64,
                zeros => return (at + zeros).min(end),
            }
        }
        end
    }

    /// The ranges of a range that are set and as long as can be.
    pub(crate) fn runs(
        &self,
        Range { start, end }: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + Clone {
        let mut at = start;
        std::iter::from_fn(move || {
            let from = self.find(at, end, true);
            at = self.find(from, end, false);
            (from < at).then_some(from..at)
        })
    }
}
