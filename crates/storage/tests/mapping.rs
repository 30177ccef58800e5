//! Mappings of files: bounds, holes, growth, and who has none.
#![cfg(target_os = "linux")]

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use outcore_storage::{
    Access, CountedStore, DeviceModel, Error, FaultyStore, FileOptions, FileStore, Mapping,
    MemoryStore, Queues, Store, StripedStore, ThrottledStore, Time,
};

const MIB: usize = 1 << 20;

/// A new file with `len` bytes, each of which tells its place.
fn file(folder: &Path, len: usize) -> (PathBuf, FileStore) {
    let path = folder.join("file");
    let store = FileStore::create(&path).unwrap();
    store.write_at(0, &bytes(len)).unwrap();
    (path, store)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

fn copy(mapping: &Mapping, offset: u64, len: usize) -> Vec<u8> {
    let from = mapping.readable(offset, len).unwrap();
    let mut copy = vec![0; len];
    // SAFETY: the mapping has these bytes, and no test cuts the file meanwhile.
    unsafe { from.copy_to_nonoverlapping(copy.as_mut_ptr(), len) };
    copy
}

/// Whether the file system of `path` is one that mapped writes are offered for.
fn overwrites_in_place(path: &Path) -> bool {
    let path = CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: a `statfs` of zeros is valid.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero, and the structure lives during the call.
    let known = unsafe { libc::statfs(path.as_ptr(), &mut status) } == 0
        && [libc::EXT4_SUPER_MAGIC, libc::TMPFS_MAGIC].contains(&status.f_type);
    if !known {
        eprintln!("skipped: no mapped writes on this file system");
    }
    known
}

#[test]
fn a_mapping_is_kept_and_grows_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (_, store) = file(folder.path(), MIB);
    let first = store.map().unwrap().unwrap();
    assert!(Arc::ptr_eq(&first, &store.map().unwrap().unwrap()));
    assert_eq!(copy(&first, 0, MIB), bytes(MIB));
    store.set_len(3 * MIB as u64).unwrap();
    store.write_at(3 * MIB as u64 - 3, b"end").unwrap();
    let second = store.map().unwrap().unwrap();
    assert_eq!((first.len(), second.len()), (MIB, 3 * MIB));
    assert_eq!(copy(&second, 3 * MIB as u64 - 4, 4), b"\0end");
    // The old one is valid as long as someone has it.
    assert_eq!(copy(&first, 0, MIB), bytes(MIB));
    drop(store);
    assert_eq!(copy(&second, 0, MIB), bytes(MIB));
}

#[test]
fn a_cut_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = file(folder.path(), MIB);
    let mapping = store.map().unwrap().unwrap();
    let other = FileStore::open(&path, Access::ReadWrite).unwrap();
    other.set_len(10_000).unwrap();
    assert_eq!(copy(&mapping, 0, 10_000), bytes(10_000));
    for (offset, wanted) in [(0, MIB), (10_000, 1), (9_000, 2000), (500_000, 10)] {
        match mapping.readable(offset, wanted) {
            Err(Error::UnexpectedEnd { end: 10_000, .. }) => {}
            answer => panic!("{answer:?}"),
        }
        assert_eq!(mapping.writable(offset, wanted).unwrap(), None);
    }
    for (offset, len) in [(u64::MAX, 1), (u64::MAX - 5, 10), (1, usize::MAX)] {
        assert!(mapping.readable(offset, len).is_err());
        assert_eq!(mapping.writable(offset, len).unwrap(), None);
    }
    // A range at the very end is empty but valid.
    mapping.readable(10_000, 0).unwrap();
    // As long as before, but with a hole.
    other.set_len(MIB as u64).unwrap();
    assert!(copy(&mapping, 10_000, 1000).iter().all(|&byte| byte == 0));
    assert_eq!(mapping.writable(100_000, 10).unwrap(), None);
    assert!(Arc::ptr_eq(&mapping, &store.map().unwrap().unwrap()));
}

#[test]
fn holes_are_not_written_through_a_mapping() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::create(folder.path().join("file")).unwrap();
    store.set_len(3 * MIB as u64).unwrap();
    store.write_at(MIB as u64, &[1; MIB]).unwrap();
    let mapping = store.map().unwrap().unwrap();
    if !overwrites_in_place(folder.path()) {
        return;
    }
    let offer = |offset, len| mapping.writable(offset as u64, len).unwrap().is_some();
    assert!(offer(MIB, MIB) && offer(MIB + 12_345, 678) && offer(2 * MIB - 1, 1));
    assert!(!offer(0, 1) && !offer(MIB - 1, 2) && !offer(2 * MIB - 1, 2));
    assert!(!offer(0, 3 * MIB) && !offer(3 * MIB - 1, 1));
    // Written, it is no hole any more.
    store.write_at(0, &[2; MIB]).unwrap();
    assert!(offer(0, 2 * MIB));
    store.sync().unwrap();
    assert!(offer(0, 2 * MIB) && !offer(2 * MIB, 1));
}

#[test]
fn mapped_writes_of_threads_reach_the_file() {
    const THREADS: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = file(folder.path(), MIB);
    if !overwrites_in_place(folder.path()) {
        return;
    }
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                let mapping = store.map().unwrap().unwrap();
                let start = mapping.writable(0, MIB).unwrap().unwrap();
                for at in (thread..MIB).step_by(THREADS) {
                    // SAFETY: the mapping has the byte, and only this thread writes it.
                    unsafe { start.add(at).write(thread as u8 + 1) };
                }
            });
        }
    });
    store.sync().unwrap();
    drop(store);
    let mut found = vec![0; MIB];
    let store = FileStore::open(&path, Access::ReadOnly).unwrap();
    store.read_at(0, &mut found).unwrap();
    let right = |(at, &byte): (usize, &u8)| byte == (at % THREADS) as u8 + 1;
    assert!(found.iter().enumerate().all(right));
}

#[test]
fn read_only_files_are_mapped_for_reads() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = file(folder.path(), MIB);
    let store = FileStore::open(&path, Access::ReadOnly).unwrap();
    let mapping = store.map().unwrap().unwrap();
    assert_eq!(copy(&mapping, 5, MIB - 5), bytes(MIB)[5..]);
    assert_eq!(mapping.writable(0, 10).unwrap(), None);
}

#[test]
fn stores_without_a_mapping() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = file(folder.path(), MIB);
    let off = FileOptions {
        mapping: false,
        ..FileOptions::default()
    };
    let direct = FileOptions {
        direct: true,
        ..FileOptions::default()
    };
    assert!(
        FileStore::open_with(&path, off)
            .unwrap()
            .map()
            .unwrap()
            .is_none()
    );
    match FileStore::open_with(&path, direct) {
        Ok(store) => assert!(store.map().unwrap().is_none()),
        Err(error) => eprintln!("skipped: {error}"),
    }
    let empty = FileStore::create(folder.path().join("empty")).unwrap();
    assert!(empty.map().unwrap().is_none());
    assert!(MemoryStore::from(vec![1; 10]).map().unwrap().is_none());

    // Pointers pass the mapping on; adapters, which would not see it used, and
    // stripes, which are not in one piece, have none.
    let store: Arc<dyn Store> = Arc::new(store);
    assert!(Box::new(&store).map().unwrap().is_some());
    let model = DeviceModel {
        latency: Duration::ZERO,
        bandwidth: 1e9,
        queues: Queues::Striped(outcore_storage::Striping::new(1, 10).unwrap()),
    };
    assert!(CountedStore::new(&store).map().unwrap().is_none());
    assert!(FaultyStore::new(&store).map().unwrap().is_none());
    let throttled = ThrottledStore::new(Arc::clone(&store), model, Time::Virtual).unwrap();
    assert!(throttled.map().unwrap().is_none());
    let striped = StripedStore::new(vec![store], 100).unwrap();
    assert!(striped.map().unwrap().is_none());
}
