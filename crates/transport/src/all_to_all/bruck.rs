//! Bruck's algorithm (Bruck et al. 1997, section 3): few steps for small
//! messages, for any number of ranks.
//!
//! A block has `d = target - source` (modulo the number of ranks) to go. In step
//! `b` every rank hands to the rank `2^b` further on what has bit `b` set in its
//! `d`. Before that step a block is `d mod 2^b` ranks from its source. Every
//! step moves at most half of the blocks, rounded up.

use super::schedule::{Block, Parcel, Step};

pub(super) fn steps(rank: usize, size: usize) -> Vec<Step> {
    (0..usize::BITS)
        .map(|bit| 1 << bit)
        .take_while(|hop| *hop < size)
        .map(|hop| {
            let (next, previous) = ((rank + hop) % size, (rank + size - hop) % size);
            Step {
                sends: vec![Parcel {
                    peer: next,
                    blocks: blocks(rank, hop, size),
                }],
                receives: vec![Parcel {
                    peer: previous,
                    blocks: blocks(previous, hop, size),
                }],
            }
        })
        .collect()
}

/// What `rank` hands on in the step of `hop` ranks, by the way to go.
fn blocks(rank: usize, hop: usize, size: usize) -> Vec<Block> {
    (hop..size)
        .filter(|way| way & hop != 0)
        .map(|way| {
            let source = (rank + size - way % hop) % size;
            Block {
                source,
                target: (source + way) % size,
            }
        })
        .collect()
}
