//! [`Resources`]: what an application may use, and whom it tells how far it is.

use outcore::{Comm, MemoryBudget, Op, Result};

/// What an application may use, and whom it tells how far it is.
#[derive(Clone)]
pub struct Resources<'a> {
    /// The memory of all ranks of this process.
    pub budget: MemoryBudget,
    /// Called by any rank with the bytes of result that it has made since its
    /// last call (each sweep of a solver makes all bytes).
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
}

impl Resources<'_> {
    /// So much memory, and nobody to tell.
    pub fn of(budget: MemoryBudget) -> Self {
        Self {
            budget,
            progress: None,
        }
    }

    /// Collective: this rank's part of the memory, which must be enough for what
    /// any rank needs. All fail alike if one has too little.
    pub(crate) fn enough(
        &self,
        comm: &Comm,
        purpose: &str,
        need: impl FnOnce(&MemoryBudget) -> u64,
    ) -> Result<MemoryBudget> {
        let budget = self.budget.for_rank(comm);
        let most = comm.all_reduce(&[need(&budget)], Op::Max)?[0];
        comm.agree(budget.require(most, purpose))?;
        Ok(budget)
    }

    /// Tells that so many bytes are done.
    pub fn tell(&self, bytes: u64) {
        if let Some(progress) = self.progress {
            progress(bytes);
        }
    }
}

impl std::fmt::Debug for Resources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Resources({:?})", self.budget)
    }
}
