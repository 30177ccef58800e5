//! Comparisons that explain themselves, and values that everybody can compute.

use std::fmt::Debug;

use crate::comm::Comm;
use crate::error::{Error, Result};

/// An error unless the two are equal.
pub(super) fn equal<T: PartialEq + Debug>(
    comm: &Comm,
    what: &str,
    found: &T,
    expected: &T,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let mut text = format!("{what}: {found:?} instead of {expected:?}");
    if text.len() > 400 {
        text = format!("{what}: not what it should be");
    }
    Err(wrong(comm, &text))
}

/// An error unless the two lists are equal; tells where they differ first.
pub(super) fn same<T: PartialEq + Debug>(
    comm: &Comm,
    what: &str,
    found: &[T],
    expected: &[T],
) -> Result<()> {
    equal(
        comm,
        &format!("{what}: length"),
        &found.len(),
        &expected.len(),
    )?;
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => equal(
            comm,
            &format!("{what}: element {at} of {}", found.len()),
            &found[at],
            &expected[at],
        ),
    }
}

/// The error itself.
pub(super) fn wrong(comm: &Comm, text: &str) -> Error {
    Error::Invalid(format!("rank {} of {}: {text}", comm.rank(), comm.size()))
}

/// The ranks worth being a root or a failing one.
pub(super) fn some_ranks(comm: &Comm) -> Vec<usize> {
    let size = comm.size();
    let mut ranks = vec![0, size / 2, size - 1];
    ranks.dedup();
    ranks
}

/// Numbers that look random and are the same on every rank (splitmix64).
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// So many bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_ne_bytes()[..chunk.len()]);
        }
        bytes
    }
}

/// The bytes that `from` sends to `to` in a certain round.
pub(super) fn bytes_between(from: usize, to: usize, round: usize, count: usize) -> Vec<u8> {
    Numbers(((from as u64) << 40) ^ ((to as u64) << 20) ^ round as u64).bytes(count)
}
