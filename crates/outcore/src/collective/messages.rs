//! Two-phase reads and writes in which messages carry the data.
//!
//! In round `k` every aggregator has window `k` of its domain. Everybody knows
//! who wants what of every window, so the lengths of all messages are known at
//! both ends. A rank whose own input or output fails goes on taking part: it
//! sends what it has and writes no more; the ranks agree on the outcome at the
//! end. Only failures of the transport leave at once.
//!
//! Pipelined, the input of the next window, or the output of the last one, goes
//! on beside the exchange of this one.

use std::ops::Range;
use std::slice::from_ref;
use std::time::Duration;

use outcore_geometry::Pass;
use outcore_storage::Store;
use outcore_transport::{Comm, Exchange, Op};

use super::aggregate::Window;
use super::beside::beside;
use super::moved::{Moved, timed};
use super::request::from_message;
use super::two_phase::TwoPhase;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::execute::copy::{gather, scatter};

/// Reads into `buffer`. The inner outcome is that of this rank's own part.
pub(super) fn read(
    plan: &TwoPhase,
    array: &Array,
    windows: &mut Vec<Window>,
    comm: &Comm,
    buffer: &mut [u8],
) -> Result<Result<Moved>> {
    let (mut io, mut outcome) = (Moved::default(), Ok(()));
    let mut fill = |arrays: &[Array], window: &mut Window, round: u64| {
        let array = &arrays[0];
        window.enter(plan, round);
        if outcome.is_ok() {
            outcome = window.fill(array, &mut io);
        }
        timed(&**array.store(), &mut io.copy, || window.pack(plan));
    };
    let mut rounds = Rounds::new(plan, array, comm);
    beside(plan.is_pipelined(), from_ref(array), &mut fill, |beside| {
        let mut next = 0..plan.rounds();
        for (window, round) in windows.drain(..).zip(next.by_ref()) {
            beside.give(window, round);
        }
        for round in 0..plan.rounds() {
            let window = beside.take().ok_or_else(gone)?;
            rounds.receive(round, &window, buffer)?;
            match next.next() {
                Some(later) => beside.give(window, later),
                None => windows.push(window),
            }
        }
        rounds.moved.io += beside.waited;
        Ok::<(), Error>(())
    })?;
    Ok(outcome.map(|()| rounds.moved.with_work(&io, plan.is_pipelined())))
}

/// Writes `data`. The inner outcome is that of this rank's own part.
pub(super) fn write(
    plan: &TwoPhase,
    array: &Array,
    windows: &mut Vec<Window>,
    comm: &Comm,
    data: &[u8],
) -> Result<Result<Moved>> {
    let (mut io, mut outcome) = (Moved::default(), Ok(()));
    let mut flush = |arrays: &[Array], window: &mut Window, _: u64| {
        if outcome.is_ok() {
            outcome = window.flush(plan, &arrays[0], None, &mut io);
        }
    };
    let mut rounds = Rounds::new(plan, array, comm);
    beside(plan.is_pipelined(), from_ref(array), &mut flush, |beside| {
        for round in 0..plan.rounds() {
            let free = windows.pop().or_else(|| beside.take());
            let mut window = free.ok_or_else(gone)?;
            window.enter(plan, round);
            rounds.send(round, &mut window, data)?;
            beside.give(window, round);
        }
        while let Some(window) = beside.take() {
            windows.push(window);
        }
        rounds.moved.io += beside.waited;
        Ok::<(), Error>(())
    })?;
    Ok(outcome.map(|()| rounds.moved.with_work(&io, plan.is_pipelined())))
}

/// The error of work beside the caller's that has ended too early, which only a
/// panic can make it do.
pub(crate) fn gone() -> Error {
    Error::Invalid("the input or output of a collective call has ended early".into())
}

/// What a rank gets from, or gives to, another one in a round: the rank, the
/// range of the file, and the bytes in the order of the file.
struct Share {
    peer: usize,
    piece: Range<u64>,
    bytes: Range<usize>,
}

/// The exchanges, as those see them who have asked for something.
struct Rounds<'a> {
    plan: &'a TwoPhase,
    array: &'a Array,
    comm: &'a Comm,
    /// Messages that are not in the order of the buffer.
    mail: Vec<u8>,
    moved: Moved,
}

impl<'a> Rounds<'a> {
    fn new(plan: &'a TwoPhase, array: &'a Array, comm: &'a Comm) -> Self {
        Self {
            plan,
            array,
            comm,
            mail: Vec::new(),
            moved: plan.begun(),
        }
    }

    /// What this rank wants of all windows of a round: for each peer in the
    /// order of the file.
    fn shares(&self, round: u64) -> Vec<Share> {
        let pieces = self.plan.wanted_pieces(round);
        let shares = pieces.map(|(peer, piece)| {
            let share = self.plan.own().share(piece.start, piece.end);
            Share {
                peer,
                piece: piece.start..piece.end,
                bytes: share.start as usize..share.end as usize,
            }
        });
        shares.filter(|share| !share.bytes.is_empty()).collect()
    }

    /// Sends the messages of `window`, and receives what this rank has asked
    /// for into `buffer`.
    fn receive(&mut self, round: u64, window: &Window, buffer: &mut [u8]) -> Result<()> {
        let (plan, comm, store) = (self.plan, self.comm, &**self.array.store());
        let mut shares = self.shares(round);
        let mut exchange = Exchange::with_capacity(0, shares.len());
        for (rank, message) in window.messages(plan) {
            self.moved.send(comm, rank, message);
            exchange.send(rank, message);
        }
        if plan.is_ordered() {
            // Straight into their places, one after the other.
            shares.sort_unstable_by_key(|share| share.bytes.start);
            let (mut rest, mut done) = (buffer, 0);
            for Share { peer, bytes, .. } in &shares {
                let (_, later) = rest.split_at_mut(bytes.start - done);
                let (place, later) = later.split_at_mut(bytes.len());
                (rest, done) = (later, bytes.end);
                exchange.receive(*peer, place);
            }
            return meet(self.array, comm, &mut exchange, &mut self.moved);
        }
        let bytes = shares.iter().map(|share| share.bytes.len()).sum();
        self.mail.resize(bytes, 0);
        let mut rest = &mut self.mail[..];
        for share in &shares {
            let (place, later) = rest.split_at_mut(share.bytes.len());
            rest = later;
            exchange.receive(share.peer, place);
        }
        meet(self.array, comm, &mut exchange, &mut self.moved)?;
        timed(store, &mut self.moved.copy, || {
            each_pass(plan, &shares, |pass| gather(&pass, &self.mail, 0, buffer));
        });
        Ok(())
    }

    /// Sends what this rank writes, and receives the messages of `window`.
    fn send(&mut self, round: u64, window: &mut Window, data: &[u8]) -> Result<()> {
        let (plan, comm, store) = (self.plan, self.comm, &**self.array.store());
        let shares = self.shares(round);
        if !plan.is_ordered() {
            let bytes = shares.iter().map(|share| share.bytes.len()).sum();
            self.mail.resize(bytes, 0);
            timed(store, &mut self.moved.copy, || {
                each_pass(plan, &shares, |pass| {
                    scatter(&pass, data, &mut self.mail, 0)
                });
            });
        }
        let mut exchange = Exchange::with_capacity(shares.len(), 0);
        let mut packed = &self.mail[..];
        for Share { peer, bytes, .. } in shares {
            let message = match plan.is_ordered() {
                true => &data[bytes],
                false => packed.split_off(..bytes.len()).unwrap_or(&[]),
            };
            self.moved.send(comm, peer, message);
            exchange.send(peer, message);
        }
        for (rank, message) in window.messages_mut(plan) {
            exchange.receive(rank, message);
        }
        meet(self.array, comm, &mut exchange, &mut self.moved)
    }
}

/// The exchange itself.
fn meet(array: &Array, comm: &Comm, exchange: &mut Exchange<'_>, moved: &mut Moved) -> Result<()> {
    let store = &**array.store();
    timed(store, &mut moved.exchange, || {
        comm.exchange(exchange)?;
        leave_together(store, comm)
    })
}

/// Collective: in virtual time nobody goes on before the last has come.
pub(crate) fn leave_together(store: &dyn Store, comm: &Comm) -> Result<()> {
    if let Some(now) = store.time() {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let latest = comm.all_reduce(&[now], Op::Max)?[0];
        store.wait_until(Duration::from_nanos(latest));
    }
    Ok(())
}

/// Calls `copy` with the passes between the buffer and the messages of all
/// shares, which stand end to end in the place of the file.
fn each_pass(plan: &TwoPhase, shares: &[Share], mut copy: impl FnMut(Pass)) {
    let mut at = 0;
    for share in shares {
        for pass in plan.own().runs.window(share.piece.start, share.piece.end) {
            copy(from_message(&pass, at));
            at += pass.count * pass.first.len;
        }
    }
}
