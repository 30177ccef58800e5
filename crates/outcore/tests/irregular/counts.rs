//! How many requests and bytes irregular calls make, and how much memory they take.

use std::sync::Arc;

use outcore::storage::{CountedStore, MemoryStore, Store};
use outcore::{Array, ArrayDescriptor, ElementType, Error, Inspector, Schedule};

/// A permutation of `0..count` without a pattern.
pub(crate) fn permutation(count: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (0..count as u32).collect();
    let mut seed = 88_172_645_463_325_252_u64;
    for at in (1..count).rev() {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        all.swap(at, (seed % (at as u64 + 1)) as usize);
    }
    all
}

fn counted(elements: u64) -> (Array, Arc<CountedStore<Arc<MemoryStore>>>) {
    let memory = Arc::new(MemoryStore::new());
    memory.set_len(elements * 8).unwrap();
    let store = Arc::new(CountedStore::new(memory));
    let descriptor = ArrayDescriptor::new(&[elements], ElementType::F64);
    let array = Array::in_store("counted", &descriptor, store.clone()).unwrap();
    (array, store)
}

#[test]
fn each_rank_moves_its_share_of_the_file_once() {
    let elements = 1 << 18;
    let all = permutation(elements);
    let (array, store) = counted(elements as u64);
    outcore::run(4, |comm| {
        let share = elements / 4;
        let own = &all[comm.rank() * share..(comm.rank() + 1) * share];
        let schedule = Schedule::new(comm, &array, own)?;
        assert!(schedule.memory() <= 12 * own.len(), "{}", schedule.memory());
        let values: Vec<f64> = own.iter().map(|index| f64::from(*index)).collect();
        let moved = schedule.write(comm, &array, &values)?;
        assert_eq!(
            moved.moved,
            8 * share as u64,
            "nothing is read before it is written"
        );
        comm.barrier()?;
        if comm.rank() == 0 {
            assert_eq!(store.counts().bytes_written, 8 * elements as u64);
            assert_eq!(store.counts().bytes_read, 0);
        }
        comm.barrier()?;
        let mut again = vec![0.0; share];
        let moved = schedule.read(comm, &array, &mut again)?;
        assert_eq!(moved.moved, 8 * share as u64);
        assert_eq!(again, values);
        Ok::<(), Error>(())
    })
    .unwrap();
    assert_eq!(store.counts().bytes_read, 8 * elements as u64);
}

#[test]
fn only_true_holes_are_read_before() {
    let (array, store) = counted(64);
    outcore::run(1, |comm| {
        // Elements 0 to 15, and 32, 34, 36 of four windows of 16.
        let own: Vec<u64> = (0..16).chain([32, 36, 34]).collect();
        let schedule = Inspector::default()
            .window(16)
            .schedule(comm, &array, &own)?;
        schedule.write(comm, &array, &vec![1.0; own.len()])?;
        Ok::<(), Error>(())
    })
    .unwrap();
    let counts = store.counts();
    // The full window is not read; of the other one, from 32 to 36.
    assert_eq!((counts.bytes_read, counts.bytes_written), (8 * 5, 8 * 21));
}

#[test]
fn consecutive_indices_are_runs() {
    let (array, _) = counted(1 << 16);
    outcore::run(2, |comm| {
        let first = (comm.rank() as u64) << 15;
        let own: Vec<u64> = (first..first + (1 << 15)).collect();
        let schedule = Schedule::new(comm, &array, &own)?;
        assert!(schedule.has_runs());
        assert!(schedule.memory() < 4096, "{}", schedule.memory());
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn places_beyond_four_gibielements() {
    // A sparse file of 48 GiB, of which a few elements are touched.
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("large.oc");
    let extent = 6u64 << 30;
    outcore::run(3, |comm| {
        let descriptor = ArrayDescriptor::new(&[extent], ElementType::F64);
        let array = Array::create_all(comm, name.to_str().unwrap(), &descriptor)?;
        let own = [
            extent - 1 - comm.rank() as u64,
            5,
            (comm.rank() as u64 + 1) << 30,
        ];
        let schedule = Schedule::new(comm, &array, &own)?;
        schedule.write(comm, &array, &own.map(|index| index as f64))?;
        let mut again = [0.0; 3];
        schedule.read(comm, &array, &mut again)?;
        assert_eq!(again, own.map(|index| index as f64));
        let runs = [(extent - 3, 3), (4, 2)];
        let schedule = Schedule::new(comm, &array, &runs)?;
        let mut some = [0.0; 5];
        schedule.read(comm, &array, &mut some)?;
        assert_eq!(some[2..], [(extent - 1) as f64, 0.0, 5.0]);
        Ok::<(), Error>(())
    })
    .unwrap();
}
