//! Faults come back as clear errors with the store's name and the offset, and
//! leave stores usable.

use std::error::Error as _;
use std::fs;
use std::io;
use std::sync::Arc;

use outcore_storage::{
    Access, Batching, Error, Fault, FaultyStore, FileOptions, FileStore, MemoryStore, Operation,
    ReadRequest, Store, StripedStore, WriteRequest,
};

const LENGTH: usize = 1000;

fn faulty() -> FaultyStore<MemoryStore> {
    FaultyStore::new(MemoryStore::from(vec![7; LENGTH]))
}

fn message(result: outcore_storage::Result<()>) -> String {
    let error = result.expect_err("a fault was injected");
    assert!(error.source().is_some(), "{error} has no source");
    error.to_string()
}

#[test]
fn device_errors_name_store_and_offset() {
    let store = faulty();
    store.fail_once(Operation::Read, 0, Fault::Device);
    let mut buffer = [0; 100];
    assert_eq!(
        message(store.read_at(300, &mut buffer)),
        "cannot read from memory at offset 300: Input/output error (os error 5)"
    );
    store
        .read_at(300, &mut buffer)
        .expect("the fault was for once");
    store.fail_once(Operation::Write, 0, Fault::Device);
    assert_eq!(
        message(store.write_at(5, &buffer)),
        "cannot write to memory at offset 5: Input/output error (os error 5)"
    );
    store.fail_once(Operation::SetLen, 0, Fault::NoSpace);
    assert_eq!(
        message(store.set_len(5000)),
        "cannot set the length of memory to 5000 bytes: No space left on device (os error 28)"
    );
    store.fail_once(Operation::Sync, 0, Fault::Device);
    assert_eq!(
        message(store.sync()),
        "cannot bring memory to stable storage: Input/output error (os error 5)"
    );
    assert_eq!(store.struck(), 4);
    assert_eq!(store.len().unwrap(), LENGTH as u64);
}

#[test]
fn a_disk_that_fills_up_reports_the_first_byte_not_written() {
    let store = faulty();
    store.fail_once(Operation::Write, 0, Fault::Short);
    store.fail_from(Operation::Write, 1, Fault::NoSpace);
    assert_eq!(
        message(store.write_at(200, &[1; 100])),
        "cannot write to memory at offset 250: No space left on device (os error 28)"
    );
    assert!(store.write_at(0, &[1]).is_err(), "the fault lasts");
    store.clear();
    store.write_at(0, &[1]).expect("the fault was taken back");
}

#[test]
fn faults_are_counted_from_now_and_in_batches() {
    let store = faulty();
    let mut buffers = [[0; 10]; 4];
    let mut read = |store: &dyn Store| {
        let offsets = (0..).step_by(100);
        let mut requests: Vec<_> = offsets
            .zip(&mut buffers)
            .map(|(offset, buffer)| ReadRequest { offset, buffer })
            .collect();
        store.read_batch(&mut requests)
    };
    read(&store).unwrap();
    store.fail_once(Operation::Read, 2, Fault::Device);
    assert!(message(read(&store)).contains("at offset 200"));
    read(&store).unwrap();
    store.fail_from(Operation::Read, 5, Fault::Device);
    read(&store).unwrap();
    assert!(message(read(&store)).contains("at offset 100"));
    assert!(message(read(&store)).contains("at offset 0"));
}

#[test]
fn interruptions_and_short_transfers_are_invisible() {
    let store = faulty();
    let data: Vec<u8> = (0..LENGTH).map(|at| at as u8).collect();
    for fault in [Fault::Short, Fault::Interrupted] {
        let before = store.struck();
        store.fail_from(Operation::Write, 0, fault);
        store.fail_from(Operation::Read, 0, fault);
        store.write_at(3, &data).unwrap();
        let mut found = vec![0; LENGTH];
        store.read_at(3, &mut found).unwrap();
        assert_eq!(found, data);
        assert!(store.struck() > before + 1);
        store.clear();
    }
}

#[test]
fn a_failing_disk_of_a_stripe_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| FileStore::create(folder.path().join(name)).unwrap();
    let bad = Arc::new(FaultyStore::new(file("bad")));
    let store = StripedStore::new(vec![Arc::new(file("good")), bad.clone()], 100).unwrap();
    store.write_at(0, &[1; 1000]).unwrap();
    bad.fail_once(Operation::Read, 1, Fault::Device);
    let error = message(store.read_at(0, &mut [0; 1000]));
    assert!(
        error.contains("bad at offset 100: Input/output error"),
        "{error}"
    );
    bad.fail_from(Operation::Write, 0, Fault::NoSpace);
    let error = message(store.write_at(0, &[2; 1000]));
    assert!(error.contains("bad at offset 0: No space left"), "{error}");
}

fn ways() -> impl Iterator<Item = FileOptions> {
    let batchings = [
        Batching::Automatic,
        Batching::OneByOne,
        Batching::Threads,
        Batching::Ring,
    ];
    batchings.into_iter().map(|batching| FileOptions {
        batching,
        ..FileOptions::default()
    })
}

#[test]
fn a_full_device_is_reported_by_every_way_of_batching() {
    for options in ways() {
        let store = match FileStore::open_with("/dev/full", options) {
            Err(Error::Settings { .. } | Error::Open { .. }) => continue,
            store => store.unwrap(),
        };
        let wanted = "cannot write to /dev/full at offset 4096: No space left on device";
        assert!(message(store.write_at(4096, &[0; 100])).contains(wanted));
        let requests = [WriteRequest {
            offset: 4096,
            data: &[0; 100],
        }; 300];
        assert!(message(store.write_batch(&requests)).contains(wanted));
    }
}

#[test]
fn writes_to_a_file_opened_for_reading_fail_by_every_way_of_batching() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, [1; LENGTH]).unwrap();
    for options in ways() {
        let options = FileOptions {
            access: Access::ReadOnly,
            ..options
        };
        let store = match FileStore::open_with(&path, options) {
            Err(Error::Settings { .. }) => continue,
            store => store.unwrap(),
        };
        assert!(store.write_at(0, b"x").is_err());
        let offsets = 0..500;
        let requests: Vec<_> = offsets
            .map(|offset| WriteRequest { offset, data: b"x" })
            .collect();
        assert!(message(store.write_batch(&requests)).contains("file at offset"));
        assert!(store.set_len(0).is_err());
        let mut found = [0; LENGTH];
        store.read_at(0, &mut found).unwrap();
        assert_eq!(found, [1; LENGTH]);
    }
}

#[test]
fn files_that_cannot_be_opened_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let error = FileStore::open(&path, Access::ReadOnly).unwrap_err();
    let wanted = format!(
        "cannot open {}: No such file or directory (os error 2)",
        path.display()
    );
    assert_eq!(error.to_string(), wanted);
    FileStore::create(&path).unwrap();
    let Err(Error::Open { source, .. }) = FileStore::create(&path) else {
        panic!("a file was created twice");
    };
    assert_eq!(source.kind(), io::ErrorKind::AlreadyExists);
    let read_only = FileOptions {
        access: Access::ReadOnly,
        ..FileOptions::default()
    };
    assert!(FileStore::create_with(folder.path().join("other"), read_only).is_err());
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    let store = MemoryStore::new();
    assert!(message(store.set_len(i64::MAX as u64)).contains("out of memory"));
    assert!(message(store.write_at(i64::MAX as u64 - 1, b"x")).contains("out of memory"));
    assert_eq!(store.len().unwrap(), 0);
}
