//! Ranks as MPI processes.
//!
//! [`run()`] gives each process that the MPI launcher has started a
//! [`outcore_transport::Comm`] over [`MpiTransport`]. This is the only crate of
//! outcore that talks to MPI; which MPI library it is built for is chosen by
//! the environment variable `MPICC`.
//!
//! ```no_run
//! use outcore_transport::{Comm, Error};
//!
//! fn main() -> Result<(), Error> {
//!     outcore_transport_mpi::run(|comm: &Comm| {
//!         println!("rank {} of {}", comm.rank(), comm.size());
//!         comm.barrier()
//!     })
//! }
//! ```
//!
//! # Nobody hangs
//!
//! No call waits inside MPI. Every wait is a loop (`operations`) that polls
//! its own operations and a communicator for *notices*, by which a rank tells
//! all others that it has failed or ended. After a failure all ranks take and
//! drop what is still being sent, so that every call can complete its
//! operations before it gives the caller's memory back, and all ranks come to
//! the end of the run (`closing`).
//!
//! The parts, from the bottom: `library` (return codes), `communicator` (the
//! MPI calls), `notice`, `board` (what the notices said), `outbox` (sends that
//! nobody waits for), `contexts` and `group` (which rank is who), `world` (what
//! the process shares), `operations` (the waiting), `all_gather`, `exchange`
//! and `letters` (what moves), `segment`, `kernel_copy`, `hall`, `lend`, `share` and `stage` (what ranks of one
//! node do without messages), `transport` (the calls), `closing` and `run`.

mod all_gather;
mod board;
mod closing;
mod communicator;
mod contexts;
mod exchange;
mod group;
mod hall;
mod kernel_copy;
mod lend;
mod letters;
mod library;
mod notice;
mod operations;
mod outbox;
mod pause;
mod run;
mod segment;
mod share;
mod stage;
mod transport;
mod world;
mod yardstick;

pub use kernel_copy::set_kernel_copies;
pub use library::library_version;
pub use operations::set_largest_message;
pub use run::run;
pub use segment::set_node_memory;
pub use transport::MpiTransport;
pub use yardstick::{all_to_all_equal, all_to_all_v_packed};
