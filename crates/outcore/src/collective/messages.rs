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
use super::moved::{Moved, timed};
use super::request::from_message;
use super::two_phase::TwoPhase;
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
) -> Result<Result<Moved>> {
    let store = &**array.store();
    let mut moved = plan.begun();
    let mut outcome = Ok(());
    let mut inbox = Vec::new();
    for round in 0..plan.rounds() {
        window.enter(plan, round);
        if outcome.is_ok() {
            outcome = window.fill(array, &mut moved);
        }
        timed(store, &mut moved.copy, || window.pack(plan));
        let mut shares = shares(plan, round);
        let mut exchange = Exchange::with_capacity(0, shares.len());
        for (rank, message) in window.messages(plan) {
            moved.send(comm, rank, message);
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
            timed(store, &mut moved.exchange, || comm.exchange(&mut exchange))?;
            continue;
        }
        inbox.resize(shares.iter().map(|share| share.bytes.len()).sum(), 0);
        let mut rest = &mut inbox[..];
        for share in &shares {
            let (place, later) = rest.split_at_mut(share.bytes.len());
            rest = later;
            exchange.receive(share.peer, place);
        }
        timed(store, &mut moved.exchange, || comm.exchange(&mut exchange))?;
        timed(store, &mut moved.copy, || {
            each_pass(plan, &shares, |pass| gather(&pass, &inbox, 0, buffer));
        });
    }
    Ok(outcome.map(|()| moved))
}

/// Writes `data`. The inner outcome is that of this rank's own part.
pub(super) fn write(
    plan: &TwoPhase,
    array: &Array,
    window: &mut Window,
    comm: &Comm,
    data: &[u8],
) -> Result<Result<Moved>> {
    let store = &**array.store();
    let mut moved = plan.begun();
    let mut outcome = Ok(());
    let mut outbox = Vec::new();
    for round in 0..plan.rounds() {
        window.enter(plan, round);
        let shares = shares(plan, round);
        if !plan.is_ordered() {
            outbox.resize(shares.iter().map(|share| share.bytes.len()).sum(), 0);
            timed(store, &mut moved.copy, || {
                each_pass(plan, &shares, |pass| scatter(&pass, data, &mut outbox, 0));
            });
        }
        let mut exchange = Exchange::with_capacity(shares.len(), 0);
        let mut packed = &outbox[..];
        for Share { peer, bytes, .. } in shares {
            let message = match plan.is_ordered() {
                true => &data[bytes],
                false => packed.split_off(..bytes.len()).unwrap_or(&[]),
            };
            moved.send(comm, peer, message);
            exchange.send(peer, message);
        }
        for (rank, message) in window.messages_mut(plan) {
            exchange.receive(rank, message);
        }
        timed(store, &mut moved.exchange, || comm.exchange(&mut exchange))?;
        if outcome.is_ok() {
            outcome = window.flush(plan, array, None, &mut moved);
        }
    }
    Ok(outcome.map(|()| moved))
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
