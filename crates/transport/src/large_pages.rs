//! Memory in large pages: they are cleared and mapped in a fraction of the time
//! of as many small ones.

/// From this size on large pages are asked for.
#[cfg(target_os = "linux")]
const MUCH: usize = 4 << 20;

/// Asks for large pages for these bytes, if there are many of them.
pub fn prefer(start: *mut u8, len: usize) {
    #[cfg(target_os = "linux")]
    if len >= MUCH {
        const PAGE: usize = 4096;
        let first = (start as usize).next_multiple_of(PAGE);
        let end = (start as usize + len) / PAGE * PAGE;
        // SAFETY: whole pages among the bytes; the advice changes nothing but
        // their size, and it does not matter if it is refused.
        unsafe { libc::madvise(first as *mut _, end - first, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, len);
}
