//! Slab loops over parts of several blocks, with results written behind.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use outcore::storage::{MemoryStore, Result, Store};
use outcore::{
    Array, ArrayDescriptor, Distribution, ElementType, LocalArray, LocalPlacement, MemoryBudget,
    WriteBehind,
};
use tempfile::TempDir;

/// A store whose writes take their time.
#[derive(Debug)]
struct Slow(MemoryStore);

impl Store for Slow {
    fn name(&self) -> String {
        "slow".into()
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_some_at(offset, buffer)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        std::thread::sleep(Duration::from_millis(30));
        self.0.write_some_at(offset, data)
    }

    fn len(&self) -> Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}

/// The memory is that of one block, and tiles of earlier blocks are still
/// being written when the next block begins.
#[test]
fn a_block_waits_for_the_memory_of_those_before() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.oc");
    let name = path.to_str().unwrap();
    let distribution = Distribution::parse("cyclic(4),*", &[40, 100], 2, None).unwrap();
    let placement = LocalPlacement::new(distribution).overlap(&[(1, 1), (0, 0)]);
    let descriptor = ArrayDescriptor::new(&[40, 100], ElementType::F64);
    Array::create(name, &descriptor.placed(placement)).unwrap();
    let local = LocalArray::open_part_writable(name, 0).unwrap();
    let part = local.part();
    part.write(&part.whole(), &vec![1.0; part.whole().count() as usize])
        .unwrap();
    let store = Arc::new(Slow(MemoryStore::new()));
    store.set_len(part.whole().count() * 8).unwrap();
    let descriptor = ArrayDescriptor::new(part.shape(), ElementType::F64);
    let target = Array::in_store("slow", &descriptor, store).unwrap();

    // Four rows and two of overlap; then thinner slabs, two of them and what they share.
    for (memory, slabs) in [
        (6 * 800, 5),
        ((2 * 4 + 2) * 800 - 1, 5),
        ((2 * 3 + 2) * 800, 5),
    ] {
        let budget = MemoryBudget::of(memory);
        let mut writer = WriteBehind::<f64>::start(&target, 2, &MemoryBudget::of(0)).unwrap();
        let mut count = 0;
        for tile in local.sweep::<f64>(&budget) {
            let mut tile = tile.unwrap();
            tile.values_mut().fill(2.0);
            count += 1;
            writer.write_core(tile).unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(count, slabs, "{memory} bytes");
        assert_eq!(budget.free(), memory);
    }
    let written: Vec<f64> = target.read(&local.owned()).unwrap();
    assert!(written.iter().all(|value| *value == 2.0));
    // A tile that the caller holds is nothing to wait for.
    let budget = MemoryBudget::of(6 * 800);
    let mut tiles = local.sweep::<f64>(&budget);
    let held = tiles.next().unwrap().unwrap();
    assert!(tiles.next().unwrap().is_err());
    drop(held);
}
