//! Messages between ranks.
//!
//! A *rank* is one of several workers that run the same program. This crate
//! says what ranks can do for one another ([`Transport`]), lets programs do it
//! ([`Comm`]: messages, exchanges, collectives), and brings ranks that are
//! threads of one process ([`threads::run`]). Other kinds of ranks implement
//! [`Transport`] and prove it with [`conformance::check`].
//!
//! ```
//! use outcore_transport::{Comm, Error, Op, threads};
//!
//! let outcomes = threads::run(4, |comm: &Comm| {
//!     // Everybody learns the sum and the largest of all contributions.
//!     let sum = comm.all_reduce_one(comm.rank() as u64 + 1, Op::Sum)?;
//!     let largest = comm.all_reduce_one(comm.rank() as f64, Op::Max)?;
//!     // Rank 0 collects one line from everybody.
//!     let lines = comm.gatherv(0, format!("rank {}", comm.rank()).as_bytes())?;
//!     assert_eq!(lines.is_some(), comm.rank() == 0);
//!     Ok::<_, Error>((sum, largest))
//! });
//! for outcome in outcomes {
//!     assert_eq!(outcome, Ok((10, 3.0)));
//! }
//! ```
//!
//! # Failure
//!
//! A rank that fails takes the program with it, and says why: every call on
//! every other rank that waits, or is made later, returns
//! [`Error::PeerFailed`] with the rank and the cause. Where a failure is to be
//! survived, all ranks pass their outcomes through [`Comm::agree`].

pub mod all_to_all;
mod collectives;
mod comm;
pub mod conformance;
pub mod doorbell;
mod error;
pub mod launch;
mod loan;
mod op;
pub mod panics;
mod shared;
pub mod threads;
mod transport;

pub use all_to_all::{AllToAll, AllToAllCost};
pub use comm::Comm;
pub use error::{Error, Result};
pub use loan::{Loan, Loans, NodeMemory, Reach};
pub use op::{Combine, Element, Op};
pub use shared::Shared;
pub use transport::{Exchange, Transport};
