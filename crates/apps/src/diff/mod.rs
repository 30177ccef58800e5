//! Where and by how much two arrays differ: of any formats, layouts and types, in
//! one pass over both.
//!
//! The path of the data: the ranks divide the positions that are compared; a piece
//! of both arrays is read, the second one is brought into the axis order of the
//! first (`pass.rs`), equal bytes are done with, and what is left is compared number
//! by number (`compare.rs`).
//!
//! Two integers are compared exactly, everything else as (complex) f64. Two NaNs
//! are equal unless that is declined; a NaN beside a number is a difference without
//! a size.

mod compare;
mod pass;

pub use compare::{Differences, Peak, Tolerance};
pub use pass::{Side, diff};
