//! What can go wrong between ranks.

/// The result of a transport call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong between ranks. Cloneable, because one failure is
/// reported by every rank.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another rank failed; nothing more can be exchanged with anybody.
    #[error("rank {rank} failed: {cause}")]
    PeerFailed {
        /// The rank (of the whole program) that failed first.
        rank: usize,
        /// What it said.
        cause: String,
    },
    /// A rank panicked.
    #[error("rank {rank} panicked: {message}")]
    Panicked {
        /// The rank that panicked.
        rank: usize,
        /// The panic message.
        message: String,
    },
    /// An operation in which every rank took part failed on this rank, and
    /// all ranks agreed to fail with it. The group can go on.
    #[error("rank {rank}: {cause}")]
    Agreed {
        /// The lowest rank on which the operation failed.
        rank: usize,
        /// What went wrong there.
        cause: String,
    },
    /// Two ranks disagree about the length of a message.
    #[error("rank {from} sent {sent} bytes to rank {to}, which expected {expected}")]
    LengthMismatch {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
        /// Bytes sent.
        sent: u64,
        /// Bytes expected.
        expected: u64,
    },
    /// A rank that is not in the group.
    #[error("there is no rank {rank} in a group of {size}")]
    NoSuchRank {
        /// The rank asked for.
        rank: usize,
        /// The size of the group.
        size: usize,
    },
    /// The arguments of a collective call do not fit together.
    #[error("{0}")]
    Invalid(String),
    /// The program cannot be started as it was (wrong launcher, no MPI).
    #[error("{0}")]
    Launch(String),
    /// The message-passing library reported an error.
    #[error("{call} failed: {message}")]
    Library {
        /// The library function.
        call: &'static str,
        /// Its error text.
        message: String,
    },
}
