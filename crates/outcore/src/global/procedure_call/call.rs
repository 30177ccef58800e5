//! [`Call`]: a call that its caller does not wait for at once.

use std::fmt;
use std::sync::Arc;

use super::fault::ProcedureFault;
use super::flight::Flight;
use super::inner::{Inner, Waited};
use crate::error::{Error, Result};

/// What came of a call, with the memory that it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The response header.
    pub header: Vec<u8>,
    /// The response data, in the memory that was given for it.
    pub data: Vec<u8>,
    /// The request data, given back.
    pub request: Vec<u8>,
}

/// A call under way. Many may be, to one rank and to several; they are served
/// in the order in which they were started, rank by rank.
///
/// Dropping it gives up the answer; the procedure may run all the same.
pub struct Call {
    pub(super) inner: Arc<Inner>,
    pub(super) flight: Arc<Flight>,
}

impl Call {
    /// The rank that was called.
    pub fn rank(&self) -> usize {
        self.flight.target
    }

    /// Whether the call is over, well or not. Does not wait.
    pub fn test(&mut self) -> Result<bool> {
        if self.inner.is_over(&self.flight) {
            return Ok(true);
        }
        self.inner.look_for_letters()?;
        if self.inner.is_over(&self.flight) {
            return Ok(true);
        }
        self.inner.comm.check()?;
        Ok(false)
    }

    /// Waits until the call is over and gives what came of it.
    pub fn wait(self) -> Result<Answer> {
        let (inner, flight) = (&self.inner, &self.flight);
        let (rank, procedure) = (flight.target, flight.procedure);
        if !flight.is_over() && inner.await_any(&[flight])? == Waited::TooLong {
            inner.withdraw(flight);
            if !flight.is_over() {
                let patience = inner.options.patience.unwrap_or_default();
                return Err(inner.error(rank, procedure, ProcedureFault::Silent(patience)));
            }
        }
        let reply = flight
            .take_outcome()
            .map_err(|fault| inner.error(rank, procedure, fault))?;
        let mut buffers = flight.take_buffers();
        buffers.response.truncate(reply.len);
        Ok(Answer {
            header: reply.header,
            data: buffers.response,
            request: buffers.data,
        })
    }

    /// Waits until one of `calls` is over, well or not, and says which; there
    /// must be one at least.
    pub fn wait_any(calls: &mut [Call]) -> Result<usize> {
        let Some(first) = calls.first() else {
            return Err(Error::Invalid("there is no call to wait for".into()));
        };
        let inner = first.inner.clone();
        if calls.iter().any(|call| !Arc::ptr_eq(&call.inner, &inner)) {
            let text = "calls of different servers cannot be awaited together";
            return Err(Error::Invalid(text.into()));
        }
        let flights: Vec<_> = calls.iter().map(|call| &call.flight).collect();
        let over = || flights.iter().position(|flight| flight.is_over());
        if let Some(place) = over() {
            return Ok(place);
        }
        if inner.await_any(&flights)? == Waited::TooLong {
            let patience = inner.options.patience.unwrap_or_default();
            let mut ranks: Vec<usize> = flights.iter().map(|flight| flight.target).collect();
            ranks.sort_unstable();
            ranks.dedup();
            return Err(match ranks[..] {
                [rank] => {
                    let silent = ProcedureFault::Silent(patience);
                    inner.error(rank, flights[0].procedure, silent)
                }
                _ => Error::Invalid(format!(
                    "there was no answer for {patience:?} to any of the calls to ranks {ranks:?}"
                )),
            });
        }
        Ok(over().unwrap_or(0))
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.flight.is_over() {
            true => "over",
            false => "under way",
        };
        write!(f, "Call(to rank {}, {state})", self.flight.target)
    }
}
