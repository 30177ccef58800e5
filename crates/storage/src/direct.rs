//! Direct I/O: transfers between the disk and memory that leave the page cache
//! alone.
//!
//! The kernel takes only blocks of [`DIRECT_ALIGNMENT`] bytes, in memory
//! aligned alike. Reads of anything else cover the blocks around it in a
//! bounce buffer and copy. Writes are cut into the whole blocks, which go
//! directly (through a bounce buffer if the data lies unaligned), and the
//! edges, which go through the page cache: the kernel then merges each edge
//! into its block under its own lock, so that writers of neighbouring bytes
//! lose nothing, even from different processes. A read-modify-write here could
//! not promise that. Direct reads see the edges because the kernel first
//! flushes what is dirty in their range.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::aligned::{AlignedBuffer, DIRECT_ALIGNMENT};
use crate::bounce;
use crate::error::Result;
use crate::file::FileStore;
use crate::store::{ReadRequest, WriteRequest};

/// The size of a bounce buffer.
const BOUNCE: usize = 1 << 20;

/// A file opened for direct I/O, and its bounce buffers not in use.
#[derive(Debug)]
pub(crate) struct DirectFile {
    file: File,
    idle: Mutex<Vec<AlignedBuffer>>,
}

/// Whether an address or a length is a multiple of the block size.
pub(crate) fn is_aligned(number: usize) -> bool {
    number.is_multiple_of(DIRECT_ALIGNMENT)
}

/// The last block boundary at or before `offset`.
pub(crate) fn round_down(offset: u64) -> u64 {
    offset - offset % DIRECT_ALIGNMENT as u64
}

/// The first block boundary at or after `offset`.
pub(crate) fn round_up(offset: u64) -> u64 {
    offset.next_multiple_of(DIRECT_ALIGNMENT as u64)
}

/// The whole blocks in `len` bytes at `offset`: where they begin and end,
/// counted from `offset`. Empty, at `len`, if there are none.
pub(crate) fn whole_blocks(offset: u64, len: usize) -> (usize, usize) {
    let first = round_up(offset) - offset;
    let end = round_down(offset + len as u64).saturating_sub(offset);
    if first < end {
        (first as usize, end as usize)
    } else {
        (len, len)
    }
}

impl DirectFile {
    /// Opens `path` once more, directly.
    pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::fs::OpenOptionsExt;
            let file = options.custom_flags(libc::O_DIRECT).open(path)?;
            Ok(DirectFile {
                file,
                idle: Mutex::default(),
            })
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (path, options);
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "direct I/O needs Linux",
            ))
        }
    }

    /// Runs `work` with a bounce buffer.
    fn with_bounce<T>(&self, work: impl FnOnce(&mut AlignedBuffer) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut bounce = kept.unwrap_or_else(|| AlignedBuffer::new(BOUNCE));
        let result = work(&mut bounce);
        idle().push(bounce);
        result
    }

    /// Reads some bytes, as [`Store::read_some_at`](crate::Store::read_some_at) does.
    pub(crate) fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let skip = (offset % DIRECT_ALIGNMENT as u64) as usize;
        let misfit = buffer.as_ptr().addr() % DIRECT_ALIGNMENT;
        if skip == 0 && misfit == 0 && buffer.len() >= DIRECT_ALIGNMENT {
            let whole = buffer.len() - buffer.len() % DIRECT_ALIGNMENT;
            return self.file.read_at(&mut buffer[..whole], offset);
        }
        // Memory and file are at the same place in a block: after the first
        // block the rest needs no copy.
        let most = if skip == misfit {
            DIRECT_ALIGNMENT
        } else {
            BOUNCE
        };
        let len = (skip.saturating_add(buffer.len()).min(most)).next_multiple_of(DIRECT_ALIGNMENT);
        self.with_bounce(|bounce| {
            let got = self
                .file
                .read_at(&mut bounce[..len], offset - skip as u64)?;
            let count = got.saturating_sub(skip).min(buffer.len());
            buffer[..count].copy_from_slice(&bounce[skip..skip + count]);
            Ok(count)
        })
    }

    /// Writes some bytes, as [`Store::write_some_at`](crate::Store::write_some_at)
    /// does; `buffered` is the
    /// same file opened without direct I/O.
    pub(crate) fn write_some(
        &self,
        buffered: &File,
        offset: u64,
        data: &[u8],
    ) -> io::Result<usize> {
        if offset
            .checked_add(data.len() as u64)
            .is_none_or(|end| end > i64::MAX as u64)
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (first, end) = whole_blocks(offset, data.len());
        if first > 0 {
            return buffered.write_at(&data[..first], offset);
        }
        let blocks = &data[..end];
        if blocks.is_empty() {
            return buffered.write_at(data, offset);
        }
        if is_aligned(blocks.as_ptr().addr()) {
            return self.file.write_at(blocks, offset);
        }
        self.with_bounce(|bounce| {
            let len = blocks.len().min(BOUNCE);
            bounce[..len].copy_from_slice(&blocks[..len]);
            self.file.write_at(&bounce[..len], offset)
        })
    }

    /// Performs a batch of reads of `store`, which this file belongs to, with
    /// io_uring; `None`, with some of it undone, where there is no ring.
    pub(crate) fn read_batch(
        &self,
        store: &FileStore,
        requests: &mut [ReadRequest<'_>],
    ) -> Option<Result<()>> {
        self.with_bounce(|bounce| bounce::read_batch(store, &self.file, requests, bounce))
    }

    /// As `read_batch`, for writes.
    pub(crate) fn write_batch(
        &self,
        store: &FileStore,
        requests: &[WriteRequest<'_>],
    ) -> Option<Result<()>> {
        self.with_bounce(|bounce| bounce::write_batch(store, &self.file, requests, bounce))
    }
}
