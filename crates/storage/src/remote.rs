//! Objects that are not on this machine: S3, Google Cloud Storage, Azure Blob
//! Storage, and web servers.
//!
//! [`Bucket`] is named objects, [`RemoteObject`] the bytes of one of them as a
//! store. Both ask a `Client`, the only file here in which anything is
//! asynchronous: its calls block, and many threads may call it at once.
//!
//! Every request takes the time of a round trip through a network, however few
//! its bytes are; so requests are many at a time, and those for bytes close to
//! one another are one. The protocols, the signatures and the repetition of
//! requests that a server could not answer are those of the crate
//! `object_store`; credentials come from the environment.

mod bucket;
mod client;
mod connect;
mod explain;
mod object;

pub use bucket::Bucket;
pub use object::RemoteObject;

/// Requests under way at a time, for one call.
const ABREAST: usize = 64;
