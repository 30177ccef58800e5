//! Carrying out a plan through a mapping: copies between the page cache and
//! the caller's buffer, without a system call for each run. What is not in the
//! page cache is asked for some way ahead of the copies.

use outcore_geometry::Pass;
use outcore_storage::Store;

use super::ahead::Ahead;
use super::copy::{gather_from, scatter_to};
use crate::error::Result;
use crate::plan::Plan;

/// Reads the section into `buffer`; false, with nothing done, where the store
/// cannot be mapped.
pub(super) fn read(plan: &Plan, store: &dyn Store, buffer: &mut [u8]) -> Result<bool> {
    let Some(mapping) = store.map()? else {
        return Ok(false);
    };
    let extent = plan.runs.footprint(0);
    let len = (extent.end - extent.start) as usize;
    let image = mapping.readable(plan.start + extent.start, len)?;
    each_part(plan, store, |pass| {
        // SAFETY: the mapping, which is held, has `len` bytes from the start of
        // the extent on, and no run lies outside of the extent.
        unsafe { gather_from(pass, (image, len), extent.start, buffer) };
    });
    Ok(true)
}

/// Writes the section from `data`; false, with nothing done, where the store
/// cannot be mapped, or not written through a mapping without danger. Those who
/// read, change and write back the neighbourhood are kept out meanwhile.
pub(super) fn write(plan: &Plan, store: &dyn Store, data: &[u8]) -> Result<bool> {
    let Some(mapping) = store.map()? else {
        return Ok(false);
    };
    let extent = plan.runs.footprint(0);
    let len = (extent.end - extent.start) as usize;
    let Some(image) = mapping.writable(plan.start + extent.start, len)? else {
        return Ok(false);
    };
    let _shared = store.lock_shared(plan.start + extent.start, len as u64)?;
    each_part(plan, store, |pass| {
        // SAFETY: as in `read`; others may write other bytes meanwhile, but
        // only through pointers.
        unsafe { scatter_to(pass, data, (image, len), extent.start) };
    });
    Ok(true)
}

/// Calls `copy` for all passes, in parts as long as what is asked for ahead.
fn each_part(plan: &Plan, store: &dyn Store, mut copy: impl FnMut(&Pass)) {
    let mut ahead = Ahead::new(plan, store);
    for pass in plan.runs.passes() {
        let mut rest = Some(pass);
        while let Some(pass) = rest {
            let (part, left) = pass.split(ahead.at_a_time(pass.file_step));
            ahead.reach(part.first.file_offset + part.file_extent());
            copy(&part);
            rest = left;
        }
    }
}
