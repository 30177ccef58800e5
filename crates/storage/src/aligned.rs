//! [`AlignedBuffer`]: memory that begins on a page, as direct I/O wants it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// Direct transfers begin, end and lie in memory at multiples of this. Disks
/// ask for 512 or 4096 bytes; whole pages also keep direct writes apart from
/// the page cache's copies of their neighbours.
pub const DIRECT_ALIGNMENT: usize = 4096;

/// Zeroed bytes at an address that is a multiple of [`DIRECT_ALIGNMENT`].
/// Direct I/O from and to such memory needs no copy.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    len: usize,
}

impl AlignedBuffer {
    /// `len` zeros.
    pub fn new(len: usize) -> Self {
        if len == 0 {
            let start = NonNull::dangling();
            return AlignedBuffer { start, len };
        }
        let layout = Self::layout(len);
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        AlignedBuffer { start, len }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, DIRECT_ALIGNMENT)
            .expect("no buffer is longer than half the address space")
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: `new` allocated `start` with this layout.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.len)) };
        }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to `len` initialised bytes owned by `self`.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer")
            .field("len", &self.len)
            .finish()
    }
}

// SAFETY: the buffer owns plain bytes, as a `Vec<u8>` does.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared access only reads them.
unsafe impl Sync for AlignedBuffer {}
