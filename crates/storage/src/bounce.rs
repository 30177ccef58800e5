//! Batches of direct transfers.
//!
//! A batch is cut into parts whose unaligned requests fit a bounce buffer
//! together; each of them has its own place there, so that a whole part is in
//! flight at once. Aligned requests need no place. Whatever a part leaves over
//! (requests longer than the buffer, short transfers) is finished by single
//! calls, as every short transfer is.

use std::fs::File;
use std::slice;

use crate::aligned::AlignedBuffer;
use crate::batch::{Batch, Direction, Transfer};
use crate::direct::{is_aligned, round_down, round_up, whole_blocks};
use crate::error::Result;
use crate::file::FileStore;
use crate::store::{ReadRequest, Store, WriteRequest, read_exactly, write_exactly};
use crate::uring;

/// Whole blocks of the file, and the memory they move from or to: a place in
/// the bounce buffer, or the caller's own.
struct Span {
    request: usize,
    offset: u64,
    memory: *mut u8,
    len: usize,
    bounced: bool,
}

impl Span {
    fn transfer(&self, direction: Direction) -> Transfer {
        let Span {
            offset,
            memory,
            len,
            ..
        } = *self;
        Transfer {
            direction,
            offset,
            memory,
            len,
        }
    }
}

/// The places of a bounce buffer, given out from its start.
struct Places {
    start: *mut u8,
    size: usize,
    used: usize,
}

impl Places {
    fn of(bounce: &mut AlignedBuffer) -> Self {
        Places {
            start: bounce.as_mut_ptr(),
            size: bounce.len(),
            used: 0,
        }
    }

    /// A place for `wanted` bytes or, if they are more than the whole buffer,
    /// for as many as it has; `None` if what is left is too small.
    fn take(&mut self, wanted: usize) -> Option<(*mut u8, usize)> {
        let len = wanted.min(self.size);
        if self.used + len > self.size {
            return None;
        }
        // SAFETY: `used + len` is at most `size`, so this is in the buffer.
        let place = unsafe { self.start.add(self.used) };
        self.used += len;
        Some((place, len))
    }
}

/// Reads `requests` of `store` from its direct `file`; `None`, with some of
/// them undone, where there is no ring.
pub(crate) fn read_batch(
    store: &FileStore,
    file: &File,
    requests: &mut [ReadRequest<'_>],
    bounce: &mut AlignedBuffer,
) -> Option<Result<()>> {
    let mut places = Places::of(bounce);
    let mut part = BlockReads {
        store,
        requests,
        spans: Vec::new(),
    };
    let mut next = 0;
    while next < part.requests.len() {
        next = part.gather(next, &mut places);
        if let Err(error) = uring::run(file, &mut part)? {
            return Some(Err(error));
        }
    }
    Some(Ok(()))
}

/// One part of a batch of reads.
struct BlockReads<'a, 'b> {
    store: &'a FileStore,
    requests: &'a mut [ReadRequest<'b>],
    spans: Vec<Span>,
}

impl BlockReads<'_, '_> {
    /// Makes this the part that begins with request `first`; returns where the
    /// next one begins. A part has at least one request.
    fn gather(&mut self, first: usize, places: &mut Places) -> usize {
        self.spans.clear();
        places.used = 0;
        for (request, ReadRequest { offset, buffer }) in
            self.requests.iter_mut().enumerate().skip(first)
        {
            let (at, len) = (*offset, buffer.len());
            let fits = round_down(at) == at && is_aligned(buffer.as_ptr().addr());
            if fits && (is_aligned(len) || len > places.size) {
                let (memory, len) = (buffer.as_mut_ptr(), round_down(len as u64) as usize);
                self.spans.push(Span {
                    request,
                    offset: at,
                    memory,
                    len,
                    bounced: false,
                });
                continue;
            }
            let offset = round_down(at);
            let wanted = round_up(at + len as u64) - offset;
            let Some((memory, len)) = places.take(wanted as usize) else {
                return request;
            };
            self.spans.push(Span {
                request,
                offset,
                memory,
                len,
                bounced: true,
            });
        }
        self.requests.len()
    }
}

// SAFETY: a span lies in a buffer borrowed for longer than the batch lives, or
// has a place of its own in the bounce buffer; both are used again only when
// the transfer is complete.
unsafe impl Batch for BlockReads<'_, '_> {
    fn len(&self) -> usize {
        self.spans.len()
    }

    fn transfer(&mut self, index: usize) -> Transfer {
        self.spans[index].transfer(Direction::Read)
    }

    fn complete(&mut self, index: usize, done: usize) -> Result<()> {
        let Span {
            request,
            offset: start,
            memory,
            bounced,
            ..
        } = self.spans[index];
        let ReadRequest { offset, buffer } = &mut self.requests[request];
        let mut have = done;
        if bounced {
            // SAFETY: the kernel has filled `done` bytes of the span's place
            // and is finished with it.
            let filled = unsafe { slice::from_raw_parts(memory, done) };
            let wanted = filled.get((*offset - start) as usize..).unwrap_or_default();
            have = wanted.len().min(buffer.len());
            buffer[..have].copy_from_slice(&wanted[..have]);
        }
        read_exactly(self.store, *offset, buffer, have)
    }
}

/// Writes `requests` of `store`: the whole blocks to its direct `file`, then
/// the edges; `None`, with some of them undone, where there is no ring.
pub(crate) fn write_batch(
    store: &FileStore,
    file: &File,
    requests: &[WriteRequest<'_>],
    bounce: &mut AlignedBuffer,
) -> Option<Result<()>> {
    let mut places = Places::of(bounce);
    let mut part = BlockWrites {
        store,
        requests,
        spans: Vec::new(),
    };
    let mut next = 0;
    while next < requests.len() {
        next = part.gather(next, &mut places);
        if let Err(error) = uring::run(file, &mut part)? {
            return Some(Err(error));
        }
    }
    Some(
        requests
            .iter()
            .try_for_each(|&WriteRequest { offset, data }| {
                let (first, end) = whole_blocks(offset, data.len());
                store.write_at(offset, &data[..first])?;
                store.write_at(offset + end as u64, &data[end..])
            }),
    )
}

/// One part of a batch of writes, whole blocks only.
struct BlockWrites<'a, 'b> {
    store: &'a FileStore,
    requests: &'a [WriteRequest<'b>],
    spans: Vec<Span>,
}

impl BlockWrites<'_, '_> {
    /// As [`BlockReads::gather`]; fills the bounce buffer.
    fn gather(&mut self, first: usize, places: &mut Places) -> usize {
        self.spans.clear();
        places.used = 0;
        for (request, &WriteRequest { offset, data }) in
            self.requests.iter().enumerate().skip(first)
        {
            let (begin, end) = whole_blocks(offset, data.len());
            let blocks = &data[begin..end];
            if blocks.is_empty() {
                continue;
            }
            let offset = offset + begin as u64;
            if is_aligned(blocks.as_ptr().addr()) {
                let (memory, len) = (blocks.as_ptr().cast_mut(), blocks.len());
                self.spans.push(Span {
                    request,
                    offset,
                    memory,
                    len,
                    bounced: false,
                });
                continue;
            }
            let Some((memory, len)) = places.take(blocks.len()) else {
                return request;
            };
            // SAFETY: the place is `len` bytes of the bounce buffer that
            // belong to no other span; the data is no longer than that.
            unsafe { slice::from_raw_parts_mut(memory, len) }.copy_from_slice(&blocks[..len]);
            self.spans.push(Span {
                request,
                offset,
                memory,
                len,
                bounced: true,
            });
        }
        self.requests.len()
    }
}

// SAFETY: a span lies in data borrowed for longer than the batch lives, or has
// a place of its own in the bounce buffer, which nothing else writes to.
unsafe impl Batch for BlockWrites<'_, '_> {
    fn len(&self) -> usize {
        self.spans.len()
    }

    fn transfer(&mut self, index: usize) -> Transfer {
        self.spans[index].transfer(Direction::Write)
    }

    fn complete(&mut self, index: usize, done: usize) -> Result<()> {
        let WriteRequest { offset, data } = self.requests[self.spans[index].request];
        let (begin, end) = whole_blocks(offset, data.len());
        write_exactly(self.store, offset + begin as u64, &data[begin..end], done)
    }
}
