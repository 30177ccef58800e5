//! Sweeps: how a *sequence* of sections moves (Thakur 1995, sections 5.5.2 and
//! 5.5.3).
//!
//! A program that goes once through an array asks for one section after the
//! other, so what comes next is known. Three things follow, and a [`Sweep`]
//! does them together:
//!
//! - *prefetch*: the next tiles are read while the current one is computed on;
//! - *reuse*: what two consecutive tiles have in common (their halos) is moved
//!   in memory and not read again, so every element is read once;
//! - *write-behind*: results are written while the next tile is computed on
//!   ([`WriteBehind`]).
//!
//! The path of the data, of which the left side is one thread and the right
//! side the caller's:
//!
//! ```text
//!  reader: wait for a free buffer                       Sweep::next
//!   -> put the strip kept of tile k-1 into it            <- Tile k
//!   -> read the rest of tile k (Array::read_into)          the caller computes
//!   -> keep the strip that tile k+1 shares                 Tile dropped:
//!   -> hand tile k over                              the buffer is free again
//!  writer: wait for a buffer or tile                    WriteBehind::write
//!   -> write it (Array::write)  -> the buffer is free again
//! ```
//!
//! Invariants:
//! - Buffers exist in a fixed number and are taken in the order in which they
//!   were freed: read-ahead stops at the budget, and in virtual time a sweep
//!   takes the same time in every run.
//! - The strip is kept before a tile is handed over, so a caller may change a
//!   tile in place; and every element is read before or while the tile in
//!   front of it is computed on. So with reuse and slabs, writing a tile's core
//!   back to the swept array is right: the halo of the next holds old values.
//! - Errors of a thread reach the caller with the next call; nobody hangs, and
//!   dropping a sweep at any time ends its thread.

mod ahead;
mod flight;
mod order;
mod plan;
mod prefetch;
mod reader;
mod reuse;
mod tile;
mod write_behind;

pub use ahead::Sweep;
pub use order::SweepOrder;
pub use plan::SweepPlan;
pub use prefetch::Prefetch;
pub use tile::Tile;
pub use write_behind::{WriteBehind, WriteBuffer};

use crate::error::{Error, Result};

/// Starts a thread for work in the background.
fn in_background(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<std::thread::JoinHandle<()>> {
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map_err(|error| Error::Invalid(format!("cannot start a thread for {name}: {error}")))
}
