//! Statistics of an array that is larger than memory, in one pass: count, NaNs,
//! least and largest value with their places, sum, mean, deviation, histogram;
//! of all elements of a section, or along some of its axes.
//!
//! The path of the data:
//!
//! ```text
//! file -> piece            walk.rs: shares of ranks, pieces that stay in the processor's cache
//!      -> chunk            number.rs, kernel.rs: 4096 elements, each type in its own way, vectors of f32 and f64
//!      -> Summary          summary.rs: chunks, pieces and ranks joined by Chan's formula
//!      or Histogram        histogram.rs
//!      or Moments          along.rs: one for each position that is left
//! ```
//!
//! Invariants: every element is read once in a pass and belongs to one chunk; NaNs
//! are counted and take no part in anything else; sums of integers are exact;
//! results of other rank counts differ by rounding only, and places not at all: of
//! equal values the first one in the axis order of the file counts.

mod along;
mod histogram;
mod kernel;
mod number;
mod pass;
mod summary;
mod value;
pub(crate) mod walk;

pub use crate::part::Part;
pub use along::{Moments, along, check_axes};
pub use histogram::{Bins, Histogram};
pub use pass::{Answer, Question, stats};
pub use summary::{Extreme, Summary};
pub use value::Value;
