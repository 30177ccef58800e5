//! Pairwise exchange, PEX (Thakur 1995, section 4.2.2): in step `i`, from 1 on,
//! rank `r` exchanges with `r xor i`. For powers of two.
//!
//! On a hypercube no two messages of a step share a link.

/// The partner in each step.
pub(super) fn partners(rank: usize, size: usize) -> Vec<Option<usize>> {
    (1..size).map(|step| Some(rank ^ step)).collect()
}
