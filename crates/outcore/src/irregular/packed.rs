//! Elements on their way, in the order of the lists: [`pack`] copies between a
//! rank's values and packets, and [`Shadow`] is a packet of all values in memory
//! that other ranks reach.
//!
//! A rank's lists go through its values once for every window. So that a cache
//! line of the values is fetched once and not for every window, all windows are
//! served for one block of values after the other: the entries of a window are in
//! the order of the values, so each has a cursor that goes on where it was.

use std::ops::Range;

use outcore_transport::{Comm, NodeMemory};

use super::lists::Lists;
use super::schedule::Schedule;
use crate::error::Result;
use crate::execute::points::{self, At, Sides};
use crate::strategy::Direction;

/// The values of a block stay in a processor's cache.
const BLOCK_BYTES: usize = 128 << 10;

/// Blocks have at least so many values for every window.
const LEAST_EACH: usize = 64;

/// Node memory for the values of one execution, kept for the next.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    pub(super) memory: Option<NodeMemory>,
    /// Whether the schedule has been carried out before.
    used: bool,
    /// The bytes of a record of all variables for which there is memory, or for
    /// which there is none to be had.
    fits: Option<usize>,
}

impl Shadow {
    /// Collective: makes room for records of so many bytes; `false` on all ranks
    /// if there is no such memory. Processes have none the first time: new pages
    /// that others map cost more than messages.
    pub(super) fn make(&mut self, comm: &Comm, schedule: &Schedule, record: usize) -> Result<bool> {
        if !std::mem::replace(&mut self.used, true) && !comm.transport().shares_memory() {
            return Ok(false);
        }
        // All ranks have variables of the same sizes, and so decide alike.
        if self.fits.is_none_or(|fits| fits < record) {
            self.memory = None;
            self.memory = comm.node_memory(schedule.count() * record)?;
            self.fits = Some(record);
        }
        Ok(self.memory.is_some())
    }
}

/// Copies between values and packets: into them for a write, else out of them. A
/// piece is the entries of one window, and where their elements begin in the
/// packets, which stand in the place of the image.
///
/// # Safety
///
/// Values and packets have room for the elements of all pieces, and nobody else
/// uses them.
pub(super) unsafe fn pack(
    lists: Lists<'_>,
    pieces: &[(Range<usize>, usize)],
    sides: Sides,
    direction: Direction,
) {
    let copy = |entries: Range<usize>, element: usize| {
        let list = lists.packing(entries);
        let sides = Sides {
            image: sides.image.wrapping_add(element * sides.size),
            ..sides
        };
        // SAFETY: passed on to the caller; lists lie inside of the values.
        unsafe {
            match direction {
                Direction::Read => points::gather(&list, sides),
                Direction::Write => points::scatter(&list, sides),
            }
        }
    };
    let At::Short(places) = lists.values() else {
        // Runs are long enough to be fetched by themselves.
        pieces
            .iter()
            .for_each(|(entries, element)| copy(entries.clone(), *element));
        return;
    };
    let mut cursors: Vec<(Range<usize>, usize)> = pieces.to_vec();
    cursors.retain(|(entries, _)| !entries.is_empty());
    let block = (BLOCK_BYTES / sides.stride.max(1)).max(LEAST_EACH * cursors.len());
    let mut end = 0;
    while !cursors.is_empty() {
        end = (end + block).min(u32::MAX as usize);
        for (entries, element) in &mut cursors {
            let rest = &places[entries.clone()];
            let count = match end == u32::MAX as usize {
                true => rest.len(),
                false => rest
                    .iter()
                    .take_while(|place| (**place as usize) < end)
                    .count(),
            };
            copy(entries.start..entries.start + count, *element);
            entries.start += count;
            *element += count;
        }
        cursors.retain(|(entries, _)| !entries.is_empty());
    }
}
