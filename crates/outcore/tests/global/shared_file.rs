//! Shared files against bytes in memory.

use std::sync::{Arc, Mutex};

use outcore::storage::{Fault, FaultyStore, Operation};
use outcore::{Array, ArrayDescriptor, DiskOptions, Disks, ElementType, Error, SharedFile};

use crate::oracle::{RANKS, Random, run};

#[test]
fn bytes_are_those_of_a_file_in_memory() {
    for ranks in RANKS {
        let directory = tempfile::tempdir().unwrap();
        let disks = directory.path().join("{rank}");
        let oracle = Mutex::new(Vec::<u8>::new());
        run(ranks, |comm, calls| {
            let options = DiskOptions::new(Disks::pattern(disks.to_str().unwrap()));
            let file = SharedFile::create(comm, calls, "f", 7, &options)?;
            assert!(file.is_empty()?);
            comm.barrier()?;
            let mut random = Random(comm.rank() as u64);
            for turn in 0..ranks.max(4) {
                comm.barrier()?;
                if turn % ranks != comm.rank() {
                    continue;
                }
                let mut all = oracle.lock().unwrap();
                for _ in 0..15 {
                    one_call(&file, &mut random, &mut all)?;
                }
            }
            comm.barrier()?;
            file.sync()?;
            file.close(comm)?;
            let file = SharedFile::open(comm, calls, "f", &options)?;
            let all = oracle.lock().unwrap().clone();
            let mut found = vec![1; all.len()];
            file.read_at(0, &mut found)?;
            assert_eq!(
                (found, file.len()?),
                (all, oracle.lock().unwrap().len() as u64)
            );
            file.remove(comm)?;
            assert!(SharedFile::open(comm, calls, "f", &options).is_err());
            Ok(())
        });
    }
}

fn one_call(file: &SharedFile, random: &mut Random, all: &mut Vec<u8>) -> Result<(), Error> {
    let (offset, len) = (random.below(300) as usize, random.below(100) as usize);
    let data: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
    match random.below(4) {
        0 => {
            file.write_at(offset as u64, &data)?;
            if !data.is_empty() {
                all.resize(all.len().max(offset + len), 0);
                all[offset..offset + len].copy_from_slice(&data);
            }
        }
        1 => {
            let cut = random.below(350);
            file.set_len(cut)?;
            all.resize(cut as usize, 0);
        }
        _ => {
            let mut found = vec![9; len];
            let read = file.read_at(offset as u64, &mut found);
            match offset + len <= all.len() {
                true => {
                    read?;
                    assert_eq!(found, all[offset..offset + len]);
                }
                false => assert!(read.is_err() || len == 0),
            }
        }
    }
    assert_eq!(file.len()?, all.len() as u64);
    Ok(())
}

/// An array in a shared file: every strategy moves its sections.
#[test]
fn an_array_lies_in_a_shared_file() {
    run(3, |comm, calls| {
        let options = DiskOptions::new(Disks::Memory);
        let file = SharedFile::create(comm, calls, "array", 100, &options)?;
        let descriptor = ArrayDescriptor::new(&[30, 40], ElementType::F64);
        if comm.rank() == 0 {
            file.set_len(30 * 40 * 8)?;
        }
        comm.barrier()?;
        let array = Array::in_store("array", &descriptor, file.as_store())?;
        let mine = array.section(&format!("{}::3, :", comm.rank()))?;
        array.write(&mine, &vec![comm.rank() as f64; mine.count() as usize])?;
        comm.barrier()?;
        let column: Vec<f64> = array.read(&array.section(":, 39")?)?;
        assert!(
            column
                .iter()
                .enumerate()
                .all(|(row, value)| *value == (row % 3) as f64)
        );
        comm.barrier()?;
        file.close(comm)
    });
}

#[test]
fn a_full_disk_is_told_to_the_writer() {
    run(3, |comm, calls| {
        let options = DiskOptions::new(Disks::Memory).adapter(|part, store| match part {
            1 => {
                let store = FaultyStore::new(store);
                store.fail_from(Operation::Write, 0, Fault::NoSpace);
                Arc::new(store)
            }
            _ => store,
        });
        let file = SharedFile::create(comm, calls, "full", 10, &options)?;
        let error = file.write_at(0, &[1; 30]).unwrap_err().to_string();
        assert!(error.contains("No space left"), "{error}");
        file.write_at(20, &[comm.rank() as u8; 10])?;
        comm.barrier()?;
        file.close(comm)
    });
}

/// A file that cannot be striped is not made, and replaces nothing.
#[test]
fn stripes_that_cannot_be_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let disks = directory.path().join("{rank}");
    let options = DiskOptions::new(Disks::pattern(disks.to_str().unwrap()));
    run(2, |comm, calls| {
        let refused = |unit, options: &DiskOptions| {
            let made = SharedFile::create(comm, calls, "f", unit, options);
            let error = made.unwrap_err().to_string();
            assert!(error.contains("at least 1"), "{error}");
        };
        refused(0, &options);
        refused(7, &options.clone().holders(&[]));
        comm.barrier()?;
        assert!(!directory.path().join("0").exists());
        comm.barrier()?;
        let file = SharedFile::create(comm, calls, "f", 7, &options)?;
        if comm.rank() == 0 {
            file.write_at(0, &[5; 100])?;
        }
        file.close(comm)?;
        refused(0, &options.clone().replace(true));
        let file = SharedFile::open(comm, calls, "f", &options)?;
        let mut bytes = [0; 100];
        file.read_at(0, &mut bytes)?;
        assert_eq!(bytes, [5; 100]);
        file.close(comm)
    });
    // A damaged description asks for no memory.
    let path = directory.path().join("0/f-0.stripes.json");
    let text = std::fs::read_to_string(&path).unwrap();
    for (key, value) in [("unit", 0), ("parts", 0), ("parts", 1u64 << 62)] {
        let mut changed: serde_json::Value = serde_json::from_str(&text).unwrap();
        changed[key] = value.into();
        std::fs::write(&path, changed.to_string()).unwrap();
        run(2, |comm, calls| {
            assert!(SharedFile::open(comm, calls, "f", &options).is_err());
            Ok(())
        });
    }
}
