//! Bytes at offsets: the storage layer of outcore.
//!
//! A [`Store`] reads and writes bytes at 64-bit offsets, one request at a time
//! or in batches that the backend may overlap. It knows nothing of arrays.
//!
//! - Backends: [`FileStore`] (page cache or direct I/O, batches by io_uring),
//!   [`MemoryStore`], [`StripedStore`] over several others, and [`ChunkStore`] of
//!   chunks that can be had only whole.
//! - [`CheckedStore`]: a store whose blocks have checksums, which reads compare.
//! - Adapters, which are stores over a store: [`CountedStore`] counts and logs
//!   the requests, [`ThrottledStore`] makes them as slow as a modelled device,
//!   in real or virtual time, and [`FaultyStore`] makes them fail.
//! - What a store may offer besides: its bytes as memory ([`Mapping`]), what
//!   share of them is in the page cache ([`Store::cached`]), and locks of ranges
//!   against other threads and programs ([`RangeLock`]).
//! - Named byte strings: [`Objects`], of which a [`Directory`] is one. With the
//!   feature `remote`, those at an [`Address`] in S3 and other object stores are
//!   another (`Bucket`), and each of them is a store (`RemoteObject`).
//! - [`for_each_with`]: work spread over threads.
//! - [`conformance`]: what all of them, and any store made elsewhere, must do.
//!
//! ```
//! use outcore_storage::{MemoryStore, ReadRequest, Store};
//!
//! # fn main() -> outcore_storage::Result<()> {
//! let store = MemoryStore::new();
//! store.write_at(4, b"core")?;
//! store.write_at(1, b"out")?;
//! assert_eq!(store.len()?, 8);
//!
//! let (mut first, mut second) = ([0; 3], [0; 4]);
//! store.read_batch(&mut [
//!     ReadRequest { offset: 4, buffer: &mut second },
//!     ReadRequest { offset: 1, buffer: &mut first },
//! ])?;
//! assert_eq!((&first, &second), (b"out", b"core"));
//!
//! // A read past the end is an error, never zeros.
//! assert!(store.read_at(6, &mut first).is_err());
//! # Ok(())
//! # }
//! ```

mod address;
mod aligned;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod batch;
mod blocks;
mod bounce;
mod checked;
mod chunked;
pub mod conformance;
mod counted;
mod device;
mod direct;
mod directory;
mod error;
mod faulty;
mod file;
mod file_system;
mod forget;
mod forward;
mod mapping;
mod memory;
mod objects;
mod range_lock;
#[cfg(feature = "remote")]
mod remote;
mod residency;
mod scattered;
mod store;
mod striped;
mod striping;
mod threads;
mod throttled;
#[cfg_attr(not(target_os = "linux"), path = "no_uring.rs")]
mod uring;

pub use address::{Address, Scheme, without_secrets};
pub use aligned::{AlignedBuffer, DIRECT_ALIGNMENT};
pub use blocks::Blocks;
pub use checked::{BlockFault, CheckedStore};
pub use chunked::{ChunkStore, Chunks, Crew, cores};
pub use counted::{CountedStore, Counts, Request, RequestKind};
pub use device::{Device, DeviceModel, Queues};
pub use directory::Directory;
pub use error::{Error, Result};
pub use faulty::{Fault, FaultyStore, Operation};
pub use file::{Access, Batching, FileOptions, FileStore, refuse_pipe};
pub use forget::forget;
pub use mapping::Mapping;
pub use memory::MemoryStore;
pub use objects::{Entry, Objects, Version};
pub use range_lock::{LockTable, RangeLock};
#[cfg(feature = "remote")]
pub use remote::{Bucket, RemoteObject};
pub use scattered::{EqualPieces, Fragment, ScatteredStore};
pub use store::{ReadRequest, Store, WriteRequest, fills_or_fails};
pub use striped::StripedStore;
pub use striping::{Piece, Striping};
pub use threads::for_each_with;
pub use throttled::{ThrottledStore, Time};
