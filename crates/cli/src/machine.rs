//! What this machine is, as far as it tells.

use std::path::{Path, PathBuf};

use crate::bytes;

/// Names and values: processor, cores, memory, system, and the file system of
/// `directory`.
pub(crate) fn facts(directory: &Path) -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().ok();
    let facts = [
        ("processor", processor()),
        ("cores", cores.map(|cores| cores.to_string())),
        ("memory", memory()),
        ("system", system()),
        ("file system", file_system(directory)),
    ];
    let known = facts.into_iter();
    known
        .filter_map(|(name, fact)| Some((name, fact?)))
        .collect()
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn processor() -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().into())
}

fn memory() -> Option<String> {
    let text = read("/proc/meminfo")?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(bytes::show(kibibytes.checked_mul(1024)?))
}

fn system() -> Option<String> {
    let kind = read("/proc/sys/kernel/ostype")?;
    let release = read("/proc/sys/kernel/osrelease")?;
    Some(format!("{} {}", kind.trim(), release.trim()))
}

/// The kind of the file system that `directory` is on, and where that begins.
fn file_system(directory: &Path) -> Option<String> {
    mounted(&read("/proc/self/mounts")?, &directory.canonicalize().ok()?)
}

/// Of lines of devices, places and kinds, the one that holds `directory`.
fn mounted(mounts: &str, directory: &Path) -> Option<String> {
    let places = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = PathBuf::from(words.next()?.replace("\\040", " "));
        Some((place, words.next()?))
    });
    // Of equal ones the last lies on top.
    let within = places.filter(|(place, _)| directory.starts_with(place));
    let (place, kind) = within.max_by_key(|(place, _)| place.components().count())?;
    Some(format!("{kind} at {}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "a / ext4 rw 0 0\nb /data xfs rw 0 0\nc /data/my\\040disk btrfs rw 0 0\n\
                      d /data tmpfs rw 0 0\nbroken\n";
        let of = |path: &str| mounted(mounts, Path::new(path)).unwrap_or_default();
        assert_eq!(of("/home/x"), "ext4 at /");
        assert_eq!(of("/data/x"), "tmpfs at /data");
        assert_eq!(of("/data/my disk/x"), "btrfs at /data/my disk");
        assert_eq!(of("/database"), "ext4 at /");
    }
}
