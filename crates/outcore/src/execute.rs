//! [`execute`]: the only place that moves array bytes through a store.
//!
//! The path of the data with the direct method: runs are gathered into
//! batches, each batch goes to the store in one call, and the store reads
//! straight into the caller's buffer or writes straight from it. Only a write
//! that reverses bytes goes through a staging buffer of bounded size, since
//! the caller's data must not change. The paths of the other methods
//! are in `sieved`, `mapped` and `chunked`.
//!
//! Who may write next to whom. Writes that touch nothing but the section's bytes
//! (direct, mapped, sieved without gaps) share a lock of the stretch they write
//! in; a sieved write that has gaps, and so writes back what it has read, holds
//! its stretch alone. So writers of different elements never undo each other's
//! work: threads, ranks, and programs that write through this library (or take
//! the same advisory locks). Where a store has no shared locks (network file
//! systems), only sieved writes exclude each other, and `auto` makes none that
//! has gaps.

mod ahead;
mod chunked;
pub(crate) mod copy;
pub(crate) mod image;
mod mapped;
pub(crate) mod permuted;
pub(crate) mod points;
mod sieved;

use outcore_geometry::Run;
use outcore_storage::{ReadRequest, Store, WriteRequest};

use self::ahead::Ahead;
use crate::element::swap_bytes;
use crate::error::Result;
use crate::interrupt;
use crate::plan::Plan;
use crate::strategy::Method;
use crate::strategy::batch::BATCH;

/// Bytes of the staging buffer of a write that reverses bytes: a multiple of
/// every number's width.
const STAGING: usize = 256 << 10;

/// Which way the bytes go, and the dense buffer at this end.
pub(crate) enum Transfer<'a> {
    /// From the store into the buffer.
    Read(&'a mut [u8]),
    /// From the buffer into the store.
    Write(&'a [u8]),
}

/// Carries out `plan`, unless the process was told to stop. The buffer must hold
/// exactly the bytes of the plan.
pub(crate) fn execute(plan: &Plan, store: &dyn Store, transfer: Transfer<'_>) -> Result<()> {
    interrupt::check()?;
    match (transfer, plan.method) {
        (Transfer::Read(buffer), method) => {
            match (method, store.as_chunks()) {
                (Method::Chunked(chunked), Some(chunks)) => {
                    chunked::execute(plan, chunks, chunked.room, Transfer::Read(&mut *buffer))?
                }
                _ => read_by(method, plan, store, buffer)?,
            }
            if let Some(width) = plan.swap {
                swap_bytes(buffer, width);
            }
            Ok(())
        }
        (Transfer::Write(data), Method::Chunked(chunked)) => match store.as_chunks() {
            Some(chunks) => chunked::execute(plan, chunks, chunked.room, Transfer::Write(data)),
            None => write(plan, store, data),
        },
        (Transfer::Write(data), Method::Sieving(sieve)) => sieved::write(plan, sieve, store, data),
        (Transfer::Write(data), Method::Mapped(_))
            if plan.swap.is_none() && mapped::write(plan, store, data)? =>
        {
            Ok(())
        }
        // Where a mapping cannot be written: only what was asked for.
        (Transfer::Write(data), Method::Direct | Method::Mapped(_)) => write(plan, store, data),
    }
}

fn read_by(method: Method, plan: &Plan, store: &dyn Store, buffer: &mut [u8]) -> Result<()> {
    match method {
        Method::Direct | Method::Chunked(_) => read(plan, store, buffer),
        Method::Mapped(_) if mapped::read(plan, store, buffer)? => Ok(()),
        Method::Sieving(sieve) | Method::Mapped(sieve) => sieved::read(plan, sieve, store, buffer),
    }
}

fn read(plan: &Plan, store: &dyn Store, buffer: &mut [u8]) -> Result<()> {
    let mut runs = plan.runs.clone().peekable();
    let end = buffer.len();
    let base = buffer.as_mut_ptr();
    let mut ahead = Ahead::new(plan, store);
    let mut batch = Vec::new();
    while let Some(first) = runs.peek() {
        interrupt::check()?;
        ahead.reach(first.file_offset);
        batch.clear();
        batch.extend(runs.by_ref().take(BATCH).map(|run| {
            let range = buffer_range(&run, end);
            // SAFETY: the range lies inside the buffer, which is borrowed for
            // longer than the batch; and no two runs of a layout share a byte
            // of the buffer (each element stands in it once), so the slices
            // are disjoint.
            let buffer =
                unsafe { std::slice::from_raw_parts_mut(base.add(range.start), range.len()) };
            ReadRequest {
                offset: plan.start + run.file_offset,
                buffer,
            }
        }));
        store.read_batch(&mut batch)?;
    }
    Ok(())
}

fn write(plan: &Plan, store: &dyn Store, data: &[u8]) -> Result<()> {
    let mut runs = plan.runs.clone().peekable();
    let extent = plan.runs.footprint(0);
    let _shared = store.lock_shared(plan.start + extent.start, extent.end - extent.start)?;
    // Of a page that is written in part, the rest is read first.
    let mut ahead = Ahead::new(plan, store);
    let (mut batch, mut staging) = (Vec::new(), Vec::new());
    while let Some(first) = runs.peek() {
        interrupt::check()?;
        ahead.reach(first.file_offset);
        batch.clear();
        batch.extend(runs.by_ref().take(BATCH).map(|run| WriteRequest {
            offset: plan.start + run.file_offset,
            data: &data[buffer_range(&run, data.len())],
        }));
        match plan.swap {
            None => store.write_batch(&batch)?,
            Some(width) => write_swapped(store, &batch, width, &mut staging)?,
        }
    }
    Ok(())
}

/// Writes pieces, none of which is empty, with the bytes of each number reversed: as
/// many together as `staging` may hold.
fn write_swapped(
    store: &dyn Store,
    pieces: &[WriteRequest<'_>],
    width: usize,
    staging: &mut Vec<u8>,
) -> Result<()> {
    let cut = pieces.iter().flat_map(|piece| {
        let offsets = (piece.offset..).step_by(STAGING);
        let parts = offsets.zip(piece.data.chunks(STAGING));
        parts.map(|(offset, data)| WriteRequest { offset, data })
    });
    let mut cut = cut.peekable();
    while cut.peek().is_some() {
        interrupt::check()?;
        staging.clear();
        let mut places = Vec::new();
        while let Some(part) = cut.next_if(|part| staging.len() + part.data.len() <= STAGING) {
            staging.extend_from_slice(part.data);
            places.push((part.offset, part.data.len()));
        }
        swap_bytes(staging, width);
        let mut rest = &staging[..];
        let together: Vec<_> = places
            .into_iter()
            .map(|(offset, len)| {
                let (data, later) = rest.split_at(len);
                rest = later;
                WriteRequest { offset, data }
            })
            .collect();
        store.write_batch(&together)?;
    }
    Ok(())
}

/// The bytes of a run in a buffer of `end` bytes; panics if they lie outside,
/// which the callers' check of the buffer's length excludes.
fn buffer_range(run: &Run, end: usize) -> std::ops::Range<usize> {
    let range = run.buffer_offset as usize..(run.buffer_offset + run.len) as usize;
    assert!(range.end <= end, "a run must lie inside the buffer");
    range
}

#[cfg(test)]
mod tests {
    use outcore_storage::{CountedStore, MemoryStore};

    use super::*;

    #[test]
    fn reversed_pieces_are_written_together() {
        let store = CountedStore::new(MemoryStore::new());
        let long: Vec<u8> = (0..STAGING + 8).map(|at| at as u8).collect();
        let mut pieces: Vec<WriteRequest<'_>> = (0..100)
            .map(|at| WriteRequest {
                offset: at * 16,
                data: &long[at as usize..][..4],
            })
            .collect();
        pieces.push(WriteRequest {
            offset: 1600,
            data: &long,
        });
        write_swapped(&store, &pieces, 4, &mut Vec::new()).unwrap();
        assert_eq!(store.counts().write_batches, 3);
        for piece in &pieces {
            let mut found = vec![0; piece.data.len()];
            store.read_at(piece.offset, &mut found).unwrap();
            swap_bytes(&mut found, 4);
            assert!(found == piece.data, "{}", piece.offset);
        }
    }
}
