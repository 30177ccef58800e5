//! [`Segment`]: memory that several processes of one node have mapped.
//!
//! Its maker tells the others where to find it ([`Ticket`]): they open it
//! through `/proc`, as a file that the maker has open. That succeeds only on
//! the same node and for the same user, and the name of the file, in which a
//! random number stands, shows that it is the right one (a process with that
//! number may exist on another node, or in another container). MPI has shared
//! windows, too, but making one blocks inside MPI.

use std::ffi::{CString, c_int, c_void};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{process, ptr};

static SHARING: AtomicBool = AtomicBool::new(true);

/// Lets groups that are made from now on share no memory though they could,
/// as if each rank had a node of its own, so that tests can go both ways. It
/// must be the same on all ranks.
pub fn set_node_memory(on: bool) {
    SHARING.store(on, Ordering::Relaxed);
}

/// Where to find a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    process: u32,
    descriptor: u32,
    token: u64,
    len: u64,
}

impl Ticket {
    /// The length of an encoded ticket, and of the absence of one.
    pub(crate) const BYTES: usize = 24;

    /// All zeros if there is none.
    pub(crate) fn encode(ticket: Option<Self>) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        if let Some(ticket) = ticket {
            bytes[..4].copy_from_slice(&ticket.process.to_le_bytes());
            bytes[4..8].copy_from_slice(&ticket.descriptor.to_le_bytes());
            bytes[8..16].copy_from_slice(&ticket.token.to_le_bytes());
            bytes[16..].copy_from_slice(&ticket.len.to_le_bytes());
        }
        bytes
    }

    /// The reverse of [`Ticket::encode`].
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (process, rest) = bytes.split_first_chunk()?;
        let (descriptor, rest) = rest.split_first_chunk()?;
        let (token, rest) = rest.split_first_chunk()?;
        let (len, _) = rest.split_first_chunk()?;
        let ticket = Self {
            process: u32::from_le_bytes(*process),
            descriptor: u32::from_le_bytes(*descriptor),
            token: u64::from_le_bytes(*token),
            len: u64::from_le_bytes(*len),
        };
        (ticket.process != 0).then_some(ticket)
    }

    fn name(token: u64) -> String {
        format!("outcore-{token:016x}")
    }

    fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", self.process, self.descriptor).into()
    }
}

/// Shared memory, mapped into this process until dropped.
#[derive(Debug)]
pub(crate) struct Segment {
    start: *mut u8,
    len: usize,
}

// SAFETY: a segment is but an address range; its users say who may touch what.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// New memory of `len` bytes, zeroed and there, and how others find it for
    /// as long as the file lives. `None` if the system has none.
    pub(crate) fn create(len: usize) -> Option<(Self, File, Ticket)> {
        if len == 0 || !SHARING.load(Ordering::Relaxed) {
            return None;
        }
        let token = RandomState::new().hash_one(len);
        let name = CString::new(Ticket::name(token)).ok()?;
        let file = anonymous_file(&name)?;
        // Room for all of it, so that touching it cannot fail.
        let size = libc::off_t::try_from(len).ok()?;
        // SAFETY: the file is ours.
        if unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size) } != 0 {
            return None;
        }
        let ticket = Ticket {
            process: process::id(),
            descriptor: file.as_raw_fd() as u32,
            token,
            len: len as u64,
        };
        let segment = Self::map(&file, len, populated())?;
        Some((segment, file, ticket))
    }

    /// The segment of another process, if it can be reached.
    pub(crate) fn open(ticket: Ticket) -> Option<Self> {
        if !SHARING.load(Ordering::Relaxed) {
            return None;
        }
        let link = fs::read_link(ticket.path()).ok()?;
        if link.to_str()? != format!("/memfd:{} (deleted)", Ticket::name(ticket.token)) {
            return None;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(ticket.path())
            .ok()?;
        let len = usize::try_from(ticket.len).ok()?;
        if file.metadata().ok()?.len() < ticket.len {
            return None;
        }
        Self::map(&file, len, 0)
    }

    fn map(file: &File, len: usize, flags: c_int) -> Option<Self> {
        // SAFETY: a new mapping at an address of the system's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | flags,
                file.as_raw_fd(),
                0,
            )
        };
        (start != libc::MAP_FAILED).then_some(Self {
            start: start.cast(),
            len,
        })
    }

    /// The first byte; the segment begins with a page.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Gives the memory from `offset`, which begins a page, back to the system
    /// for all processes that have it mapped. They find zeros there.
    pub(crate) fn give_back(&self, offset: usize) {
        #[cfg(target_os = "linux")]
        if offset < self.len {
            // SAFETY: within the mapping. If it fails, the memory goes when
            // the last process has unmapped it.
            unsafe {
                let start = self.start.add(offset).cast::<c_void>();
                libc::madvise(start, self.len - offset, libc::MADV_REMOVE);
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = offset;
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and unmapped only here.
        unsafe {
            libc::munmap(self.start.cast::<c_void>(), self.len);
        }
    }
}

/// A file that lives in memory and has a name for `/proc` only.
#[cfg(target_os = "linux")]
fn anonymous_file(name: &CString) -> Option<File> {
    // SAFETY: the name is a C string; the descriptor that comes back is new.
    unsafe {
        let descriptor = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        (descriptor >= 0).then(|| File::from_raw_fd(descriptor))
    }
}

#[cfg(not(target_os = "linux"))]
fn anonymous_file(_: &CString) -> Option<File> {
    None
}

/// Lets a mapping begin with all its pages in place: its maker uses them all.
fn populated() -> c_int {
    #[cfg(target_os = "linux")]
    return libc::MAP_POPULATE;
    #[cfg(not(target_os = "linux"))]
    return 0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_found_by_its_ticket() {
        let (segment, file, ticket) = Segment::create(10_000).expect("Linux has such memory");
        assert_eq!(Ticket::decode(&Ticket::encode(Some(ticket))), Some(ticket));
        assert_eq!(Ticket::decode(&Ticket::encode(None)), None);
        let other = Segment::open(ticket).expect("it is there");
        assert_ne!(segment.start(), other.start());
        // SAFETY: both are 10,000 bytes long, and nobody else uses them.
        unsafe {
            segment.start().add(9999).write(7);
            assert_eq!(other.start().add(9999).read(), 7);
            assert_eq!(other.start().read(), 0);
            other.give_back(4096);
            assert_eq!(segment.start().add(9999).read(), 0);
        }
        // Neither another name nor a file that is gone.
        let forged = Ticket {
            token: ticket.token ^ 1,
            ..ticket
        };
        assert!(Segment::open(forged).is_none());
        let longer = Ticket {
            len: ticket.len + 1,
            ..ticket
        };
        assert!(Segment::open(longer).is_none());
        drop(file);
        assert!(Segment::open(ticket).is_none());
    }
}
