//! Pure index arithmetic for arrays larger than memory.
//!
//! - [`Section`]: the part of an array that one request names, from text by
//!   [`Pattern`].
//! - [`Layout`]: where each element stands in a file; turns a section into
//!   [`Run`]s, the currency between the layers of outcore.
//! - [`Distribution`]: which rank owns which element; [`Alignment`] of arrays
//!   with a template.
//! - [`Redistribution`]: what ranks exchange when an array changes its
//!   distribution.
//! - [`divide`] and [`Pieces`]: a section in shares for ranks, and in pieces
//!   that fit a memory budget.
//!
//! No input or output, no `unsafe`, nothing that depends on a machine. Indices
//! and offsets are 64-bit; whatever could overflow is checked where a value is
//! made, so that the loops need not.
//!
//! ```
//! use outcore_geometry::{Layout, Order, Section};
//! let layout = Layout::new(&[8, 8], 4, &Order::Row, None)?;
//! let section = Section::parse("0:8:4, 2:6", layout.shape())?;
//! let runs: Vec<_> = layout.runs(&section)?.collect();
//! assert_eq!(runs.len(), 2);
//! assert_eq!((runs[1].file_offset, runs[1].buffer_offset, runs[1].len), (136, 16, 16));
//! # Ok::<(), outcore_geometry::Error>(())
//! ```

#![forbid(unsafe_code)]

mod alignment;
mod axis;
mod distribution;
mod error;
mod expression;
mod layout;
mod nest;
mod order;
mod pass;
mod pattern;
mod redistribution;
mod run;
mod section;
mod shape;
mod stretch;
mod tiles;
mod tiling;
mod window;

pub use alignment::{AlignedDistribution, Alignment, TemplateAxis};
pub use axis::AxisSection;
pub use distribution::{AxisDistribution, DistributedAxis, Distribution, OwnedPart};
pub use error::{Error, Result};
pub use layout::Layout;
pub use order::{Arrangement, Order};
pub use pass::{Parts, Pass};
pub use pattern::Pattern;
pub use redistribution::{ArraySide, AxisExchange, AxisSide, Keep, Place, Redistribution, Strip};
pub use run::{Footprint, Passes, Run, Runs};
pub use section::Section;
pub use shape::{element_count, parse_shape, shape_text};
pub use tiling::{Pieces, divide};
pub use window::Window;
