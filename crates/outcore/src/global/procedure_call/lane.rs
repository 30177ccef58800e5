//! [`Lane`]: the calls of this rank to one other rank of its node.
//!
//! As many are under way as the target's inbox has slots for this rank; the
//! others queue here. Whoever starts, tests or awaits a call to that rank also
//! takes the answers that have come to all of them, and posts the next ones.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::arena::{Arena, Piece};
use super::fault::ProcedureFault;
use super::flight::Flight;
use super::slot::{INLINE, Inbox, Slot, Status, state};

/// The calls of this rank to another.
#[derive(Debug)]
pub(super) struct Lane {
    caller: usize,
    /// The inbox of the caller.
    home: Inbox,
    /// The inbox of the target.
    inbox: Inbox,
    /// For long data; `None` if the target uses the caller's memory in place.
    arena: Option<Arc<Arena>>,
    calls: Mutex<Calls>,
    /// How many calls were posted.
    posted: AtomicU32,
}

#[derive(Debug)]
struct Calls {
    /// The call in each slot.
    slots: Vec<Option<Posted>>,
    queue: VecDeque<Arc<Flight>>,
    /// Whether the head of the caller's inbox counts the queue.
    counted: bool,
}

/// A call in a slot, and what it has of the arena: for its header, its data
/// and its response.
#[derive(Debug)]
struct Posted {
    flight: Arc<Flight>,
    pieces: [Option<Piece>; 3],
}

impl Lane {
    pub(super) fn new(
        (caller, home): (usize, Inbox),
        inbox: Inbox,
        slots: usize,
        arena: Option<Arc<Arena>>,
    ) -> Self {
        Self {
            caller,
            home,
            inbox,
            arena,
            calls: Mutex::new(Calls {
                slots: (0..slots).map(|_| None).collect(),
                queue: VecDeque::new(),
                counted: false,
            }),
            posted: AtomicU32::new(0),
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, place: usize) -> &Slot {
        self.inbox.slot(self.inbox.index(self.caller, place))
    }

    fn is_closed(&self) -> bool {
        self.inbox.head().closed.load(Ordering::SeqCst) != 0
    }

    /// Begins a call.
    pub(super) fn submit(&self, flight: &Arc<Flight>) {
        let mut calls = self.calls();
        calls.queue.push_back(flight.clone());
        self.advance(&mut calls);
    }

    /// Takes the answers that have come, and posts what waits.
    pub(super) fn progress(&self) {
        self.advance(&mut self.calls());
    }

    /// Whether no call is under way.
    pub(super) fn is_idle(&self) -> bool {
        let calls = self.calls();
        calls.queue.is_empty() && calls.slots.iter().all(Option::is_none)
    }

    /// Takes the answers that have come, and posts what waits.
    fn advance(&self, calls: &mut Calls) {
        self.advance_once(calls);
        self.count(calls);
    }

    /// Lets the server know whether calls are queued.
    fn count(&self, calls: &mut Calls) {
        if calls.counted == calls.queue.is_empty() {
            calls.counted = !calls.queue.is_empty();
            self.home.head().count_queue(calls.counted);
            if calls.counted {
                // An answer that came just before rang for nobody.
                self.advance(calls);
            }
        }
    }

    fn advance_once(&self, calls: &mut Calls) {
        // 1. Answers.
        let mut free = None;
        for place in (0..calls.slots.len()).rev() {
            if let Some(posted) = &calls.slots[place] {
                let flight = &posted.flight;
                let slot = self.slot(place);
                // After `count` this must see an answer that has not seen the queue.
                match slot.state.load(Ordering::SeqCst) {
                    state::DONE => {
                        self.collect(slot, posted);
                        slot.state.store(state::FREE, Ordering::Release);
                        self.clear(&mut calls.slots[place]);
                    }
                    state::ROOM => {
                        let len = slot.header_len.load(Ordering::Relaxed) as usize;
                        let room = flight.make_room(len) as u64;
                        slot.header_at.store(room, Ordering::Relaxed);
                        // The server may have closed meanwhile: then it is done.
                        if slot.turn(state::ROOM, state::FETCH) {
                            self.inbox.post(self.inbox.index(self.caller, place));
                        }
                    }
                    _ => {}
                }
            }
            if calls.slots[place].is_none() {
                free = Some(place);
            }
        }
        // 2. Requests.
        while let Some(place) = free {
            let Some(flight) = calls.queue.pop_front() else {
                break;
            };
            let mut posted = Posted {
                flight,
                pieces: [None; 3],
            };
            if self.post(place, &mut posted) {
                calls.slots[place] = Some(posted);
                free = calls.slots.iter().position(Option::is_none);
            } else {
                posted.flight.end(Err(ProcedureFault::Finished));
                self.clear(&mut Some(posted));
            }
        }
    }

    /// Gives back what a call has of the arena, and forgets it.
    fn clear(&self, posted: &mut Option<Posted>) -> Option<Arc<Flight>> {
        let posted = posted.take()?;
        if let Some(arena) = &self.arena {
            let pieces = posted.pieces.into_iter().flatten();
            pieces.for_each(|piece| arena.give_back(piece));
        }
        Some(posted.flight)
    }

    /// Lays the call down in a free slot; false if the server is gone.
    fn post(&self, place: usize, posted: &mut Posted) -> bool {
        let flight = &posted.flight;
        if self.is_closed() {
            return false;
        }
        let slot = self.slot(place);
        let (header, data) = (flight.header(), flight.data());
        let (response, room) = flight.response();
        // 1. Short things lie in the slot, longer ones in the arena, and where
        //    there is no room they stay where they are.
        let long = |len: usize| {
            let arena = self.arena.as_ref().filter(|_| len > INLINE)?;
            Some((arena.take(len)?, arena))
        };
        let mut used = 0;
        let mut lay = |bytes: &[u8], piece: &mut Option<Piece>| {
            if self.arena.is_none() {
                return bytes.as_ptr() as u64;
            }
            if used + bytes.len() > INLINE {
                let Some((taken, arena)) = long(bytes.len()) else {
                    return bytes.as_ptr() as u64;
                };
                *piece = Some(taken);
                // SAFETY: so many bytes were taken, for this call alone.
                unsafe {
                    let start = arena.at(taken);
                    start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                }
                return taken.code();
            }
            // SAFETY: the slot is free, so it is this rank's turn.
            unsafe { slot.write(used, bytes) };
            used += bytes.len();
            0
        };
        let [for_header, for_data, for_response] = &mut posted.pieces;
        let header_at = lay(header, for_header);
        let data_at = lay(data, for_data);
        *for_response = long(room).map(|(piece, _)| piece);
        let response_at = for_response.map_or(response as u64, Piece::code);
        let relaxed = Ordering::Relaxed;
        slot.procedure.store(flight.procedure, relaxed);
        let sequence = self.posted.fetch_add(1, relaxed);
        slot.sequence.store(sequence, relaxed);
        slot.header_len.store(header.len() as u64, relaxed);
        slot.header_at.store(header_at, relaxed);
        slot.data_len.store(data.len() as u64, relaxed);
        slot.data_at.store(data_at, relaxed);
        slot.response_len.store(room as u64, relaxed);
        slot.response_at.store(response_at, relaxed);
        // 2. It is the server's turn, if it is still there: either it sees the
        //    request when it closes, or this sees that it has closed.
        slot.state.store(state::REQUESTED, Ordering::SeqCst);
        self.inbox.post(self.inbox.index(self.caller, place));
        !(self.is_closed() && slot.turn(state::REQUESTED, state::FREE))
    }

    /// Takes the answer out of a slot.
    fn collect(&self, slot: &Slot, posted: &Posted) {
        let flight = &posted.flight;
        let status = Status::from_code(slot.status.load(Ordering::Relaxed));
        let header_len = slot.header_len.load(Ordering::Relaxed) as usize;
        let len = slot.response_len.load(Ordering::Relaxed) as usize;
        let (response, room) = flight.response();
        let len = len.min(room);
        // SAFETY: the slot is done, so it is this rank's turn.
        let (header, inline) = unsafe {
            match slot.header_at.load(Ordering::Relaxed) {
                0 => (slot.bytes(0, header_len).to_vec(), header_len),
                _ => (flight.take_long_header(), 0),
            }
        };
        if status == Status::Answered {
            let [.., piece] = posted.pieces;
            let in_arena = piece.zip(self.arena.as_ref());
            // SAFETY: as above, and the room is the call's.
            unsafe {
                if let Some((piece, arena)) = in_arena {
                    response.copy_from_nonoverlapping(arena.at(piece), len);
                } else if slot.response_at.load(Ordering::Relaxed) == 0 {
                    let bytes = slot.bytes(inline, len);
                    response.copy_from_nonoverlapping(bytes.as_ptr(), len);
                }
            }
        }
        flight.answer(status, header, len);
    }

    /// Takes a call back whose procedure has not begun; whether it is over now,
    /// or its memory free. If not, the target is using it.
    pub(super) fn withdraw(&self, flight: &Arc<Flight>) -> bool {
        let mut calls = self.calls();
        self.advance(&mut calls);
        if flight.is_over() {
            return true;
        }
        calls.queue.retain(|other| !Arc::ptr_eq(other, flight));
        self.count(&mut calls);
        let place = calls.slots.iter().position(|other| {
            other
                .as_ref()
                .is_some_and(|other| Arc::ptr_eq(&other.flight, flight))
        });
        let Some(place) = place else { return true };
        let slot = self.slot(place);
        let free = [state::REQUESTED, state::ROOM]
            .iter()
            .any(|&from| slot.turn(from, state::FREE));
        if free {
            self.clear(&mut calls.slots[place]);
        }
        free
    }

    /// The target has ended: what it has not begun it never will.
    pub(super) fn give_up(&self) {
        let mut calls = self.calls();
        self.advance(&mut calls);
        for flight in calls.queue.drain(..) {
            flight.end(Err(ProcedureFault::Finished));
        }
        self.count(&mut calls);
        for place in 0..calls.slots.len() {
            let slot = self.slot(place);
            let unserved = |&from: &u32| slot.turn(from, state::FREE);
            if calls.slots[place].is_some()
                && [state::REQUESTED, state::ROOM].iter().any(unserved)
                && let Some(flight) = self.clear(&mut calls.slots[place])
            {
                flight.end(Err(ProcedureFault::Finished));
            }
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // What the target may still be using is never used again.
        let calls = self.calls.get_mut().unwrap_or_else(PoisonError::into_inner);
        for flight in calls.slots.drain(..).flatten() {
            std::mem::forget(flight);
        }
    }
}
