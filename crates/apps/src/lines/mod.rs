//! Work on the lines of an array: every line along one axis (or along several)
//! is needed as a whole, in any order.
//!
//! The path of the data: a [`Sweep`](outcore::Sweep) reads tiles in which all
//! these lines are whole; a [`LineKernel`] makes the result of a tile; that is
//! written. What lines along another axis need is in other tiles, so that the
//! file itself is what redistributes the array between two passes (Thakur 1995,
//! chapter 3, where ranks exchange messages for it).

mod gather;
mod pass;

pub(crate) use gather::{Gathered, width};
pub(crate) use pass::{LineKernel, LinePass, Piece, places};
