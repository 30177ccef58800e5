//! [`Arena`]: memory of this rank that the ranks of its node reach, for data of
//! calls that is too long for a slot.
//!
//! Between processes a copy by the kernel costs some 20 microseconds before the
//! first byte moves; a copy into memory that the target has mapped does not, and
//! the procedure uses it in place. What is so long that the second copy costs
//! more, and what has no room here, goes by the kernel.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pieces begin at cache lines.
const LINE: usize = 64;

/// The longest piece.
const LONGEST: usize = 1 << 20;

/// Says that a place is an offset into the caller's arena and no address.
const IN_ARENA: u64 = 1 << 63;

/// A piece of an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    offset: usize,
    len: usize,
}

impl Piece {
    /// How a slot says where it is.
    pub(super) fn code(self) -> u64 {
        IN_ARENA | self.offset as u64
    }
}

/// The offset that a slot says, if it is one.
pub(super) fn offset(code: u64) -> Option<usize> {
    (code & IN_ARENA != 0).then_some((code & !IN_ARENA) as usize)
}

/// The arena of this rank.
#[derive(Debug)]
pub(super) struct Arena {
    start: *mut u8,
    /// What is free, ascending, no two adjacent.
    free: Mutex<Vec<Piece>>,
}

// SAFETY: pieces are given to one call each.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// # Safety
    ///
    /// From `start` there must be `len` bytes that are used by nothing else, for
    /// as long as this lives.
    pub(super) unsafe fn new(start: *mut u8, len: usize) -> Self {
        let whole = Piece { offset: 0, len };
        Self {
            start,
            free: Mutex::new(vec![whole]),
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Piece>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first place with room for `len` bytes.
    pub(super) fn take(&self, len: usize) -> Option<Piece> {
        if len > LONGEST {
            return None;
        }
        let len = len.next_multiple_of(LINE);
        let mut free = self.free();
        let place = free.iter().position(|piece| piece.len >= len)?;
        let piece = Piece { len, ..free[place] };
        free[place].offset += len;
        free[place].len -= len;
        if free[place].len == 0 {
            free.remove(place);
        }
        Some(piece)
    }

    /// Gives a piece back.
    pub(super) fn give_back(&self, piece: Piece) {
        let mut free = self.free();
        let place = free.partition_point(|other| other.offset < piece.offset);
        free.insert(place, piece);
        let adjacent = |a: Piece, b: Piece| a.offset + a.len == b.offset;
        if place + 1 < free.len() && adjacent(free[place], free[place + 1]) {
            free[place].len += free[place + 1].len;
            free.remove(place + 1);
        }
        if place > 0 && adjacent(free[place - 1], free[place]) {
            free[place - 1].len += free[place].len;
            free.remove(place);
        }
    }

    /// Where a piece begins.
    pub(super) fn at(&self, piece: Piece) -> *mut u8 {
        self.start.wrapping_add(piece.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_and_go() {
        let mut memory = vec![0_u8; 1000];
        // SAFETY: so many bytes, used by nobody else.
        let arena = unsafe { Arena::new(memory.as_mut_ptr(), 960) };
        let taken: Vec<Piece> = (0..5).map_while(|_| arena.take(190)).collect();
        assert_eq!(taken.len(), 5);
        assert_eq!(arena.take(1), None);
        for place in [1, 3, 2, 0, 4] {
            arena.give_back(taken[place]);
        }
        assert_eq!(
            *arena.free(),
            [Piece {
                offset: 0,
                len: 960
            }]
        );
        let whole = arena.take(960).expect("all is free");
        assert_eq!(offset(whole.code()), Some(0));
        assert_eq!(offset(0x7fff_0000_1000), None);
        assert!(arena.take(1).is_none() && arena.take(usize::MAX).is_none());
    }
}
