//! Partitions and the memory of the ranks.

use std::sync::Arc;

use outcore::storage::{CountedStore, MemoryStore, RequestKind, Store};
use outcore::{
    Array, ArrayDescriptor, ByteOrder, ElementType, Error, MemoryBudget, Partitions, Strategy,
    Tuning,
};

use crate::oracle::{in_memory, numbered};

#[test]
fn different_budgets_give_the_same_partitions() {
    let source = numbered(&ArrayDescriptor::new(&[90, 20], ElementType::F64));
    // Ranks that are threads get a third each.
    let budgets = [3 * 40_000, 3 * 6_000, 3 * 9_000].map(MemoryBudget::of);
    let partitions = Partitions::of(&source).halo(&[(1, 1), (0, 0)]);
    let seen = outcore::run(3, |comm| {
        let mut seen = Vec::new();
        for partition in partitions.start(comm, &budgets[comm.rank()])? {
            seen.push(partition.section().to_string());
            if seen.len() > 100 {
                break;
            }
        }
        Ok::<_, Error>(seen)
    })
    .unwrap();
    // 6000 bytes: the least that moves them, and 16 rows of 160 bytes with 2 of halo.
    assert_eq!(seen[0], ["0:42, 0:20", "42:84, 0:20", "84:90, 0:20"]);
    assert!(seen.iter().all(|one| *one == seen[0]));
    // One that is too small stops all.
    let budgets = [3 * 40_000, 3 * 100, 3 * 9_000].map(MemoryBudget::of);
    let told = outcore::run(3, |comm| {
        let started = partitions.start(comm, &budgets[comm.rank()]);
        Ok::<_, Error>(started.err().unwrap().to_string())
    });
    for message in told.unwrap() {
        assert!(
            message.contains("rank 1: the smallest partition"),
            "{message}"
        );
    }
}

/// However a share lies in the file, moving it takes little besides it.
#[test]
fn shares_are_moved_with_little_memory() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let descriptor = ArrayDescriptor::new(&[128, 16384], ElementType::F64).byte_order(order);
        let store = Arc::new(CountedStore::with_log(MemoryStore::new()));
        store.set_len(128 * 16384 * 8).unwrap();
        let array = Array::in_store("counted", &descriptor, store.clone()).unwrap();
        let array = array.tuned(Tuning {
            strategy: Strategy::Sieving,
            gap: Some(1 << 30),
            ..Tuning::default()
        });
        let target = in_memory(&descriptor);
        let partitions = Partitions::of(&array)
            .halo(&[(0, 0), (1, 1)])
            .divided_along(1);
        outcore::run(2, |comm| {
            for partition in partitions.start(comm, &MemoryBudget::of(64 << 20))? {
                let mut share = partition.load::<f64>(comm)?;
                share.values_mut().fill(2.0);
                partition.store(comm, &share, &target)?;
                partition.store(comm, &share, &array)?;
            }
            Ok::<(), Error>(())
        })
        .unwrap();
        for kind in [RequestKind::Read, RequestKind::Write] {
            let log = store
                .log()
                .into_iter()
                .filter(|request| request.kind == kind);
            let largest = log.map(|request| request.len).max().unwrap();
            assert!(largest <= 512 << 10, "{kind:?} of {largest} bytes");
        }
        for array in [array, target] {
            let values: Vec<f64> = array.read(&array.whole()).unwrap();
            assert!(values.iter().all(|value| *value == 2.0));
        }
    }
}
