//! Who sees what when a disk is full, an argument is wrong, or an array is closed.

use std::sync::{Arc, Mutex};

use outcore::storage::{Fault, FaultyStore, Operation, Store};
use outcore::{
    Blocks, DiskOptions, DiskResident, Disks, Distribution, MemoryBudget, Section, Unwritten,
};

use crate::oracle::run;

type Faulty = Arc<FaultyStore<Arc<dyn Store>>>;

/// The disk of rank 1 is full: whoever puts there is told, and nobody else.
#[test]
fn a_full_disk_is_told_to_who_meets_it() {
    let shape = [40u64, 10];
    for (ranks, cached) in [(2, false), (3, true), (5, false)] {
        let stores: Arc<Mutex<Vec<(usize, Faulty)>>> = Arc::default();
        run(ranks, |comm, calls| {
            let kept = Arc::clone(&stores);
            let options = DiskOptions::new(Disks::Memory).block(&[4, 10]);
            let options = match cached {
                true => options.cache(&MemoryBudget::of(1 << 16)),
                false => options,
            };
            let options = options.adapter(move |part, store| {
                let store = Arc::new(FaultyStore::new(store));
                kept.lock().unwrap().push((part, Arc::clone(&store)));
                store
            });
            let spread = Distribution::parse("block,*", &shape, ranks as u64, None).unwrap();
            let array = DiskResident::<f64>::create(comm, calls, "full", spread, &options)?;
            comm.barrier()?;
            let whole = Section::whole(&shape).unwrap();
            if comm.rank() == 0 {
                array.put(&whole, &[1.0; 400])?;
                let stores = stores.lock().unwrap();
                let of_rank_1 = stores.iter().find(|(part, _)| *part == 1).unwrap();
                of_rank_1.1.fail_from(Operation::Write, 0, Fault::NoSpace);
            }
            comm.barrier()?;
            // Each rank puts a column of its own, in the parts of all.
            let column = array.section(&format!(":, {}", comm.rank()))?;
            let error = array.put(&column, &[2.0; 40]).unwrap_err().to_string();
            assert!(error.contains("No space left"), "{error}");
            let of_others = array.section(&format!("0:2, {}", comm.rank()))?;
            array.put(&of_others, &[3.0; 2])?;
            let error = array
                .start_put(&column, &[2.0; 40])
                .and_then(|put| put.wait());
            assert!(error.is_err());
            assert!(array.accumulate(&column, &[2.0; 40], 1.0).is_err());
            comm.barrier()?;
            // What is there can be read by all; the disk has room again later.
            array.read(&whole)?;
            let full = array.section("0:2, 0")?;
            // Put anew in the parts that have room, and added to once.
            assert_eq!(array.read(&full)?, [4.0, 4.0]);
            comm.barrier()?;
            if comm.rank() == 0 {
                stores
                    .lock()
                    .unwrap()
                    .iter()
                    .for_each(|(_, store)| store.clear());
            }
            comm.barrier()?;
            array.put(&column, &[4.0; 40])?;
            assert_eq!(array.read(&column)?, [4.0; 40]);
            array.close(comm)
        });
    }
}

/// With write-back a failure comes up at the sync, and nothing is lost until then.
#[test]
fn what_is_not_written_back_is_kept() {
    let store: Arc<Mutex<Option<Faulty>>> = Arc::default();
    run(2, |comm, calls| {
        let kept = Arc::clone(&store);
        let options = DiskOptions::new(Disks::Memory)
            .cache(&MemoryBudget::of(1 << 16))
            .write_back(true)
            .holders(&[1])
            .adapter(move |_, inner| {
                let faulty = Arc::new(FaultyStore::new(inner));
                *kept.lock().unwrap() = Some(Arc::clone(&faulty));
                faulty
            });
        let spread = Distribution::parse("*", &[100], 1, None).unwrap();
        let array = DiskResident::<u32>::create(comm, calls, "back", spread, &options)?;
        let whole = array.section(":")?;
        if comm.rank() == 0 {
            let disk = store.lock().unwrap().clone().unwrap();
            disk.fail_from(Operation::Write, 0, Fault::Device);
            array.put(&whole, &[7; 100])?;
            let error = array.sync().unwrap_err().to_string();
            assert!(error.contains("rank 1"), "{error}");
            assert_eq!(array.read(&whole)?, [7; 100]);
            disk.clear();
            array.sync()?;
        }
        comm.barrier()?;
        if comm.rank() == 1 {
            assert_eq!(array.parts()[0].1.read::<u32>(&whole)?, [7; 100]);
        }
        array.close(comm)
    });
}

/// A disk that fails while it is read: an error at the caller; others go on.
#[test]
fn a_failing_read_is_told_to_the_caller() {
    let stores: Arc<Mutex<Vec<Faulty>>> = Arc::default();
    run(3, |comm, calls| {
        let kept = Arc::clone(&stores);
        let options = DiskOptions::new(Disks::Memory).adapter(move |_, store| {
            let store = Arc::new(FaultyStore::new(store));
            kept.lock().unwrap().push(Arc::clone(&store));
            store
        });
        let spread = Distribution::parse("block", &[90], 3, None).unwrap();
        let array = DiskResident::<i64>::create(comm, calls, "read", spread, &options)?;
        comm.barrier()?;
        if comm.rank() == 0 {
            for store in stores.lock().unwrap().iter() {
                store.fail_once(Operation::Read, 0, Fault::Device);
            }
            let error = array.read(&array.section(":")?).unwrap_err().to_string();
            assert!(error.contains("Input/output error"), "{error}");
            stores
                .lock()
                .unwrap()
                .iter()
                .for_each(|store| store.clear());
        }
        comm.barrier()?;
        assert_eq!(array.read(&array.section(":")?)?, [0; 90]);
        array.close(comm)
    });
}

#[test]
fn wrong_arguments_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    run(2, |comm, calls| {
        let disks = directory.path().join("{rank}");
        let disks = Disks::pattern(disks.to_str().unwrap());
        let options = DiskOptions::new(disks);
        let spread = || Distribution::parse("block", &[10], 2, None).unwrap();
        for name in ["a/b", "..", "", ".x"] {
            let made = DiskResident::<u8>::create(comm, calls, name, spread(), &options);
            assert!(made.unwrap_err().to_string().contains("cannot be the name"));
        }
        let array = DiskResident::<u8>::create(comm, calls, "a", spread(), &options)?;
        let again = DiskResident::<u8>::create(comm, calls, "a", spread(), &options);
        assert!(again.unwrap_err().to_string().contains("exists already"));
        let outside = Section::parse("0:11", &[11]).unwrap();
        let error = array.read(&outside).unwrap_err().to_string();
        assert!(error.contains("axis 0"), "{error}");
        let inside = array.section("2:9")?;
        assert!(array.put(&inside, &[0; 8]).is_err());
        assert!(array.get(&inside, &mut [0; 6]).is_err());
        assert!(array.start_get(&outside).is_err());
        assert!(array.section("0:3, 1").is_err());
        for holders in [&[0][..], &[0, 2][..]] {
            let options = options.clone().holders(holders);
            assert!(DiskResident::<u8>::create(comm, calls, "b", spread(), &options).is_err());
        }
        let missing = DiskResident::<u8>::open(comm, calls, "c", &options);
        assert!(missing.is_err());
        comm.barrier()?;
        array.close(comm)
    });
}

/// The names of all files below a directory, except those inside of arrays.
fn files(directory: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for rank in std::fs::read_dir(directory).unwrap() {
        for file in std::fs::read_dir(rank.unwrap().path()).unwrap() {
            names.push(file.unwrap().file_name().to_string_lossy().to_string());
        }
    }
    names.sort();
    names
}

/// An array that cannot be made leaves nothing, and the one that it was to replace stays.
#[test]
fn what_cannot_be_made_replaces_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let pattern = directory.path().join("{rank}");
    let options = DiskOptions::new(Disks::pattern(pattern.to_str().unwrap()));
    let options = options.unwritten(Unwritten::Error);
    run(2, |comm, calls| {
        let spread = || Distribution::parse("block", &[1000], 2, None).unwrap();
        let create = |name: &str, options: &DiskOptions| {
            DiskResident::<u8>::create(comm, calls, name, spread(), options)
        };
        // 1. The cache of rank 1 is too small for a block.
        let small = MemoryBudget::of(if comm.rank() == 1 { 10 } else { 1 << 20 });
        let failing = options.clone().cache(&small).replace(true);
        let error = create("new", &failing).unwrap_err().to_string();
        assert!(error.contains("the cache"), "{error}");
        comm.barrier()?;
        assert!(files(directory.path()).is_empty());
        comm.barrier()?;
        // 2. With an array there.
        let old = create("a", &options)?;
        let whole = old.section(":")?;
        if comm.rank() == 0 {
            old.put(&whole, &[7; 1000])?;
        }
        old.close(comm)?;
        let before = files(directory.path());
        assert_eq!(before.len(), 4);
        assert!(create("a", &failing).is_err());
        comm.barrier()?;
        assert_eq!(files(directory.path()), before);
        let old = DiskResident::<u8>::open(comm, calls, "a", &options)?;
        assert_eq!(old.read(&whole)?, [7; 1000]);
        old.close(comm)?;
        // 3. What can be made replaces it, and what was written there before.
        let new = create("a", &options.clone().replace(true))?;
        assert!(new.read(&whole).is_err());
        comm.barrier()?;
        assert_eq!(files(directory.path()), before);
        new.remove(comm)?;
        assert!(files(directory.path()).is_empty());
        Ok(())
    });
}

/// Blocks that do not fit are refused, wherever they are named.
#[test]
fn blocks_that_do_not_fit_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let pattern = directory.path().join("{rank}");
    let options = DiskOptions::new(Disks::pattern(pattern.to_str().unwrap()));
    run(2, |comm, calls| {
        let lengths = [vec![3, 4], vec![5, 5]];
        let spread = || Blocks::new(&lengths, 2, |at| Some(at[0] as usize)).unwrap();
        for block in [&[4][..], &[4, 5, 6], &[4, 0], &[]] {
            for options in [options.clone(), DiskOptions::new(Disks::Memory)] {
                let options = options.block(block).cache(&MemoryBudget::of(1 << 20));
                let made = DiskResident::<u8>::create(comm, calls, "a", spread(), &options);
                let error = made.unwrap_err().to_string();
                assert!(error.contains("2 extents are needed"), "{error}");
            }
        }
        let options = options.clone().block(&[2, 2]);
        DiskResident::<u8>::create(comm, calls, "a", spread(), &options)?.close(comm)?;
        Ok(())
    });
    // A description that says so, too, or that there are parts without number.
    let path = directory.path().join("0/a-0.oc/array.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let described: serde_json::Value = serde_json::from_str(&text).unwrap();
    let changes = [
        ("block", serde_json::json!([2]), "2 extents"),
        ("block", serde_json::json!([0, 2]), "2 extents"),
        ("parts", serde_json::json!(1u64 << 62), "too many"),
        ("parts", serde_json::json!(1u64 << 40), "too many"),
    ];
    for (key, value, expected) in changes {
        let mut changed = described.clone();
        changed["attributes"]["disk_resident"][1][key] = value;
        std::fs::write(&path, changed.to_string()).unwrap();
        run(2, |comm, calls| {
            let opened = DiskResident::<u8>::open(comm, calls, "a", &options);
            let error = opened.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            Ok(())
        });
    }
}
