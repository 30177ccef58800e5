//! [`Board`]: where a rank puts up what it sends in an exchange, for its peers
//! to copy from.
//!
//! Little is copied onto the board itself, and the rank need not wait for its
//! readers. Much stays where it is: the board lists pointers to the rank's own
//! memory, each reader copies straight from there, and the rank leaves the
//! exchange when all have.
//!
//! # Why nobody reads what is gone
//!
//! *The notices* belong to the board, which lives as long as the group. There
//! are two, used in turn. The notice of exchange `s` is written before the
//! owner arrives at meeting `s`, read by others between meeting `s` and their
//! arrival at meeting `s + 1`, and overwritten for `s + 2` after the owner has
//! left meeting `s + 1`: after all readers of `s` are done. A rank leaves a
//! meeting in another way only when the world has failed, and then it never
//! writes a notice again (each exchange begins by looking).
//!
//! *Lent memory* is read only under the read lock of the list of pieces, and
//! only if the list still is that of the exchange. The owner takes the list
//! down, under the write lock, before it leaves the exchange in whatever way
//! ([`Published`] does so when dropped). So a failing owner waits for readers
//! that are copying at this moment, which takes no longer than the copy, and
//! later readers find nothing and report the failure.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use super::bell::Bell;
use super::by_peer::ByPeer;
use super::lent::{Joined, Lent};

/// A rank that sends no more bytes than this in one exchange copies them onto
/// its board.
const COPIED: usize = 16384;

/// The list of lent pieces that is kept for the next call; a longer one gives
/// its memory back.
const KEPT: usize = 4096;

/// The board of one rank.
#[derive(Debug)]
pub(crate) struct Board {
    notices: [UnsafeCell<Notice>; 2],
    lent: RwLock<LentPieces>,
    /// Peers that have still to copy from lent memory.
    readers: AtomicUsize,
    /// Rung when the last of them has.
    pub(crate) bell: Bell,
}

// SAFETY: the notices are the only part without synchronisation of its own;
// the module's text says why their readers and their writer never meet.
unsafe impl Sync for Board {}

/// What one rank sends in one exchange.
#[derive(Debug)]
struct Notice {
    sequence: u64,
    /// Whether it is lent (`starts` counts pieces) or copied (`starts` counts
    /// `bytes`).
    lends: bool,
    /// What is for peer `p` is `starts[p]..starts[p + 1]`.
    starts: Vec<usize>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct LentPieces {
    /// The exchange in which they may be read.
    sequence: Option<u64>,
    pieces: Vec<Lent>,
}

impl Board {
    pub(crate) fn new() -> Self {
        let notice = || {
            UnsafeCell::new(Notice {
                sequence: u64::MAX,
                lends: false,
                starts: Vec::new(),
                bytes: Vec::new(),
            })
        };
        Self {
            notices: [notice(), notice()],
            lent: RwLock::new(LentPieces {
                sequence: None,
                pieces: Vec::new(),
            }),
            readers: AtomicUsize::new(0),
            bell: Bell::default(),
        }
    }

    /// Puts up what the owner sends in the exchange `sequence`, of a group of
    /// `size` ranks, with `by_peer` for scratch.
    ///
    /// # Safety
    ///
    /// The caller is the owner, has left the meeting before `sequence` in the
    /// regular way, and drops the result rather than forgetting it.
    pub(crate) unsafe fn publish<'a>(
        &'a self,
        sequence: u64,
        size: usize,
        sends: &'a [(usize, &'a [u8])],
        by_peer: &mut ByPeer,
    ) -> Published<'a> {
        by_peer.sort(size, sends.iter().map(|&(peer, _)| peer));
        let total: usize = sends.iter().map(|(_, piece)| piece.len()).sum();
        // SAFETY: the readers of this notice, two exchanges ago, are done, and
        // the next ones wait for the owner to arrive.
        let notice = unsafe { &mut *self.notices[(sequence & 1) as usize].get() };
        notice.sequence = sequence;
        notice.lends = total > COPIED;
        notice.starts.clear();
        notice.bytes.clear();
        if !notice.lends {
            for peer in 0..size {
                notice.starts.push(notice.bytes.len());
                for &index in by_peer.of(peer) {
                    notice.bytes.extend_from_slice(sends[index].1);
                }
            }
            notice.starts.push(notice.bytes.len());
            return Published {
                board: self,
                lends: false,
            };
        }
        let mut lent = self.lent.write().unwrap_or_else(PoisonError::into_inner);
        let mut readers = 0;
        for peer in 0..size {
            let indices = by_peer.of(peer);
            readers += usize::from(!indices.is_empty());
            notice.starts.push(lent.pieces.len());
            lent.pieces
                .extend(indices.iter().map(|&index| Lent::new(sends[index].1)));
        }
        notice.starts.push(lent.pieces.len());
        lent.sequence = Some(sequence);
        // Ordered before the readers' decrements by the meeting.
        self.readers.store(readers, Ordering::Relaxed);
        Published {
            board: self,
            lends: true,
        }
    }

    /// Lets `copy` have what the owner sends to `reader` in the exchange
    /// `sequence`. `None` if the owner has failed and gone.
    ///
    /// # Safety
    ///
    /// The caller is between meeting `sequence` and the next one of this group.
    pub(crate) unsafe fn read<T>(
        &self,
        sequence: u64,
        reader: usize,
        copy: impl FnOnce(Joined<'_>) -> T,
    ) -> Option<T> {
        // SAFETY: the owner wrote it before the meeting and does not write it
        // again before the caller has come to the next.
        let notice = unsafe { &*self.notices[(sequence & 1) as usize].get() };
        if notice.sequence != sequence {
            // The owner came to the meeting for a barrier.
            return Some(copy(Joined::default()));
        }
        let range = notice.starts[reader]..notice.starts[reader + 1];
        if !notice.lends {
            return Some(copy(Joined::from_bytes(&notice.bytes[range])));
        }
        if range.is_empty() {
            return Some(copy(Joined::default()));
        }
        let lent = self.lent.read().unwrap_or_else(PoisonError::into_inner);
        if lent.sequence != Some(sequence) {
            return None;
        }
        // SAFETY: the owner cannot take the list down, and so cannot let the
        // memory go, while it is locked.
        let result = copy(unsafe { Joined::from_lent(&lent.pieces[range]) });
        drop(lent);
        if self.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.bell.ring();
        }
        Some(result)
    }
}

/// What is on a board. Dropping it takes lent pieces down.
#[derive(Debug)]
pub(crate) struct Published<'a> {
    board: &'a Board,
    lends: bool,
}

impl Published<'_> {
    /// Whether all readers have what they need.
    pub(crate) fn is_read(&self) -> bool {
        !self.lends || self.board.readers.load(Ordering::Acquire) == 0
    }
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        if self.lends {
            let mut lent = self
                .board
                .lent
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            lent.sequence = None;
            lent.pieces.clear();
            lent.pieces.shrink_to(KEPT);
        }
    }
}
