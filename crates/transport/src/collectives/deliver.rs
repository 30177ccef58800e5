//! Messages to ranks that do not expect them.
//!
//! Each message has a way to go, from rank to rank upwards and round: as many
//! ranks as its distance says. In step `b` every rank hands on to the rank
//! `2^b` further up what has bit `b` set in its distance, in one bundle whose
//! length goes ahead. After as many steps as the number of ranks has binary
//! digits everything has arrived, and no rank has kept anything for each rank.

use bytemuck::Pod;

use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::transport::Exchange;

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parcel {
    to: usize,
    from: usize,
    bytes: Vec<u8>,
}

impl Comm {
    /// Collective: brings each message to the rank it is for, which need not
    /// know of it. Gives the messages for this rank with their senders, in the
    /// order of the senders, those of one sender in the order in which it sent
    /// them. For small messages to a few ranks each.
    pub fn deliver<T: Pod>(&self, messages: Vec<(usize, Vec<T>)>) -> Result<Vec<(usize, Vec<T>)>> {
        let (rank, size) = (self.rank(), self.size());
        if let Some((to, _)) = messages.iter().find(|(to, _)| *to >= size) {
            return Err(Error::NoSuchRank { rank: *to, size });
        }
        let parcels = messages.into_iter().map(|(to, values)| Parcel {
            to,
            from: rank,
            bytes: bytemuck::cast_slice(&values).to_vec(),
        });
        let mut held: Vec<Parcel> = parcels.collect();
        let mut hop = 1;
        while hop < size {
            let bundle = take_bundle(&mut held, rank, size, hop);
            let (next, previous) = ((rank + hop) % size, (rank + size - hop) % size);
            let mut len = [0];
            self.pass(next, &[bundle.len()], previous, &mut len)?;
            let mut received = vec![0u8; len[0]];
            self.pass(next, &bundle, previous, &mut received)?;
            open_bundle(&received, &mut held)?;
            hop *= 2;
        }
        held.sort_by_key(|parcel| parcel.from);
        let arrived = held.into_iter();
        Ok(arrived
            .map(|parcel| (parcel.from, bytemuck::pod_collect_to_vec(&parcel.bytes)))
            .collect())
    }

    /// One exchange: values to one rank and values from another.
    fn pass<T: Pod>(&self, to: usize, values: &[T], from: usize, into: &mut [T]) -> Result<()> {
        let mut exchange = Exchange::with_capacity(1, 1);
        exchange.send(to, bytemuck::cast_slice(values));
        exchange.receive(from, bytemuck::cast_slice_mut(into));
        self.exchange(&mut exchange)
    }
}

/// Takes out what `rank` hands on in the step of so many ranks: for each
/// parcel its two ranks, its length and its bytes.
fn take_bundle(held: &mut Vec<Parcel>, rank: usize, size: usize, hop: usize) -> Vec<u8> {
    let mut bundle = Vec::new();
    held.retain(|parcel| {
        let distance = (parcel.to + size - rank) % size;
        let stays = distance & hop == 0;
        if !stays {
            for number in [parcel.to, parcel.from, parcel.bytes.len()] {
                bundle.extend((number as u64).to_ne_bytes());
            }
            bundle.extend(&parcel.bytes);
        }
        stays
    });
    bundle
}

/// Adds the parcels of a bundle.
fn open_bundle(mut bundle: &[u8], held: &mut Vec<Parcel>) -> Result<()> {
    let broken = || Error::Invalid("a bundle of messages is incomplete".to_owned());
    while !bundle.is_empty() {
        let mut number = || {
            let (bytes, rest) = bundle.split_first_chunk()?;
            bundle = rest;
            usize::try_from(u64::from_ne_bytes(*bytes)).ok()
        };
        let (to, from, len) = (number(), number(), number());
        let (Some(to), Some(from), Some(len)) = (to, from, len) else {
            return Err(broken());
        };
        let (bytes, rest) = bundle.split_at_checked(len).ok_or_else(broken)?;
        bundle = rest;
        held.push(Parcel {
            to,
            from,
            bytes: bytes.to_vec(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten thousand ranks, each with a message for three others: nobody ever
    /// holds more than a few, and everything arrives.
    #[test]
    fn very_many_ranks_hold_little() {
        let size = 10_000;
        let targets = |rank: usize| [rank, rank / 3, (rank * 7 + 5) % size];
        let mut held: Vec<Vec<Parcel>> = (0..size)
            .map(|from| {
                let parcels = targets(from).map(|to| Parcel {
                    to,
                    from,
                    bytes: vec![from as u8; 8],
                });
                parcels.to_vec()
            })
            .collect();
        let (mut hop, mut most) = (1, 0);
        while hop < size {
            let bundles: Vec<Vec<u8>> = (0..size)
                .map(|rank| take_bundle(&mut held[rank], rank, size, hop))
                .collect();
            for (rank, bundle) in bundles.iter().enumerate() {
                open_bundle(bundle, &mut held[(rank + hop) % size]).unwrap();
                most = most.max(bundle.len());
            }
            hop *= 2;
        }
        assert!(most < 40 * 32, "a bundle of {most} bytes");
        for (rank, parcels) in held.iter_mut().enumerate() {
            parcels.sort_by_key(|parcel| parcel.from);
            assert!(parcels.iter().all(|parcel| parcel.to == rank
                && parcel.bytes == [parcel.from as u8; 8]
                && targets(parcel.from).contains(&rank)));
        }
        let arrived: usize = held.iter().map(Vec::len).sum();
        assert_eq!(arrived, 3 * size);
    }

    #[test]
    fn broken_bundles_are_refused() {
        for len in [1, 24, 30] {
            let mut bundle = vec![0; len];
            bundle.get_mut(16).into_iter().for_each(|byte| *byte = 7);
            assert!(open_bundle(&bundle, &mut Vec::new()).is_err(), "{len}");
        }
    }
}
