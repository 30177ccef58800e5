//! The option `--memory`, and what it leaves to each rank.
//!
//! The buffers of a rank are the piece that it reads, the same piece in
//! another axis order, and what a strategy stages while it reads or writes
//! (one at a time). A quarter of a rank's memory is for staging, the rest for
//! pieces.

use clap::Args;
use outcore::{Array, Comm, MemoryBudget, Result, Tuning};

use crate::bytes;

/// Pieces of all ranks of a process together, if nobody says otherwise.
const PIECES: u64 = 64 << 20;

/// With less a rank would move single elements.
const LEAST: u64 = 64 << 10;

/// The option `--memory`.
#[derive(Args, Default)]
pub(crate) struct Memory {
    /// The most memory that the buffers of all ranks of a process take together; caps --buffer, too
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    memory: Option<u64>,
}

impl Memory {
    /// What all ranks of this process may hold together; if nobody says, a
    /// quarter of what the machine has available.
    pub(crate) fn budget(&self) -> MemoryBudget {
        self.memory
            .map_or_else(MemoryBudget::machine, MemoryBudget::of)
    }

    /// Collective: what this rank may hold for `purpose`.
    pub(crate) fn room(&self, comm: &Comm, purpose: &str) -> Result<Room> {
        let Some(bytes) = self.memory else {
            let share = MemoryBudget::of(PIECES).for_rank(comm);
            return Ok(Room {
                pieces: share.limit(),
                staging: None,
            });
        };
        let share = MemoryBudget::of(bytes).for_rank(comm);
        comm.agree(share.require(LEAST, purpose))?;
        let staging = share.limit() / 4;
        Ok(Room {
            pieces: share.limit() - staging,
            staging: Some(staging),
        })
    }
}

/// The memory of one rank.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pieces: u64,
    staging: Option<u64>,
}

impl Room {
    /// How many elements of `size` bytes each of so many buffers may hold.
    pub(crate) fn elements(&self, buffers: u64, size: u64) -> u64 {
        self.pieces / buffers / size
    }

    /// The same array, moved within the room.
    pub(crate) fn tuned(&self, array: &Array, tuning: Tuning) -> Array {
        let buffer = tuning.buffer.min(self.staging.unwrap_or(u64::MAX));
        array.tuned(Tuning { buffer, ..tuning })
    }
}
