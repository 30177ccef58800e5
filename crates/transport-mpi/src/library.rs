//! The MPI library itself: its return codes as errors, its name, its way out.

use std::ffi::{c_char, c_int};

use mpi::ffi;
use outcore_transport::{Error, Result};

/// Turns the return code of the MPI function `call` into a result.
pub(crate) fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    Err(Error::Library {
        call,
        message: error_text(code),
    })
}

/// What MPI says about an error code.
fn error_text(code: c_int) -> String {
    let mut text = [0u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length: c_int = 0;
    // SAFETY: the buffer is as long as MPI may want it, and `length` is ours.
    let answer =
        unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast::<c_char>(), &mut length) };
    if answer != ffi::MPI_SUCCESS as c_int {
        return format!("error code {code}");
    }
    from_c(&text, length)
}

/// Whether `code` belongs to the error class `class`.
pub(crate) fn is_class(code: c_int, class: u32) -> bool {
    let mut found: c_int = 0;
    // SAFETY: only writes `found`; any code is a valid argument.
    let answer = unsafe { ffi::MPI_Error_class(code, &mut found) };
    answer == ffi::MPI_SUCCESS as c_int && found == class as c_int
}

/// The name and version of the MPI library this program was built for, such
/// as `Open MPI v4.1.4` or `MPICH 4.0.2`. Does not initialise MPI.
pub fn library_version() -> String {
    let mut text = vec![0u8; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
    let mut length: c_int = 0;
    // SAFETY: the buffer is as long as MPI may want it; the function may be
    // called at any time, even before MPI_Init.
    let answer =
        unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast::<c_char>(), &mut length) };
    if answer != ffi::MPI_SUCCESS as c_int {
        return "an MPI library of unknown version".to_string();
    }
    let whole = from_c(&text, length);
    let first = whole.lines().next().unwrap_or("");
    let first = first.replace("Version:", "").replace('\t', " ");
    let name = first.split(", ").next().unwrap_or("");
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How the launcher of this library is called where several are installed.
pub(crate) fn launcher_name() -> &'static str {
    match library_version() {
        name if name.starts_with("Open MPI") => "mpirun.openmpi",
        name if name.starts_with("MPICH") => "mpirun.mpich",
        _ => "mpirun or mpiexec",
    }
}

/// Whether the status of a message that was too long for its buffer tells how
/// long it was. In Open MPI it does; in MPICH it holds some other number.
pub(crate) fn counts_truncated() -> bool {
    library_version().starts_with("Open MPI")
}

/// Ends all processes of the job at once, without tidying up.
pub(crate) fn abort(code: c_int) {
    // SAFETY: called only between initialisation and finalisation.
    unsafe {
        ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code);
    }
}

/// The first `length` bytes of a C text buffer.
fn from_c(text: &[u8], length: c_int) -> String {
    let length = usize::try_from(length).unwrap_or(0).min(text.len());
    String::from_utf8_lossy(&text[..length])
        .trim_end_matches('\0')
        .to_string()
}
