//! Memory for what is about to be made: not cleared before where all of it
//! will be overwritten, and in large pages where there is much of it.

use bytemuck::Zeroable;

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

/// So many zeros, which are not touched before they are used.
pub(crate) fn zeroed<T: Zeroable + Clone>(count: usize) -> Vec<T> {
    let mut values = bytemuck::zeroed_vec(count);
    prefer_large_pages(&mut values[..]);
    values
}

#[cfg(target_os = "linux")]
fn prefer_large_pages<T>(memory: &mut [T]) {
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
fn prefer_large_pages<T>(_: &mut [T]) {}
