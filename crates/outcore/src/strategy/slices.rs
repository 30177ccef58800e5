//! Sieving by whole slices, as the thesis has it (Thakur 1995, section 5.5.1).
//!
//! The mathematics. A slice is what has one index along the slowest axis of the
//! file: a column of a column-major array, in full. Everything between the
//! section's bounds along that axis is moved, whatever the stride and the
//! other axes say, and the upper bound counts as it is written, even where the
//! stride skips it. With `n` slices in a buffer and bounds that hold `k` of
//! them these are `ceil(k / n)` accesses of `n` slices (the last may have
//! fewer); a write reads each of them first, and so needs twice as many.
//! In a tiled layout a slice is a layer of tiles.
//!
//! Invariants: windows follow one another without a gap; a run that reaches
//! over the end of a window is cut there, between two elements.

use outcore_geometry::{Layout, Section};

/// The stretch of the file that whole slices take, and how it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slices {
    /// Where the first slice begins, from the start of the array's data.
    pub(crate) start: u64,
    /// Where the last one ends.
    pub(crate) end: u64,
    /// The bytes that are moved at a time: as many slices as fit into the
    /// buffer, or of a slice that does not fit as many elements.
    pub(crate) window: u64,
}

impl Slices {
    /// The slices of a section that is not empty, for a buffer of so many bytes.
    pub(crate) fn of(layout: &Layout, section: &Section, buffer: u64) -> Self {
        let element = layout.element_size();
        let Some(&axis) = layout.slowest_first().first() else {
            // A single number.
            return Self {
                start: 0,
                end: element,
                window: element,
            };
        };
        let (lower, upper) = section.axes()[axis].bounds();
        let thickness = layout.tile().map_or(1, |tile| tile[axis]);
        let layers = layout.shape()[axis].div_ceil(thickness).max(1);
        let slice = layout.byte_len() / layers;
        let upper = upper.min(layout.shape()[axis]).div_ceil(thickness);
        Self {
            start: lower / thickness * slice,
            end: upper * slice,
            window: match buffer / slice.max(1) {
                0 => (buffer / element * element).max(element),
                slices => slices * slice,
            },
        }
    }

    /// How many accesses a read needs.
    pub(crate) fn accesses(&self) -> u64 {
        (self.end - self.start).div_ceil(self.window)
    }
}
