//! Devices that fail, and callers who stop early.

use outcore::storage::{Fault, Operation};
use outcore::{MemoryBudget, Sweep};

use crate::arrays::rows;

#[test]
fn a_failing_device_surfaces_and_ends_the_sweep() {
    for ahead in [0, 1, 3] {
        for tile in [0, 1, 9] {
            let (array, store) = rows(100, 10);
            store
                .inner()
                .fail_from(Operation::Read, tile, Fault::Device);
            let plan = Sweep::<u32>::of(&array).ahead(ahead).thickness(Some(10));
            let mut sweep = plan.start::<u32>().unwrap();
            for _ in 0..tile {
                drop(sweep.next().unwrap().unwrap());
            }
            let message = sweep.next().unwrap().unwrap_err().to_string();
            assert!(
                message.contains(&format!("at offset {}", tile * 400)),
                "{message}"
            );
            assert!(sweep.next().is_none());
        }
    }
}

#[test]
fn dropping_early_ends_everything() {
    for taken in 0..3 {
        let (array, _) = rows(1000, 10);
        let budget = MemoryBudget::of(1 << 20);
        let mut sweep = Sweep::<u32>::of(&array)
            .ahead(2)
            .thickness(Some(1))
            .budget(&budget)
            .start::<u32>()
            .unwrap();
        let tiles: Vec<_> = sweep.by_ref().take(taken).collect();
        drop(sweep);
        drop(tiles);
        assert_eq!(budget.free(), 1 << 20);
    }
}
