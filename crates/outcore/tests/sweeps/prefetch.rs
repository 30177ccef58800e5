//! A single section that is read beside the caller.

use outcore::MemoryBudget;
use outcore::storage::{Fault, Operation};

use crate::arrays::rows;

#[test]
fn prefetch_starts_tests_and_waits() {
    let (array, store) = rows(100, 10);
    let section = array.section("::7, 2:5").unwrap();
    let budget = MemoryBudget::of(15 * 3 * 4);
    let mut prefetch = array.prefetch::<u32>(&section, &budget).unwrap();
    assert_eq!(budget.free(), 0);
    assert!(array.prefetch::<u32>(&section, &budget).is_err());
    while !prefetch.is_ready() {
        std::thread::yield_now();
    }
    assert_eq!(
        prefetch.wait().unwrap(),
        array.read::<u32>(&section).unwrap()
    );
    assert_eq!(budget.free(), budget.limit());
    store.inner().fail_from(Operation::Read, 0, Fault::Device);
    assert!(
        array
            .prefetch::<u32>(&section, &budget)
            .unwrap()
            .wait()
            .is_err()
    );
    assert!(array.prefetch::<f32>(&section, &budget).is_err());
    drop(array.prefetch::<u32>(&section, &budget).unwrap());
}
