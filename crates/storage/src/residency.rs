//! How much of a file is in the page cache, asked without reading it.
//!
//! The kernel is asked with cachestat(2) (Linux 6.5), or with mincore(2) of the
//! file's mapping where that is missing. Either walks the pages, so a long
//! range is judged by a few pieces spread over it: a few microseconds, whatever
//! its length. A range that was found to be all there is believed to be so for a
//! moment ([`Lately`]), so that those who read again and again do not ask each
//! time.
//!
//! About files that the caller neither owns nor may write, cachestat may refuse
//! to tell, and mincore, which calls all of their pages resident, is not asked.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::mapping::{Mapping, page_size};

/// A range no longer than this is looked at in full, of a longer one as much.
const SAMPLE: u64 = 256 << 10;
/// In how many pieces, the first and the last at the ends of the range.
const PIECES: u64 = 8;

/// How long a range is believed to be in the page cache still.
const MOMENT: Duration = Duration::from_millis(10);

/// A range that was all in the page cache when it was last asked about.
#[derive(Debug, Default)]
pub(crate) struct Lately(Mutex<Option<(u64, u64, Instant)>>);

impl Lately {
    /// Whether all of `offset..end` was there a moment ago.
    pub(crate) fn has(&self, offset: u64, end: u64) -> bool {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.is_some_and(|(from, to, asked)| {
            from <= offset && end <= to && asked.elapsed() < MOMENT
        })
    }

    /// Takes note of an answer.
    pub(crate) fn note(&self, offset: u64, end: u64, share: f64) {
        let known = (share >= 1.0).then(|| (offset, end, Instant::now()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Forgets the answers.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_in_the_range_and_reach_both_ends() {
        for (offset, len) in [
            (0, 1),
            (77, SAMPLE),
            (5, SAMPLE + 1),
            (9, 1 << 30),
            (1, 1 << 62),
        ] {
            let pieces: Vec<_> = pieces(offset, offset + len).collect();
            assert_eq!(pieces[0].0, offset);
            assert_eq!(pieces[pieces.len() - 1].1, offset + len);
            let total: u64 = pieces.iter().map(|(start, end)| end - start).sum();
            assert_eq!(total, len.min(SAMPLE));
            assert!(pieces.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        }
        assert_eq!(pieces(5, 5).count(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn both_calls_say_the_same() {
        use std::os::fd::AsRawFd;
        use std::sync::Arc;

        use crate::file::Access;

        let file = tempfile::NamedTempFile::new().unwrap();
        let pages = 64;
        let bytes = vec![1; (pages * page_size()) as usize - 100];
        std::fs::write(file.path(), &bytes).unwrap();
        let opened = Arc::new(file.reopen().unwrap());
        let map = || Mapping::new(&opened, file.path(), Access::ReadWrite, bytes.len() as u64);
        let mapping = map().unwrap();
        assert_eq!(mapping.resident(0, pages), Some(pages));
        assert_eq!(mapping.resident(1, pages), None);
        drop(mapping);
        opened.sync_all().unwrap();
        // SAFETY: the file is open.
        unsafe { libc::posix_fadvise(opened.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        let resident = map().unwrap().resident(0, pages).unwrap();
        match cachestat(&opened, 0, bytes.len() as u64) {
            Ok(cached) => assert_eq!(cached, resident),
            Err(error) => eprintln!("skipped: {error}"),
        }
    }
}
