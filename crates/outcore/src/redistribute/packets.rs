//! The two ways of a [`Step`] that go through packets: memory of the node, and
//! messages.
//!
//! A rank packs all that it sends, packet after packet. In memory of the node
//! a table of where packets begin stands before them, and whoever wants one
//! looks there. In messages there is one for each pair of ranks that has
//! anything to exchange; a rank's own packet is never sent.
//!
//! Messages are placed when all have come, in one go through the own part
//! (synchronous), or peer by peer as they come (asynchronous): in round `d` rank
//! `r` sends to `r + d` and receives from `r - d` (Thakur 1995, section 3.4; GEN
//! of section 4.3.4).

use outcore_transport::{Comm, Exchange, Loan, NodeMemory, Reach};

use super::step::{Half, Step};
use super::{Arrival, Transfer, wrong};
use crate::error::Result;

/// Memory that a plan keeps for the packets of a step.
#[derive(Debug, Default)]
pub(super) struct Kept {
    node: Option<NodeMemory>,
    /// The element bytes, of all transfers together, for which there is node
    /// memory, or for which there is none to be had.
    fits: Option<usize>,
    sent: Vec<u8>,
    received: Vec<u8>,
}

/// The halves that send and receive.
fn roles<'a>(step: &'a Step, comm: &Comm, backwards: bool) -> [Option<&'a Half>; 2] {
    let [source, target] = step.halves(comm);
    let (sender, receiver) = match backwards {
        true => (target, source),
        false => (source, target),
    };
    let sender = sender.as_ref().filter(|half| half.first);
    [sender, receiver.as_ref()]
}

/// The bytes of all packets of a half, for all transfers.
fn bytes(half: Option<&Half>, transfers: &[Transfer<'_>]) -> usize {
    let elements = half.map_or(0, |half| *half.offsets().last().unwrap_or(&0));
    let size: usize = transfers.iter().map(|transfer| transfer.size).sum();
    elements * size
}

/// Where the packets of one transfer begin in memory for those of all. Each
/// packet holds the elements of all transfers, one transfer after the other.
fn starts(half: &Half, transfers: &[Transfer<'_>], number: usize, memory: *mut u8) -> Vec<*mut u8> {
    let all: usize = transfers.iter().map(|transfer| transfer.size).sum();
    let before: usize = transfers[..number].iter().map(|it| it.size).sum();
    let offsets = half.offsets();
    let packets = half.packets.iter().zip(offsets);
    packets
        .map(|(packet, offset)| memory.wrapping_add(offset * all + packet.count * before))
        .collect()
}

/// Packs everything that this rank sends into `memory`, which has room for it.
fn pack(half: &Half, transfers: &[Transfer<'_>], memory: &mut [u8]) {
    assert_eq!(memory.len(), bytes(Some(half), transfers), "all is packed");
    for (number, transfer) in transfers.iter().enumerate() {
        let starts = starts(half, transfers, number, memory.as_mut_ptr());
        let part = transfer.source.as_ptr().cast_mut();
        // SAFETY: the part was found to have the size of the local array, and
        // is only read; the memory has room for all packets, and is borrowed.
        unsafe { half.copy(part, &starts, transfer.size, false, None) }
    }
}

impl Step {
    /// Collective: through memory of the node; `false` on all ranks, with
    /// nothing done, if there is none.
    pub(super) fn staged(
        &self,
        comm: &Comm,
        transfers: &mut [Transfer<'_>],
        kept: &mut Kept,
        backwards: bool,
    ) -> Result<bool> {
        let [sender, receiver] = roles(self, comm, backwards);
        let table = sender.map_or(0, |half| 8 * half.packets.len());
        let need = table + bytes(sender, transfers);
        // 1. Memory that all reach, for both directions; kept for the next time.
        // All ranks have transfers of the same sizes, and so decide alike.
        let size = transfers.iter().map(|transfer| transfer.size).sum();
        if kept.fits.is_none_or(|fits| fits < size) {
            let [sender, _] = roles(self, comm, !backwards);
            let back = sender.map_or(0, |half| 8 * half.packets.len()) + bytes(sender, transfers);
            kept.node = None;
            kept.node = comm.node_memory(need.max(back))?;
            kept.fits = Some(size);
        }
        let Some(memory) = &mut kept.node else {
            return Ok(false);
        };
        // 2. Pack, with the table of where packets begin before them.
        if let Some(half) = sender {
            let (head, packets) = memory[..need].split_at_mut(table);
            pack(half, transfers, packets);
            let starts = starts(half, transfers, 0, std::ptr::null_mut());
            for (place, start) in head.chunks_exact_mut(8).zip(starts) {
                place.copy_from_slice(&(start as usize + table).to_ne_bytes());
            }
        }
        // 3. Fetch.
        let wanted = |half: &Half| -> Vec<usize> {
            let packets = half.packets.iter().filter(|packet| packet.count > 0);
            packets.map(|packet| packet.ranks[0]).collect()
        };
        let from = receiver.map(wanted).unwrap_or_default();
        let mut outcome = Ok(());
        let lent = comm.lend(Loan::Read(&memory[..need]), &from, |loans| {
            let reach = |rank: usize| loans.of(rank).map(Reach::readable);
            if let Some(half) = receiver {
                outcome = fetch(half, transfers, reach);
            }
        })?;
        outcome.map(|()| lent)
    }

    /// Collective: in messages.
    pub(super) fn messages(
        &self,
        comm: &Comm,
        transfers: &mut [Transfer<'_>],
        (kept, arrival): (&mut Kept, Arrival),
        backwards: bool,
    ) -> Result<()> {
        let [sender, receiver] = roles(self, comm, backwards);
        let own = comm.rank();
        kept.sent.resize(bytes(sender, transfers), 0);
        kept.received.resize(bytes(receiver, transfers), 0);
        if let Some(half) = sender {
            pack(half, transfers, &mut kept.sent);
        }
        let cut = |half: Option<&Half>| -> Vec<(Vec<usize>, usize)> {
            let size: usize = transfers.iter().map(|transfer| transfer.size).sum();
            let packets = half.into_iter().flat_map(|half| &half.packets);
            packets
                .map(|packet| (packet.ranks.clone(), packet.count * size))
                .collect()
        };
        let (outgoing, incoming) = (cut(sender), cut(receiver));
        let ranks = comm.size();
        let rounds: Vec<Option<usize>> = match arrival {
            Arrival::Together => vec![None],
            Arrival::AsTheyCome => (1..ranks).map(Some).collect(),
        };
        let takes = |round: Option<usize>, distance: usize| match round {
            None => distance != 0,
            Some(round) => round == distance,
        };
        // The rank's own packet is not sent, and waits for nobody.
        let place_own = incoming.iter().position(|(ranks, _)| ranks[0] == own);
        let own_start = match (receiver, place_own) {
            (Some(half), Some(_)) => starts_of(&outgoing, &kept.sent)[half.place],
            _ => std::ptr::null(),
        };
        if let (Arrival::AsTheyCome, Some(half), Some(place)) = (arrival, receiver, place_own) {
            let mut starts = vec![std::ptr::null_mut(); incoming.len()];
            starts[place] = own_start.cast_mut();
            place_packets(half, transfers, &starts, Some(place));
        }
        for round in rounds {
            let mut exchange = Exchange::new();
            let mut rest = &kept.sent[..];
            for (to, len) in &outgoing {
                let (packet, later) = rest.split_at(*len);
                rest = later;
                let peers = to.iter().filter(|to| **to != own);
                for peer in peers.filter(|to| takes(round, (**to + ranks - own) % ranks)) {
                    exchange.send(*peer, packet);
                }
            }
            let (mut rest, mut came) = (&mut kept.received[..], Vec::new());
            for (number, (from, len)) in incoming.iter().enumerate() {
                let (packet, later) = rest.split_at_mut(*len);
                rest = later;
                if from[0] != own && takes(round, (own + ranks - from[0]) % ranks) {
                    exchange.receive(from[0], packet);
                    came.push(number);
                }
            }
            comm.exchange(&mut exchange)?;
            drop(exchange);
            let Some(half) = receiver else {
                continue;
            };
            let mut starts = starts_of(&incoming, &kept.received);
            if let Some(place) = place_own {
                starts[place] = own_start;
            }
            let starts: Vec<_> = starts.into_iter().map(<*const u8>::cast_mut).collect();
            match arrival {
                Arrival::Together => place_packets(half, transfers, &starts, None),
                Arrival::AsTheyCome => came
                    .into_iter()
                    .for_each(|number| place_packets(half, transfers, &starts, Some(number))),
            }
        }
        Ok(())
    }
}

/// Where packets of these lengths begin in `memory`.
fn starts_of(packets: &[(Vec<usize>, usize)], memory: &[u8]) -> Vec<*const u8> {
    let mut at = 0;
    let begin = |(_, len): &(Vec<usize>, usize)| {
        let start = memory.as_ptr().wrapping_add(at);
        at += len;
        start
    };
    packets.iter().map(begin).collect()
}

/// Copies packets, which begin at `packets`, into the parts.
fn place_packets(
    half: &Half,
    transfers: &mut [Transfer<'_>],
    packets: &[*mut u8],
    only: Option<usize>,
) {
    let mut before = 0;
    for transfer in transfers.iter_mut() {
        let starts = half.packets.iter().zip(packets);
        let starts: Vec<_> = starts
            .map(|(packet, start)| start.wrapping_add(packet.count * before))
            .collect();
        let part = transfer.target.as_mut_ptr();
        // SAFETY: the part was found to have the size of the local array and is
        // borrowed; the packets are whole, and only read.
        unsafe { half.copy(part, &starts, transfer.size, true, only) }
        before += transfer.size;
    }
}

/// Copies packets out of the memory of others into the parts.
fn fetch(
    half: &Half,
    transfers: &mut [Transfer<'_>],
    reach: impl Fn(usize) -> Option<(*const u8, usize)>,
) -> Result<()> {
    let all: usize = transfers.iter().map(|transfer| transfer.size).sum();
    let start = |packet: &super::step::Packet| {
        if packet.count == 0 {
            return Ok(std::ptr::null_mut());
        }
        let sender = packet.ranks[0];
        let (memory, len) = reach(sender).unwrap_or((std::ptr::null(), 0));
        let entry = 8 * half.place;
        let mut offset = [0; 8];
        if entry + 8 <= len {
            // SAFETY: lent for the length of the visit, and long enough.
            offset = unsafe { memory.add(entry).cast::<[u8; 8]>().read_unaligned() };
        }
        let offset = usize::from_ne_bytes(offset);
        match offset.checked_add(packet.count * all) {
            Some(end) if offset > 0 && end <= len => Ok(memory.wrapping_add(offset).cast_mut()),
            _ => Err(wrong(format!(
                "rank {sender} lends no packet for this rank"
            ))),
        }
    };
    let starts: Result<Vec<_>> = half.packets.iter().map(start).collect();
    place_packets(half, transfers, &starts?, None);
    Ok(())
}
