//! [`Post`]: calls between ranks that share no memory, by letters.
//!
//! A letter is a head of six words and then bytes. Whoever looks for letters
//! deals with all that have come: answers go to the calls that wait for them,
//! requests to the queue of the server.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outcore_transport::Comm;

use super::fault::ProcedureFault;
use super::flight::Flight;
use super::slot::Status;
use crate::error::Result;

const WORD: usize = 8;
const HEAD: usize = 6 * WORD;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Request = 1,
    Answer = 2,
    Closed = 3,
}

/// A request that has come.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) caller: usize,
    number: u64,
    pub(super) procedure: u32,
    pub(super) room: usize,
    header_len: usize,
    letter: Vec<u8>,
}

impl Ask {
    pub(super) fn header(&self) -> &[u8] {
        &self.letter[HEAD..HEAD + self.header_len]
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.letter[HEAD + self.header_len..]
    }
}

/// The calls by letter of one rank.
#[derive(Debug)]
pub(super) struct Post {
    comm: Comm,
    /// Stands in all letters of this server and its peers, so that none of
    /// another's is taken for one.
    session: u64,
    numbers: AtomicU64,
    /// Calls of this rank that have no answer yet, by number.
    pending: Mutex<HashMap<u64, Arc<Flight>>>,
    /// What others ask.
    asked: Mutex<VecDeque<Ask>>,
    /// Which ranks have said that they serve no calls any more.
    closed: Vec<AtomicBool>,
    /// Held by who looks for letters: they are dealt with in the order in which they
    /// came, an answer before the word that its rank has closed.
    looking: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a look for letters has found.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Found {
    pub(super) answers: bool,
    pub(super) requests: bool,
}

impl Post {
    pub(super) fn new(comm: &Comm, session: u64) -> Self {
        Self {
            comm: comm.clone(),
            session,
            numbers: AtomicU64::new(0),
            pending: Mutex::default(),
            asked: Mutex::default(),
            closed: (0..comm.size()).map(|_| AtomicBool::new(false)).collect(),
            looking: Mutex::default(),
        }
    }

    fn write(&self, to: usize, kind: Kind, words: [u64; 4], bytes: [&[u8]; 2]) -> Result<()> {
        let mut letter = Vec::with_capacity(HEAD + bytes[0].len() + bytes[1].len());
        for word in [self.session, kind as u64].into_iter().chain(words) {
            letter.extend_from_slice(&word.to_le_bytes());
        }
        letter.extend_from_slice(bytes[0]);
        letter.extend_from_slice(bytes[1]);
        Ok(self.comm.transport().letter(to, letter)?)
    }

    /// Begins a call.
    pub(super) fn submit(&self, flight: &Arc<Flight>) -> Result<()> {
        let (to, (_, room)) = (flight.target, flight.response());
        if self.closed[to].load(Ordering::SeqCst) {
            flight.end(Err(ProcedureFault::Finished));
            return Ok(());
        }
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        lock(&self.pending).insert(number, flight.clone());
        let (header, data) = (flight.header(), flight.data());
        let procedure = u64::from(flight.procedure);
        let words = [number, procedure, room as u64, header.len() as u64];
        let sent = self.write(to, Kind::Request, words, [header, data]);
        if sent.is_err() {
            lock(&self.pending).remove(&number);
        } else if self.closed[to].load(Ordering::SeqCst) {
            self.give_up(to);
        }
        sent
    }

    /// Answers a request.
    pub(super) fn answer(
        &self,
        ask: &Ask,
        status: Status,
        header: &[u8],
        data: &[u8],
    ) -> Result<()> {
        let (number, header_len) = (ask.number, header.len() as u64);
        let words = [number, status as u64, data.len() as u64, header_len];
        self.write(ask.caller, Kind::Answer, words, [header, data])
    }

    /// Tells `to` that this rank serves no calls any more.
    pub(super) fn close(&self, to: usize) -> Result<()> {
        self.write(to, Kind::Closed, [0; 4], [&[], &[]])
    }

    /// The next request.
    pub(super) fn next_request(&self) -> Option<Ask> {
        lock(&self.asked).pop_front()
    }

    /// Whether a request waits.
    pub(super) fn is_asked(&self) -> bool {
        !lock(&self.asked).is_empty()
    }

    /// Whether no call of this rank is under way.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.pending).is_empty()
    }

    /// Deals with the letters that have come.
    pub(super) fn look(&self) -> Result<Found> {
        let mut found = Found::default();
        let _looking = lock(&self.looking);
        while let Some((from, letter)) = self.comm.transport().next_letter()? {
            let word = |at: usize| {
                let bytes = letter.get(at * WORD..).and_then(<[u8]>::first_chunk);
                bytes.map_or(0, |&bytes| u64::from_le_bytes(bytes))
            };
            let header_len = word(5) as usize;
            if word(0) != self.session || letter.len() < HEAD.saturating_add(header_len) {
                continue;
            }
            if word(1) == Kind::Request as u64 {
                lock(&self.asked).push_back(Ask {
                    caller: from,
                    number: word(2),
                    procedure: word(3) as u32,
                    room: word(4) as usize,
                    header_len,
                    letter,
                });
                found.requests = true;
            } else if word(1) == Kind::Answer as u64 {
                let status = Status::from_code(word(3) as u32);
                let (header, data) = letter[HEAD..].split_at(header_len);
                self.deliver(word(2), status, header, data);
                found.answers = true;
            } else {
                self.closed[from].store(true, Ordering::SeqCst);
                self.give_up(from);
                found.answers = true;
            }
        }
        Ok(found)
    }

    /// Gives an answer to the call with that number.
    fn deliver(&self, number: u64, status: Status, header: &[u8], data: &[u8]) {
        // Under the lock, so that a call that is withdrawn is not written to.
        let mut pending = lock(&self.pending);
        if let Some(flight) = pending.remove(&number) {
            let (response, room) = flight.response();
            let len = data.len().min(room);
            // SAFETY: the room is the call's until it is over.
            unsafe { response.copy_from_nonoverlapping(data.as_ptr(), len) };
            flight.answer(status, header.to_vec(), len);
        }
    }

    /// Takes a call back: no answer will reach it.
    pub(super) fn withdraw(&self, flight: &Arc<Flight>) {
        lock(&self.pending).retain(|_, other| !Arc::ptr_eq(other, flight));
    }

    /// `rank` has ended: what it has not answered it never will.
    pub(super) fn give_up(&self, rank: usize) {
        let mut pending = lock(&self.pending);
        pending.retain(|_, flight| {
            let waits = flight.target == rank;
            if waits {
                flight.end(Err(ProcedureFault::Finished));
            }
            !waits
        });
    }
}
