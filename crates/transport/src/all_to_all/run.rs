//! Carries out a schedule: one exchange of the transport a step.
//!
//! Blocks leave from where the caller has them and come straight to their
//! place; only what is passed on is kept in between. Where blocks differ in
//! length, a rank that passes them on does not know how long they are: then
//! their lengths go ahead, in one more exchange a step.

use std::collections::HashMap;

use super::Parts;
use super::schedule::{Block, Step};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::transport::Exchange;

/// Collective: carries out the `steps` of this rank, which pass blocks on if
/// `forwards`.
pub(super) fn run(
    comm: &Comm,
    steps: &[Step],
    forwards: bool,
    mut parts: Parts<'_, '_>,
) -> Result<()> {
    let rank = comm.rank();
    // What is kept for others, and the places that are still to be filled.
    let mut kept: HashMap<Block, Vec<u8>> = HashMap::new();
    parts.copy_own(comm)?;
    let mut places: Vec<Option<&mut [u8]>> = parts
        .receives
        .iter_mut()
        .map(|place| Some(&mut **place))
        .collect();
    for step in steps {
        // 1. How long is what comes for others?
        let mut coming: Vec<(Block, Vec<u8>)> = match parts.equal {
            Some(len) => to_keep(step, rank)
                .map(|block| (block, vec![0; len]))
                .collect(),
            None if forwards => tell_lengths(comm, step, parts.sends, &kept)?,
            None => Vec::new(),
        };
        // 2. Gather the blocks that leave and the places of those that come.
        let leaving = step.sends.iter().flat_map(|parcel| &parcel.blocks);
        let passed_on: Vec<Vec<u8>> = leaving
            .filter(|block| block.source != rank)
            .map(|block| kept.remove(block).unwrap_or_default())
            .collect();
        let mut exchange = Exchange::new();
        let mut next = passed_on.iter();
        for parcel in &step.sends {
            for block in &parcel.blocks {
                let bytes = match block.source == rank {
                    true => Some(parts.sends[block.target]),
                    false => next.next().map(Vec::as_slice),
                };
                exchange.send(parcel.peer, bytes.unwrap_or_default());
            }
        }
        let mut next = coming.iter_mut();
        for parcel in &step.receives {
            for block in &parcel.blocks {
                let place = match block.target == rank {
                    true => places[block.source].take(),
                    false => next.next().map(|(_, bytes)| bytes.as_mut_slice()),
                };
                exchange.receive(parcel.peer, place.unwrap_or_default());
            }
        }
        // 3. Move them.
        comm.exchange(&mut exchange)?;
        kept.extend(coming);
    }
    Ok(())
}

/// The blocks that come to `rank` in a step but are for others.
fn to_keep(step: &Step, rank: usize) -> impl Iterator<Item = Block> {
    let coming = step.receives.iter().flat_map(|parcel| &parcel.blocks);
    coming.copied().filter(move |block| block.target != rank)
}

/// Collective: tells the peers of a step how long the blocks are; memory for
/// those that come here for others.
fn tell_lengths(
    comm: &Comm,
    step: &Step,
    sends: &[&[u8]],
    kept: &HashMap<Block, Vec<u8>>,
) -> Result<Vec<(Block, Vec<u8>)>> {
    let rank = comm.rank();
    let own = |block: &Block| match block.source == rank {
        true => sends[block.target].len(),
        false => kept.get(block).map_or(0, Vec::len),
    };
    let told: Vec<Vec<usize>> = step
        .sends
        .iter()
        .map(|parcel| parcel.blocks.iter().map(own).collect())
        .collect();
    let mut heard: Vec<Vec<usize>> = step
        .receives
        .iter()
        .map(|parcel| vec![0; parcel.blocks.len()])
        .collect();
    let mut exchange = Exchange::new();
    for (parcel, lengths) in step.sends.iter().zip(&told) {
        exchange.send(parcel.peer, bytemuck::cast_slice(lengths));
    }
    for (parcel, lengths) in step.receives.iter().zip(&mut heard) {
        exchange.receive(parcel.peer, bytemuck::cast_slice_mut(lengths));
    }
    comm.exchange(&mut exchange)?;
    let blocks = step.receives.iter().flat_map(|parcel| &parcel.blocks);
    let heard = blocks.zip(heard.iter().flatten());
    Ok(heard
        .filter(|(block, _)| block.target != rank)
        .map(|(block, &len)| (*block, vec![0; len]))
        .collect())
}

impl Parts<'_, '_> {
    /// What a rank has for itself.
    pub(super) fn copy_own(&mut self, comm: &Comm) -> Result<()> {
        let rank = comm.rank();
        let (own, place) = (self.sends[rank], &mut *self.receives[rank]);
        if own.len() != place.len() {
            let error = Error::LengthMismatch {
                from: rank,
                to: rank,
                sent: own.len() as u64,
                expected: place.len() as u64,
            };
            // The others wait for this rank.
            comm.transport().fail(&error.to_string());
            return Err(error);
        }
        place.copy_from_slice(own);
        Ok(())
    }
}
