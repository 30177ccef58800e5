//! [`Operations`]: sends and receives under way, and the one loop that waits.
//!
//! Nothing waits inside MPI. The loop asks MPI which operations are complete,
//! reads the notices of other ranks, and gives the processor away. It ends
//! when all operations are complete or the run has failed.
//!
//! # What keeps the memory valid
//!
//! MPI reads and writes the caller's memory until an operation is complete,
//! so an operation that is given up has to be completed as well, before the
//! call returns:
//!
//! - A receive is cancelled. Either that succeeds and MPI forgets the memory,
//!   or the message is already coming in, and is awaited.
//! - A send cannot be taken back (Open MPI cannot cancel one). It is awaited:
//!   in a failed run every rank takes and drops whatever is sent to it, in
//!   each of its calls and at the end of its part ([`crate::closing`]). So
//!   the wait is never longer than the receiver computes, which is how long
//!   the send might have waited without the failure.
//!
//! # Long messages
//!
//! A message is cut into parts of [`largest_message`] bytes and a last one
//! that is shorter, possibly empty. A part that is shorter than its receiver
//! expects, or longer, therefore shows that the lengths of the whole messages
//! differ.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mpi::ffi::{self, MPI_Request, MPI_Status};
use outcore_transport::{Error, Result};

use crate::closing;
use crate::communicator::{byte_count, empty_status, is_cancelled};
use crate::group::{Group, Lane};
use crate::library::{self, check, is_class};
use crate::pause::Pause;

/// For so long an operation may go on with a rank that has ended its part:
/// what that rank sent before its end may still be on its way.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The MPI function that says what is complete.
const TEST: &str = "MPI_Testsome";

static LARGEST_MESSAGE: AtomicUsize = AtomicUsize::new(256 << 20);

/// Longer messages are cut into parts of this many bytes.
pub(crate) fn largest_message() -> usize {
    LARGEST_MESSAGE.load(Ordering::Relaxed)
}

/// Sets the length at which messages are cut into parts (256 MiB by default),
/// so that tests can cut short ones. It must be the same on all ranks, and is
/// at least 1 and at most 1 GiB.
pub fn set_largest_message(bytes: usize) {
    LARGEST_MESSAGE.store(bytes.clamp(1, 1 << 30), Ordering::Relaxed);
}

/// Sends and receives under way in a group, from and to memory that is
/// borrowed for `'a`.
pub(crate) struct Operations<'a> {
    group: &'a Group,
    /// One for each operation; null when complete.
    requests: Vec<MPI_Request>,
    kinds: Vec<Kind>,
    /// How many are not complete.
    open: usize,
    /// For MPI to fill in: which were completed, and how.
    indices: Vec<c_int>,
    statuses: Vec<MPI_Status>,
    memory: PhantomData<&'a mut [u8]>,
}

#[derive(Debug, Clone, Copy)]
struct Kind {
    /// The other rank, in the group.
    peer: usize,
    /// For a receive.
    expected: Option<Part>,
}

/// A part of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    offset: usize,
    len: usize,
    /// The length of the whole message.
    whole: usize,
}

impl Part {
    /// The bytes of this part.
    pub(crate) fn of<'d>(&self, message: &'d [u8]) -> &'d [u8] {
        &message[self.offset..self.offset + self.len]
    }
}

impl<'a> Operations<'a> {
    /// No operations yet.
    pub(crate) fn new(group: &'a Group) -> Self {
        Self {
            group,
            requests: Vec::new(),
            kinds: Vec::new(),
            open: 0,
            indices: Vec::new(),
            statuses: Vec::new(),
            memory: PhantomData,
        }
    }

    /// Starts to send `data` to rank `to` of the group.
    pub(crate) fn send(&mut self, lane: Lane, to: usize, data: &'a [u8]) -> Result<()> {
        let member = self.group.member(to)?;
        let (communicator, tag) = self.group.route(lane, member);
        for part in parts(data.len()) {
            let bytes = part.of(data);
            // SAFETY: `data` is borrowed for 'a, and `self` completes the
            // request before it is dropped, which is within 'a.
            let request = unsafe { communicator.start_send(bytes, member.world_rank, tag) }
                .map_err(|error| self.group.mistake(error))?;
            self.group.world.count_sent(member.world_rank);
            self.add(request, to, None);
        }
        Ok(())
    }

    /// Starts to receive a message from rank `from` of the group that fills
    /// `into`.
    pub(crate) fn receive(&mut self, lane: Lane, from: usize, into: &'a mut [u8]) -> Result<()> {
        let member = self.group.member(from)?;
        let own = self.group.members[self.group.rank];
        let (communicator, tag) = self.group.route(lane, own);
        for part in parts(into.len()) {
            let bytes = &mut into[part.offset..part.offset + part.len];
            // SAFETY: `into` is borrowed for 'a, and `self` completes the
            // request before it is dropped, which is within 'a.
            let request = unsafe { communicator.start_receive(bytes, member.world_rank, tag) }
                .map_err(|error| self.group.mistake(error))?;
            self.add(request, from, Some(part));
        }
        Ok(())
    }

    fn add(&mut self, request: MPI_Request, peer: usize, expected: Option<Part>) {
        self.requests.push(request);
        self.kinds.push(Kind { peer, expected });
        self.open += 1;
    }

    /// Waits until all operations are complete, or the run has failed.
    pub(crate) fn wait(mut self) -> Result<()> {
        let mut pause = Pause::new();
        while self.open > 0 {
            if self.complete_some()? {
                pause.progress();
                continue;
            }
            self.group.world.check()?;
            self.check_presence(&pause)?;
            pause.pause();
        }
        Ok(())
    }

    /// Asks MPI which operations are complete; whether there were any. The
    /// first that went wrong fails the run.
    fn complete_some(&mut self) -> Result<bool> {
        let count = self.requests.len();
        self.indices.resize(count, 0);
        self.statuses.resize_with(count, empty_status);
        let mut completed: c_int = 0;
        // SAFETY: the three arrays have `count` elements each, and the
        // requests are ours.
        let code = unsafe {
            ffi::MPI_Testsome(
                count as c_int,
                self.requests.as_mut_ptr(),
                &mut completed,
                self.indices.as_mut_ptr(),
                self.statuses.as_mut_ptr(),
            )
        };
        let some_wrong = is_class(code, ffi::MPI_ERR_IN_STATUS);
        if !some_wrong {
            check(TEST, code).map_err(|error| self.group.mistake(error))?;
        }
        // Negative (undefined) when there is nothing to wait for.
        let completed = usize::try_from(completed).unwrap_or(0);
        self.open -= completed;
        let mut outcome = Ok(completed > 0);
        for place in 0..completed {
            let kind = self.kinds[self.indices[place] as usize];
            let status = &self.statuses[place];
            let code = if some_wrong { status.MPI_ERROR } else { 0 };
            let checked = self.check_completed(kind, status, code);
            outcome = outcome.and_then(|some| checked.map(|()| some));
        }
        outcome.map_err(|error| self.group.mistake(error))
    }

    /// Counts a completed operation and checks what came of it.
    fn check_completed(&self, kind: Kind, status: &MPI_Status, code: c_int) -> Result<()> {
        let Some(part) = kind.expected else {
            return check("MPI_Isend", code);
        };
        if is_cancelled(status) {
            return Ok(());
        }
        let peer = self.group.members[kind.peer].world_rank;
        self.group.world.count_received(peer);
        let truncated = is_class(code, ffi::MPI_ERR_TRUNCATE);
        if !truncated {
            check("MPI_Irecv", code)?;
        }
        let len = match truncated {
            // One more at least; MPI need not say how long the message was.
            true if !library::counts_truncated() => part.len + 1,
            _ => byte_count(status)?,
        };
        if len == part.len {
            return Ok(());
        }
        Err(Error::LengthMismatch {
            from: kind.peer,
            to: self.group.rank,
            sent: (part.offset + len) as u64,
            expected: part.whole as u64,
        })
    }

    /// Fails the run if an operation waits for a rank that has ended.
    fn check_presence(&self, pause: &Pause) -> Result<()> {
        if pause.elapsed() < GRACE {
            return Ok(());
        }
        let world = self.group.world;
        for (request, kind) in self.requests.iter().zip(&self.kinds) {
            // SAFETY: reads a constant of the library.
            if *request == unsafe { ffi::RSMPI_REQUEST_NULL } {
                continue;
            }
            let peer = self.group.members[kind.peer].world_rank;
            let ended = world.board.ended(peer);
            if ended.is_some_and(|since| since.elapsed() >= GRACE) {
                world.fail_by_absence(peer);
                return world.check();
            }
        }
        Ok(())
    }

    /// Gives up what is not complete; afterwards MPI uses none of the memory.
    fn abandon(&mut self) {
        for (request, kind) in self.requests.iter_mut().zip(&self.kinds) {
            // SAFETY: the request is a receive of ours that is not complete.
            unsafe {
                if kind.expected.is_some() && *request != ffi::RSMPI_REQUEST_NULL {
                    ffi::MPI_Cancel(request);
                }
            }
        }
        let mut pause = Pause::new();
        while self.open > 0 {
            match self.complete_some() {
                Ok(true) => pause.progress(),
                // MPI cannot tell any more what it does with the memory.
                Err(Error::Library { call: TEST, .. }) => closing::abort(1),
                // Other errors have no meaning now: the run has failed.
                Ok(false) | Err(_) => {
                    let _ = self.group.world.check();
                    pause.pause();
                }
            }
        }
    }
}

impl Drop for Operations<'_> {
    fn drop(&mut self) {
        if self.open > 0 {
            self.abandon();
        }
    }
}

/// The parts of a message of `whole` bytes: full ones, then a shorter one.
pub(crate) fn parts(whole: usize) -> impl Iterator<Item = Part> {
    let most = largest_message();
    (0..=whole / most).map(move |index| {
        let offset = index * most;
        let len = most.min(whole - offset);
        Part { offset, len, whole }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_is_shorter_than_the_others() {
        set_largest_message(10);
        let lens = |whole| parts(whole).map(|part| part.len).collect::<Vec<_>>();
        assert_eq!(lens(0), [0]);
        assert_eq!(lens(9), [9]);
        assert_eq!(lens(10), [10, 0]);
        assert_eq!(lens(25), [10, 10, 5]);
    }
}
