//! [`Blocks`]: bytes cut into blocks of equal length, of which only the last
//! may be shorter. What checksums are taken of.

use std::ops::Range;

/// How a stretch of bytes is cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// How many bytes there are.
    pub bytes: u64,
    /// The length of every block but the last; at least 1.
    pub block: u64,
}

impl Blocks {
    /// How many blocks there are.
    pub fn count(&self) -> u64 {
        self.bytes.div_ceil(self.block)
    }

    /// Which bytes such blocks are.
    pub fn range(&self, blocks: Range<u64>) -> Range<u64> {
        let end = |block: u64| block.saturating_mul(self.block).min(self.bytes);
        end(blocks.start)..end(blocks.end)
    }
}
