//! Balanced exchange, BEX (Thakur 1995, section 4.2.4): pairwise exchange of
//! ranks that are counted from the second one: rank `r` is number `r + 1`, the
//! last one number 0. For powers of two.
//!
//! So in each of the first steps some pairs lie in different halves of the
//! machine, and in all later steps but one some lie in the same: the load on
//! the links between the halves is spread over the steps.

/// The partner in each step.
pub(super) fn partners(rank: usize, size: usize) -> Vec<Option<usize>> {
    let number = (rank + 1) % size;
    (1..size)
        .map(|step| Some(((number ^ step) + size - 1) % size))
        .collect()
}
