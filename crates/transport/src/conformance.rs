//! What every [`Transport`](crate::Transport) must pass.

use crate::comm::Comm;
use crate::error::{Error, Result};

/// Collective: checks the transport of `comm`, called by every rank of a group
/// of any size. A violation is an error or a panic with a clear message.
pub fn check(comm: &Comm) -> Result<()> {
    let all = comm.all_gather(&[comm.rank() as u64])?;
    let expected: Vec<u64> = (0..comm.size() as u64).collect();
    assert_eq!(all, expected, "all_gather on {comm:?}");
    comm.barrier()
}

/// Collective: lets rank `failing` fail in the middle of a sequence of
/// collectives. It returns [`Error::Invalid`]; the others return what their
/// next collective gives them, which must be [`Error::PeerFailed`] with that
/// rank and its cause.
pub fn check_failure(comm: &Comm, failing: usize) -> Result<()> {
    comm.barrier()?;
    comm.all_gather(&[comm.rank()])?;
    if comm.rank() == failing {
        return Err(Error::Invalid(format!(
            "deliberate failure of rank {failing}"
        )));
    }
    loop {
        comm.all_gather(&[comm.rank()])?;
    }
}
