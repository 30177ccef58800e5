//! Files that somebody else cuts while an array is open: an error that says so,
//! whatever the strategy, and never the end of the process.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outcore::storage::{Access, FileStore, Mapping, RangeLock, Result, Store};
use outcore::{Array, ArrayDescriptor, Direction, ElementType, Strategy, Tuning};

const MIB: u64 = 1 << 20;

fn cut(path: &Path, len: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(len).unwrap();
}

fn by(strategy: Strategy) -> Tuning {
    Tuning {
        strategy,
        ..Tuning::default()
    }
}

#[test]
fn between_two_reads() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("a.oc");
    let descriptor = ArrayDescriptor::new(&[256, 1024], ElementType::U32);
    let array = Array::create(name.to_str().unwrap(), &descriptor).unwrap();
    let values: Vec<u32> = (0..256 << 10).collect();
    array.write(&array.whole(), &values).unwrap();
    let strategies = [
        Strategy::Auto,
        Strategy::Direct,
        Strategy::Sieving,
        Strategy::Mapped,
    ];
    for strategy in strategies {
        array.write(&array.whole(), &values).unwrap();
        let array = array.tuned(by(strategy));
        for (text, down, across) in [(":, :", 1, 1), ("::3, ::5", 3, 5)] {
            let section = array.section(text).unwrap();
            let rows = (0..256).step_by(down);
            let expected: Vec<u32> = rows
                .flat_map(|row| (0..1024).step_by(across).map(move |at| row * 1024 + at))
                .collect();
            assert_eq!(array.read::<u32>(&section).unwrap(), expected);
            cut(&name.join("data.bin"), 10_000);
            let error = array.read::<u32>(&section).unwrap_err().to_string();
            assert!(error.contains("data.bin"), "{strategy} {text}: {error}");
            // What is still there can be read, and what is written is there.
            let start = array.section("1, ::2").unwrap();
            assert_eq!(array.read::<u32>(&start).unwrap()[511], 2046);
            array.write(&array.whole(), &values).unwrap();
            assert_eq!(array.read::<u32>(&section).unwrap(), expected);
        }
    }
}

/// A file that is cut at a certain moment.
#[derive(Debug)]
struct CutLater {
    file: FileStore,
    path: PathBuf,
    /// Bytes that are left when the moment has come; none: it never comes.
    len: AtomicU64,
    moment: Moment,
}

#[derive(Debug, Clone, Copy)]
enum Moment {
    /// Somebody has waited for a lock.
    Locked,
    /// Bytes behind this offset are asked for.
    Fetched(u64),
}

impl CutLater {
    fn now(&self) {
        let len = self.len.swap(u64::MAX, Ordering::Relaxed);
        if len < u64::MAX {
            cut(&self.path, len);
        }
    }
}

impl Store for CutLater {
    fn name(&self) -> String {
        self.file.name()
    }
    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_some_at(offset, buffer)
    }
    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.file.write_some_at(offset, data)
    }
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }
    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
    fn map(&self) -> Result<Option<Arc<Mapping>>> {
        self.file.map()
    }
    fn cached(&self, _: u64, _: u64) -> Option<f64> {
        Some(0.0)
    }
    fn fetch(&self, offset: u64, len: u64) {
        if let Moment::Fetched(moment) = self.moment
            && offset + len > moment
        {
            self.now();
        }
    }
    fn lock_shared(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        let lock = self.file.lock_shared(offset, len);
        if matches!(self.moment, Moment::Locked) {
            self.now();
        }
        lock
    }
}

/// An array of 64 MiB that is moved through a mapping, and its store.
fn mapped(path: &Path, moment: Moment) -> (Array, Arc<CutLater>) {
    let file = FileStore::create(path).unwrap();
    file.set_len(64 * MIB).unwrap();
    file.write_at(0, &vec![1; 64 << 20]).unwrap();
    drop(file);
    let store = Arc::new(CutLater {
        file: FileStore::open(path, Access::ReadWrite).unwrap(),
        path: path.into(),
        len: u64::MAX.into(),
        moment,
    });
    let descriptor = ArrayDescriptor::new(&[4096, 16384], ElementType::U8);
    let array = Array::in_store("cut", &descriptor, store.clone()).unwrap();
    (array.tuned(by(Strategy::Mapped)), store)
}

#[test]
fn in_the_middle_of_a_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for text in ["::2, ::4096", "::512, ::3"] {
        let _ = std::fs::remove_file(&path);
        let (array, store) = mapped(&path, Moment::Fetched(32 * MIB));
        let section = array.section(text).unwrap();
        store.len.store(40 * MIB, Ordering::Relaxed);
        let error = array.read::<u8>(&section).unwrap_err().to_string();
        assert!(error.contains("file"), "{error}");
        assert_eq!(store.len.load(Ordering::Relaxed), u64::MAX, "it was cut");
    }
}

#[test]
fn while_a_write_waits_for_its_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let (array, store) = mapped(&path, Moment::Locked);
    let section = array.section("::64, ::8").unwrap();
    let plan = array.plan(&section, Direction::Write).unwrap();
    assert_eq!(plan.strategy(), Strategy::Mapped);
    store.len.store(MIB, Ordering::Relaxed);
    let values = vec![7; section.count() as usize];
    array.write::<u8>(&section, &values).unwrap();
    assert_eq!(store.len.load(Ordering::Relaxed), u64::MAX, "it was cut");
    assert_eq!(
        std::fs::metadata(&path).unwrap().len(),
        4032 * 16384 + 16377
    );
}

#[test]
fn in_the_middle_of_a_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let (array, store) = mapped(&path, Moment::Fetched(32 * MIB));
    let section = array.section("::2, ::4096").unwrap();
    store.len.store(40 * MIB, Ordering::Relaxed);
    let values = vec![7; section.count() as usize];
    array.write::<u8>(&section, &values).unwrap();
    assert_eq!(store.len.load(Ordering::Relaxed), u64::MAX, "it was cut");
    let file = std::fs::read(&path).unwrap();
    assert!(
        file.chunks(16384)
            .step_by(2)
            .all(|row| row.iter().step_by(4096).all(|&byte| byte == 7))
    );
}
