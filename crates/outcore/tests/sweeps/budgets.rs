//! What a sweep needs, what is refused, and how far it reads ahead.

use std::time::Duration;

use outcore::{Error, MemoryBudget, Section, Sweep, SweepOrder, SweepPlan};

use crate::arrays::rows;

#[test]
fn a_budget_that_is_too_small_names_the_smallest() {
    let (array, _) = rows(1000, 1000);
    let sweep =
        |budget: u64| array.sweep::<u32>(SweepOrder::Slabs, &[1, 0], &MemoryBudget::of(budget));
    // Two slabs of three rows, and the two rows that are kept.
    let least = (2 * 3 + 2) * 4000;
    assert_eq!(sweep(least).unwrap().thickness(), Some(1));
    let message = sweep(least - 1).unwrap_err().to_string();
    assert_eq!(
        message,
        "the sweep needs at least 31.3 KiB of memory, but the budget is 31.2 KiB; give more (--memory)"
    );
    assert!(matches!(
        sweep(7).unwrap_err(),
        Error::Memory {
            least: 32_000,
            limit: 7,
            ..
        }
    ));
    // A share names what all shares need.
    let share = MemoryBudget::of(100).share(4);
    let error = array
        .sweep::<u32>(SweepOrder::Slabs, &[1, 0], &share)
        .unwrap_err();
    assert!(matches!(
        error,
        Error::Memory {
            least: 128_000,
            limit: 100,
            ..
        }
    ));
    let tiles = SweepOrder::Tiles(vec![500, 500]);
    let error = array
        .sweep::<u32>(tiles, &[], &MemoryBudget::of(100))
        .unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (array, _) = rows(10, 10);
    let budget = MemoryBudget::of(1 << 20);
    let plan = || Sweep::<u32>::of(&array).budget(&budget);
    let refused = |plan: SweepPlan, words: &str| {
        let message = plan.start::<u32>().unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    refused(plan().halo(&[(1, 1)]), "2 axes, but the halo 1");
    refused(plan().order(SweepOrder::Along(2)), "no axis 2");
    refused(plan().order(SweepOrder::Tiles(vec![3])), "tiles of 3");
    refused(plan().order(SweepOrder::Tiles(vec![3, 0])), "tiles of 3x0");
    refused(plan().thickness(Some(0)), "thickness 0");
    let strided = array.section("::2, :").unwrap();
    refused(
        plan().over(strided.clone()).halo(&[(1, 0), (0, 0)]),
        "strides",
    );
    refused(plan().over(Section::whole(&[11, 10]).unwrap()), "axis 0");
    refused(plan().over(Section::whole(&[10]).unwrap()), "1 axes");
    assert!(
        plan()
            .start::<f32>()
            .unwrap_err()
            .to_string()
            .contains("u32")
    );
    // Without a halo, strides are fine.
    let sweep = plan()
        .over(strided)
        .thickness(Some(2))
        .start::<u32>()
        .unwrap();
    let rows: Vec<String> = sweep
        .map(|tile| tile.unwrap().section().to_string())
        .collect();
    assert_eq!(rows, ["0:4:2, 0:10", "4:8:2, 0:10", "8:10:2, 0:10"]);
}

#[test]
fn read_ahead_stops_at_the_budget() {
    let (array, store) = rows(100, 10);
    let budget = MemoryBudget::of(3 * 400);
    let plan = Sweep::<u32>::of(&array).ahead(2).thickness(Some(10));
    let mut sweep = plan.budget(&budget).start::<u32>().unwrap();
    assert_eq!((budget.free(), sweep.memory()), (0, 1200));
    let first = sweep.next().unwrap().unwrap();
    while store.counts().reads < 3 {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(store.counts().reads, 3, "two tiles ahead, no more");
    let (_second, _third) = (
        sweep.next().unwrap().unwrap(),
        sweep.next().unwrap().unwrap(),
    );
    let message = sweep.next().unwrap().unwrap_err().to_string();
    assert!(message.contains("3 buffers"), "{message}");
    assert!(sweep.next().is_none());
    drop(sweep);
    // A tile outlives its sweep.
    assert_eq!(first.values().len(), 100);
}
