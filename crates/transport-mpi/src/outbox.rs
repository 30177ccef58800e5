//! Messages whose bytes belong to this crate until MPI is done with them.

use std::sync::{Mutex, PoisonError};

use mpi::ffi::MPI_Request;

use crate::communicator::is_complete;

/// Sends under way that nobody waits for, each with its bytes.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    letters: Mutex<Vec<Letter>>,
}

#[derive(Debug)]
struct Letter {
    request: MPI_Request,
    /// Read by MPI until the request is complete; a heap allocation, so that
    /// it stays in place when the letter moves.
    _bytes: Box<[u8]>,
}

// SAFETY: with MPI_THREAD_MULTIPLE a request may be completed by any thread;
// the mutex of the outbox lets one at a time try.
unsafe impl Send for Letter {}

impl Outbox {
    /// Keeps `bytes` until the send from them, which `start` begins, is
    /// complete.
    pub(crate) fn post<E>(
        &self,
        bytes: Box<[u8]>,
        start: impl FnOnce(&[u8]) -> Result<MPI_Request, E>,
    ) -> Result<(), E> {
        let request = start(&bytes)?;
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.retain_mut(|letter| !letter.is_sent());
        letters.push(Letter {
            request,
            _bytes: bytes,
        });
        Ok(())
    }

    /// Drops what has been sent; whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.retain_mut(|letter| !letter.is_sent());
        letters.is_empty()
    }

    /// Gives up the letters that are still under way; MPI may go on reading
    /// them, so their memory is never used again.
    pub(crate) fn forget(&self) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::forget(std::mem::take(&mut *letters));
    }
}

impl Letter {
    /// An error counts as sent: MPI has given up on the request.
    fn is_sent(&mut self) -> bool {
        is_complete(&mut self.request).unwrap_or(true)
    }
}
