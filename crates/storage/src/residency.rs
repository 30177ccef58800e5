//! How much of a file is in the page cache, asked without reading it.
//!
//! The kernel is asked with cachestat(2) (Linux 6.5), or with mincore(2) of the
//! file's mapping where that is missing. Either walks the pages, so a long
//! range is judged by a few pieces spread over it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::mapping::{Mapping, page_size};

/// A range no longer than this is looked at in full, of a longer one as much.
const SAMPLE: u64 = 1 << 20;
/// In how many pieces, the first and the last at the ends of the range.
const PIECES: u64 = 8;

/// The share of the bytes `offset..end` of `file`, which must have them, that
/// is in the page cache; `None` where that cannot be known. `mapping` gives the
/// file's mapping, if it has one.
pub(crate) fn cached_share(
    file: &File,
    mapping: impl Fn() -> Option<std::sync::Arc<Mapping>>,
    offset: u64,
    end: u64,
) -> Option<f64> {
    let (mut cached, mut pages) = (0, 0);
    for (start, end) in pieces(offset, end) {
        let first = start / page_size();
        let count = end.div_ceil(page_size()) - first;
        cached += match cachestat(file, start, end - start) {
            Ok(cached) => cached.min(count),
            Err(error) => match error.raw_os_error() {
                // Old kernels, and containers that know no new calls.
                Some(libc::ENOSYS | libc::EPERM) => mapping()?.resident(first, count)?,
                _ => return None,
            },
        };
        pages += count;
    }
    (pages > 0).then(|| cached as f64 / pages as f64)
}

/// The parts of the range `offset..end` that are looked at.
fn pieces(offset: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let len = end.saturating_sub(offset);
    let (count, piece) = match len {
        0 => (0, 0),
        1..=SAMPLE => (1, len),
        _ => (PIECES, SAMPLE / PIECES),
    };
    (0..count).map(move |index| {
        let gap = (len - piece) as u128 * index as u128 / (PIECES - 1) as u128;
        let start = offset + gap as u64;
        (start, start + piece)
    })
}

/// How many pages of the range are in the page cache.
#[cfg(target_os = "linux")]
fn cachestat(file: &File, offset: u64, len: u64) -> io::Result<u64> {
    /// The number of the call, the same on every architecture.
    const CACHESTAT: libc::c_long = 451;
    #[repr(C)]
    struct Range {
        offset: u64,
        len: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Answer {
        cached: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let range = Range { offset, len };
    let mut answer = Answer::default();
    // SAFETY: the structures are those of the call and live during it.
    let status = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd() as libc::c_long,
            &range as *const Range,
            &mut answer as *mut Answer,
            0 as libc::c_long,
        )
    };
    match status {
        0 => Ok(answer.cached),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn cachestat(_file: &File, _offset: u64, _len: u64) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}
