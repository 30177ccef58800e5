//! Linear exchange, LEX (Thakur 1995, section 4.2.1): in step `i`, from 0 on,
//! every other rank sends to rank `i`. For any number of ranks.
//!
//! The simplest, and the worst for a network: all messages of a step meet
//! before one rank.

use super::schedule::{Block, Parcel, Step};

pub(super) fn steps(rank: usize, size: usize) -> Vec<Step> {
    let parcel = |peer, source, target| Parcel {
        peer,
        blocks: vec![Block { source, target }],
    };
    (0..size)
        .map(|receiver| match receiver == rank {
            true => Step {
                sends: Vec::new(),
                receives: (0..size)
                    .filter(|&from| from != rank)
                    .map(|from| parcel(from, from, rank))
                    .collect(),
            },
            false => Step {
                sends: vec![parcel(receiver, rank, receiver)],
                receives: Vec::new(),
            },
        })
        .collect()
}
