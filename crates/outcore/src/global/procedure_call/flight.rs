//! [`Flight`]: one call under way, and the memory that it uses.
//!
//! A call that waits borrows the memory of who waits, and does not return
//! before nobody uses it any more. Another call owns its memory, which lives
//! until the target is done with it, though nobody may wait for the answer.

use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fault::ProcedureFault;
use super::slot::Status;

/// What a procedure has answered: its header, and how much data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The response header.
    pub header: Vec<u8>,
    /// The length of the response data, which stands in the caller's room.
    pub len: usize,
}

/// How a call ended.
pub(super) type Outcome = Result<Reply, ProcedureFault>;

/// The memory of a call that owns it.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    header: Vec<u8>,
    pub(super) data: Vec<u8>,
    pub(super) response: Vec<u8>,
}

/// One call.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) target: usize,
    pub(super) procedure: u32,
    header: (*const u8, usize),
    data: (*const u8, usize),
    response: (*mut u8, usize),
    /// What the addresses above lead to, if the call owns it.
    buffers: Mutex<Buffers>,
    /// Room for a long response header.
    long_header: Mutex<Vec<u8>>,
    outcome: Mutex<Option<Outcome>>,
    is_over: AtomicBool,
}

// SAFETY: the memory is used by one side at a time: by the target while the
// call is under way, by the caller before and afterwards.
unsafe impl Send for Flight {}
// SAFETY: as above.
unsafe impl Sync for Flight {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Flight {
    /// A call that borrows its memory.
    ///
    /// # Safety
    ///
    /// The memory must stay, untouched, until the call is over or withdrawn.
    pub(super) unsafe fn borrowing(
        target: usize,
        procedure: u32,
        header: &[u8],
        data: &[u8],
        response: &mut [u8],
    ) -> Self {
        Self {
            target,
            procedure,
            header: (header.as_ptr(), header.len()),
            data: (data.as_ptr(), data.len()),
            response: (response.as_mut_ptr(), response.len()),
            buffers: Mutex::default(),
            long_header: Mutex::default(),
            outcome: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// A call that owns its memory.
    pub(super) fn owning(
        target: usize,
        procedure: u32,
        header: &[u8],
        data: Vec<u8>,
        response: Vec<u8>,
    ) -> Self {
        let mut buffers = Buffers {
            header: header.to_vec(),
            data,
            response,
        };
        let Buffers {
            header,
            data,
            response,
        } = &mut buffers;
        // SAFETY: the flight keeps the memory, which does not move with the
        // vectors, and gives it away only when the call is over.
        let flight = unsafe { Self::borrowing(target, procedure, header, data, response) };
        *lock(&flight.buffers) = buffers;
        flight
    }

    /// The request header.
    pub(super) fn header(&self) -> &[u8] {
        // SAFETY: by the promise of `borrowing`; nobody writes there.
        unsafe { slice::from_raw_parts(self.header.0, self.header.1) }
    }

    /// The request data.
    pub(super) fn data(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts(self.data.0, self.data.1) }
    }

    /// The room for response data: where it is, and its length.
    pub(super) fn response(&self) -> (*mut u8, usize) {
        self.response
    }

    /// Makes room for a response header of `len` bytes and says where.
    pub(super) fn make_room(&self, len: usize) -> *mut u8 {
        let mut long_header = lock(&self.long_header);
        *long_header = vec![0; len];
        long_header.as_mut_ptr()
    }

    /// The long response header that has come.
    pub(super) fn take_long_header(&self) -> Vec<u8> {
        std::mem::take(&mut *lock(&self.long_header))
    }

    /// The call is over: the target answered with `status`, a response header
    /// (or the text of an error), and `len` bytes of data that stand in place.
    pub(super) fn answer(&self, status: Status, header: Vec<u8>, len: usize) {
        let text = |header: &[u8]| String::from_utf8_lossy(header).into_owned();
        self.end(match status {
            Status::Answered => Ok(Reply { header, len }),
            Status::Failed => Err(ProcedureFault::Failed(text(&header))),
            Status::Panicked => Err(ProcedureFault::Panicked(text(&header))),
            Status::Finished => Err(ProcedureFault::Finished),
        });
    }

    /// The call is over.
    pub(super) fn end(&self, outcome: Outcome) {
        *lock(&self.outcome) = Some(outcome);
        self.is_over.store(true, Ordering::Release);
    }

    /// Whether it is over.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// How it ended; to be asked once, when it is over.
    pub(super) fn take_outcome(&self) -> Outcome {
        let outcome = lock(&self.outcome).take();
        outcome.unwrap_or(Err(ProcedureFault::Finished))
    }

    /// The memory of a call that is over.
    pub(super) fn take_buffers(&self) -> Buffers {
        debug_assert!(self.is_over(), "the target may be using them");
        std::mem::take(&mut *lock(&self.buffers))
    }
}
