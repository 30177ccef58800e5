//! [`Layout`]: where each element of an array stands in a file.
//!
//! Elements follow one another in an [`Order`] of the axes. A tiled layout
//! cuts the array into tiles of one shape, laid one after another in that
//! order, the elements of each in that order too; tiles at the upper edges
//! are stored whole. An untiled layout is one tile as large as the array.
//!
//! A buffer that holds a section is dense and has the same axis order as the
//! file, so that an untiled contiguous section is one run.
//!
//! Invariant: the file size in bytes is below 2^63, so no offset inside the
//! file overflows.

use crate::error::{Error, Result};
use crate::order::{Arrangement, Order};
use crate::run::{Buffer, Runs};
use crate::section::Section;
use crate::shape::{checked_product, element_count, shape_text};

/// Where each element of an array stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    shape: Vec<u64>,
    element_size: u64,
    slowest_first: Vec<usize>,
    tile: Option<Vec<u64>>,
    byte_len: u64,
}

impl Layout {
    /// The layout of an array of `shape` with elements of `element_size`
    /// bytes, in tiles of shape `tile` if given.
    pub fn new(
        shape: &[u64],
        element_size: u64,
        order: &Order,
        tile: Option<&[u64]>,
    ) -> Result<Self> {
        let slowest_first = order.slowest_first(shape.len())?;
        if element_size == 0 {
            return Err(Error::invalid("an element must have at least 1 byte"));
        }
        element_count(shape)?;
        if let Some(tile) = tile {
            check_tile(tile, shape)?;
        }
        let stored = shape.iter().enumerate().map(|(axis, extent)| match tile {
            // A product beyond 64 bits is beyond 63 bits as well.
            Some(tile) => extent.div_ceil(tile[axis]).saturating_mul(tile[axis]),
            None => *extent,
        });
        let stored: Vec<u64> = stored.chain([element_size]).collect();
        let byte_len = checked_product(stored.into_iter()).ok_or_else(|| {
            Error::Overflow(format!(
                "the size in bytes of an array of shape {} with elements of {element_size} bytes",
                shape_text(shape)
            ))
        })?;
        Ok(Self {
            shape: shape.to_vec(),
            element_size,
            slowest_first,
            tile: tile.map(<[u64]>::to_vec),
            byte_len,
        })
    }

    /// The layout of an array of `shape` in the given arrangement.
    pub fn arranged(shape: &[u64], element_size: u64, arrangement: &Arrangement) -> Result<Self> {
        Self::new(
            shape,
            element_size,
            &arrangement.order,
            arrangement.tile.as_deref(),
        )
    }

    /// The shape of the array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The bytes of one element.
    pub fn element_size(&self) -> u64 {
        self.element_size
    }

    /// The axes from the slowest to the fastest.
    pub fn slowest_first(&self) -> &[usize] {
        &self.slowest_first
    }

    /// The shape of a tile, if the layout is tiled.
    pub fn tile(&self) -> Option<&[u64]> {
        self.tile.as_deref()
    }

    /// The order and the tiles without the shape.
    pub fn arrangement(&self) -> Arrangement {
        Arrangement {
            order: Order::from_slowest_first(&self.slowest_first),
            tile: self.tile.clone(),
        }
    }

    /// The number of bytes of the file.
    pub fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// The file offset of the element at `index`.
    pub fn offset(&self, index: &[u64]) -> Result<u64> {
        let axes = index
            .iter()
            .map(|i| crate::AxisSection::span(*i, i.saturating_add(1)));
        let runs = self.runs(&Section::new(axes.collect())?)?;
        Ok(runs.first_offset())
    }

    /// The runs of `section` in ascending file order, maximally coalesced.
    pub fn runs(&self, section: &Section) -> Result<Runs> {
        section.check_within(&self.shape)?;
        let buffer = Buffer {
            whole: section,
            positions: None,
        };
        Ok(Runs::new(self, section, buffer))
    }

    /// The runs of the elements at `positions` of `section`, between the file
    /// and a buffer that holds all of the section. Positions are progressions;
    /// lists of them have no equal steps in the buffer.
    pub fn runs_at(&self, section: &Section, positions: &Section) -> Result<Runs> {
        section.check_within(&self.shape)?;
        positions.check_within(&section.shape())?;
        if positions.axes().iter().any(|axis| axis.stride().is_none()) {
            return Err(Error::invalid(format!(
                "positions [{positions}] of a section must not be lists"
            )));
        }
        let buffer = Buffer {
            whole: section,
            positions: Some(positions),
        };
        Ok(Runs::new(self, &section.select(positions), buffer))
    }
}

fn check_tile(tile: &[u64], shape: &[u64]) -> Result<()> {
    if tile.len() != shape.len() {
        return Err(Error::AxisCount {
            what: format!("tile {}", shape_text(tile)),
            expected: shape.len(),
            found: tile.len(),
        });
    }
    if tile.contains(&0) {
        return Err(Error::invalid(format!(
            "tile {} has an extent of 0; each must be at least 1",
            shape_text(tile)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked() {
        assert_eq!(
            Layout::new(&[], 8, &Order::Row, None).unwrap().byte_len(),
            8
        );
        assert_eq!(
            Layout::new(&[10, 10], 4, &Order::Row, Some(&[4, 4]))
                .unwrap()
                .byte_len(),
            12 * 12 * 4
        );
        assert!(Layout::new(&[1 << 31, 1 << 30], 8, &Order::Row, None).is_err());
        assert!(Layout::new(&[3, 3], 4, &Order::Row, Some(&[u64::MAX, 1])).is_err());
        assert!(Layout::new(&[3, 3], 4, &Order::Row, Some(&[0, 1])).is_err());
        assert!(Layout::new(&[3, 3], 4, &Order::Row, Some(&[1])).is_err());
        assert!(Layout::new(&[3], 0, &Order::Row, None).is_err());
        // A terabyte and an empty array with huge extents are fine.
        assert!(Layout::new(&[1 << 20, 1 << 20], 8, &Order::Row, None).is_ok());
        assert_eq!(
            Layout::new(&[u64::MAX, 0], 8, &Order::Row, None)
                .unwrap()
                .byte_len(),
            0
        );
    }

    #[test]
    fn offsets_follow_the_order() {
        let at = |order: Order, tile: Option<&[u64]>| {
            Layout::new(&[5, 7], 4, &order, tile)
                .unwrap()
                .offset(&[3, 4])
                .unwrap()
        };
        assert_eq!(at(Order::Row, None), (3 * 7 + 4) * 4);
        assert_eq!(at(Order::Column, None), (4 * 5 + 3) * 4);
        // Tiles of 2x3: tile (1, 1) of 3x3 tiles, inside it (1, 1).
        assert_eq!(at(Order::Row, Some(&[2, 3])), ((3 + 1) * 6 + 4) * 4);
        assert_eq!(at(Order::Column, Some(&[2, 3])), ((3 + 1) * 6 + 3) * 4);
    }
}
