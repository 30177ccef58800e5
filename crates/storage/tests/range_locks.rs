//! Range locks keep read-modify-writes of neighbouring bytes apart: between
//! threads, between stores of one file, and between programs.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use outcore_storage::{
    Access, CountedStore, Error, FaultyStore, FileStore, LockTable, MemoryStore, Store,
    StripedStore,
};

/// Several counters to a cache line, each of two bytes.
const COUNTERS: usize = 24;
const LENGTH: usize = 2 * COUNTERS;

/// Adds one to counter `index`, `rounds` times, by reading, changing and
/// writing back a range that has some of its neighbours, too.
fn count(store: &dyn Store, index: usize, rounds: usize) {
    for round in 0..rounds {
        let start = (2 * index).saturating_sub(round % 7);
        let end = (2 * index + 2 + round % 5).min(LENGTH);
        let offset = start as u64;
        let _lock = store.lock(offset, (end - start) as u64).unwrap().unwrap();
        let mut bytes = vec![0; end - start];
        store.read_at(offset, &mut bytes).unwrap();
        let counter = &mut bytes[2 * index - start..][..2];
        let next = u16::from_le_bytes([counter[0], counter[1]]) + 1;
        counter.copy_from_slice(&next.to_le_bytes());
        store.write_at(offset, &bytes).unwrap();
    }
}

/// One thread for each of the counters `indices`, each with the store that
/// `store` gives it.
fn count_in_threads<S: Store>(
    indices: impl Iterator<Item = usize>,
    rounds: usize,
    store: impl Fn() -> S,
) {
    thread::scope(|scope| {
        for index in indices {
            let store = store();
            scope.spawn(move || count(&store, index, rounds));
        }
    });
}

fn expect_counts(store: &dyn Store, rounds: usize) {
    let mut bytes = [0; LENGTH];
    store.read_at(0, &mut bytes).unwrap();
    for (index, counter) in bytes.chunks(2).enumerate() {
        let count = u16::from_le_bytes([counter[0], counter[1]]);
        assert_eq!(count as usize, rounds, "counter {index}");
    }
}

fn zeros() -> Vec<u8> {
    vec![0; LENGTH]
}

fn new_file(path: &Path) -> FileStore {
    let store = FileStore::create(path).unwrap();
    store.write_at(0, &zeros()).unwrap();
    store
}

#[test]
fn threads_that_share_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = new_file(&folder.path().join("file"));
    let memory = MemoryStore::from(zeros());
    let counted = CountedStore::new(FaultyStore::new(MemoryStore::from(zeros())));
    let stores: [&dyn Store; 3] = [&file, &memory, &counted];
    for store in stores {
        count_in_threads(0..COUNTERS, 300, || store);
        expect_counts(store, 300);
    }
}

#[test]
fn stores_of_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let store = new_file(&path);
    let link = folder.path().join("link");
    std::fs::hard_link(&path, &link).unwrap();
    // Every second one finds the file by another name.
    let turn = AtomicBool::new(false);
    count_in_threads(0..COUNTERS, 300, || {
        let path = match turn.fetch_not(Ordering::Relaxed) {
            true => &path,
            false => &link,
        };
        FileStore::open(path, Access::ReadWrite).unwrap()
    });
    expect_counts(&store, 300);
}

#[test]
fn stripes() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..3)
        .map(|disk| folder.path().join(disk.to_string()))
        .collect();
    for path in &paths {
        FileStore::create(path).unwrap();
    }
    let open = || {
        let disk = |path| Arc::new(FileStore::open(path, Access::ReadWrite).unwrap());
        let disks = paths.iter().map(|path| disk(path) as Arc<dyn Store>);
        StripedStore::new(disks.collect(), 5).unwrap()
    };
    open().write_at(0, &zeros()).unwrap();
    count_in_threads(0..COUNTERS, 100, open);
    expect_counts(&open(), 100);
}

/// The variable that makes this test program one of several that count.
const CHILD: &str = "OUTCORE_RANGE_LOCKS_CHILD";
const PROGRAMS: usize = 3;
const ROUNDS: usize = 500;

#[test]
#[cfg(target_os = "linux")]
fn programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let store = new_file(&path);
    // All wait for this lock, so that they count at the same time.
    let start = store.lock(0, LENGTH as u64).unwrap();
    let spawn = |program: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--test-threads=1", "--nocapture"])
            .env(CHILD, format!("{program}:{}", path.display()))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..PROGRAMS).map(spawn).collect();
    thread::sleep(Duration::from_millis(200));
    let mut bytes = zeros();
    store.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, zeros(), "a program did not wait");
    drop(start);
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    expect_counts(&store, ROUNDS);
}

/// Not a test but a program that `programs` starts: counts the counters of
/// its own, which lie between those of the others.
#[test]
fn child() {
    let Ok(task) = std::env::var(CHILD) else {
        return;
    };
    let (program, path) = task.split_once(':').unwrap();
    let own = (program.parse().unwrap()..COUNTERS).step_by(PROGRAMS);
    let store = FileStore::open(path, Access::ReadWrite).unwrap();
    count_in_threads(own, ROUNDS, || &store);
}

#[test]
fn waits_until_released() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let store = new_file(&path);
    let other = FileStore::open(&path, Access::ReadWrite).unwrap();
    let (held, entered) = (store.lock(10, 10).unwrap(), AtomicBool::new(false));
    // Neighbours and empty ranges do not wait, wherever they are.
    for (offset, len) in [(0, 10), (20, u32::MAX as u64), (15, 0)] {
        drop(other.lock(offset, len).unwrap());
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            let _lock = other.lock(19, 5).unwrap();
            entered.store(true, Ordering::SeqCst);
        });
        thread::sleep(Duration::from_millis(50));
        assert!(!entered.load(Ordering::SeqCst));
        drop(held);
    });
    assert!(entered.load(Ordering::SeqCst));
}

#[test]
fn served_in_the_order_of_arrival() {
    let table = LockTable::new();
    let first = table.lock(0, 10);
    let order = std::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (index, (offset, len)) in [(5, 10), (12, 2), (13, 20)].into_iter().enumerate() {
            let (table, order) = (&table, &order);
            scope.spawn(move || {
                let _lock = table.lock(offset, len);
                order.lock().unwrap().push(index);
            });
            thread::sleep(Duration::from_millis(30));
        }
        // The second and third do not touch the first lock, but come after one
        // that waits for it.
        assert!(order.lock().unwrap().is_empty());
        drop(first);
    });
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
}

/// The shared locks of several threads are one to the system: the first that
/// lets go must not unlock what the others still hold.
#[test]
#[cfg(target_os = "linux")]
fn shared_locks_of_threads_hold_against_other_programs() {
    use std::os::fd::AsRawFd;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let store = new_file(&path);
    // Another program, as far as the system is concerned.
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let is_free = |start: i64, len: i64| {
        // SAFETY: a `flock` of zeros is valid.
        let mut range: libc::flock = unsafe { std::mem::zeroed() };
        range.l_type = libc::F_WRLCK as libc::c_short;
        (range.l_start, range.l_len) = (start, len);
        // SAFETY: the file is open, and the structure lives during the call.
        let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut range) };
        assert_eq!(status, 0);
        range.l_type == libc::F_UNLCK as libc::c_short
    };
    let Some(first) = store.lock_shared(0, 20).unwrap() else {
        return;
    };
    let second = store.lock_shared(10, 20).unwrap().unwrap();
    assert!(!is_free(0, 10) && !is_free(25, 1) && is_free(30, 10));
    drop(first);
    assert!(is_free(0, 10) && !is_free(10, 1) && !is_free(29, 1));
    drop(second);
    assert!(is_free(0, 100));
}

#[test]
fn impossible_and_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let store = new_file(&path);
    for (offset, len) in [(u64::MAX, 1), (i64::MAX as u64, 1), (0, u64::MAX)] {
        let answer = store.lock(offset, len).map(drop);
        assert!(
            matches!(answer, Err(Error::OutOfRange { .. })),
            "{answer:?}"
        );
    }
    drop(store.lock(0, i64::MAX as u64).unwrap());
    // A failure leaves nothing locked.
    #[cfg(target_os = "linux")]
    {
        let read_only = FileStore::open(&path, Access::ReadOnly).unwrap();
        let message = read_only.lock(3, 5).unwrap_err().to_string();
        assert!(message.contains("cannot lock 5 bytes of"), "{message}");
        assert!(message.ends_with("not open for writing"), "{message}");
        drop(store.lock(0, 10).unwrap());
    }
}

/// A lock of another program, as far as the system is concerned: one of the
/// file opened once more, that this crate knows nothing of.
#[test]
#[cfg(target_os = "linux")]
fn signals_do_not_end_the_waiting() {
    use std::os::fd::AsRawFd;
    use std::os::unix::thread::JoinHandleExt;

    extern "C" fn ignore(_: libc::c_int) {}

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let store = Arc::new(new_file(&path));
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let control = |kind: libc::c_int| {
        // SAFETY: a `flock` of zeros is valid.
        let mut range: libc::flock = unsafe { std::mem::zeroed() };
        range.l_type = kind as libc::c_short;
        range.l_len = 10;
        // SAFETY: the file is open, and the structure lives during the call.
        let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &range) };
        assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
    };
    // SAFETY: the handler does nothing, and no flag restarts system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as *const () as usize;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()),
            0
        );
    }
    control(libc::F_WRLCK);
    let waiter = thread::spawn({
        let store = Arc::clone(&store);
        move || drop(store.lock(9, 1).unwrap())
    });
    for _ in 0..5 {
        thread::sleep(Duration::from_millis(10));
        // SAFETY: the thread is not joined yet.
        unsafe { libc::pthread_kill(waiter.as_pthread_t(), libc::SIGUSR1) };
    }
    thread::sleep(Duration::from_millis(10));
    assert!(!waiter.is_finished());
    control(libc::F_UNLCK);
    waiter.join().unwrap();
    // Both kinds of locks are free again.
    control(libc::F_WRLCK);
    control(libc::F_UNLCK);
    drop(store.lock(0, 20).unwrap());
}

#[test]
fn tables_of_one_name_are_one() {
    let (first, second) = (LockTable::named("s3://b/x"), LockTable::named("s3://b/x"));
    assert!(Arc::ptr_eq(&first, &second));
    assert!(!Arc::ptr_eq(&first, &LockTable::named("s3://b/y")));
    let held = first.lock(3, 1);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| drop(second.lock(3, 1)));
        assert!(!waiting.is_finished());
        drop(held);
    });
    drop((first, second));
    assert_eq!(Arc::strong_count(&LockTable::named("s3://b/x")), 1);
}

fn open(path: &Path) -> FileStore {
    FileStore::open(path, Access::ReadWrite).unwrap()
}

/// Locks a whole file as other libraries do.
fn lock_whole(path: &Path) -> std::io::Result<std::fs::File> {
    use std::os::fd::AsRawFd;
    let file = std::fs::File::open(path)?;
    // SAFETY: the file is open; the call touches no memory.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(file),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[test]
fn whole_files_are_written_by_one_kind_of_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared");
    let stores = [FileStore::create(&path).unwrap(), open(&path)];
    if stores[0].lock_shared(0, 1).unwrap().is_none() {
        return; // The file system is not that of one machine.
    }
    drop(lock_whole(&path).unwrap());
    for store in &stores {
        store.announce_writing().unwrap();
    }
    lock_whole(&path).unwrap_err();
    drop(stores);
    let _other = lock_whole(&path).unwrap();
    let problem = open(&path).announce_writing().unwrap_err().to_string();
    assert!(problem.contains("another program has it open"), "{problem}");
    let counted = CountedStore::new(FaultyStore::new(Arc::new(open(&path))));
    counted.announce_writing().unwrap_err();
    StripedStore::new(vec![Arc::new(open(&path))], 8)
        .unwrap()
        .announce_writing()
        .unwrap_err();
}
