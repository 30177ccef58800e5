//! The option `--memory`, and what it leaves to each rank.
//!
//! The buffers of a rank are the piece that it reads, the same piece in
//! another axis order, and what a strategy stages while it reads or writes
//! (one at a time). A quarter of a rank's memory is for staging, the rest for
//! pieces; before that comes what chunks take that can be had only whole.

use clap::{Arg, Args};
use outcore::{Array, Comm, MemoryBudget, Result, Tuning, return_freed_memory};

use crate::bytes;

/// Pieces of all ranks of a process together, if nobody says otherwise.
const PIECES: u64 = 64 << 20;

/// With less a rank would move single elements.
const LEAST: u64 = 64 << 10;

/// The option `--memory`.
#[derive(Args, Default)]
pub(crate) struct Memory {
    /// The most memory that the buffers of all ranks of a process take together [default: a
    /// quarter of what is available]
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    memory: Option<u64>,
}

/// The help of `--memory` where ranks have a [`Room`].
pub(crate) fn of_pieces(arg: Arg) -> Arg {
    arg.help(
        "The most memory that the buffers of all ranks of a process take together [default: 64 \
         MiB, and 4 MiB a rank for sieving]",
    )
}

/// The same where `--buffer` says what sieving may take.
pub(crate) fn of_pieces_and_buffers(arg: Arg) -> Arg {
    arg.help(
        "The most memory that the buffers of all ranks of a process take together; caps --buffer, \
         too [default: 64 MiB, and --buffer a rank]",
    )
}

impl Memory {
    /// What all ranks of this process may hold together; if nobody says, a
    /// quarter of what the machine has available.
    pub(crate) fn budget(&self) -> MemoryBudget {
        match self.memory {
            Some(bytes) => {
                return_freed_memory();
                MemoryBudget::of(bytes)
            }
            None => MemoryBudget::machine(),
        }
    }

    /// Whether somebody has said how much it is.
    pub(crate) fn is_given(&self) -> bool {
        self.memory.is_some()
    }

    /// Collective: what this rank may hold for `purpose`.
    pub(crate) fn room(&self, comm: &Comm, purpose: &str) -> Result<Room> {
        let room = Room {
            share: match self.memory {
                Some(_) => self.budget(),
                None => MemoryBudget::of(PIECES),
            }
            .for_rank(comm),
            purpose: purpose.into(),
            is_given: self.is_given(),
            decoded: 0,
        };
        comm.agree(room.check())?;
        Ok(room)
    }
}

/// The memory of one rank.
#[derive(Clone)]
pub(crate) struct Room {
    share: MemoryBudget,
    purpose: String,
    /// Whether somebody has said how much it is.
    is_given: bool,
    /// What chunks take that can be had only whole.
    decoded: u64,
}

impl Room {
    fn check(&self) -> Result<()> {
        match self.is_given {
            true => self
                .share
                .require(LEAST.saturating_add(self.decoded), &self.purpose),
            false => Ok(()),
        }
    }

    /// The bytes for staging, and those for pieces.
    fn parts(&self) -> (u64, u64) {
        match self.is_given {
            true => {
                let left = self.share.limit().saturating_sub(self.decoded);
                (left / 4, left - left / 4)
            }
            false => (u64::MAX, self.share.limit()),
        }
    }

    /// How many elements of `size` bytes each of so many buffers may hold.
    pub(crate) fn elements(&self, buffers: u64, size: u64) -> u64 {
        self.parts().1 / buffers / size
    }

    /// How many elements of `array` each of so many buffers may hold. Chunks that can be
    /// had only whole are moved whole if nobody has said how much memory there is.
    pub(crate) fn piece(&self, array: &Array, buffers: u64) -> u64 {
        let size = array.layout().element_size();
        let fits = self.elements(buffers, size);
        match self.is_given {
            true => fits,
            false => fits.max(array.whole_chunk() / size),
        }
    }

    /// The same array, moved within the room, of which its chunks take a part; fails if
    /// that leaves too little.
    pub(crate) fn tuned(&mut self, array: &Array, tuning: Tuning) -> Result<Array> {
        self.decoded = self.decoded.saturating_add(array.decoded_bytes());
        self.check()?;
        Ok(array.tuned(match self.is_given {
            true => tuning.within(self.parts().0),
            false => tuning,
        }))
    }
}
