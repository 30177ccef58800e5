//! The data server of a rank: a thread that runs procedures for other ranks.
//!
//! It sleeps on the bell of its inbox. If there are ranks that it shares no
//! memory with, it also looks for letters, more and more seldom while none
//! come.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::hint;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use outcore_transport::doorbell::sleep_on;
use outcore_transport::panics;

use super::Procedures;
use super::arena;
use super::inner::Inner;
use super::post::Ask;
use super::request::{Distant, Request, Response, Source, Target};
use super::slot::{INLINE, Inbox, Mark, Slot, Status, state};
use crate::error::Result;

/// How long the server sleeps where nothing but its bell can wake it.
const SLEEP: Duration = Duration::from_secs(60);

/// The pauses between looks for letters: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(1)];

/// Memory that is kept from one call to the next is no longer than this.
const KEPT: usize = 16 << 20;

/// The server of one rank.
struct Server {
    procedures: Procedures,
    inner: Arc<Inner>,
    inbox: Inbox,
    /// Long response headers that their callers have not yet made room for, by
    /// slot.
    kept: HashMap<usize, Vec<u8>>,
    /// What was posted last.
    posted: Vec<Mark>,
    /// For request data, and for response data.
    scratch: [Vec<u8>; 2],
    /// For response data that goes to a slot.
    short: Box<[u8; INLINE]>,
}

/// Serves until the rank stops its server.
pub(super) fn serve(inner: Arc<Inner>) {
    let inbox = inner.own_inbox();
    // Whatever happens, callers learn that nobody serves here any more.
    let _closing = Closing(&inner, inbox);
    // One that spins stays with its rank: the callers' cores are not idle beside it.
    if let (Some(cores), false) = (&inner.cores, inner.options.spin) {
        cores.use_all();
    }
    let spins = u32::from(inner.options.spin);
    inbox.head().spins.store(spins, Ordering::Relaxed);
    let mut server = Server {
        procedures: Procedures::of(&inner),
        inner: inner.clone(),
        inbox,
        kept: HashMap::new(),
        posted: Vec::new(),
        scratch: Default::default(),
        short: Box::new([0; INLINE]),
    };
    let mut pause = PAUSES[0];
    loop {
        let stopping = inner.is_stopping();
        let served = server.serve_slots() | server.serve_letters();
        inner.post_queued();
        if stopping {
            return;
        }
        if served {
            pause = PAUSES[0];
        } else if inner.options.spin {
            hint::spin_loop();
        } else {
            let longest = inner.post.as_ref().map_or(SLEEP, |_| pause);
            pause = PAUSES[1].min(pause * 2);
            let is_work = || {
                // An answer that comes later rings.
                inner.post_queued();
                let asked = inner.post.as_ref().is_some_and(|post| post.is_asked());
                asked || inbox.is_posted() || inner.is_stopping()
            };
            inbox
                .head()
                .sleep(is_work, |bell, seen| sleep_on(bell, seen, longest));
        }
    }
}

/// Closes the inbox when dropped.
struct Closing<'a>(&'a Inner, Inbox);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let Self(inner, inbox) = self;
        inbox.head().closed.store(1, Ordering::SeqCst);
        for index in inbox.indices() {
            let slot = inbox.slot(index);
            let open = [state::REQUESTED, state::ROOM, state::FETCH];
            if open.iter().any(|&from| slot.turn(from, state::TAKEN)) {
                finish(inner, *inbox, index, Status::Finished, &[]);
            }
        }
        // In a failed run nobody reads them.
        for rank in inner.by_letter() {
            let _ = inner.post.as_ref().map(|post| post.close(rank));
        }
    }
}

/// Lays an answer with a short header down and tells the caller.
fn finish(inner: &Inner, inbox: Inbox, index: usize, status: Status, header: &[u8]) {
    let slot = inbox.slot(index);
    slot.header_at.store(0, Ordering::Relaxed);
    slot.header_len
        .store(header.len() as u64, Ordering::Relaxed);
    // SAFETY: the slot is taken, so it is the server's turn.
    unsafe { slot.write(0, header) };
    hand_over(inner, inbox, index, status, state::DONE);
}

/// Gives the slot to its caller.
fn hand_over(inner: &Inner, inbox: Inbox, index: usize, status: Status, to: u32) {
    let slot = inbox.slot(index);
    slot.status.store(status as u32, Ordering::Relaxed);
    slot.state.store(to, Ordering::SeqCst);
    if let Some(caller) = inner.inbox(inbox.caller(index)) {
        caller.head().announce_answer();
    }
}

impl Server {
    /// Serves what was posted; whether there was anything.
    fn serve_slots(&mut self) -> bool {
        let inbox = self.inbox;
        let mut posted = std::mem::take(&mut self.posted);
        let some = inbox.take_posted(&mut posted, |index| {
            let slot = inbox.slot(index);
            if slot.turn(state::REQUESTED, state::TAKEN) {
                if !self.kept.is_empty() {
                    self.kept.remove(&index);
                }
                self.serve_slot(index, slot);
            } else if slot.turn(state::FETCH, state::TAKEN) {
                self.send_header(index, slot);
            }
        });
        self.posted = posted;
        some
    }

    /// Runs the procedure of a slot.
    fn serve_slot(&mut self, index: usize, slot: &Slot) {
        let word = |word: &std::sync::atomic::AtomicU64| word.load(Ordering::Relaxed);
        let caller = self.inbox.caller(index);
        let [header_len, data_len, room] =
            [&slot.header_len, &slot.data_len, &slot.response_len].map(|len| word(len) as usize);
        let [header_at, data_at, response_at] =
            [&slot.header_at, &slot.data_at, &slot.response_at].map(word);
        let inner = self.inner.clone();
        let procedure = slot.procedure.load(Ordering::Relaxed);
        let distant = |address| Distant {
            transport: &**inner.comm.transport(),
            rank: caller,
            address,
        };
        // What lies in the arena of the caller.
        let arena = |code: u64, len: usize| -> Option<*mut u8> {
            inner.inbox(caller)?.in_arena(arena::offset(code)?, len)
        };
        // 1. The request, wherever it is.
        let mut long_header = Vec::new();
        let [request_scratch, response_scratch] = &mut self.scratch;
        // SAFETY: the slot is taken: what lies in it, and what the caller's
        // addresses lead to, is the server's until it is done.
        let (header, source) = unsafe {
            if inner.in_place {
                let there = |at: u64, len| slice::from_raw_parts(at as *const u8, len);
                (
                    there(header_at, header_len),
                    Source::Here(there(data_at, data_len)),
                )
            } else {
                let inline = if header_at == 0 { header_len } else { 0 };
                if header_at != 0 && arena(header_at, header_len).is_none() {
                    long_header.resize(header_len, 0);
                    let fetched = distant(header_at).read(0, &mut long_header);
                    if let Err(error) = fetched {
                        let text = error.to_string();
                        return finish(&inner, self.inbox, index, Status::Failed, text.as_bytes());
                    }
                }
                let header = match (header_at, arena(header_at, header_len)) {
                    (0, _) => slot.bytes(0, header_len),
                    (_, Some(start)) => slice::from_raw_parts(start, header_len),
                    (_, None) => &long_header,
                };
                let source = match (data_at, arena(data_at, data_len)) {
                    (0, _) => Source::Here(slot.bytes(inline, data_len)),
                    (_, Some(start)) => Source::Here(slice::from_raw_parts(start, data_len)),
                    (_, None) => Source::There {
                        memory: distant(data_at),
                        fetched: OnceCell::new(),
                        scratch: Cell::new(std::mem::take(request_scratch)),
                    },
                };
                (header, source)
            }
        };
        // 2. Where the response goes: to the caller's memory, or if it is short
        //    to the slot, where the request still lies.
        let short = &mut *self.short;
        let is_short = !inner.in_place && room <= INLINE;
        let target = if inner.in_place {
            // SAFETY: as above.
            Target::Here(unsafe { slice::from_raw_parts_mut(response_at as *mut u8, room) })
        } else if is_short {
            Target::Here(&mut short[..room])
        } else if let Some(start) = arena(response_at, room) {
            // SAFETY: as above.
            Target::Here(unsafe { slice::from_raw_parts_mut(start, room) })
        } else {
            Target::There {
                memory: distant(response_at),
                staged: None,
                scratch: Some(response_scratch),
                written: false,
            }
        };
        let mut response = Response {
            header: Vec::new(),
            room,
            len: 0,
            target,
        };
        let request = Request {
            caller,
            procedures: &self.procedures,
            header,
            data_len,
            source,
        };
        // 3. Run it.
        let (status, header) = run(&inner, procedure, &request, &mut response);
        let len = response.len;
        if let Source::There {
            fetched, scratch, ..
        } = request.source
        {
            *request_scratch = fetched.into_inner().unwrap_or_else(|| scratch.into_inner());
        }
        // 4. Short data goes to the slot behind the header, or to the caller's
        //    memory if that has left no room.
        let (mut status, mut header) = (status, header);
        let mut at = response_at;
        if is_short && status == Status::Answered {
            if header.len() + len <= INLINE {
                // SAFETY: as above; nobody reads the request any more.
                unsafe { slot.write(header.len(), &short[..len]) };
                at = 0;
            // SAFETY: as above.
            } else if let Err(error) = unsafe { distant(response_at).write(0, &short[..len]) } {
                (status, header) = (Status::Failed, error.to_string().into_bytes());
            }
        }
        slot.response_at.store(at, Ordering::Relaxed);
        slot.response_len.store(len as u64, Ordering::Relaxed);
        for scratch in &mut self.scratch {
            if scratch.capacity() > KEPT {
                *scratch = Vec::new();
            }
        }
        if header.len() <= INLINE {
            return finish(&inner, self.inbox, index, status, &header);
        }
        if status != Status::Answered {
            return finish(&inner, self.inbox, index, status, &header[..INLINE]);
        }
        // 5. For a long header the caller makes room first.
        slot.header_len
            .store(header.len() as u64, Ordering::Relaxed);
        self.kept.insert(index, header);
        hand_over(&inner, self.inbox, index, status, state::ROOM);
    }

    /// Sends a long response header, for which there is room now.
    fn send_header(&mut self, index: usize, slot: &Slot) {
        let header = self.kept.remove(&index).unwrap_or_default();
        let room = Distant {
            transport: &**self.inner.comm.transport(),
            rank: self.inbox.caller(index),
            address: slot.header_at.load(Ordering::Relaxed),
        };
        // SAFETY: the caller has made room for so many bytes and waits.
        match unsafe { room.write(0, &header) } {
            Ok(()) => hand_over(
                &self.inner,
                self.inbox,
                index,
                Status::Answered,
                state::DONE,
            ),
            Err(error) => {
                let text = error.to_string();
                finish(
                    &self.inner,
                    self.inbox,
                    index,
                    Status::Failed,
                    text.as_bytes(),
                );
            }
        }
    }

    /// Serves what has come by letter; whether there was anything.
    fn serve_letters(&mut self) -> bool {
        let inner = self.inner.clone();
        let Some(post) = &inner.post else {
            return false;
        };
        // In a failed run there are no letters; the rank hears of it.
        let found = inner.look_for_letters().unwrap_or_default();
        let mut served = found.answers;
        while let Some(ask) = post.next_request() {
            let _ = self.serve_letter(&ask);
            served = true;
        }
        served
    }

    fn serve_letter(&mut self, ask: &Ask) -> Result<()> {
        let mut data = vec![0; ask.room];
        let mut response = Response {
            header: Vec::new(),
            room: ask.room,
            len: 0,
            target: Target::Here(&mut data),
        };
        let request = Request {
            caller: ask.caller,
            procedures: &self.procedures,
            header: ask.header(),
            data_len: ask.data().len(),
            source: Source::Here(ask.data()),
        };
        let (status, header) = run(&self.inner, ask.procedure, &request, &mut response);
        let len = match status {
            Status::Answered => response.len,
            _ => 0,
        };
        match &self.inner.post {
            Some(post) => post.answer(ask, status, &header, &data[..len]),
            None => Ok(()),
        }
    }
}

/// Runs a procedure: how it ended, and its response header or what went wrong.
pub(super) fn run(
    inner: &Inner,
    procedure: u32,
    request: &Request<'_>,
    response: &mut Response<'_>,
) -> (Status, Vec<u8>) {
    let Some(body) = inner.registry.body(procedure) else {
        let text = format!("there is no procedure number {procedure}");
        return (Status::Failed, text.into_bytes());
    };
    let outcome = panics::contain(|| body(request, response).and_then(|()| response.flush()));
    match outcome {
        Ok(Ok(())) => (Status::Answered, std::mem::take(&mut response.header)),
        Ok(Err(error)) => (Status::Failed, error.to_string().into_bytes()),
        Err(message) => (Status::Panicked, message.into_bytes()),
    }
}
