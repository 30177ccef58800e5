//! [`LoanDesk`]: where a rank puts up the memory that it lends, for its peers
//! to read and write while they visit.
//!
//! Lent memory is used only under the read lock of its owner's desk, and only
//! if it still lies there. The owner takes it away, under the write lock,
//! before it leaves the call in whatever way ([`OnDesk`] does so when dropped).
//! So an owner that leaves early, because it has failed, waits for those who
//! visit at this moment, who wait for nobody; later visitors find nothing and
//! hear of the failure when they wait for all to be done.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use super::rank::{ThreadRank, Turn};
use crate::error::{Error, Result};
use crate::loan::{Loan, Loans, Reach};

/// The desk of one rank.
#[derive(Debug, Default)]
pub(crate) struct LoanDesk(RwLock<Option<Vec<Reach>>>);

impl LoanDesk {
    /// Puts `loans` up; they lie there as long as the result lives.
    fn put<'a>(&'a self, loans: &'a mut [Loan<'_>]) -> OnDesk<'a> {
        let loans = loans.iter_mut().map(Loan::reach).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(loans);
        OnDesk { desk: self }
    }

    fn look(&self) -> RwLockReadGuard<'_, Option<Vec<Reach>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Loans that are up, and borrowed for as long. Dropping it takes it away.
struct OnDesk<'a> {
    desk: &'a LoanDesk,
}

impl Drop for OnDesk<'_> {
    fn drop(&mut self) {
        let mut desk = self.desk.0.write().unwrap_or_else(PoisonError::into_inner);
        *desk = None;
    }
}

impl ThreadRank {
    /// Lends `own` and visits what the ranks `from` lend.
    pub(super) fn lend_in(
        &self,
        turn: &mut Turn,
        own: &mut [Loan<'_>],
        from: &[usize],
        visit: &mut dyn FnMut(&Loans),
    ) -> Result<()> {
        // 1. Nothing happens in a failed world, nor with peers that are not.
        self.group.world.check()?;
        // Locked in ascending order, by everybody, so that visitors who meet
        // owners that leave do not wait for one another.
        let mut from = from.to_vec();
        from.sort_unstable();
        from.dedup();
        if let Some(&peer) = from.last() {
            self.member(peer)?;
        }
        // 2. Put up the own loan, and wait for everybody to do so.
        let _own = self.me().desk.put(own);
        self.meet(turn)?;
        // 3. Visit.
        let guards: Vec<_> = from
            .iter()
            .map(|&peer| self.group.members[peer].desk.look())
            .collect();
        let reached: Option<Vec<_>> = from
            .iter()
            .zip(&guards)
            .map(|(&peer, guard)| Some((peer, (**guard).clone()?)))
            .collect();
        let complete = reached.is_some();
        if let Some(reached) = reached {
            visit(&Loans::new(reached));
        }
        drop(guards);
        // 4. Stay until all visits are over.
        self.meet(turn)?;
        if !complete {
            // Only a rank that leaves a failed world takes its loan away early.
            self.group.world.check()?;
            let cause = "a loan was taken away early".into();
            return Err(self.mistake(Error::Invalid(cause)));
        }
        Ok(())
    }
}
