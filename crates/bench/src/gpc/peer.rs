//! One-sided MPI, from `peers/gpc`.

use std::ffi::{c_char, c_int, c_long, c_void};
use std::path::Path;

use outcore::{Comm, Error, Result};

use crate::library::{Loaded, Source, build, shared};

const MPI: Source = Source {
    name: "mpi",
    text: include_str!("../../peers/gpc/mpi.c"),
    header: include_str!("../../peers/gpc/peer.h"),
    package: None,
    flags: &[],
};

type OpenCall = unsafe extern "C" fn(c_long, *const c_char) -> *mut c_void;
type MoveCall = unsafe extern "C" fn(*mut c_void, *mut c_char, c_long, c_int) -> c_int;
type CloseCall = unsafe extern "C" fn(*mut c_void);

/// A window that is open.
pub(super) struct Window {
    handle: *mut c_void,
    bytes: usize,
    shift: MoveCall,
    close: CloseCall,
}

impl Window {
    /// Collective: builds the program, loads it and opens a window with
    /// `content` at rank 1.
    pub(super) fn open(comm: &Comm, directory: &Path, content: &[u8]) -> Result<Self> {
        let built = match comm.rank() {
            0 => build(directory, &MPI),
            _ => Ok(()),
        };
        comm.agree(built)?;
        let library = comm.agree(Loaded::new(shared(directory, &MPI)))?;
        // SAFETY: these are the functions of peer.h, with their types.
        let (open, shift, close) = unsafe {
            (
                std::mem::transmute::<*mut c_void, OpenCall>(library.find(c"peer_open")?),
                std::mem::transmute::<*mut c_void, MoveCall>(library.find(c"peer_move")?),
                std::mem::transmute::<*mut c_void, CloseCall>(library.find(c"peer_close")?),
            )
        };
        // SAFETY: so many bytes are there; all ranks make the call.
        let handle = unsafe { open(content.len() as c_long, content.as_ptr().cast()) };
        if handle.is_null() {
            return Err(Error::Invalid("MPI has no window".into()));
        }
        Ok(Self {
            handle,
            bytes: content.len(),
            shift,
            close,
        })
    }

    /// Moves so many bytes between rank 1's window and `buffer`.
    pub(super) fn shift(&self, buffer: &mut [u8], write: bool) -> Result<()> {
        let bytes = buffer.len().min(self.bytes) as c_long;
        // SAFETY: so many bytes are there, and the window is open.
        match unsafe { (self.shift)(self.handle, buffer.as_mut_ptr().cast(), bytes, write.into()) }
        {
            0 => Ok(()),
            code => Err(Error::Invalid(format!("MPI failed with code {code}"))),
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: it is open, and nobody uses it afterwards; all ranks drop
        // theirs at the same place.
        unsafe { (self.close)(self.handle) }
    }
}
