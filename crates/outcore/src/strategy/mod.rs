//! How one section moves between file and buffer.

pub(crate) mod direct;
