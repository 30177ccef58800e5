//! [`Order`] and [`Arrangement`]: in which order elements follow one another,
//! apart from any shape.
//!
//! The papers' descriptor holds the order as the row "OOC storage": the rank
//! of each dimension in the file (Thakur 1995, section 5.4.1).

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::shape::{parse_shape, shape_text};

/// Which axis varies fastest in a file, and which next.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// The last axis varies fastest (C, NumPy's default).
    #[default]
    Row,
    /// The first axis varies fastest (Fortran).
    Column,
    /// The axes from the slowest to the fastest, each exactly once.
    Axes(Vec<usize>),
}

impl Order {
    /// The axes from the slowest to the fastest, for an array of `axes` axes.
    pub fn slowest_first(&self, axes: usize) -> Result<Vec<usize>> {
        match self {
            Self::Row => Ok((0..axes).collect()),
            Self::Column => Ok((0..axes).rev().collect()),
            Self::Axes(order) => {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                if sorted.iter().copied().eq(0..axes) {
                    return Ok(order.clone());
                }
                Err(Error::invalid(format!(
                    "the axis order {order:?} must name each of the axes 0 to {} once",
                    axes.saturating_sub(1)
                )))
            }
        }
    }

    /// The simplest order with these axes from the slowest to the fastest.
    pub fn from_slowest_first(order: &[usize]) -> Self {
        if order.iter().copied().eq(0..order.len()) {
            Self::Row
        } else if order.iter().copied().eq((0..order.len()).rev()) {
            Self::Column
        } else {
            Self::Axes(order.to_vec())
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row => f.write_str("row"),
            Self::Column => f.write_str("column"),
            Self::Axes(order) => {
                let axes: Vec<String> = order.iter().map(usize::to_string).collect();
                write!(f, "axes:{}", axes.join(","))
            }
        }
    }
}

impl FromStr for Order {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.trim() {
            "row" => return Ok(Self::Row),
            "column" => return Ok(Self::Column),
            _ => {}
        }
        let axes = text.trim().strip_prefix("axes:").and_then(|list| {
            if list.trim().is_empty() {
                return Some(Vec::new());
            }
            list.split(',')
                .map(|axis| axis.trim().parse().ok())
                .collect::<Option<Vec<usize>>>()
        });
        axes.map(Self::Axes).ok_or_else(|| Error::Text {
            what: "layout",
            text: text.into(),
            position: 0,
            problem: "it must be row, column, axes:2,0,1 (slowest first), tiled:64x64 \
                      or tiled:64x64:column"
                .into(),
        })
    }
}

/// How elements are arranged in a file, apart from a shape: an [`Order`], and
/// tiles if there are any. As text: `row`, `column`, `axes:2,0,1`,
/// `tiled:64x64`, `tiled:64x64:column`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Arrangement {
    /// The order of the elements in a tile, and of the tiles in the file.
    pub order: Order,
    /// The shape of a tile.
    pub tile: Option<Vec<u64>>,
}

impl FromStr for Arrangement {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some(tiled) = text.trim().strip_prefix("tiled:") else {
            return Ok(Self {
                order: text.parse()?,
                tile: None,
            });
        };
        let (tile, order) = match tiled.split_once(':') {
            Some((tile, order)) => (tile, order.parse()?),
            None => (tiled, Order::Row),
        };
        Ok(Self {
            order,
            tile: Some(parse_shape(tile)?),
        })
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.tile, &self.order) {
            (None, order) => write!(f, "{order}"),
            (Some(tile), Order::Row) => write!(f, "tiled:{}", shape_text(tile)),
            (Some(tile), order) => write!(f, "tiled:{}:{order}", shape_text(tile)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrangements_round_trip() {
        for text in [
            "row",
            "column",
            "axes:2,0,1",
            "tiled:64x64",
            "tiled:8:column",
        ] {
            assert_eq!(text.parse::<Arrangement>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "rows",
            "axes:a",
            "tiled:",
            "tiled:4x",
            "tiled:4x4:diagonal",
        ] {
            assert!(text.parse::<Arrangement>().is_err(), "{text}");
        }
    }

    #[test]
    fn orders_must_name_each_axis_once() {
        assert_eq!(Order::Column.slowest_first(3).unwrap(), [2, 1, 0]);
        for bad in [vec![0, 0], vec![0, 2], vec![0], vec![0, 1, 2]] {
            assert!(Order::Axes(bad).slowest_first(2).is_err());
        }
        assert_eq!(Order::from_slowest_first(&[1, 0]), Order::Column);
        assert_eq!(
            Order::from_slowest_first(&[1, 0, 2]),
            Order::Axes(vec![1, 0, 2])
        );
    }
}
