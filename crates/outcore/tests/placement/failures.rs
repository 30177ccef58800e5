//! Wrong use, and failures of one rank: a clear sentence on every rank.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore::storage::{Fault, FaultyStore, MemoryStore, Operation, Store};
use outcore::{
    Array, ArrayDescriptor, Boundary, Comm, Distribution, ElementType, Error, LocalArray,
    LocalPlacement, MemoryBudget, Strategy, Tuning,
};
use tempfile::TempDir;

use crate::oracle::numbered;

const SHAPE: [u64; 2] = [30, 12];

fn descriptor() -> ArrayDescriptor {
    ArrayDescriptor::new(&SHAPE, ElementType::I32)
}

fn placement(ranks: usize, overlap: u64) -> LocalPlacement {
    let distribution = Distribution::parse("block,*", &SHAPE, ranks as u64, None).unwrap();
    LocalPlacement::new(distribution).overlap(&[(overlap, overlap), (1, 1)])
}

/// Makes a local array on `ranks` ranks, and lets all of them try something.
fn told(
    ranks: usize,
    path: &Path,
    attempt: impl Fn(&Comm, &LocalArray) -> outcore::Result<()> + Sync,
) -> Vec<String> {
    let name = path.to_str().unwrap();
    outcore::run(ranks, |comm| {
        let array = LocalArray::create_all(comm, name, &descriptor(), &placement(ranks, 2))?;
        Ok::<_, Error>(attempt(comm, &array).unwrap_err().to_string())
    })
    .unwrap()
}

fn all_say(messages: &[String], parts: &[&str]) {
    for message in messages {
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        assert_eq!(message, &messages[0]);
    }
}

#[test]
fn shifts_that_cannot_be_are_refused_on_every_rank() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let deeper = told(3, &path("a.oc"), |comm, array| {
        array.shift(comm, 0, 3, Boundary::Keep)
    });
    all_say(&deeper, &["depth 3", "axis 0", "2 deep"]);
    let nowhere = told(3, &path("b.oc"), |comm, array| {
        array.shift(comm, 2, 1, Boundary::Keep)
    });
    all_say(&nowhere, &["no axis 2"]);
    let value = told(3, &path("c.oc"), |comm, array| {
        array.exchange_overlap(comm, Boundary::Value(1.5))
    });
    all_say(&value, &["'1.5'", "i32"]);
    // 30 rows on 16 ranks: blocks of 2, but an overlap of 2 fits; 29 rows would not.
    let distribution = Distribution::parse("block,*", &[29, 12], 16, None).unwrap();
    let placement = LocalPlacement::new(distribution).overlap(&[(2, 2), (0, 0)]);
    let name = path("d.oc");
    let deep = outcore::run(16, |comm| {
        let descriptor = ArrayDescriptor::new(&[29, 12], ElementType::F32);
        let name = name.to_str().unwrap();
        let array = LocalArray::create_all(comm, name, &descriptor, &placement)?;
        let refused = array.exchange_overlap(comm, Boundary::Nearest).unwrap_err();
        // Less deep is possible.
        array.shift(comm, 0, 1, Boundary::Nearest)?;
        Ok::<_, Error>(refused.to_string())
    });
    all_say(
        &deep.unwrap(),
        &["deeper than the neighbour's block", "axis 0", "at most 1"],
    );
}

#[test]
fn other_rank_counts_and_placements_are_named() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("four.oc");
    let name = path.to_str().unwrap();
    Array::create(name, &descriptor().placed(placement(4, 1))).unwrap();
    let opened = |ranks| {
        outcore::run(ranks, |comm| {
            Ok::<_, Error>(LocalArray::open_all(comm, name).unwrap_err().to_string())
        })
    };
    all_say(
        &opened(3).unwrap(),
        &[
            "local files for 4 ranks",
            "3 ranks run",
            "outcore convert",
            "--parts 3",
        ],
    );
    let part = LocalArray::open_part(name, 4).unwrap_err().to_string();
    assert!(part.contains("no rank 4"), "{part}");
    let plain = directory.path().join("plain.oc");
    Array::create(plain.to_str().unwrap(), &descriptor()).unwrap();
    let told = LocalArray::open_part(plain.to_str().unwrap(), 0)
        .unwrap_err()
        .to_string();
    assert!(told.contains("outcore convert"), "{told}");
}

#[test]
fn missing_and_short_files_are_named() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.oc");
    let name = path.to_str().unwrap();
    Array::create(name, &descriptor().placed(placement(3, 1))).unwrap();
    std::fs::File::options()
        .write(true)
        .open(path.join("part1.bin"))
        .unwrap()
        .set_len(7)
        .unwrap();
    let short = Array::open(name).unwrap_err().to_string();
    assert!(
        short.contains("rank 1") && short.contains("truncated"),
        "{short}"
    );
    std::fs::remove_file(path.join("part1.bin")).unwrap();
    let missing = Array::open(name).unwrap_err().to_string();
    assert!(
        missing.contains("the local file of rank 1 is missing"),
        "{missing}"
    );
    let told = outcore::run(3, |comm| {
        Ok::<_, Error>(LocalArray::open_all(comm, name).unwrap_err().to_string())
    });
    all_say(&told.unwrap(), &["rank 1: ", "is missing", "part1.bin"]);
}

#[test]
fn a_failing_source_on_one_rank_reaches_all() {
    let directory = TempDir::new().unwrap();
    let messages = told(5, &directory.path().join("a.oc"), |comm, array| {
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        store.set_len(30 * 12 * 4)?;
        let source = Array::in_store("source", &descriptor(), store.clone())?;
        let source = source.tuned(Tuning {
            strategy: Strategy::Direct,
            ..Tuning::default()
        });
        if comm.rank() == 3 {
            store.fail_once(Operation::Read, 0, Fault::Device);
        }
        array.load(comm, &source, &MemoryBudget::of(1 << 20))
    });
    all_say(&messages, &["rank 3: ", "os error 5"]);
}

/// The file of one rank is cut while the array is open; everybody is told, in
/// the middle of each collective, and nobody waits for ever.
#[test]
fn a_damaged_file_on_one_rank_reaches_all() {
    for (number, attempt) in [
        |comm: &Comm, array: &LocalArray| array.exchange_overlap(comm, Boundary::Circular),
        |comm: &Comm, array: &LocalArray| {
            let row = array.part().section("2, :")?;
            array.multicast(comm, 2, &row, &[0, 1, 3], &row)
        },
        |comm: &Comm, array: &LocalArray| {
            let target = numbered(&descriptor());
            array.store(comm, &target, &MemoryBudget::of(1 << 20))
        },
    ]
    .iter()
    .enumerate()
    {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("a.oc");
        let messages = told(5, &path, |comm, array| {
            let cut = || {
                std::fs::File::options()
                    .write(true)
                    .open(path.join("part2.bin"))?
                    .set_len(9)
            };
            if comm.rank() == 2 {
                cut().unwrap();
            }
            comm.barrier()?;
            attempt(comm, array)
        });
        assert_eq!(messages.len(), 5, "attempt {number}");
        all_say(&messages, &["rank 2: ", "part2.bin"]);
    }
}

#[test]
fn wrong_multicasts_are_refused_on_every_rank() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let nobody = told(3, &path("a.oc"), |comm, array| {
        let row = array.part().section("0, :")?;
        array.multicast(comm, 0, &row, &[1, 7], &row)
    });
    all_say(&nobody, &["rank 7", "3 ranks"]);
    let shapes = told(3, &path("b.oc"), |comm, array| {
        let (row, column) = (array.part().section("0, :")?, array.part().section(":, 0")?);
        array.multicast(comm, 0, &row, &[1], &column)
    });
    all_say(&shapes, &["rank 1: ", "1x14", "14x1"]);
}

#[test]
fn too_little_memory_names_what_is_enough() {
    let directory = TempDir::new().unwrap();
    let source = numbered(&descriptor());
    let messages = told(4, &directory.path().join("a.oc"), |comm, array| {
        array.load(comm, &source, &MemoryBudget::of(8))
    });
    all_say(&messages, &["rank 0: ", "at least 16 bytes", "8 bytes"]);
    let other = numbered(&ArrayDescriptor::new(&SHAPE, ElementType::F64));
    let messages = told(4, &directory.path().join("b.oc"), |comm, array| {
        array.load(comm, &other, &MemoryBudget::of(1 << 20))
    });
    all_say(&messages, &["f64", "i32"]);
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn an_array_appears_when_it_is_complete() {
    let home = TempDir::new().unwrap();
    let disks: Vec<TempDir> = (0..3).map(|_| TempDir::new().unwrap()).collect();
    let directories: Vec<PathBuf> = disks.iter().map(|disk| disk.path().into()).collect();
    let path = home.path().join("a.oc");
    let name = path.to_str().unwrap();
    let source = numbered(&descriptor());
    let budget = MemoryBudget::of(1 << 20);
    let placed = descriptor().placed(placement(3, 1).directories(&directories));
    outcore::run(3, |comm| {
        // Dropped: nothing is left anywhere.
        let draft = LocalArray::draft_all(comm, name, &placed, false)?;
        draft.load(comm, &source, &budget)?;
        assert!(!path.exists());
        assert_eq!(entries(&directories[comm.rank()]).len(), 1);
        // The first rank removes what all have made.
        comm.barrier()?;
        drop(draft);
        comm.barrier()?;
        assert!(entries(&directories[comm.rank()]).is_empty());
        assert!(entries(home.path()).is_empty());
        comm.barrier()?;
        // Committed twice: the second replaces the first.
        for replace in [false, true] {
            let draft = LocalArray::draft_all(comm, name, &placed, replace)?;
            draft.load(comm, &source, &budget)?;
            let array = draft.commit(comm)?;
            assert_eq!(array.part().shape(), [12, 14]);
            comm.barrier()?;
            assert_eq!(entries(&directories[comm.rank()]).len(), 1);
            assert_eq!(entries(home.path()), std::slice::from_ref(&path));
            comm.barrier()?;
        }
        let exists = LocalArray::draft_all(comm, name, &placed, false).unwrap_err();
        assert!(exists.to_string().contains("exists already"), "{exists}");
        Ok::<(), Error>(())
    })
    .unwrap();
    let whole = Array::open(name).unwrap();
    assert_eq!(
        whole
            .read::<i32>(&whole.section("::29, 11").unwrap())
            .unwrap(),
        [11, 359]
    );
}

#[test]
fn a_rank_that_cannot_make_its_file_fails_all() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("a.oc");
    let directories = [home.path().to_path_buf(), "/no/such/disk".into()];
    let placement = placement(2, 1).directories(&directories);
    let told = outcore::run(2, |comm| {
        let made = LocalArray::create_all(comm, path.to_str().unwrap(), &descriptor(), &placement);
        Ok::<_, Error>(made.unwrap_err().to_string())
    });
    all_say(&told.unwrap(), &["rank 1: ", "/no/such/disk"]);
    assert!(entries(home.path()).is_empty());
}
