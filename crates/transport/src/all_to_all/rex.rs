//! Recursive exchange, REX (Thakur 1995, sections 4.2.3 and 4.3.6): with the
//! rank at the same place in the other half, everything for that half; then the
//! same within each half, as often as the number of ranks has binary digits. For
//! powers of two.
//!
//! In the step of bit `b`, from the highest down, rank `r` exchanges with
//! `r xor 2^b`. It holds what ranks that agree with it in the bits up to `b`
//! have for ranks that agree with it in the bits above; of that it gives away
//! what is for ranks on the partner's side: always half of the blocks, `P / 2`.

use super::schedule::{Block, Parcel, Step};

pub(super) fn steps(rank: usize, size: usize) -> Vec<Step> {
    let bits = size.trailing_zeros();
    (0..bits)
        .rev()
        .map(|bit| {
            let partner = rank ^ (1 << bit);
            let parcel = |from: usize, to: usize| Parcel {
                peer: partner,
                blocks: blocks(from, to, bit, size),
            };
            Step {
                sends: vec![parcel(rank, partner)],
                receives: vec![parcel(partner, rank)],
            }
        })
        .collect()
}

/// What `from` gives to `to` in the step of `bit`, by source and target.
fn blocks(from: usize, to: usize, bit: u32, size: usize) -> Vec<Block> {
    let spread = 1 << (bit + 1);
    let sources = (from % spread..size).step_by(spread);
    let first = to >> bit << bit;
    sources
        .flat_map(|source| {
            let targets = first..first + (1 << bit);
            targets.map(move |target| Block { source, target })
        })
        .collect()
}
