//! PEX-GEN-SHIFT (Thakur 1995, section 4.3.3): PEX-GEN with the ranks in the
//! middle of the next power of two `q`, so that the idle ones are at both ends:
//! rank `r` is number `r + (q - P) / 2`.
//!
//! The thesis prints this number modulo `P`, which pairs ranks that do not pair
//! back wherever the shift is not 0 (first for 5 ranks); without the modulus all
//! pairs match.

/// The partner in each step.
pub(super) fn partners(rank: usize, size: usize) -> Vec<Option<usize>> {
    let whole = size.next_power_of_two();
    let shift = (whole - size) / 2;
    (1..whole)
        .map(|step| {
            let number = (rank + shift) ^ step;
            number.checked_sub(shift).filter(|rank| *rank < size)
        })
        .collect()
}
