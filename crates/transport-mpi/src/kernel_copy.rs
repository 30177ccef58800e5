//! Bytes from one process to another of the same node, copied by the kernel
//! straight from memory to memory. Whether it does so is a matter of rights.

use std::sync::atomic::{AtomicBool, Ordering};

static KERNEL_COPIES: AtomicBool = AtomicBool::new(true);

/// Lets groups that are made from now on do without the kernel's copies between
/// processes though they are allowed, so that tests can go both ways. It must
/// be the same on all ranks.
pub fn set_kernel_copies(on: bool) {
    KERNEL_COPIES.store(on, Ordering::Relaxed);
}

/// Whether they are to be used.
pub(crate) fn are_wanted() -> bool {
    KERNEL_COPIES.load(Ordering::Relaxed)
}

/// Copies from the memory of another process; whether that went well.
pub(crate) fn copy_from(process: u32, address: u64, into: &mut [u8]) -> bool {
    let (start, len) = (into.as_mut_ptr(), into.len());
    // SAFETY: `into` is ours to write.
    unsafe { copy(Direction::From, process, address, start, len) }
}

/// Copies into the memory of another process; whether that went well.
///
/// # Safety
///
/// Nobody may use that memory meanwhile.
pub(crate) unsafe fn copy_to(process: u32, address: u64, from: &[u8]) -> bool {
    let (start, len) = (from.as_ptr().cast_mut(), from.len());
    // SAFETY: `from` is only read, and the other side is the caller's promise.
    unsafe { copy(Direction::To, process, address, start, len) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    From,
    To,
}

/// Copies `len` bytes between `address` of another process and `start` here.
///
/// # Safety
///
/// The bytes here must be readable and, if they are the target, writable.
#[cfg(target_os = "linux")]
unsafe fn copy(
    direction: Direction,
    process: u32,
    address: u64,
    start: *mut u8,
    len: usize,
) -> bool {
    let mut done = 0;
    while done < len {
        let local = libc::iovec {
            iov_base: start.wrapping_add(done).cast(),
            iov_len: len - done,
        };
        let remote = libc::iovec {
            iov_base: (address as usize + done) as *mut std::ffi::c_void,
            iov_len: len - done,
        };
        let (process, local, remote) =
            (process as libc::pid_t, &raw const local, &raw const remote);
        // SAFETY: within the bytes here, and the kernel checks the address in
        // the other process.
        let copied = unsafe {
            match direction {
                Direction::From => libc::process_vm_readv(process, local, 1, remote, 1, 0),
                Direction::To => libc::process_vm_writev(process, local, 1, remote, 1, 0),
            }
        };
        match usize::try_from(copied) {
            Ok(copied) if copied > 0 => done += copied,
            _ => return false,
        }
    }
    true
}

#[cfg(not(target_os = "linux"))]
unsafe fn copy(_: Direction, _: u32, _: u64, _: *mut u8, len: usize) -> bool {
    len == 0
}
