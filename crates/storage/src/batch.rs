//! What a batch of transfers shows to the machinery that overlaps them
//! (`uring.rs`, `threads.rs`).

use crate::error::Result;

/// Which way the bytes of a [`Transfer`] go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the file into memory.
    Read,
    /// From memory into the file.
    Write,
}

/// One contiguous transfer between a file and memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) direction: Direction,
    pub(crate) offset: u64,
    pub(crate) memory: *mut u8,
    pub(crate) len: usize,
}

/// Transfers that may run at the same time and end in any order.
///
/// # Safety
///
/// From `transfer(i)` until `complete(i)` or the end of the batch's life, the
/// memory of transfer `i` stays valid, and for a read nothing else touches it.
pub(crate) unsafe trait Batch {
    /// The number of transfers.
    fn len(&self) -> usize;

    /// What transfer `index` is; asked once for each.
    fn transfer(&mut self, index: usize) -> Transfer;

    /// Takes note that the first `done` bytes of transfer `index` have moved
    /// and, by ordinary calls, finishes what is missing: all of it if the
    /// transfer failed, so that the error is the one such a call meets.
    fn complete(&mut self, index: usize, done: usize) -> Result<()>;
}
