//! Every backend and every adapter passes the conformance suite.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outcore_storage::{
    Access, Batching, CountedStore, DeviceModel, Error, Fault, FaultyStore, FileOptions, FileStore,
    MemoryStore, Operation, Queues, Store, StripedStore, Striping, ThrottledStore, Time,
    conformance,
};

/// A new path in `folder` at each call.
fn fresh_paths(folder: &Path) -> impl Fn() -> PathBuf + '_ {
    let count = Cell::new(0);
    move || {
        count.set(count.get() + 1);
        folder.join(format!("store-{}", count.get()))
    }
}

/// Checks files opened with `options`, unless the system cannot open them so.
fn check_files(options: FileOptions) {
    let folder = tempfile::tempdir().unwrap();
    let path = fresh_paths(folder.path());
    match FileStore::create_with(path(), options) {
        Err(Error::Settings { reason, .. }) => return eprintln!("skipped: {reason}"),
        Err(Error::Open { source, .. }) if options.direct => {
            return eprintln!("skipped: no direct I/O in the temporary folder: {source}");
        }
        _ => {}
    }
    conformance::check(&|| Box::new(FileStore::create_with(path(), options).unwrap()));
}

#[test]
fn memory() {
    conformance::check_in_memory(&|| Box::new(MemoryStore::new()));
}

#[test]
fn file() {
    check_files(FileOptions::default());
}

#[test]
fn file_one_by_one() {
    check_files(FileOptions {
        batching: Batching::OneByOne,
        ..FileOptions::default()
    });
}

#[test]
fn file_with_threads() {
    check_files(FileOptions {
        batching: Batching::Threads,
        ..FileOptions::default()
    });
}

#[test]
fn file_with_ring() {
    check_files(FileOptions {
        batching: Batching::Ring,
        ..FileOptions::default()
    });
}

#[test]
fn direct_file() {
    check_files(FileOptions {
        direct: true,
        ..FileOptions::default()
    });
}

#[test]
fn direct_file_with_threads() {
    let batching = Batching::Threads;
    check_files(FileOptions {
        direct: true,
        batching,
        ..FileOptions::default()
    });
}

#[test]
fn direct_file_with_ring() {
    let batching = Batching::Ring;
    check_files(FileOptions {
        direct: true,
        batching,
        ..FileOptions::default()
    });
}

fn striped_memory(disks: usize, unit: u64) -> StripedStore {
    let disk = |_| Arc::new(MemoryStore::new()) as Arc<dyn Store>;
    StripedStore::new((0..disks).map(disk).collect(), unit).unwrap()
}

#[test]
fn striped_over_memory() {
    for (disks, unit) in [(1, 1000), (2, 64), (3, 4096), (5, 1 << 16)] {
        conformance::check_in_memory(&|| Box::new(striped_memory(disks, unit)));
    }
}

#[test]
fn striped_over_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = fresh_paths(folder.path());
    let disk = |_| Arc::new(FileStore::create(path()).unwrap()) as Arc<dyn Store>;
    conformance::check(&|| Box::new(StripedStore::new((0..3).map(disk).collect(), 4096).unwrap()));
}

#[test]
fn striped_files_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..3)
        .map(|disk| folder.path().join(disk.to_string()))
        .collect();
    let file = |path| Arc::new(FileStore::create(path).unwrap()) as Arc<dyn Store>;
    let store = StripedStore::new(paths.iter().map(file).collect(), 100).unwrap();
    // Disk 0 alone is written; the others hold nothing of their shares.
    store.write_at(650, b"far").unwrap();
    drop(store);

    let file = |path| Arc::new(FileStore::open(path, Access::ReadOnly).unwrap()) as Arc<dyn Store>;
    let store = StripedStore::new(paths.iter().map(file).collect(), 100).unwrap();
    assert_eq!(store.disk_of(650), 0);
    assert_eq!(store.len().unwrap(), 653);
    let mut bytes = vec![1; 653];
    store.read_at(0, &mut bytes).unwrap();
    assert!(bytes[..650].iter().all(|&byte| byte == 0));
    assert_eq!(&bytes[650..], b"far");
    assert!(store.write_at(0, b"x").is_err());
}

#[test]
fn counted() {
    conformance::check_in_memory(&|| Box::new(CountedStore::with_log(MemoryStore::new())));
}

#[test]
fn throttled() {
    let model = DeviceModel {
        latency: Duration::from_nanos(100),
        bandwidth: 1e9,
        queues: Queues::Striped(Striping::new(3, 1000).unwrap()),
    };
    for time in [Time::Virtual, Time::Real] {
        conformance::check_in_memory(&|| {
            Box::new(ThrottledStore::new(MemoryStore::new(), model, time).unwrap())
        });
    }
}

#[test]
fn faulty_with_faults_that_callers_do_not_see() {
    conformance::check_in_memory(&|| Box::new(FaultyStore::new(MemoryStore::new())));
    conformance::check_in_memory(&|| {
        let store = FaultyStore::new(MemoryStore::new());
        for operation in [
            Operation::Read,
            Operation::Write,
            Operation::SetLen,
            Operation::Sync,
        ] {
            store.fail_from(operation, 0, Fault::Short);
        }
        Box::new(store)
    });
    conformance::check_in_memory(&|| {
        let store = FaultyStore::new(striped_memory(2, 512));
        for operation in [
            Operation::Read,
            Operation::Write,
            Operation::SetLen,
            Operation::Sync,
        ] {
            store.fail_from(operation, 1, Fault::Interrupted);
        }
        Box::new(store)
    });
}

#[test]
fn striped_over_disks_with_faults_that_callers_do_not_see() {
    let disk = |fault| {
        let disk = FaultyStore::new(MemoryStore::new());
        disk.fail_from(Operation::Read, 2, fault);
        disk.fail_from(Operation::Write, 2, fault);
        Arc::new(disk) as Arc<dyn Store>
    };
    conformance::check_in_memory(&|| {
        let disks = vec![disk(Fault::Short), disk(Fault::Interrupted)];
        Box::new(StripedStore::new(disks, 777).unwrap())
    });
}

#[test]
fn shared_and_boxed() {
    let shared = || Arc::new(MemoryStore::new()) as Arc<dyn Store>;
    conformance::check_in_memory(&|| Box::new(CountedStore::new(shared())));
    conformance::check_in_memory(&|| Box::new(Box::new(shared())));
}
