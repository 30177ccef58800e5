//! Every backend and every adapter passes the conformance suite.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use outcore_storage::conformance;
use outcore_storage::{Batching, FileOptions, FileStore, MemoryStore, Store};

/// A new path in `folder` at each call.
fn fresh_paths(folder: &Path) -> impl Fn() -> PathBuf + '_ {
    let count = Cell::new(0);
    move || {
        count.set(count.get() + 1);
        folder.join(format!("store-{}", count.get()))
    }
}

fn check_files(options: FileOptions) {
    let folder = tempfile::tempdir().unwrap();
    let path = fresh_paths(folder.path());
    let make = || -> Box<dyn Store> { Box::new(FileStore::create_with(path(), options).unwrap()) };
    conformance::check(&make);
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
