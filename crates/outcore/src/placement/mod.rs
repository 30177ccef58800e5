//! Where the elements of an array are kept: the placement models of PASSION
//! (Thakur 1995, section 5.3.2).
//!
//! - *Global* placement is every other [`crate::Array`]: one file, divided
//!   among the ranks only logically.
//! - *Local* placement, [`LocalArray`]: one file a rank, with the rank's local
//!   array and its overlap areas; [`LocalArray::shift`] and
//!   [`LocalArray::multicast`] move data from file to file. `parts` says where
//!   each element stands, `store` shows all files as one array, so that any
//!   program can open it.
//! - *Partitioned in-core*: [`Partitions`] of a global array, each of which
//!   fits the joint memory of all ranks.

mod descriptor;
mod draft;
mod load;
mod local;
mod multicast;
mod partitioned;
pub(crate) mod parts;
mod planes;
mod sequence;
mod shift;
mod slabs;
mod staging;
pub(crate) mod store;

pub use descriptor::LocalDescriptor;
pub use draft::LocalDraft;
pub use local::{Block, LocalArray};
pub use partitioned::{Partition, Partitions, Share};
pub use parts::LocalPlacement;
pub use shift::Boundary;
pub use slabs::InCore;
