//! Success for all or failure for all.

use std::fmt::Display;

use crate::comm::Comm;
use crate::error::{Error, Result};

impl Comm {
    /// Collective: every rank brings the outcome of what it did alone. If all
    /// succeeded, each gets its own value back; otherwise all get the same
    /// [`Error::Agreed`], with the lowest rank that failed and its cause, and
    /// the group can go on.
    ///
    /// ```
    /// use outcore_transport::{Error, threads};
    ///
    /// threads::run(3, |comm| {
    ///     let alone = if comm.rank() == 1 { Err("disk full") } else { Ok(7) };
    ///     let error = comm.agree(alone).unwrap_err();
    ///     assert_eq!(error.to_string(), "rank 1: disk full");
    ///     comm.barrier() // all are still there
    /// })
    /// .into_iter()
    /// .for_each(|outcome: Result<(), Error>| outcome.unwrap());
    /// ```
    pub fn agree<T, E: Display>(&self, outcome: Result<T, E>) -> Result<T> {
        let failed = self.all_gather(&[u8::from(outcome.is_err())])?;
        let lowest = failed.iter().position(|&failed| failed != 0);
        let (rank, mut cause) = match (lowest, outcome) {
            (None, Ok(value)) => return Ok(value),
            (Some(rank), Err(error)) if rank == self.rank() => (rank, error.to_string()),
            (Some(rank), _) => (rank, String::new()),
            // Not reached: this rank's own failure is among those gathered.
            (None, Err(error)) => (self.rank(), error.to_string()),
        };
        self.broadcast_string(rank, &mut cause)?;
        Err(Error::Agreed { rank, cause })
    }
}
