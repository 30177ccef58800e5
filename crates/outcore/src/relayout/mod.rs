//! An array from one layout and placement into another, within a memory budget:
//! any axis order, tiles, transposed, one file or one file a rank, for any
//! number of ranks before and after (out-of-core redistribution).
//!
//! The path of the data:
//!
//! ```text
//! file -> pieces in the order of the source      a mapping, or a small buffer that is read into
//!      -> transposition kernel                   reorder/kernel.rs: squares of cache lines
//!      -> block in the order of the target       memory of a lane, from the budget
//!      -> file                                   few long writes
//! ```
//!
//! - `blocks` chooses the boxes of elements that move together, so that reads and
//!   writes are long on both sides; `passes` says whether one pass over the data is
//!   enough for that, and through which layouts it goes if not.
//! - `leg` says between which files a box moves: each leg is a pair of sections of
//!   one shape, of whole arrays or of the files of ranks.
//! - `lane` moves blocks. Ranks divide the blocks; a rank that has several
//!   processors goes through its own on as many lanes. While one lane writes, others
//!   read and transpose.
//! - `journal` keeps which blocks are complete and on stable storage, and `job`
//!   makes a new array that can be continued after an interruption.
//!
//! Invariants: blocks are disjoint and cover the array, so each byte is read and
//! written once in a pass; what is not complete has no name; all ranks succeed or all
//! return the same error.

mod blocks;
mod job;
mod journal;
mod lane;
mod leg;
mod passes;
mod plan;
mod pull;

pub use job::{RelayoutJob, RelayoutOutput};
pub(crate) use leg::Leg;
pub use plan::Relayout;
pub(crate) use plan::move_part;
