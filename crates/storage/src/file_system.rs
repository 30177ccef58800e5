//! What kind of file system a file is on, where that matters.

use std::fs::File;

/// Whether the file system overwrites written parts of a file where they are.
/// Others, which copy on write or may share parts among files, can run out of
/// room in doing so.
#[cfg(target_os = "linux")]
pub(crate) fn writes_in_place(file: &File) -> bool {
    [libc::EXT4_SUPER_MAGIC, libc::TMPFS_MAGIC].contains(&kind(file))
}

/// Whether it is one of those that belong to one machine, so that a lock is a
/// matter of a microsecond; on others it is a message to a server, and makes
/// the client give up what it has cached.
#[cfg(target_os = "linux")]
pub(crate) fn is_local(file: &File) -> bool {
    const F2FS: libc::__fsword_t = 0xf2f5_2010;
    const ZFS: libc::__fsword_t = 0x2fc1_2fc1;
    [
        libc::EXT4_SUPER_MAGIC,
        libc::TMPFS_MAGIC,
        libc::XFS_SUPER_MAGIC,
        libc::BTRFS_SUPER_MAGIC,
        libc::OVERLAYFS_SUPER_MAGIC,
        F2FS,
        ZFS,
    ]
    .contains(&kind(file))
}

/// Locks the file as a whole (`flock`) together with others who do so, until it is closed;
/// fails if somebody has locked it alone. Where there are no such locks nothing happens.
pub(crate) fn share_whole(file: &File) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the file is open; the call touches no memory.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    match error.kind() {
        std::io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}

/// The number by which the system knows the kind; 0 if it does not tell.
#[cfg(target_os = "linux")]
fn kind(file: &File) -> libc::__fsword_t {
    use std::os::fd::AsRawFd;
    // SAFETY: a `statfs` of zeros is valid, and filled by the call below.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the file is open, and the structure lives during the call.
    match unsafe { libc::fstatfs(file.as_raw_fd(), &mut status) } {
        0 => status.f_type,
        _ => 0,
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn writes_in_place(_file: &File) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(_file: &File) -> bool {
    false
}
