//! [`same_on_all`]: whether all ranks of a group mean the same thing.

use std::hash::{DefaultHasher, Hash, Hasher};

use outcore_transport::{Comm, Op};

use crate::error::{Error, Result};

/// Collective: fails on all ranks, with `problem`, unless they give the same value.
pub(super) fn same_on_all(comm: &Comm, value: impl Hash, problem: &str) -> Result<()> {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    let meant = hasher.finish();
    // The least of all, and the complement of the greatest.
    let found = comm.all_reduce(&[meant, !meant], Op::Min)?;
    match found[0] == !found[1] {
        true => Ok(()),
        false => Err(Error::Invalid(problem.into())),
    }
}
