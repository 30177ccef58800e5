//! A file into the page cache, and out of it: [`forget`] for measuring what
//! cold reads cost.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::Result;
use crate::file::{Access, FileStore};
use crate::store::Store;

/// Writes back what is dirty of the file at `path` and asks the system to drop
/// it from the page cache. Returns the share that is still there (1.0 where
/// that is unknown): pages that somebody has mapped and touched stay.
pub fn forget(path: &Path) -> Result<f64> {
    let store = FileStore::open(path, Access::ReadOnly)?;
    store.forget()?;
    Ok(store.cached(0, store.len()?).unwrap_or(1.0))
}

/// Asks the system to drop the clean pages of a file.
#[cfg(target_os = "linux")]
pub(crate) fn drop_pages(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Other systems keep what they have.
#[cfg(not(target_os = "linux"))]
pub(crate) fn drop_pages(_: &File) -> io::Result<()> {
    Ok(())
}

/// Asks the system to begin reading bytes of a file into the page cache. It
/// reads at most so much of a range (on Linux the larger one of the device's
/// longest request and its read-ahead); what it does with advice is its matter.
#[cfg(target_os = "linux")]
pub(crate) fn fetch_pages(file: &File, offset: u64, len: u64) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(len)) = (offset.try_into(), len.try_into()) else {
        return;
    };
    // SAFETY: the descriptor is open.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, len, libc::POSIX_FADV_WILLNEED) };
}

/// Other systems are not told.
#[cfg(not(target_os = "linux"))]
pub(crate) fn fetch_pages(_: &File, _: u64, _: u64) {}
