//! Memory for what is about to be read: not cleared before, since all of it
//! will be overwritten, and in large pages where there is much of it.

use std::mem::MaybeUninit;

/// From this size on large pages are asked for: they are zeroed and mapped in a
/// fraction of the time of as many small ones.
#[cfg(target_os = "linux")]
const MUCH: usize = 4 << 20;

/// An empty vector with room for `count` values; `None` if there is not so much
/// memory.
pub(crate) fn with_room<T>(count: usize) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).ok()?;
    prefer_large_pages(values.spare_capacity_mut());
    Some(values)
}

#[cfg(target_os = "linux")]
fn prefer_large_pages<T>(memory: &mut [MaybeUninit<T>]) {
    let bytes = size_of_val(memory);
    if bytes < MUCH {
        return;
    }
    const PAGE: usize = 4096;
    let start = memory.as_ptr() as usize;
    let (first, end) = (start.next_multiple_of(PAGE), (start + bytes) / PAGE * PAGE);
    // SAFETY: the pages lie in the vector's memory; the advice changes nothing
    // but their size, and it does not matter if it is refused.
    unsafe { libc::madvise(first as *mut _, end - first, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn prefer_large_pages<T>(_: &mut [MaybeUninit<T>]) {}
