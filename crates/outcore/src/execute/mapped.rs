//! Carrying out a plan through a mapping: copies between the page cache and
//! the caller's buffer, without a system call for each run. What is not in the
//! page cache is asked for some way ahead of the copies.
//!
//! Touching a page that the file does not have ends the process (SIGBUS). So
//! the length of the file is looked at before each part of [`PART`] bytes, and
//! for writes also whether the part has holes. A file that was cut is an error
//! for a read, and a write goes on by the direct method. What remains: another
//! program that cuts the file between the look and the end of the copy of that
//! part ends the process. Where that may happen, take the direct method or
//! sieving, which fail with an error.

use outcore_geometry::{Pass, Run};
use outcore_storage::Store;

use super::ahead::{Ahead, WINDOW};
use super::copy::{gather_from, scatter_to};
use crate::error::Result;
use crate::interrupt;
use crate::plan::Plan;

/// Bytes of the file that are copied between two looks at it.
const PART: u64 = WINDOW / 4;

/// Reads the section into `buffer`; false, with nothing done, where the store
/// cannot be mapped.
pub(super) fn read(plan: &Plan, store: &dyn Store, buffer: &mut [u8]) -> Result<bool> {
    let Some(mapping) = store.map()? else {
        return Ok(false);
    };
    let extent = plan.runs.footprint(0);
    let len = (extent.end - extent.start) as usize;
    let readable = || mapping.readable(plan.start + extent.start, len);
    let image = readable()?;
    let look = |_, _| readable().map(|_| true);
    each_part(plan, store, look, |part| {
        // SAFETY: the mapping, which is held, has `len` bytes from the start of
        // the extent on, and no run lies outside of the extent.
        unsafe { gather_from(part, (image, len), extent.start, buffer) };
    })
}

/// Writes the section from `data`; false, with nothing done or with a part of
/// it, where the store cannot be mapped, or not written through a mapping
/// without danger. Those who read, change and write back the neighbourhood are
/// kept out meanwhile.
pub(super) fn write(plan: &Plan, store: &dyn Store, data: &[u8]) -> Result<bool> {
    let Some(mapping) = store.map()? else {
        return Ok(false);
    };
    let extent = plan.runs.footprint(0);
    let len = (extent.end - extent.start) as usize;
    let _shared = store.lock_shared(plan.start + extent.start, len as u64)?;
    let writable = |from, len| mapping.writable(plan.start + from, len);
    let Some(image) = writable(extent.start, len)? else {
        return Ok(false);
    };
    let look = |from, len| Ok(writable(from, len)?.is_some());
    each_part(plan, store, look, |part| {
        // SAFETY: as in `read`; others may write other bytes meanwhile, but
        // only through pointers.
        unsafe { scatter_to(part, data, (image, len), extent.start) };
    })
}

/// Calls `copy` for all passes, in order and in parts. Before it comes to bytes
/// of the file that were not looked at yet, it calls `look` with their offset
/// and number, and ends with false where that says false.
fn each_part(
    plan: &Plan,
    store: &dyn Store,
    look: impl Fn(u64, usize) -> outcore_storage::Result<bool>,
    mut copy: impl FnMut(&Pass),
) -> Result<bool> {
    let last = plan.runs.footprint(0).end;
    let mut ahead = Ahead::new(plan, store);
    let mut seen = 0;
    for pass in plan.runs.passes() {
        let mut rest = Some(pass);
        while let Some(pass) = rest {
            let (runs, left) = pass.split((PART / pass.file_step.max(1)).max(1));
            interrupt::check()?;
            for part in pieces(&runs) {
                let start = part.first.file_offset;
                let end = start + part.file_extent();
                ahead.reach(end);
                if end > seen {
                    seen = end.max(last.min(start.saturating_add(PART)));
                    if !look(start, (seen - start) as usize)? {
                        return Ok(false);
                    }
                }
                copy(&part);
            }
            rest = left;
        }
    }
    Ok(true)
}

/// The pass itself, or its only run in pieces.
fn pieces(pass: &Pass) -> impl Iterator<Item = Pass> {
    let (pass, whole) = (*pass, pass.first);
    let most = if pass.count == 1 { PART } else { whole.len };
    (0..whole.len)
        .step_by(most.max(1) as usize)
        .map(move |at| Pass {
            first: Run {
                file_offset: whole.file_offset + at,
                buffer_offset: whole.buffer_offset + at,
                len: most.min(whole.len - at),
            },
            ..pass
        })
}
