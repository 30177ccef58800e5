//! [`Grid`]: how many elements of a plane stand in a picture, and how large.

use outcore::{Comm, Op, Result};

/// Flat pictures are drawn higher than they are, and high ones wider: no side
/// is shorter than this share of the other,
const FLATTEST: f64 = 0.25;
/// or than this, if there is but one row or column.
const SINGLE: f64 = 1.0 / 16.0;

/// The room for a picture.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) width: u32,
    pub(super) height: u32,
    /// How many times as high as wide a pixel is.
    pub(super) pixel: u32,
}

impl Frame {
    pub(super) fn square(size: u32) -> Self {
        Self {
            width: size,
            height: size,
            pixel: 1,
        }
    }

    /// Collective: the frame of rank 0, the only one that surely has the terminal.
    pub(super) fn of_first(self, comm: &Comm) -> Result<Self> {
        let own = [self.width, self.height, self.pixel];
        let own = if comm.rank() == 0 { own } else { [0; 3] };
        let first = comm.all_reduce(&own, Op::Max)?;
        Ok(Self {
            width: first[0],
            height: first[1],
            pixel: first[2],
        })
    }
}

/// The elements of one axis in a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// From one element that is shown to the next.
    pub(super) stride: u64,
    /// How many are shown.
    pub(super) count: u64,
    /// The pixels of each.
    pub(super) pixels: u32,
}

impl Spread {
    /// `extent` elements (at least one) on about so many pixels.
    fn of(extent: u64, pixels: f64) -> Self {
        let pixels = (pixels.round() as u64).max(1);
        let stride = extent.div_ceil(pixels);
        let count = extent.div_ceil(stride);
        Self {
            stride,
            count,
            // At most the pixels there are, which were 32 bits.
            pixels: (pixels / count) as u32,
        }
    }

    /// The pixels of all.
    pub(super) fn length(&self) -> usize {
        self.count as usize * self.pixels as usize
    }
}

/// Rows and columns of a picture.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) rows: Spread,
    pub(super) columns: Spread,
}

impl Grid {
    /// So many rows and columns (at least one) in a frame, in their proportion
    /// as far as both can be seen.
    pub(super) fn fitted((rows, columns): (u64, u64), frame: Frame) -> Self {
        let least = |extent: u64| if extent == 1 { SINGLE } else { FLATTEST };
        let ratio = rows as f64 / columns as f64;
        let ratio = ratio.clamp(least(rows).min(1.0), 1.0 / least(columns));
        let high = f64::from(frame.pixel);
        let room = (f64::from(frame.width), f64::from(frame.height) * high);
        let width = room.0.min(room.1 / ratio);
        Self {
            rows: Spread::of(rows, width * ratio / high),
            columns: Spread::of(columns, width),
        }
    }

    /// How many elements are shown.
    pub(super) fn samples(&self) -> u64 {
        self.rows.count * self.columns.count
    }

    /// How many pixels they are.
    pub(super) fn pixels(&self) -> u64 {
        self.rows.length() as u64 * self.columns.length() as u64
    }

    pub(super) fn strides(&self) -> (u64, u64) {
        (self.rows.stride, self.columns.stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(extents: (u64, u64), size: u32) -> [(u64, usize); 2] {
        let grid = Grid::fitted(extents, Frame::square(size));
        [&grid.rows, &grid.columns].map(|spread| (spread.stride, spread.length()))
    }

    #[test]
    fn pictures_fit_their_frames() {
        assert_eq!(sizes((4, 4), 4), [(1, 4), (1, 4)]);
        assert_eq!(sizes((10, 7), 1024), [(1, 1020), (1, 714)]);
        assert_eq!(sizes((3000, 1000), 1024), [(3, 1000), (3, 334)]);
        assert_eq!(sizes((1_000_000, 100), 1024), [(977, 1024), (1, 200)]);
        assert_eq!(sizes((1, 500), 1024), [(1, 64), (1, 1000)]);
        assert_eq!(sizes((1, 1), 8), [(1, 8), (1, 8)]);
        assert_eq!(sizes((u64::MAX, u64::MAX), 1)[0].1, 1);
        for extents in [(1u64 << 62, 3), (7, u64::MAX), (999, 1001)] {
            for size in [1, 2, 16, 1023] {
                for (_, length) in sizes(extents, size) {
                    assert!((1..=size as usize).contains(&length), "{extents:?} {size}");
                }
            }
        }
    }

    #[test]
    fn high_pixels_make_fewer_rows() {
        let frame = Frame {
            width: 80,
            height: 24,
            pixel: 2,
        };
        let grid = Grid::fitted((1000, 1000), frame);
        assert!(grid.columns.length() <= 48 && grid.rows.length() <= 24);
        assert!(grid.columns.count > grid.rows.count);
    }
}
