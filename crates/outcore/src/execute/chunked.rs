//! Carrying out a plan on a store of chunks: the layout's tiles are the chunks.
//!
//! The path of the data: threads take the touched chunks one by one, decode each
//! once (or read just what is wanted of it, if it is stored as it is) and copy the
//! runs of that tile into the caller's buffer. For writing, the runs are copied
//! into the chunk, which is encoded and put in its place; a chunk that the section
//! covers in part is read before.

use std::cell::RefCell;
use std::ops::Range;

use outcore_geometry::Runs;
use outcore_storage::ChunkStore;

use super::Transfer;
use super::copy::{gather_to, scatter, swap_pass};
use crate::error::Result;
use crate::interrupt::{self, interrupted};
use crate::plan::Plan;

/// Gaps up to this many bytes are read along in chunks that are stored as they are.
const GAP: usize = 8 << 10;

thread_local! {
    /// Memory for a decoded chunk: what a caller's thread uses again and again.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A larger scratch is given back after the call.
const SMALL_SCRATCH: usize = 4 << 20;

/// The buffer, of which every thread fills the bytes of its own chunks.
struct Target(*mut u8, usize);

// SAFETY: an address and a length; who uses them says why that is allowed.
unsafe impl Sync for Target {}

/// Carries out `plan`, whose tiles are the chunks of `store`, with `room` bytes
/// for decoded chunks.
pub(super) fn execute(
    plan: &Plan,
    store: &ChunkStore,
    room: u64,
    transfer: Transfer<'_>,
) -> Result<()> {
    let size = store.chunks().chunk_bytes() as u64;
    let chunks = plan.runs.tile_count();
    let mut tiles = plan.runs.tiles();
    match transfer {
        Transfer::Read(buffer) => {
            let target = Target(buffer.as_mut_ptr(), buffer.len());
            let target = &target;
            // 1. What was kept needs no threads.
            let missing = tiles.by_ref().find(|runs| {
                let start = runs.first_offset() / size * size;
                let Some(bytes) = store.kept_chunk(start / size) else {
                    return true;
                };
                for pass in runs.passes() {
                    // SAFETY: as below.
                    unsafe { gather_to(&pass, &bytes, start, (target.0, target.1)) };
                }
                false
            });
            let Some(missing) = missing else {
                return Ok(());
            };
            // 2. The others, from the first that was not.
            let crew = store.crew(chunks, target.1 as u64, room);
            let keep = store.keeps(chunks);
            let rest = tiles.take_while(|_| interrupted().is_none());
            crew.each(std::iter::once(missing).chain(rest), |runs| {
                // SAFETY: the buffer is borrowed for the call; runs of different
                // tiles, and of one, share no byte of it.
                unsafe { read_chunk(&runs, keep, store, target) }
            })?;
        }
        Transfer::Write(data) => {
            let crew = store.crew(chunks, chunks.saturating_mul(size), room);
            let tiles = tiles.take_while(|_| interrupted().is_none());
            crew.each(tiles, |runs| write_chunk(&runs, plan.swap, store, data))?;
        }
    }
    interrupt::check()
}

/// Copies the runs of one chunk into the target.
///
/// # Safety
///
/// The target can be written, and nobody else writes these bytes of it.
unsafe fn read_chunk(
    runs: &Runs,
    keep: bool,
    store: &ChunkStore,
    target: &Target,
) -> outcore_storage::Result<()> {
    let size = store.chunks().chunk_bytes() as u64;
    let index = runs.first_offset() / size;
    let start = index * size;
    let mut passes = runs.passes();
    if let (Some(pass), None) = (passes.next(), passes.next())
        && pass.count == 1
        && pass.first.len == size
    {
        // All of it, and in one piece: decoded in place.
        let at = pass.first.buffer_offset as usize;
        assert!(
            at + size as usize <= target.1,
            "a run must lie inside the buffer"
        );
        // SAFETY: inside the target, and these bytes are the caller's alone.
        let whole = unsafe { std::slice::from_raw_parts_mut(target.0.add(at), size as usize) };
        return store.read_whole(index, whole).map(drop);
    }
    let wanted = match store.chunks().has_parts() {
        true => stretches(runs, start),
        false => std::iter::once(0..runs.totals().1 as usize).collect(),
    };
    with_scratch(|scratch| {
        store.view(index, &wanted, keep, scratch, &mut |bytes| {
            for pass in runs.passes() {
                // SAFETY: as the caller says.
                unsafe { gather_to(&pass, bytes, start, (target.0, target.1)) };
            }
        })
    })
}

/// The stretches of a chunk that begins at `start` which hold the runs.
fn stretches(runs: &Runs, start: u64) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut take = |from: usize, to: usize| match all.last_mut() {
        Some(last) if from <= last.end + GAP => last.end = last.end.max(to),
        _ => all.push(from..to),
    };
    for pass in runs.passes() {
        let from = (pass.first.file_offset - start) as usize;
        let (step, len) = (pass.file_step as usize, pass.first.len as usize);
        if step <= len + GAP {
            take(from, from + pass.file_extent() as usize);
        } else {
            (0..pass.count as usize).for_each(|at| take(from + at * step, from + at * step + len));
        }
    }
    all
}

fn write_chunk(
    runs: &Runs,
    swap: Option<usize>,
    store: &ChunkStore,
    data: &[u8],
) -> outcore_storage::Result<()> {
    let size = store.chunks().chunk_bytes() as u64;
    let index = runs.first_offset() / size;
    let start = index * size;
    let covered = runs.totals().1 == size;
    let mut passes = runs.passes();
    if let (Some(pass), None) = (passes.next(), passes.next())
        && pass.count == 1
        && covered
        && swap.is_none()
    {
        return store.put(index, &data[super::buffer_range(&pass.first, data.len())]);
    }
    with_scratch(|scratch| {
        store.change(index, covered, scratch, &mut |bytes| {
            for pass in runs.passes() {
                scatter(&pass, data, bytes, start);
                if let Some(width) = swap {
                    swap_pass(&pass, bytes, start, width);
                }
            }
        })
    })
}

fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut scratch = SCRATCH.take();
    let done = work(&mut scratch);
    if scratch.capacity() <= SMALL_SCRATCH {
        SCRATCH.set(scratch);
    }
    done
}
