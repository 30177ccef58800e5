//! The exchange: one message to and from each peer that has anything to move.
//!
//! Where a peer has a single piece, MPI reads or writes that memory itself;
//! several pieces are packed into one message and unpacked. Each rank begins
//! with its next neighbour (round `d` of the general schedule pairs rank `r`
//! with `r + d` and `r - d`), so that no rank is flooded by all the others.

use outcore_transport::{Error, Exchange, Result};

use crate::group::{Group, Lane};
use crate::operations::Operations;

/// Collective: moves all pieces of all ranks of `group`.
pub(crate) fn exchange(group: &Group, lane: Lane, exchange: &mut Exchange<'_>) -> Result<()> {
    let (rank, size) = (group.rank, group.members.len());
    // 1. Group the pieces by peer, in the order of the rounds.
    let mut sends: Vec<(usize, &[u8])> = exchange.sends().to_vec();
    let receives = exchange.receives_mut().iter_mut();
    let mut receives: Vec<(usize, &mut [u8])> = receives
        .map(|(peer, piece)| (*peer, &mut **piece))
        .collect();
    for &(peer, _) in &sends {
        group.member(peer)?;
    }
    for (peer, _) in &receives {
        group.member(*peer)?;
    }
    sends.sort_by_key(|(peer, _)| (peer + size - rank) % size);
    receives.sort_by_key(|(peer, _)| (rank + size - peer) % size);
    // 2. Distance 0, so the first in both lists, is the rank itself.
    let own_sends = sends.iter().take_while(|(peer, _)| *peer == rank).count();
    let own_receives = receives
        .iter()
        .take_while(|(peer, _)| *peer == rank)
        .count();
    let (own_sends, sends) = sends.split_at(own_sends);
    let (own_receives, receives) = receives.split_at_mut(own_receives);
    // 3. Pack what goes to one peer from several places.
    let packed: Vec<(usize, Message<'_>)> = sends
        .chunk_by(|a, b| a.0 == b.0)
        .map(|pieces| (pieces[0].0, Message::pack(pieces)))
        .collect();
    let mut awaited: Vec<(usize, Landing<'_, '_>)> = receives
        .chunk_by_mut(|a, b| a.0 == b.0)
        .map(|pieces| (pieces[0].0, Landing::new(pieces)))
        .collect();
    // 4. Receives first, so that what comes in finds its place.
    let mut operations = Operations::new(group);
    for (peer, landing) in &mut awaited {
        operations.receive(lane, *peer, landing.bytes())?;
    }
    for (peer, message) in &packed {
        operations.send(lane, *peer, message.bytes())?;
    }
    // 5. Copy the rank's own part while the messages travel.
    copy_own(group, own_sends, own_receives)?;
    operations.wait()?;
    // 6. Unpack what came for several places.
    awaited
        .into_iter()
        .for_each(|(_, landing)| landing.unpack());
    Ok(())
}

/// What goes to one peer.
enum Message<'a> {
    Straight(&'a [u8]),
    Packed(Vec<u8>),
}

impl<'a> Message<'a> {
    fn pack(pieces: &[(usize, &'a [u8])]) -> Self {
        if let [(_, piece)] = pieces {
            return Self::Straight(piece);
        }
        let mut bytes = Vec::with_capacity(pieces.iter().map(|(_, piece)| piece.len()).sum());
        for (_, piece) in pieces {
            bytes.extend_from_slice(piece);
        }
        Self::Packed(bytes)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Straight(piece) => piece,
            Self::Packed(bytes) => bytes,
        }
    }
}

/// Where the message of one peer is put.
struct Landing<'p, 'a> {
    pieces: &'p mut [(usize, &'a mut [u8])],
    /// Empty if there is a single piece.
    packed: Vec<u8>,
}

impl<'p, 'a> Landing<'p, 'a> {
    fn new(pieces: &'p mut [(usize, &'a mut [u8])]) -> Self {
        let packed = match &*pieces {
            [_] => Vec::new(),
            pieces => vec![0; pieces.iter().map(|(_, piece)| piece.len()).sum()],
        };
        Self { pieces, packed }
    }

    fn bytes(&mut self) -> &mut [u8] {
        match &mut *self.pieces {
            [(_, piece)] => piece,
            _ => &mut self.packed,
        }
    }

    fn unpack(self) {
        let mut rest = &self.packed[..];
        if rest.is_empty() {
            return;
        }
        for (_, piece) in self.pieces {
            let (bytes, after) = rest.split_at(piece.len());
            piece.copy_from_slice(bytes);
            rest = after;
        }
    }
}

/// Copies what a rank sends to itself; the two sides may be cut differently.
fn copy_own(
    group: &Group,
    sends: &[(usize, &[u8])],
    receives: &mut [(usize, &mut [u8])],
) -> Result<()> {
    let sent: usize = sends.iter().map(|(_, piece)| piece.len()).sum();
    let expected: usize = receives.iter().map(|(_, piece)| piece.len()).sum();
    if sent != expected {
        return Err(group.mistake(Error::LengthMismatch {
            from: group.rank,
            to: group.rank,
            sent: sent as u64,
            expected: expected as u64,
        }));
    }
    let mut sources = sends.iter().map(|(_, piece)| *piece);
    let mut source: &[u8] = &[];
    for (_, piece) in receives {
        let mut place = &mut **piece;
        while !place.is_empty() {
            if source.is_empty() {
                // The sums are equal, so there is another piece.
                source = sources.next().unwrap_or_default();
                continue;
            }
            let len = source.len().min(place.len());
            let (now, later) = place.split_at_mut(len);
            now.copy_from_slice(&source[..len]);
            (source, place) = (&source[len..], later);
        }
    }
    Ok(())
}
