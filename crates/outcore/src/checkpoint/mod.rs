//! Checkpoints: the distributed data of a parallel program, kept in files from
//! which any number of ranks can go on.
//!
//! A series of checkpoints is a directory ([`Checkpoints`]). Each [`Checkpoint`]
//! in it is a directory with one ordinary outcore array for each variable, in
//! global order, and a manifest:
//!
//! ```text
//! run/step-000012/manifest.json     what it holds, and a checksum of every block
//! run/step-000012/u.oc/             array.json and data.bin, as of any array
//! run/.lock                         held by whoever saves or removes
//! run/.new-ID-step-000013/          being written, or left by a run that was killed
//! ```
//!
//! The path of the data, down:
//!
//! ```text
//! Snapshot          what each variable is: the same on all ranks      snapshot.rs
//!  -> .new-ID-NAME  files under a temporary name, made by rank 0      unfinished.rs
//!  -> collective writes, each variable by itself; sync                savable.rs
//!  -> checksums     blocks dealt out to all ranks, read from files    checksum.rs
//!  -> manifest, sync, rename, sync: only now it exists                save.rs
//! ```
//!
//! and up: the newest name -> manifest -> blocks of the array against their
//! checksums -> collective reads in any distribution (`saved.rs`).
//!
//! Whenever the program or the machine stops, the names that can be seen are
//! those of complete checkpoints: a name appears in one step after everything
//! below it is on stable storage, and disappears in one step before anything
//! below it is removed.

mod checksum;
mod manifest;
mod name;
mod savable;
mod save;
mod saved;
mod series;
mod snapshot;
mod unfinished;

pub(crate) use checksum::share;
pub use manifest::SavedArray;
pub use savable::{Savable, Scattered};
pub use save::Saved;
pub use saved::{Checkpoint, Damage};
pub use series::{CheckpointEntry, Checkpoints};
pub use snapshot::Snapshot;
