//! Two-phase reads and writes in which messages carry the data.
//!
//! In round `k` every aggregator has window `k` of its domain. Everybody knows
//! who wants what of every window, so the lengths of all messages are known at
//! both ends. A rank whose own input or output fails goes on taking part: it
//! sends what it has and writes no more; the ranks agree on the outcome at the
//! end. Only failures of the transport leave at once.

use std::ops::Range;

use outcore_transport::{Comm, Exchange};

use super::aggregate::Window;
use super::plan::TwoPhase;
use super::request::from_message;
use crate::array::Array;
use crate::error::Result;
use crate::execute::copy::{gather, scatter};

/// What a rank gets from, or gives to, another one in a round: the rank, the
/// range of the file, and the bytes in the order of the file.
struct Share {
    peer: usize,
    piece: Range<u64>,
    bytes: Range<usize>,
}

/// What this rank wants of all windows of a round: for each peer in the order of
/// the file.
fn shares(plan: &TwoPhase, round: u64) -> Vec<Share> {
    let mut shares = Vec::new();
    for (peer, piece) in plan.wanted_pieces(round) {
        let share = plan.own().share(piece.start, piece.end);
        if !share.is_empty() {
            shares.push(Share {
                peer,
                piece: piece.start..piece.end,
                bytes: share.start as usize..share.end as usize,
            });
        }
    }
    shares
}

/// Reads into `buffer`. The inner outcome is that of this rank's own part.
pub(super) fn read(
    plan: &TwoPhase,
    array: &Array,
    window: &mut Window,
    comm: &Comm,
    buffer: &mut [u8],
) -> Result<Result<()>> {
    let mut outcome = Ok(());
    let mut inbox = Vec::new();
    for round in 0..plan.rounds() {
        window.enter(plan, round);
        if outcome.is_ok() {
            outcome = window.fill(array);
        }
        window.pack(plan);
        let mut shares = shares(plan, round);
        let mut exchange = Exchange::with_capacity(0, shares.len());
        for (rank, message) in window.messages() {
            exchange.send(rank, message);
        }
        if plan.is_ordered() {
            // Straight into their places, one after the other.
            shares.sort_unstable_by_key(|share| share.bytes.start);
            let (mut rest, mut done) = (&mut *buffer, 0);
            for Share { peer, bytes, .. } in &shares {
                let (_, later) = rest.split_at_mut(bytes.start - done);
                let (place, later) = later.split_at_mut(bytes.len());
                (rest, done) = (later, bytes.end);
                exchange.receive(*peer, place);
            }
            comm.exchange(&mut exchange)?;
            continue;
        }
        inbox.resize(shares.iter().map(|share| share.bytes.len()).sum(), 0);
        let mut rest = &mut inbox[..];
        for share in &shares {
            let (place, later) = rest.split_at_mut(share.bytes.len());
            rest = later;
            exchange.receive(share.peer, place);
        }
        comm.exchange(&mut exchange)?;
        each_pass(plan, &shares, |pass| gather(&pass, &inbox, 0, buffer));
    }
    Ok(outcome)
}

/// Writes `data`. The inner outcome is that of this rank's own part.
pub(super) fn write(
    plan: &TwoPhase,
    array: &Array,
    window: &mut Window,
    comm: &Comm,
    data: &[u8],
) -> Result<Result<()>> {
    let mut outcome = Ok(());
    let mut outbox = Vec::new();
    for round in 0..plan.rounds() {
        window.enter(plan, round);
        let shares = shares(plan, round);
        if !plan.is_ordered() {
            outbox.resize(shares.iter().map(|share| share.bytes.len()).sum(), 0);
            each_pass(plan, &shares, |pass| scatter(&pass, data, &mut outbox, 0));
        }
        let mut exchange = Exchange::with_capacity(shares.len(), 0);
        let mut packed = &outbox[..];
        for Share { peer, bytes, .. } in shares {
            if plan.is_ordered() {
                exchange.send(peer, &data[bytes]);
            } else {
                let (message, later) = packed.split_at(bytes.len());
                packed = later;
                exchange.send(peer, message);
            }
        }
        for (rank, message) in window.messages_mut() {
            exchange.receive(rank, message);
        }
        comm.exchange(&mut exchange)?;
        if outcome.is_ok() {
            outcome = window.flush(plan, array);
        }
    }
    Ok(outcome)
}

/// Calls `copy` with the passes between the buffer and the messages of all
/// shares, which stand end to end in the place of the file.
fn each_pass(plan: &TwoPhase, shares: &[Share], mut copy: impl FnMut(outcore_geometry::Pass)) {
    let mut at = 0;
    for share in shares {
        for pass in plan.own().runs.window(share.piece.start, share.piece.end) {
            copy(from_message(&pass, at));
            at += pass.count * pass.first.len;
        }
    }
}
