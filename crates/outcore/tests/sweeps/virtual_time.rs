//! Reading, computing and writing overlap in virtual time as they should.

use std::sync::Arc;
use std::time::Duration;

use outcore::storage::{DeviceModel, MemoryStore, Queues, Store, ThrottledStore, Time};
use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget, Sweep, WriteBehind};

/// 16 slabs of 1 ms each to read, in virtual time.
fn slow() -> (Array, ThrottledStore<MemoryStore>) {
    let model = DeviceModel {
        latency: Duration::ZERO,
        bandwidth: 1e6,
        queues: Queues::Streams(2),
    };
    let memory = MemoryStore::from(vec![0; 16_000]);
    let store = ThrottledStore::new(memory, model, Time::Virtual).unwrap();
    let clock = store.for_caller();
    let shared: Arc<dyn Store> = Arc::new(clock);
    let descriptor = ArrayDescriptor::new(&[16, 1000], ElementType::U8);
    (Array::in_store("slow", &descriptor, shared).unwrap(), store)
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn virtual_time_overlaps_exactly() {
    for (ahead, compute, expected) in [(0, 1, 32), (1, 1, 17), (3, 1, 17), (1, 2, 33), (0, 2, 48)] {
        let (array, _) = slow();
        let plan = Sweep::<u8>::of(&array).thickness(Some(1)).ahead(ahead);
        for tile in plan.start::<u8>().unwrap() {
            let tile = tile.unwrap();
            let now = array.store().time().unwrap();
            array.store().wait_until(now + compute * MS);
            drop(tile);
        }
        assert_eq!(
            array.store().time(),
            Some(expected * MS),
            "{ahead} ahead, {compute} ms"
        );
    }
}

#[test]
fn writing_behind_overlaps_in_virtual_time() {
    // Read, compute and write 1 ms each, on a device with two streams.
    for (ahead, depth, expected) in [(1, Some(1), 18), (0, None, 48), (0, Some(0), 48)] {
        let (array, _) = slow();
        let plan = Sweep::<u8>::of(&array).thickness(Some(1)).ahead(ahead);
        let mut writer = depth.map(|depth| {
            WriteBehind::<u8>::start(&array, depth, &MemoryBudget::of(1 << 20)).unwrap()
        });
        for tile in plan.start::<u8>().unwrap() {
            let tile = tile.unwrap();
            let now = array.store().time().unwrap();
            array.store().wait_until(now + MS);
            match &mut writer {
                Some(writer) => {
                    let values = writer.buffer(1000).unwrap();
                    writer.write(tile.core(), values).unwrap();
                }
                None => array.write(tile.core(), tile.values()).unwrap(),
            }
        }
        if let Some(writer) = writer {
            writer.finish().unwrap();
        }
        assert_eq!(array.store().time(), Some(expected * MS), "depth {depth:?}");
    }
}

#[test]
fn prefetching_in_virtual_time() {
    let (array, _) = slow();
    let section = array.section("0:4, :").unwrap();
    let budget = MemoryBudget::of(1 << 20);
    let mut prefetch = array.prefetch::<u8>(&section, &budget).unwrap();
    assert!(!prefetch.is_ready());
    array.store().wait_until(3 * MS);
    assert!(!prefetch.is_ready());
    array.store().wait_until(4 * MS);
    assert!(prefetch.is_ready());
    prefetch.wait().unwrap();
    let prefetch = array.prefetch::<u8>(&section, &budget).unwrap();
    prefetch.wait().unwrap();
    assert_eq!(array.store().time(), Some(8 * MS));
}
