//! [`Mapping`]: a file's bytes as memory, shared with the page cache.
//!
//! Copying between memory and a mapping that is kept needs no system call for
//! each run of bytes. The one who copies asks for the address of the range it
//! will touch, and again every few megabytes; the answer is checked against the
//! length that the file has then, and for writes against holes, since touching
//! a mapped page that the file does not have, or for which there is no room on
//! the disk, does not fail but ends the process (SIGBUS).
//!
//! What is NOT protected against ends the process in the same way:
//! - another program, or another thread, that cuts the file or punches holes
//!   into it after the address was given and before the copy is done;
//! - a device that fails to deliver a page that is not in the page cache.
//!
//! Measured (two busy cores, ext4 on a virtual disk, `[::16, ::16]` of 1024 by
//! 8192 and of 8192 by 1024 numbers of 8 bytes, a file of 64 MiB; medians of
//! five, and for reads of three such runs):
//!
//! | milliseconds                                  | 1024 x 8192 | 8192 x 1024 |
//! |-----------------------------------------------|------------:|------------:|
//! | warm, mapping held                            |        0.25 |        0.26 |
//! | warm, mapping new                             |        0.5  |        1.1  |
//! | warm, mapping new, `MADV_RANDOM`              |        0.9  |        3.1  |
//! | warm, pread of each 16th row                  |        1.0  |        1.8  |
//! | warm, pread of everything by 1 MiB            |        6.8  |        5.9  |
//! | cold, mapping                                 |        20   |        18   |
//! | cold, mapping, `MADV_RANDOM`                  |        74   |        61   |
//! | cold, mapping, `MADV_SEQUENTIAL`              |        17   |        21   |
//! | cold, pread of each 16th row                  |         9   |        42   |
//! | cold, pread of everything by 1 MiB            |        15   |        21   |
//! | write, held, pages dirty already              |        0.23 |        0.26 |
//! | write, held, pages clean (11-14 us a page)    |        14   |        14   |
//! | write, pread and pwrite of each 16th row      |        3.4  |        8.0  |
//! | write, pwrite of each number (4-5 us each)    |       125   |       129   |
//!
//! So no advice is given: `MADV_RANDOM` turns off reading ahead, every page
//! becomes a request of its own (`[:, ::16]`, cold: 1200 instead of 23 ms), and
//! the first warm pass is slower, too. Mapped writes pay where pages are dirty
//! or take several runs each: the first write to a clean page costs as much as
//! three pwrites. Asking for an address costs 0.7 us for reads (fstat) and 1.5 us for writes (fstat and
//! lseek), the kept mapping itself 0.6 us (fstat). A mapping costs 2 MiB of
//! page tables for each GiB that was touched, until it is dropped.
//!
//! And as with reads and writes of files, nothing orders those of several
//! threads or programs: bytes that someone else changes meanwhile may be seen
//! old or new. They must be copied by pointer, never borrowed as a slice.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::{fmt, io};

use crate::error::{Error, Result};
use crate::file::Access;
use crate::file_system::writes_in_place;

/// The bytes of a file, from the first to the last that it had when it was
/// mapped.
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    file: Arc<File>,
    path: PathBuf,
    writable: bool,
    /// Whether writes into written parts of the file need no new room.
    in_place: bool,
}

impl Mapping {
    /// Maps the first `len` bytes of `file`; `None` if there are none or the
    /// system cannot map them.
    pub(crate) fn new(file: &Arc<File>, path: &Path, access: Access, len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|&len| len > 0)?;
        let protection = match access {
            Access::ReadOnly => libc::PROT_READ,
            Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: a new mapping at an address of the system's choice touches no
        // memory in use.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        Some(Mapping {
            start: NonNull::new(start.cast())?,
            len,
            file: Arc::clone(file),
            path: path.to_owned(),
            writable: access == Access::ReadWrite,
            in_place: access == Access::ReadWrite && writes_in_place(file),
        })
    }

    /// How many bytes are mapped.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no byte is mapped.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the `len` bytes at `offset` can be read, for as long as this
    /// mapping lives and the file is not cut. A range that reaches past the end
    /// of the mapping, or of the file as it is now, is
    /// [`Error::UnexpectedEnd`].
    pub fn readable(&self, offset: u64, len: usize) -> Result<*const u8> {
        let end = self.file_len()?.min(self.len as u64);
        match offset.checked_add(len as u64) {
            Some(last) if last <= end => Ok(self.address(offset)),
            _ => Err(Error::UnexpectedEnd {
                store: self.name(),
                offset,
                wanted: len as u64,
                end,
            }),
        }
    }

    /// Where the `len` bytes at `offset` can be read and written, as long as
    /// this mapping lives and the file is not cut. `None` if they must be
    /// written with [`Store::write_at`](crate::Store::write_at) instead, which
    /// does it or says why it cannot:
    /// - the file was opened for reads alone;
    /// - the range reaches past the end of the mapping or of the file;
    /// - a page of the range has a part that was never written, a hole, and a
    ///   disk that is full would end the process;
    /// - the file system is not one that is known to overwrite in place (ext2
    ///   to ext4 and tmpfs are), so that even a written page may need new room.
    pub fn writable(&self, offset: u64, len: usize) -> Result<Option<*mut u8>> {
        if !self.in_place {
            return Ok(None);
        }
        let file_len = self.file_len()?;
        let inside = |end: &u64| *end <= file_len.min(self.len as u64);
        let Some(end) = offset.checked_add(len as u64).filter(inside) else {
            return Ok(None);
        };
        let address = self.address(offset);
        let written = len == 0 || is_written(&self.file, offset, end, file_len);
        Ok(written.then_some(address))
    }

    /// How many of the `count` pages from page `first` on are in memory; `None`
    /// if they are not all mapped, or the system would not tell the truth: it
    /// calls all pages of a file resident that the caller neither owns nor may
    /// write.
    pub(crate) fn resident(&self, first: u64, count: u64) -> Option<u64> {
        use std::os::unix::fs::MetadataExt;
        // SAFETY: the call has no preconditions.
        let user = unsafe { libc::geteuid() };
        if !self.writable && self.file.metadata().ok()?.uid() != user {
            return None;
        }
        let offset = first.checked_mul(page_size())?;
        let len = count.checked_mul(page_size())?;
        let pages = (self.len as u64).div_ceil(page_size());
        if first.checked_add(count)? > pages {
            return None;
        }
        let mut resident = vec![0_u8; count as usize];
        let start = self.address(offset).cast();
        // SAFETY: the pages are mapped, and `resident` has a byte for each.
        let status = unsafe { libc::mincore(start, len as usize, resident.as_mut_ptr().cast()) };
        let count = resident.iter().filter(|&&page| page & 1 == 1).count();
        (status == 0).then_some(count as u64)
    }

    fn address(&self, offset: u64) -> *mut u8 {
        // SAFETY: the callers have checked that `offset` is at most `len`.
        unsafe { self.start.as_ptr().add(offset as usize) }
    }

    /// The length of the file at this moment.
    fn file_len(&self) -> Result<u64> {
        file_len(&self.file).map_err(|source| Error::Length {
            store: self.name(),
            source,
        })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped by `new`, and pointers into it are
        // valid only as long as `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping")
            .field("path", &self.path)
            .field("len", &self.len)
            .field("in_place", &self.in_place)
            .finish()
    }
}

// SAFETY: the mapped memory belongs to the process, not to a thread, and is
// given out as pointers only.
unsafe impl Send for Mapping {}
// SAFETY: as above; no method changes the mapping.
unsafe impl Sync for Mapping {}

/// The length of a file, by the cheapest system call that tells it.
pub(crate) fn file_len(file: &File) -> io::Result<u64> {
    // SAFETY: a `stat` of zeros is valid, and filled by the call below.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the file is open, and the structure lives during the call.
    match unsafe { libc::fstat(file.as_raw_fd(), &mut status) } {
        0 => Ok(status.st_size as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The size of a page of memory.
pub(crate) fn page_size() -> u64 {
    // SAFETY: the call has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Whether every page that has bytes of the range `offset..end` was written in
/// full, as far as the file of `file_len` bytes reaches.
#[cfg(target_os = "linux")]
fn is_written(file: &File, offset: u64, end: u64, file_len: u64) -> bool {
    let page = page_size();
    // The file system may keep a file as short as this in its inode, where a
    // mapped write has to move it out.
    if file_len < page {
        return false;
    }
    let first = offset - offset % page;
    let end = end.next_multiple_of(page).min(file_len);
    // SAFETY: the file is open. Its position is used by nobody.
    let hole = unsafe { libc::lseek(file.as_raw_fd(), first as libc::off_t, libc::SEEK_HOLE) };
    hole >= 0 && hole as u64 >= end
}

#[cfg(not(target_os = "linux"))]
fn is_written(_file: &File, _offset: u64, _end: u64, _file_len: u64) -> bool {
    false
}
