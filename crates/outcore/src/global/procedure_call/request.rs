//! [`Request`] and [`Response`]: what a procedure is given and what it gives.

use std::cell::{Cell, OnceCell};
use std::fmt;

use outcore_transport::{Error as TransportError, Transport};

use super::Procedures;
use crate::error::{Error, Result};

/// The memory of another process.
#[derive(Clone, Copy)]
pub(super) struct Distant<'a> {
    pub(super) transport: &'a dyn Transport,
    pub(super) rank: usize,
    pub(super) address: u64,
}

impl Distant<'_> {
    /// # Safety
    ///
    /// So many bytes must be there, and stay as they are meanwhile.
    pub(super) unsafe fn read(&self, at: usize, into: &mut [u8]) -> Result<()> {
        let address = self.address + at as u64;
        // SAFETY: by the caller's promise.
        let copied = unsafe { self.transport.copy_from(self.rank, address, into)? };
        copied.then_some(()).ok_or_else(|| self.no_copy())
    }

    /// # Safety
    ///
    /// So many bytes must be there, and nobody may use them meanwhile.
    pub(super) unsafe fn write(&self, at: usize, from: &[u8]) -> Result<()> {
        let address = self.address + at as u64;
        // SAFETY: by the caller's promise.
        let copied = unsafe { self.transport.copy_to(self.rank, address, from)? };
        copied.then_some(()).ok_or_else(|| self.no_copy())
    }

    fn no_copy(&self) -> Error {
        let cause = std::io::Error::last_os_error();
        Error::Transport(TransportError::Invalid(format!(
            "the memory of rank {} could not be reached: {cause}",
            self.rank
        )))
    }
}

/// Where request data is.
pub(super) enum Source<'a> {
    Here(&'a [u8]),
    /// In the memory of the caller, who waits; fetched at most once as a whole.
    There {
        memory: Distant<'a>,
        fetched: OnceCell<Vec<u8>>,
        /// For that; as long as it is by chance.
        scratch: Cell<Vec<u8>>,
    },
}

/// What a caller asks of a procedure.
pub struct Request<'a> {
    pub(super) caller: usize,
    pub(super) procedures: &'a Procedures,
    pub(super) header: &'a [u8],
    pub(super) data_len: usize,
    pub(super) source: Source<'a>,
}

impl Request<'_> {
    /// The rank that calls.
    pub fn caller(&self) -> usize {
        self.caller
    }

    /// The procedures of this rank, to start calls of other ranks from here.
    pub fn procedures(&self) -> &Procedures {
        self.procedures
    }

    /// The caller's header.
    pub fn header(&self) -> &[u8] {
        self.header
    }

    /// The length of the caller's data.
    pub fn data_len(&self) -> usize {
        self.data_len
    }

    /// The caller's data: on threads its own memory, else a copy of it.
    pub fn data(&self) -> Result<&[u8]> {
        match &self.source {
            Source::Here(data) => Ok(data),
            Source::There {
                memory,
                fetched,
                scratch,
            } => {
                if fetched.get().is_none() {
                    let mut copy = scratch.take();
                    if copy.len() < self.data_len {
                        copy.resize(self.data_len, 0);
                    }
                    // SAFETY: the caller waits, so its data stays as it is.
                    unsafe { memory.read(0, &mut copy[..self.data_len])? };
                    // Nobody else has this request.
                    let _ = fetched.set(copy);
                }
                Ok(fetched.get().map_or(&[], |data| &data[..self.data_len]))
            }
        }
    }

    /// Fills `into` with the caller's data from `at` on: straight to where it
    /// belongs, with one copy.
    pub fn read(&self, at: usize, into: &mut [u8]) -> Result<()> {
        let end = at.checked_add(into.len());
        let Some(end) = end.filter(|&end| end <= self.data_len) else {
            return Err(beyond(at, into.len(), self.data_len));
        };
        match &self.source {
            Source::Here(data) => into.copy_from_slice(&data[at..end]),
            Source::There {
                memory, fetched, ..
            } => match fetched.get() {
                Some(data) => into.copy_from_slice(&data[at..end]),
                // SAFETY: as in `data`.
                None => unsafe { memory.read(at, into)? },
            },
        }
        Ok(())
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (header, data) = (self.header.len(), self.data_len);
        write!(
            f,
            "Request({header} + {data} bytes of rank {})",
            self.caller
        )
    }
}

/// Where response data goes.
pub(super) enum Target<'a> {
    /// The caller's memory, or where it is kept until it is sent.
    Here(&'a mut [u8]),
    /// The memory of the caller, who waits.
    There {
        memory: Distant<'a>,
        /// What is to go there as a whole, if anything.
        staged: Option<&'a mut Vec<u8>>,
        /// For that.
        scratch: Option<&'a mut Vec<u8>>,
        /// Whether something has been written there.
        written: bool,
    },
}

/// What a procedure answers. Nothing of it arrives if the procedure fails, but
/// what it has written may stand in the caller's memory.
pub struct Response<'a> {
    /// The response header: empty at first, of any length.
    pub header: Vec<u8>,
    pub(super) room: usize,
    pub(super) len: usize,
    pub(super) target: Target<'a>,
}

impl Response<'_> {
    /// How many bytes of data the caller has room for.
    pub fn room(&self) -> usize {
        self.room
    }

    /// The length of the data so far: what was written, or all the room once
    /// [`Response::data`] was called, unless [`Response::set_len`] has said.
    pub fn data_len(&self) -> usize {
        self.len
    }

    /// Says how long the data is, at most as long as there is room.
    pub fn set_len(&mut self, len: usize) -> Result<()> {
        if len > self.room {
            return Err(beyond(0, len, self.room));
        }
        self.len = len;
        Ok(())
    }

    /// All the room for data, to be filled: on threads the caller's own memory,
    /// else a place from where it is sent. The length becomes that of the room.
    pub fn data(&mut self) -> Result<&mut [u8]> {
        self.len = self.room;
        match &mut self.target {
            Target::Here(data) => Ok(data),
            Target::There {
                memory,
                staged,
                scratch,
                written,
            } => {
                if let Some(fresh) = scratch.take() {
                    if fresh.len() < self.room {
                        fresh.resize(self.room, 0);
                    }
                    if *written {
                        // SAFETY: the caller waits and does not use it.
                        unsafe { memory.read(0, &mut fresh[..self.room])? };
                    }
                    *staged = Some(fresh);
                }
                let staged = staged.as_mut().map(|staged| &mut staged[..self.room]);
                Ok(staged.unwrap_or_default())
            }
        }
    }

    /// Writes `bytes` to the caller's room from `at` on: straight from where
    /// they are, with one copy. The data is at least as long as that then.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        let end = at.checked_add(bytes.len());
        let Some(end) = end.filter(|&end| end <= self.room) else {
            return Err(beyond(at, bytes.len(), self.room));
        };
        self.len = self.len.max(end);
        match &mut self.target {
            Target::Here(data) => data[at..end].copy_from_slice(bytes),
            Target::There {
                staged: Some(staged),
                ..
            } => staged[at..end].copy_from_slice(bytes),
            Target::There {
                memory, written, ..
            } => {
                *written = true;
                // SAFETY: the caller waits and does not use its room.
                unsafe { memory.write(at, bytes)? };
            }
        }
        Ok(())
    }

    /// Sends what is still to be sent.
    pub(super) fn flush(&mut self) -> Result<()> {
        if let Target::There {
            memory,
            staged: Some(staged),
            ..
        } = &self.target
        {
            // SAFETY: as in `write`.
            unsafe { memory.write(0, &staged[..self.len])? };
        }
        Ok(())
    }
}

impl fmt::Debug for Response<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({} of {} bytes)", self.len, self.room)
    }
}

fn beyond(at: usize, len: usize, whole: usize) -> Error {
    Error::Invalid(format!(
        "{len} bytes from byte {at} on are more than the {whole} that there are"
    ))
}
