//! Memory for what is about to be made: not cleared before where all of it
//! will be overwritten, and in large pages where there is much of it.

use bytemuck::Zeroable;
use outcore_transport::large_pages;

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

/// As [`zeroed`]; `None` if there is not so much memory.
pub(crate) fn zeros<T: Zeroable>(count: usize) -> Option<Vec<T>> {
    let mut values = bytemuck::try_zeroed_vec(count).ok()?;
    prefer_large_pages(&mut values[..]);
    Some(values)
}

fn prefer_large_pages<T>(memory: &mut [T]) {
    large_pages::prefer(memory.as_mut_ptr().cast(), size_of_val(memory));
}
