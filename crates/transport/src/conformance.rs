//! What every [`Transport`](crate::Transport) must pass.
//!
//! The checks are collective, need no particular number of ranks, and use
//! nothing but a [`Comm`]. What arrives is compared with what the other ranks
//! must have sent, which each rank can compute. A violation is an
//! [`Error::Invalid`] that says what was wrong on which rank.

mod all_to_all;
mod collectives;
mod deliveries;
mod exchanges;
mod expect;
mod groups;
mod letters;
mod loans;
mod messages;
mod reductions;
mod shares;

use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::op::Op;

/// Collective: checks everything but failure. Called by every rank of a group
/// of any size.
pub fn check(comm: &Comm) -> Result<()> {
    messages::check(comm)?;
    exchanges::check(comm)?;
    collectives::check(comm)?;
    all_to_all::check(comm)?;
    reductions::check(comm)?;
    deliveries::check(comm)?;
    groups::check(comm)?;
    loans::check(comm)?;
    shares::check(comm)?;
    letters::check(comm)
}

/// Collective: like [`check_failure`], but the others only ask for the failure
/// ([`Comm::check`]).
pub fn check_notice(comm: &Comm, failing: usize) -> Result<()> {
    letters::check_failure(comm, failing)
}

/// Collective: lets rank `ending` end; the others return when they know
/// ([`Comm::ended`]).
pub fn check_end(comm: &Comm, ending: usize) -> Result<()> {
    letters::check_end(comm, ending)
}

/// Collective: lets rank `failing` fail in the middle of a sequence of
/// collectives.
///
/// That rank returns [`Error::Invalid`], and its caller must make it fail
/// ([`Transport::fail`](crate::Transport::fail), which the closure of a run
/// does by returning the error). The others return what their next collectives
/// give them; the caller checks that it is [`Error::PeerFailed`] with that rank
/// and the cause `deliberate failure of rank ...`.
pub fn check_failure(comm: &Comm, failing: usize) -> Result<()> {
    comm.barrier()?;
    let sum = comm.all_reduce_one(1, Op::Sum)?;
    expect::equal(comm, "the number of ranks", &sum, &comm.size())?;
    if comm.rank() == failing {
        return Err(Error::Invalid(format!(
            "deliberate failure of rank {failing}"
        )));
    }
    comm.all_gather(&[comm.rank()])?;
    comm.barrier()?;
    Err(Error::Invalid(format!(
        "rank {} did not notice that rank {failing} had failed",
        comm.rank()
    )))
}

/// Collective: like [`check_failure`], in the middle of visits to memory that
/// ranks lend one another; after its call has returned nobody's memory may be
/// touched.
pub fn check_loan_failure(comm: &Comm, failing: usize) -> Result<()> {
    loans::check_failure(comm, failing)
}
