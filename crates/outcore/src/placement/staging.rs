//! How much memory the movements between files take besides what their
//! callers know of.
//!
//! `shift` and `multicast` have no budget: each rank takes at most four times
//! [`PIECE`], 2 MiB in all: a piece that leaves, one that arrives, the buffer
//! of sieving, and that for reversing the bytes of numbers. (`load`, `store`
//! and partitions take theirs from the budget that they are given.)

use crate::array::Array;
use crate::placement::local::LocalArray;

/// The bytes of a piece, and of the buffers that moving it takes.
pub(super) const PIECE: u64 = 512 << 10;

/// The same array, which stages at most so much.
pub(super) fn staged(array: &Array, staging: u64) -> Array {
    array.tuned(array.tuning().within(staging))
}

impl LocalArray {
    /// The part, moved in pieces.
    pub(super) fn staged_part(&self) -> Array {
        staged(self.part(), PIECE)
    }
}
