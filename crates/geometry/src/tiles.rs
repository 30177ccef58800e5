//! [`Tiles`]: the tiles of a tiled layout that hold elements of a section, in
//! the order in which they stand in the file.

use crate::axis::AxisSection;
use crate::layout::Layout;
use crate::nest::{Nest, dimension};
use crate::run::{Buffer, Places, Run};
use crate::section::Section;

/// Which tile of a tiled layout is being walked, and where the next begins:
/// per axis, the positions `from..to` of the section that lie in the tile.
#[derive(Debug, Clone)]
pub(crate) struct Tiles {
    axes: Vec<TileAxis>,
    tile_bytes: u64,
    element_size: u64,
    /// Where the first element stands in the buffer.
    buffer_start: u64,
    pub(crate) done: bool,
}

/// One axis of the loop over tiles, from the slowest to the fastest.
#[derive(Debug, Clone)]
struct TileAxis {
    section: AxisSection,
    extent: u64,
    /// How many tiles one step along this axis passes over in the file.
    tiles_step: u64,
    /// How many bytes one step along this axis passes over in a tile.
    inner_step: u64,
    buffer_step: u64,
    from: u64,
    to: u64,
}

impl TileAxis {
    /// Begins the tile that holds position `from`.
    fn enter(&mut self, from: u64) {
        let tile = self.section.index(from) / self.extent;
        self.from = from;
        self.to = self
            .section
            .count_below((tile + 1).saturating_mul(self.extent));
    }
}

impl Tiles {
    /// The first tile of `section`, which must not be empty.
    pub(crate) fn new(
        layout: &Layout,
        section: &Section,
        tile: &[u64],
        buffer: Buffer<'_>,
    ) -> Self {
        let element_size = layout.element_size();
        let mut axes = Vec::with_capacity(tile.len());
        let (mut tiles_step, mut inner_step, mut buffer_step) = (1, element_size, element_size);
        let mut buffer_start = 0;
        for axis in layout.slowest_first().iter().rev() {
            let Places {
                first,
                step,
                extent,
            } = buffer.along(*axis);
            let mut entered = TileAxis {
                section: section.axes()[*axis].clone(),
                extent: tile[*axis],
                tiles_step,
                inner_step,
                buffer_step: step * buffer_step,
                from: 0,
                to: 0,
            };
            entered.enter(0);
            tiles_step *= layout.shape()[*axis].div_ceil(tile[*axis]);
            inner_step *= tile[*axis];
            buffer_start += first * buffer_step;
            buffer_step *= extent;
            axes.push(entered);
        }
        axes.reverse();
        Self {
            axes,
            tile_bytes: inner_step,
            element_size,
            buffer_start,
            done: false,
        }
    }

    /// How many there are: along each axis, one after another.
    pub(crate) fn count(&self) -> u64 {
        let along = self.axes.iter().map(|axis| {
            let (mut axis, mut count) = (axis.clone(), 0u64);
            axis.enter(0);
            loop {
                count += 1;
                if axis.to >= axis.section.count() {
                    return count;
                }
                axis.enter(axis.to);
            }
        });
        along.fold(1, u64::saturating_mul)
    }

    /// The same tiles, from the first.
    pub(crate) fn restarted(&self) -> Self {
        let mut tiles = self.clone();
        tiles.seek(0);
        tiles
    }

    /// The box of the current tile.
    pub(crate) fn fill(&self, target: &mut Nest) {
        let mut first = Run {
            file_offset: 0,
            buffer_offset: self.buffer_start,
            len: self.element_size,
        };
        for axis in &self.axes {
            let index = axis.section.index(axis.from);
            first.file_offset += index / axis.extent * axis.tiles_step * self.tile_bytes
                + index % axis.extent * axis.inner_step;
            first.buffer_offset += axis.from * axis.buffer_step;
        }
        let fastest_first = self.axes.iter().rev();
        target.fill(
            first,
            fastest_first.map(|axis| {
                let taken = (&axis.section, axis.from, axis.to);
                dimension(taken, axis.inner_step, axis.buffer_step)
            }),
        );
    }

    /// Goes to the next tile that holds elements of the section.
    pub(crate) fn advance(&mut self) {
        self.carry(self.axes.len());
    }

    /// Goes to the next tile along the first `count` axes, the fastest of them
    /// first.
    fn carry(&mut self, count: usize) {
        for axis in self.axes[..count].iter_mut().rev() {
            if axis.to < axis.section.count() {
                axis.enter(axis.to);
                return;
            }
            axis.enter(0);
        }
        self.done = true;
    }

    /// Goes to the tile that `offset` of the file lies in, or if it holds no
    /// element of the section to the next that does. Returns how many bytes of
    /// the section earlier tiles hold, and whether the tile is that of `offset`.
    ///
    /// An earlier tile has a smaller number along some axis and the same along
    /// all slower ones: one product of counts for each axis.
    pub(crate) fn seek(&mut self, offset: u64) -> (u64, bool) {
        let mut number = offset / self.tile_bytes;
        let counts = self.axes.iter().map(|axis| axis.section.count());
        let mut each = self.element_size * counts.product::<u64>();
        let (mut alike, mut earlier) = (1, 0);
        self.done = false;
        for at in 0..self.axes.len() {
            let axis = &mut self.axes[at];
            let tile = number / axis.tiles_step;
            number %= axis.tiles_step;
            let start = tile.saturating_mul(axis.extent);
            axis.from = axis.section.count_below(start);
            axis.to = axis.section.count_below(start.saturating_add(axis.extent));
            each /= axis.section.count();
            earlier += alike * axis.from * each;
            alike *= axis.to - axis.from;
            if alike == 0 {
                self.axes[at + 1..]
                    .iter_mut()
                    .for_each(|axis| axis.enter(0));
                self.carry(at + 1);
                return (earlier, false);
            }
        }
        (earlier, true)
    }
}
