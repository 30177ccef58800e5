//! Pairwise exchange for any number of ranks, PEX-GEN (Thakur 1995, section
//! 4.3.2): the steps of PEX for the next power of two, in which ranks whose
//! partner does not exist have nothing to do.

/// The partner in each step.
pub(super) fn partners(rank: usize, size: usize) -> Vec<Option<usize>> {
    (1..size.next_power_of_two())
        .map(|step| Some(rank ^ step).filter(|partner| *partner < size))
        .collect()
}
