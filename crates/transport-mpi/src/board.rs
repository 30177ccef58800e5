//! What this rank knows about the others: who failed, who has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use outcore_transport::Error;

use crate::notice::Notice;

/// The state of all ranks, as far as their notices have arrived.
#[derive(Debug)]
pub(crate) struct Board {
    /// Whether a failure is on the board: the quick question of every poll.
    failed: AtomicBool,
    /// Whether any rank has ended.
    some_ended: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    failure: Option<(usize, String)>,
    /// Per rank of the world.
    peers: Vec<Peer>,
}

#[derive(Debug, Clone, Default)]
struct Peer {
    /// When its `Ended` or `Left` was noticed here.
    ended: Option<Instant>,
    /// Whether its process takes part in no run any more.
    left: bool,
    /// The data messages that it has sent to this rank, once it has ended.
    messages: u64,
}

impl Board {
    /// A board for `size` ranks, none of which has ended or failed.
    pub(crate) fn new(size: usize) -> Self {
        Self {
            failed: AtomicBool::new(false),
            some_ended: AtomicBool::new(false),
            state: Mutex::new(State {
                failure: None,
                peers: vec![Peer::default(); size],
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that `rank` failed; false if a failure was known already. The
    /// first one stays.
    pub(crate) fn record_failure(&self, rank: usize, cause: &str) -> bool {
        let mut state = self.state();
        if state.failure.is_some() {
            return false;
        }
        state.failure = Some((rank, cause.to_string()));
        self.failed.store(true, Ordering::Release);
        true
    }

    /// Records a notice that came from rank `from`.
    pub(crate) fn record(&self, from: usize, notice: Notice) {
        let (messages, left) = match notice {
            Notice::Failed { rank, cause } => {
                self.record_failure(rank, &cause);
                return;
            }
            Notice::Ended { messages } => (messages, false),
            Notice::Left { messages } => (messages, true),
        };
        let mut state = self.state();
        let peer = &mut state.peers[from];
        peer.ended = Some(Instant::now());
        peer.left |= left;
        peer.messages = messages;
        self.some_ended.store(true, Ordering::Release);
    }

    /// The failure of the run as the error that every call returns.
    pub(crate) fn failure(&self) -> Option<Error> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        let (rank, cause) = self.state().failure.clone()?;
        Some(Error::PeerFailed { rank, cause })
    }

    /// When `rank` ended its part, if it has.
    pub(crate) fn ended(&self, rank: usize) -> Option<Instant> {
        if !self.some_ended.load(Ordering::Acquire) {
            return None;
        }
        self.state().peers[rank].ended
    }

    /// Whether every rank but `own` has ended.
    pub(crate) fn all_ended(&self, own: usize) -> bool {
        let state = self.state();
        let mut others = state
            .peers
            .iter()
            .enumerate()
            .filter(|(rank, _)| *rank != own);
        others.all(|(_, peer)| peer.ended.is_some())
    }

    /// Whether every rank but `own` has left.
    pub(crate) fn all_left(&self, own: usize) -> bool {
        let state = self.state();
        let mut others = state
            .peers
            .iter()
            .enumerate()
            .filter(|(rank, _)| *rank != own);
        others.all(|(_, peer)| peer.left)
    }

    /// Whether any rank has left.
    pub(crate) fn some_left(&self) -> bool {
        self.state().peers.iter().any(|peer| peer.left)
    }

    /// How many messages each rank, having ended, says that it has sent here.
    pub(crate) fn announced(&self) -> Vec<u64> {
        self.state()
            .peers
            .iter()
            .map(|peer| peer.messages)
            .collect()
    }

    /// Forgets the failure and the ends of one run. Who left stays away.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.failure = None;
        for peer in state.peers.iter_mut().filter(|peer| !peer.left) {
            peer.ended = None;
        }
        let left = state.peers.iter().any(|peer| peer.left);
        self.some_ended.store(left, Ordering::Release);
        self.failed.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_stays() {
        let board = Board::new(3);
        assert_eq!(board.failure(), None);
        board.record(
            1,
            Notice::Failed {
                rank: 1,
                cause: "first".to_string(),
            },
        );
        assert!(!board.record_failure(2, "second"));
        let expected = Error::PeerFailed {
            rank: 1,
            cause: "first".to_string(),
        };
        assert_eq!(board.failure(), Some(expected));
        board.clear();
        assert_eq!(board.failure(), None);
    }

    #[test]
    fn ends_are_forgotten_but_not_departures() {
        let board = Board::new(3);
        board.record(0, Notice::Ended { messages: 4 });
        assert!(!board.all_ended(1));
        board.record(2, Notice::Left { messages: 5 });
        assert!(board.all_ended(1) && !board.all_left(1) && board.some_left());
        assert_eq!(board.announced(), [4, 0, 5]);
        board.clear();
        assert!(board.ended(0).is_none() && board.ended(2).is_some());
    }
}
