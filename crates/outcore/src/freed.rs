//! [`return_freed_memory`]: what is freed goes back to the system.
//!
//! The allocator of the GNU system keeps freed memory for the next buffer: in each thread
//! up to twice the largest buffer that it has seen. A budget knows nothing of that.

use std::sync::Once;

/// Buffers at least this large are given back when they are freed: as large as the
/// scratch that is kept for chunks.
#[cfg(target_env = "gnu")]
const LARGE: i32 = 4 << 20;

/// From now on large buffers go back to the system when they are freed, and of small
/// ones not much is kept. For programs that promise how much memory they take; others
/// are a little faster without.
pub fn return_freed_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(target_env = "gnu")]
        // SAFETY: the calls set numbers of the allocator, which has locks of its own.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * LARGE);
        }
    });
}
