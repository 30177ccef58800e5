//! [`Lane`]: the calls of this rank to one other rank of its node.
//!
//! As many are under way as the target's inbox has slots for this rank; the
//! others queue here. Whoever starts, tests or awaits a call to that rank also
//! takes the answers that have come to all of them, and posts the next ones.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fault::ProcedureFault;
use super::flight::Flight;
use super::slot::{INLINE, Inbox, Slot, Status, state};

/// The calls of this rank to another.
#[derive(Debug)]
pub(super) struct Lane {
    caller: usize,
    /// The inbox of the target.
    inbox: Inbox,
    /// Whether the target uses the caller's memory in place.
    in_place: bool,
    calls: Mutex<Calls>,
}

#[derive(Debug)]
struct Calls {
    /// The call in each slot.
    slots: Vec<Option<Arc<Flight>>>,
    queue: VecDeque<Arc<Flight>>,
}

impl Lane {
    pub(super) fn new(caller: usize, inbox: Inbox, slots: usize, in_place: bool) -> Self {
        Self {
            caller,
            inbox,
            in_place,
            calls: Mutex::new(Calls {
                slots: vec![None; slots],
                queue: VecDeque::new(),
            }),
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

    fn advance(&self, calls: &mut Calls) {
        // 1. Answers.
        let mut free = None;
        for place in (0..calls.slots.len()).rev() {
            if let Some(flight) = &calls.slots[place] {
                let slot = self.slot(place);
                match slot.state.load(Ordering::Acquire) {
                    state::DONE => {
                        self.collect(slot, flight);
                        slot.state.store(state::FREE, Ordering::Release);
                        calls.slots[place] = None;
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
            if self.post(place, &flight) {
                calls.slots[place] = Some(flight);
                free = calls.slots.iter().position(Option::is_none);
            } else {
                flight.end(Err(ProcedureFault::Finished));
            }
        }
    }

    /// Lays the call down in a free slot; false if the server is gone.
    fn post(&self, place: usize, flight: &Flight) -> bool {
        if self.is_closed() {
            return false;
        }
        let slot = self.slot(place);
        let (header, data) = (flight.header(), flight.data());
        let (response, room) = flight.response();
        // 1. Short things lie in the slot, long ones stay where they are.
        let mut used = 0;
        let mut lay = |bytes: &[u8]| {
            if self.in_place || used + bytes.len() > INLINE {
                return bytes.as_ptr() as u64;
            }
            // SAFETY: the slot is free, so it is this rank's turn.
            unsafe { slot.write(used, bytes) };
            used += bytes.len();
            0
        };
        let (header_at, data_at) = (lay(header), lay(data));
        let relaxed = Ordering::Relaxed;
        slot.procedure.store(flight.procedure, relaxed);
        slot.header_len.store(header.len() as u64, relaxed);
        slot.header_at.store(header_at, relaxed);
        slot.data_len.store(data.len() as u64, relaxed);
        slot.data_at.store(data_at, relaxed);
        slot.response_len.store(room as u64, relaxed);
        slot.response_at.store(response as u64, relaxed);
        // 2. It is the server's turn, if it is still there: either it sees the
        //    request when it closes, or this sees that it has closed.
        slot.state.store(state::REQUESTED, Ordering::SeqCst);
        self.inbox.post(self.inbox.index(self.caller, place));
        !(self.is_closed() && slot.turn(state::REQUESTED, state::FREE))
    }

    /// Takes the answer out of a slot.
    fn collect(&self, slot: &Slot, flight: &Flight) {
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
        if slot.response_at.load(Ordering::Relaxed) == 0 && status == Status::Answered {
            // SAFETY: as above, and the room is the call's.
            unsafe {
                let bytes = slot.bytes(inline, len);
                response.copy_from_nonoverlapping(bytes.as_ptr(), len);
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
        let place = calls.slots.iter().position(|other| {
            other
                .as_ref()
                .is_some_and(|other| Arc::ptr_eq(other, flight))
        });
        let Some(place) = place else { return true };
        let slot = self.slot(place);
        let free = [state::REQUESTED, state::ROOM]
            .iter()
            .any(|&from| slot.turn(from, state::FREE));
        if free {
            calls.slots[place] = None;
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
        for place in 0..calls.slots.len() {
            let slot = self.slot(place);
            let unserved = |&from: &u32| slot.turn(from, state::FREE);
            if calls.slots[place].is_some()
                && [state::REQUESTED, state::ROOM].iter().any(unserved)
                && let Some(flight) = calls.slots[place].take()
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
