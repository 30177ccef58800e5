//! Descriptors from strangers.
