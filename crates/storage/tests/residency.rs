//! The share of a store that is in memory.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outcore_storage::{
    Access, CountedStore, DeviceModel, FaultyStore, FileOptions, FileStore, MemoryStore, Queues,
    Store, StripedStore, Striping, ThrottledStore, Time,
};

const LENGTH: usize = 8 << 20;

/// Whether the file is on a device, from which it must be read again.
fn has_device(path: &Path) -> bool {
    let file = File::open(path).unwrap();
    // SAFETY: a `statfs` of zeros is valid.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the file is open, and the structure lives during the call.
    unsafe { libc::fstatfs(file.as_raw_fd(), &mut status) };
    if status.f_type == libc::TMPFS_MAGIC {
        eprintln!("skipped: the temporary folder is in memory");
    }
    status.f_type != libc::TMPFS_MAGIC
}

#[test]
fn evicted_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let store = FileStore::create(&path).unwrap();
    store.write_at(0, &vec![1; LENGTH]).unwrap();
    let length = LENGTH as u64;
    let Some(written) = store.cached(0, length) else {
        return eprintln!("skipped: this system does not tell");
    };
    assert!(written > 0.9, "just written: {written}");
    if !has_device(&path) {
        return;
    }
    store.forget().unwrap();
    for (offset, len) in [(0, length), (0, u64::MAX), (length / 2, 5000)] {
        let cold = store.cached(offset, len).unwrap();
        assert!(cold < 0.1, "evicted: {cold} of {len} at {offset}");
    }
    // Half of it is read in the middle; what is read ahead may be more.
    let mut half = vec![0; LENGTH / 2];
    store.read_at(length / 4, &mut half).unwrap();
    let middle = store.cached(length / 4, length / 2).unwrap();
    assert!(middle > 0.9, "read: {middle}");
    let first = store.cached(0, 1 << 20).unwrap();
    assert!(first < 0.1, "not read: {first}");
    let all = store.cached(0, length).unwrap();
    assert!((0.3..0.9).contains(&all), "half read: {all}");
    store.read_at(0, &mut half).unwrap();
    store.read_at(length / 2, &mut half).unwrap();
    let warm = store.cached(0, length).unwrap();
    assert!(warm > 0.9, "all read: {warm}");
    // Past the end there is nothing to know.
    assert_eq!(store.cached(length, 10), None);
    assert_eq!(store.cached(0, 0), None);
    assert_eq!(store.cached(u64::MAX, 10), None);
}

#[test]
fn what_an_open_store_has_mapped_is_forgotten_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let store = FileStore::create(&path).unwrap();
    store.write_at(0, &vec![1; LENGTH]).unwrap();
    if store.cached(0, LENGTH as u64).is_none() || !has_device(&path) {
        return;
    }
    for _ in 0..2 {
        let mapping = store.map().unwrap().unwrap();
        let bytes = mapping.readable(0, LENGTH).unwrap();
        // SAFETY: so many bytes are mapped, and nobody changes the file.
        let sum: usize = (0..LENGTH).map(|i| unsafe { *bytes.add(i) } as usize).sum();
        assert_eq!(sum, LENGTH);
        drop(mapping);
        store.forget().unwrap();
        let cold = store.cached(0, LENGTH as u64).unwrap();
        assert!(cold < 0.1, "evicted: {cold}");
    }
}

#[test]
fn adapters_and_stripes_forget_what_is_beneath() {
    let folder = tempfile::tempdir().unwrap();
    if !has_device(folder.path()) {
        return;
    }
    let disk = |name| -> Arc<dyn Store> {
        let store = FileStore::create(folder.path().join(name)).unwrap();
        Arc::new(FaultyStore::new(CountedStore::new(store)))
    };
    let striped = StripedStore::new(vec![disk("a"), disk("b")], 4096).unwrap();
    striped.write_at(0, &vec![1; LENGTH]).unwrap();
    let Some(written) = striped.cached(0, LENGTH as u64) else {
        return eprintln!("skipped: this system does not tell");
    };
    assert!(written > 0.9, "just written: {written}");
    striped.forget().unwrap();
    let cold = striped.cached(0, LENGTH as u64).unwrap();
    assert!(cold < 0.1, "forgotten: {cold}");
}

#[test]
fn other_stores() {
    let memory = || Arc::new(MemoryStore::from(vec![1; 1000])) as Arc<dyn Store>;
    assert_eq!(memory().cached(0, 1000), Some(1.0));
    assert_eq!(memory().cached(999, 1000), Some(1.0));
    assert_eq!(memory().cached(1000, 1), None);
    assert_eq!(CountedStore::new(memory()).cached(0, 1), Some(1.0));
    assert_eq!(FaultyStore::new(memory()).cached(0, 1), Some(1.0));
    let model = DeviceModel {
        latency: Duration::ZERO,
        bandwidth: 1e9,
        queues: Queues::Striped(Striping::new(1, 10).unwrap()),
    };
    // Two disks in memory, and a third that is behind a device.
    let slow = ThrottledStore::new(memory(), model, Time::Virtual).unwrap();
    let disks = vec![memory(), memory(), Arc::new(slow)];
    let striped = StripedStore::new(disks, 10).unwrap();
    assert_eq!(striped.cached(0, 20), Some(1.0));
    assert_eq!(striped.cached(20, 10), Some(0.0));
    assert_eq!(striped.cached(5, 20), Some(0.75));
    assert_eq!(striped.cached(0, 3000), Some(2.0 / 3.0));
    assert_eq!(striped.cached(3000, 10), None);
}

#[test]
fn direct_transfers_find_nothing_in_the_page_cache() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, [1; 10_000]).unwrap();
    let options = FileOptions {
        direct: true,
        access: Access::ReadOnly,
        ..FileOptions::default()
    };
    match FileStore::open_with(&path, options) {
        Ok(store) => assert_eq!(store.cached(0, 10_000), Some(0.0)),
        Err(error) => eprintln!("skipped: {error}"),
    }
}
