//! [`ProcedureFault`]: why a call has no answer.

use std::time::Duration;

/// Why a call has no answer. The run goes on; only the caller is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProcedureFault {
    /// The procedure returned this error.
    #[error("{0}")]
    Failed(String),
    /// The procedure panicked with this message.
    #[error("panicked: {0}")]
    Panicked(String),
    /// The rank serves no calls any more: it has ended, or has closed its
    /// procedures.
    #[error("the rank has finished and serves no calls any more")]
    Finished,
    /// There was no answer for as long as the caller was willing to wait.
    #[error("no answer for {0:?}")]
    Silent(Duration),
}
