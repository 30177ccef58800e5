//! [`Lists`]: the indices of one rank in the order of the windows they are in.
//!
//! An entry says where elements stand in the rank's values and where in their
//! window. If most indices have their successor right behind them, entries are
//! runs (16 bytes each), else single elements (8 bytes each); whichever takes
//! less memory. Entries of a window are in the order of the rank's values, so
//! the last of several values for one element comes last, and the values are
//! gone through in order.
//!
//! The order is made by counting and dealing out, without a sort: one pass
//! counts how many entries each window has, another one puts them there.

use std::ops::Range;

use super::indices::Indices;
use super::places::Places;
use super::windows::Windows;
use crate::error::{Error, Result};
use crate::execute::points::{At, Points};

/// What a rank wants of each window, before it is put in order.
#[derive(Debug)]
pub(super) struct Count {
    /// Elements in all.
    pub(super) elements: u64,
    /// Whether entries are runs.
    pub(super) runs: bool,
    /// The number of elements before each window, and in all.
    pub(super) element_starts: Vec<u64>,
    /// The number of entries before each window, and in all; nothing where
    /// entries are single elements.
    entry_starts: Vec<u64>,
}

impl Count {
    /// Counts, and fails if an index is not in the array.
    pub(super) fn new(indices: &Indices<'_>, places: &Places, windows: Windows) -> Result<Self> {
        let mut elements = vec![0; windows.count() as usize + 1];
        let (mut runs, mut expected) = (0u64, u64::MAX);
        walk(indices, places, |_, place, len| {
            runs += u64::from(place != expected);
            expected = place + len;
            if len == 1 {
                elements[(place >> windows.shift) as usize] += 1;
                return;
            }
            each_part(windows, place, len, |window, part| {
                elements[window] += part.end - part.start;
            });
        })?;
        let count = sum_up(&mut elements);
        // Sixteen bytes a run, eight an element.
        let is_runs = 2 * runs <= count || count > u64::from(u32::MAX);
        let mut entry_starts = Vec::new();
        if is_runs && count > 0 {
            entry_starts = vec![0; elements.len()];
            each_run(indices, places, windows, |window, _, _| {
                entry_starts[window] += 1
            })?;
            sum_up(&mut entry_starts);
        }
        Ok(Self {
            elements: count,
            runs: is_runs && count > 0,
            element_starts: elements,
            entry_starts,
        })
    }

    /// What was counted before.
    pub(super) fn restored(
        elements: u64,
        runs: bool,
        element_starts: Vec<u64>,
        entry_starts: Vec<u64>,
    ) -> Self {
        Self {
            elements,
            runs,
            element_starts,
            entry_starts,
        }
    }

    /// The number of entries before each window, and in all.
    pub(super) fn entry_starts(&self) -> &[u64] {
        match self.runs {
            true => &self.entry_starts,
            false => &self.element_starts,
        }
    }

    pub(super) fn entries(&self) -> usize {
        self.entry_starts()
            .last()
            .map_or(0, |entries| *entries as usize)
    }

    /// The bytes of the lists.
    pub(super) fn bytes(&self) -> usize {
        self.entries() * entry_bytes(self.runs)
    }

    /// Puts the entries in order into `memory`.
    pub(super) fn fill(
        &self,
        indices: &Indices<'_>,
        places: &Places,
        windows: Windows,
        memory: &mut [u8],
    ) -> Result<()> {
        let entries = self.entries();
        let mut next: Vec<u32> = Vec::new();
        let mask = (1u64 << windows.shift) - 1;
        if self.runs {
            let (at, rest) = memory.split_at_mut(8 * entries);
            let (offsets, lengths) = rest.split_at_mut(4 * entries);
            let at: &mut [u64] = bytemuck::cast_slice_mut(at);
            let offsets: &mut [u32] = bytemuck::cast_slice_mut(offsets);
            let lengths: &mut [u32] = bytemuck::cast_slice_mut(lengths);
            let mut next = self.entry_starts.clone();
            return each_run(indices, places, windows, |window, position, part| {
                let entry = next[window] as usize;
                next[window] += 1;
                at[entry] = position;
                offsets[entry] = (part.start & mask) as u32;
                lengths[entry] = (part.end - part.start) as u32;
            });
        }
        let (at, offsets) = memory.split_at_mut(4 * entries);
        let at: &mut [u32] = bytemuck::cast_slice_mut(at);
        let offsets: &mut [u32] = bytemuck::cast_slice_mut(offsets);
        // There are less than 2^32 entries.
        next.extend(self.element_starts.iter().map(|start| *start as u32));
        walk(indices, places, |position, place, len| {
            for step in 0..len {
                let place = place + step;
                let next = &mut next[(place >> windows.shift) as usize];
                let entry = *next as usize;
                *next += 1;
                at[entry] = (position + step) as u32;
                offsets[entry] = (place & mask) as u32;
            }
        })
    }
}

/// Turns numbers into those before each; returns the sum.
fn sum_up(counts: &mut [u64]) -> u64 {
    let mut sum = 0;
    for count in counts {
        sum += std::mem::replace(count, sum);
    }
    sum
}

/// Calls `visit` with where elements stand in the values and in the file, and
/// how many follow one another on both sides.
#[inline(always)]
fn walk(
    indices: &Indices<'_>,
    places: &Places,
    mut visit: impl FnMut(u64, u64, u64),
) -> Result<()> {
    if places.in_order() {
        return indices.each(places.shape(), visit);
    }
    indices.each(places.shape(), |at, number, len| {
        (0..len).for_each(|step| visit(at + step, places.of(number + step), 1));
    })
}

/// Calls `visit` with the window, the place in the values and the places in the
/// file of each run that is as long as can be inside of one window.
fn each_run(
    indices: &Indices<'_>,
    places: &Places,
    windows: Windows,
    mut visit: impl FnMut(usize, u64, Range<u64>),
) -> Result<()> {
    let mut run: Option<(u64, Range<u64>)> = None;
    let mut end = |(at, places): (u64, Range<u64>)| {
        let (first, len) = (places.start, places.end - places.start);
        each_part(windows, first, len, |window, part| {
            visit(window, at + part.start - first, part);
        });
    };
    walk(indices, places, |at, place, len| {
        if let Some((_, places)) = &mut run
            && places.end == place
        {
            places.end += len;
            return;
        }
        if let Some(run) = run.replace((at, place..place + len)) {
            end(run);
        }
    })?;
    if let Some(run) = run {
        end(run);
    }
    Ok(())
}

/// The parts of a run in each window.
#[inline(always)]
fn each_part(windows: Windows, place: u64, len: u64, mut visit: impl FnMut(usize, Range<u64>)) {
    let (mut start, end) = (place, place + len);
    while start < end {
        let window = start >> windows.shift;
        let part = start..end.min((window + 1) << windows.shift);
        start = part.end;
        visit(window as usize, part);
    }
}

fn entry_bytes(runs: bool) -> usize {
    if runs { 16 } else { 8 }
}

/// The lists of a rank, as they stand in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lists<'a> {
    at: At<'a>,
    offsets: &'a [u32],
    lengths: Option<&'a [u32]>,
}

impl<'a> Lists<'a> {
    /// The lists that begin `memory`.
    pub(super) fn new(memory: &'a [u8], entries: usize, runs: bool) -> Result<Self> {
        let need = entries * entry_bytes(runs);
        let Some(memory) = memory.get(..need) else {
            return Err(Error::Invalid(format!(
                "index lists of {entries} entries in {} bytes",
                memory.len()
            )));
        };
        if runs {
            let (at, rest) = memory.split_at(8 * entries);
            let (offsets, lengths) = rest.split_at(4 * entries);
            return Ok(Self {
                at: At::Long(bytemuck::cast_slice(at)),
                offsets: bytemuck::cast_slice(offsets),
                lengths: Some(bytemuck::cast_slice(lengths)),
            });
        }
        let (at, offsets) = memory.split_at(4 * entries);
        Ok(Self {
            at: At::Short(bytemuck::cast_slice(at)),
            offsets: bytemuck::cast_slice(offsets),
            lengths: None,
        })
    }

    /// Where entries stand in the values.
    pub(super) fn values(&self) -> At<'a> {
        self.at
    }

    /// Where entries stand in their windows.
    pub(super) fn offsets(&self) -> &'a [u32] {
        self.offsets
    }

    /// How many elements entries have, if not one each.
    pub(super) fn lengths(&self) -> Option<&'a [u32]> {
        self.lengths
    }

    /// Some entries, between the image of their window and the rank's values.
    pub(super) fn to_values(self, entries: Range<usize>) -> Points<'a> {
        Points {
            values: self.at.part(entries.clone()),
            ..self.to_packet(entries)
        }
    }

    /// Some entries, between the image of their window and a packet.
    pub(super) fn to_packet(self, entries: Range<usize>) -> Points<'a> {
        packet(self.offsets, self.lengths, entries)
    }

    /// Some entries, between a packet (in the place of the image) and the rank's
    /// values.
    pub(super) fn packing(self, entries: Range<usize>) -> Points<'a> {
        Points {
            entries: entries.len(),
            image: At::Next,
            values: self.at.part(entries.clone()),
            lengths: self.lengths.map(|lengths| &lengths[entries]),
        }
    }

    /// Whether all entries lie in their windows and values, and each window has
    /// as many elements as is said: what lists from elsewhere must be asked.
    pub(super) fn is_within(&self, elements: &[u64], entries: &[u64], windows: Windows) -> bool {
        let all = elements[elements.len() - 1];
        (0..entries.len() - 1).all(|window| {
            let range = windows.range(window as u64);
            let room = range.end - range.start;
            let mut count = 0u64;
            let mut inside = |entry: usize| {
                let len = self.lengths.map_or(1, |lengths| u64::from(lengths[entry]));
                let at = match self.at {
                    At::Next => entry as u64,
                    At::Short(at) => u64::from(at[entry]),
                    At::Long(at) => at[entry],
                };
                count += len;
                u64::from(self.offsets[entry]) + len <= room
                    && at.checked_add(len).is_some_and(|end| end <= all)
            };
            let all = entries[window] as usize..entries[window + 1] as usize;
            all.into_iter().all(&mut inside) && count == elements[window + 1] - elements[window]
        })
    }
}

/// Entries between the image of their window and a packet.
pub(super) fn packet<'a>(
    offsets: &'a [u32],
    lengths: Option<&'a [u32]>,
    entries: Range<usize>,
) -> Points<'a> {
    Points {
        entries: entries.len(),
        image: At::Short(&offsets[entries.clone()]),
        values: At::Next,
        lengths: lengths.map(|lengths| &lengths[entries]),
    }
}
