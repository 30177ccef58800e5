//! Memory that the ranks of a group share: each puts its own up before a
//! meeting and finds that of the others afterwards. Every rank that holds a
//! [`Shared`] keeps the memory of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::rank::{ThreadRank, Turn};
use crate::error::{Error, Result};
use crate::shared::{Shared, Zeroed};

/// What the ranks of a group are about to share, by the number of the meeting.
#[derive(Default)]
pub(crate) struct Shares(Mutex<HashMap<u64, Arc<Memories>>>);

/// The memory of each rank: how long it is, and itself or why there is none.
struct Memories(Vec<OnceLock<(usize, Result<Zeroed>)>>);

impl Shares {
    /// What is shared at meeting `sequence` by `size` ranks.
    fn at(&self, sequence: u64, size: usize) -> Arc<Memories> {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(Memories((0..size).map(|_| OnceLock::new()).collect()));
        shares.entry(sequence).or_insert_with(fresh).clone()
    }

    fn forget(&self, sequence: u64) {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shares.remove(&sequence);
    }
}

impl ThreadRank {
    /// Shares `bytes` of this rank.
    pub(super) fn share_in(&self, turn: &mut Turn, bytes: usize) -> Result<Shared> {
        let (rank, size) = (self.place(), self.group.members.len());
        self.group.world.check()?;
        // 1. Put it up, and wait for everybody to do so.
        let sequence = turn.next();
        let memories = self.group.shares.at(sequence, size);
        // Nobody else has this rank's place.
        let _ = memories.0[rank].set((bytes, Zeroed::new(bytes)));
        self.meet(turn)?;
        // All have it by now.
        self.group.shares.forget(sequence);
        // 2. All learn where it is, or that there is none.
        let place = |(rank, memory): (usize, &OnceLock<(usize, Result<Zeroed>)>)| match memory.get()
        {
            Some((len, Ok(memory))) => Ok(Some((memory.start(), *len))),
            Some((_, Err(error))) => Err(Error::Agreed {
                rank,
                cause: error.to_string(),
            }),
            None => Ok(None),
        };
        let places = memories.0.iter().enumerate().map(place);
        let places = places.collect::<Result<Vec<_>>>()?;
        // SAFETY: zeroed, aligned, and kept by what is given here.
        Ok(unsafe { Shared::new(rank, &places, memories) })
    }
}
