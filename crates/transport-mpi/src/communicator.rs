//! A duplicated MPI communicator and the few operations used on it.
//!
//! All its errors come back as return codes (`MPI_ERRORS_RETURN`), and
//! nothing here waits for another rank, except where that rank is known to
//! be on its way.

use std::ffi::{c_int, c_void};

use mpi::ffi::{self, MPI_Comm, MPI_Request, MPI_Status};
use outcore_transport::Result;

use crate::library::check;

/// A communicator of our own, with the ranks of `MPI_COMM_WORLD`.
#[derive(Debug)]
pub(crate) struct Communicator(MPI_Comm);

// SAFETY: MPI runs with MPI_THREAD_MULTIPLE (checked at initialisation), so
// that a communicator handle may be used from any thread at any time.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

impl Communicator {
    /// Collective: a duplicate of `MPI_COMM_WORLD` that returns its errors.
    pub(crate) fn duplicate_world() -> Result<Self> {
        // SAFETY: the world communicator exists once MPI is initialised, and
        // `MPI_Comm_dup` fills in the handle.
        unsafe {
            let mut comm = ffi::RSMPI_COMM_NULL;
            check(
                "MPI_Comm_dup",
                ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &mut comm),
            )?;
            return_errors(comm)?;
            Ok(Self(comm))
        }
    }

    /// The MPI handle, valid until [`Communicator::free`].
    pub(crate) fn raw(&self) -> MPI_Comm {
        self.0
    }

    /// Starts to send `data`.
    ///
    /// # Safety
    /// `data` must stay as it is until the request has been completed.
    pub(crate) unsafe fn start_send(
        &self,
        data: &[u8],
        to: usize,
        tag: c_int,
    ) -> Result<MPI_Request> {
        // SAFETY: the memory is readable, and stays so by the caller's promise.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let code = ffi::MPI_Isend(
                data.as_ptr().cast::<c_void>(),
                data.len() as c_int,
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                self.0,
                &mut request,
            );
            check("MPI_Isend", code)?;
            Ok(request)
        }
    }

    /// Starts to receive into `into`.
    ///
    /// # Safety
    /// `into` must be left alone until the request has been completed.
    pub(crate) unsafe fn start_receive(
        &self,
        into: &mut [u8],
        from: usize,
        tag: c_int,
    ) -> Result<MPI_Request> {
        // SAFETY: the memory is writable, and nobody else uses it before the
        // request is complete, by the caller's promise.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let code = ffi::MPI_Irecv(
                into.as_mut_ptr().cast::<c_void>(),
                into.len() as c_int,
                ffi::RSMPI_UINT8_T,
                from as c_int,
                tag,
                self.0,
                &mut request,
            );
            check("MPI_Irecv", code)?;
            Ok(request)
        }
    }

    /// Starts a barrier over the whole world.
    pub(crate) fn start_barrier(&self) -> Result<MPI_Request> {
        // SAFETY: no memory is involved but the request handle.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            check("MPI_Ibarrier", ffi::MPI_Ibarrier(self.0, &mut request))?;
            Ok(request)
        }
    }

    /// Takes the next message, if one has arrived: its sender and its bytes. A
    /// sender or tag of `None` means any.
    pub(crate) fn take(
        &self,
        from: Option<usize>,
        tag: Option<c_int>,
    ) -> Result<Option<(usize, Vec<u8>)>> {
        // SAFETY: all out parameters are ours; the matched message can be
        // received by nobody else, and the buffer has the length that the
        // probe announced.
        unsafe {
            let from = from.map_or(ffi::RSMPI_ANY_SOURCE, |from| from as c_int);
            let tag = tag.unwrap_or(ffi::RSMPI_ANY_TAG);
            let mut found: c_int = 0;
            let mut message = ffi::RSMPI_MESSAGE_NULL;
            let mut status = empty_status();
            let code = ffi::MPI_Improbe(from, tag, self.0, &mut found, &mut message, &mut status);
            check("MPI_Improbe", code)?;
            if found == 0 {
                return Ok(None);
            }
            let mut data = vec![0u8; byte_count(&status)?];
            let code = ffi::MPI_Mrecv(
                data.as_mut_ptr().cast::<c_void>(),
                data.len() as c_int,
                ffi::RSMPI_UINT8_T,
                &mut message,
                ffi::RSMPI_STATUS_IGNORE,
            );
            check("MPI_Mrecv", code)?;
            Ok(Some((status.MPI_SOURCE as usize, data)))
        }
    }

    /// Gives the handle back to MPI; the communicator must not be used again.
    pub(crate) fn free(&self) {
        let mut comm = self.0;
        // SAFETY: called once, by the only owner, before MPI is finalised.
        unsafe {
            ffi::MPI_Comm_free(&mut comm);
        }
    }
}

/// Lets `comm` return its errors instead of ending the program.
///
/// # Safety
/// `comm` must be a valid communicator.
pub(crate) unsafe fn return_errors(comm: MPI_Comm) -> Result<()> {
    // SAFETY: by the caller's promise.
    let code = unsafe { ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN) };
    check("MPI_Comm_set_errhandler", code)
}

/// A status for MPI to fill in.
pub(crate) fn empty_status() -> MPI_Status {
    // SAFETY: in every MPI library a status is a C struct of integers.
    unsafe { std::mem::zeroed() }
}

/// The length of the message that `status` describes.
pub(crate) fn byte_count(status: &MPI_Status) -> Result<usize> {
    let mut count: c_int = 0;
    // SAFETY: the status was filled in by MPI.
    let code = unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &mut count) };
    check("MPI_Get_count", code)?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Whether the operation that `status` describes was cancelled.
pub(crate) fn is_cancelled(status: &MPI_Status) -> bool {
    let mut flag: c_int = 0;
    // SAFETY: the status was filled in by MPI.
    let code = unsafe { ffi::MPI_Test_cancelled(status, &mut flag) };
    code == ffi::MPI_SUCCESS as c_int && flag != 0
}

/// Whether `request` is complete; then it has become the null request.
pub(crate) fn is_complete(request: &mut MPI_Request) -> Result<bool> {
    let mut flag: c_int = 0;
    // SAFETY: the request was started by MPI and is ours alone.
    let code = unsafe { ffi::MPI_Test(request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
    check("MPI_Test", code)?;
    Ok(flag != 0)
}
