//! Sweeps against an oracle in memory: every tile holds what the array holds,
//! every element is read once, and nothing hangs when storage fails.

use std::sync::Arc;
use std::time::Duration;

use outcore::storage::{
    CountedStore, DeviceModel, Fault, FaultyStore, MemoryStore, Operation, Queues, Store,
    ThrottledStore, Time,
};
use outcore::{
    Array, ArrayDescriptor, Element, ElementType, Error, Layout, MemoryBudget, Order, Section,
    Sweep, SweepOrder, SweepPlan, WriteBehind, dispatch,
};
use proptest::prelude::*;

type Counted = CountedStore<FaultyStore<MemoryStore>>;

/// An array of made-up bytes in memory, and the store that counts its requests.
fn array(descriptor: &ArrayDescriptor) -> (Array, Arc<Counted>) {
    let order = &descriptor.arrangement;
    let size = descriptor.element_type.size();
    let layout = Layout::arranged(&descriptor.shape, size, order).unwrap();
    let modulus = if descriptor.element_type == ElementType::Bool {
        2
    } else {
        251
    };
    let bytes: Vec<u8> = (0..layout.byte_len())
        .map(|at| (at % modulus) as u8)
        .collect();
    let store = Arc::new(CountedStore::new(FaultyStore::new(MemoryStore::from(
        bytes,
    ))));
    let shared: Arc<dyn Store> = store.clone();
    (Array::in_store("test", descriptor, shared).unwrap(), store)
}

fn rows(rows: u64, columns: u64) -> (Array, Arc<Counted>) {
    array(&ArrayDescriptor::new(&[rows, columns], ElementType::U32))
}

fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// Sweeps as planned and compares each tile with a plain read; returns how
/// many bytes the sweep read.
fn check<T: Element>(plan: SweepPlan, region: &Section, array: &Array, store: &Counted) -> u64 {
    let mut seen = 0;
    let mut sizes = Vec::new();
    let mut oracle = Vec::new();
    store.reset();
    let sweep = plan.start::<T>().unwrap();
    let tiles = sweep.tiles_left();
    for tile in sweep {
        let mut tile = tile.unwrap();
        oracle.push((tile.section().clone(), bytes_of(tile.values()).to_vec()));
        let core = tile.core();
        assert_eq!(core.intersect(region).unwrap(), *core);
        assert_eq!(
            tile.section().select(&tile.core_within()).count(),
            core.count()
        );
        let mut copied = vec![T::zeroed(); core.count() as usize];
        tile.copy_core(&mut copied);
        sizes.push((core.clone(), bytes_of(&copied).to_vec()));
        if let Some(range) = tile.core_range() {
            assert_eq!(bytes_of(&tile.values()[range]), bytes_of(&copied));
        }
        seen += core.count();
        // Whatever the caller does to its tile, the next one is right.
        tile.values_mut().fill_with(T::zeroed);
    }
    let read = store.counts().bytes_read;
    assert_eq!((seen, oracle.len() as u64), (region.count(), tiles));
    for (section, bytes) in oracle.into_iter().chain(sizes) {
        assert_eq!(
            bytes,
            bytes_of(&array.read::<T>(&section).unwrap()),
            "{section}"
        );
    }
    read
}

/// Extent, lower bound and length of the region, halo, tile.
type Axis = (u64, u64, u64, (u64, u64), u64);

#[derive(Debug, Clone)]
struct Case {
    axes: Vec<Axis>,
    element: ElementType,
    order: usize,
    kind: usize,
    along: usize,
    thickness: Option<u64>,
    ahead: usize,
    reuse: bool,
    tiled: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let axis = (1u64..9, 0u64..9, 0u64..9, (0u64..4, 0u64..4), 1u64..5);
    let axes = proptest::collection::vec(axis, 0..4);
    let element = proptest::sample::select(ElementType::ALL.to_vec());
    let flags = (any::<bool>(), any::<bool>());
    let sizes = (proptest::option::of(1u64..6), 0usize..4);
    (axes, element, 0usize..3, 0usize..3, 0usize..4, sizes, flags).prop_map(
        |(axes, element, order, kind, along, (thickness, ahead), (reuse, tiled))| Case {
            axes,
            element,
            order,
            kind,
            along,
            thickness,
            ahead,
            reuse,
            tiled,
        },
    )
}

fn run(case: &Case) {
    let shape: Vec<u64> = case.axes.iter().map(|axis| axis.0).collect();
    let tile: Vec<u64> = case.axes.iter().map(|axis| axis.4).collect();
    let mut descriptor = ArrayDescriptor::new(&shape, case.element);
    descriptor.arrangement.order = match case.order {
        0 => Order::Row,
        1 => Order::Column,
        _ => {
            let mut axes: Vec<usize> = (0..shape.len()).collect();
            axes.rotate_left(usize::from(!shape.is_empty()));
            Order::from_slowest_first(&axes)
        }
    };
    descriptor.arrangement.tile = (case.tiled && !shape.is_empty()).then_some(tile.clone());
    let (array, store) = array(&descriptor);
    let region = case.axes.iter().map(|(extent, lower, length, ..)| {
        let lower = lower.min(extent);
        format!("{lower}:{}", (lower + length).min(*extent))
    });
    let region = match shape.len() {
        0 => array.whole(),
        _ => array
            .section(&region.collect::<Vec<_>>().join(", "))
            .unwrap(),
    };
    let order = match case.kind {
        1 if !shape.is_empty() => SweepOrder::Along(case.along % shape.len()),
        2 => SweepOrder::Tiles(tile),
        _ => SweepOrder::Slabs,
    };
    let slabs = !matches!(order, SweepOrder::Tiles(_));
    let halo: Vec<(u64, u64)> = case.axes.iter().map(|axis| axis.3).collect();
    let plan = Sweep::<u8>::of(&array)
        .over(region.clone())
        .order(order)
        .halo(&halo)
        .ahead(case.ahead)
        .reuse(case.reuse)
        .thickness(case.thickness);
    let needed = plan.need(case.thickness.unwrap_or(1));
    let budget = MemoryBudget::of(needed);
    let plan = plan.budget(&budget);
    let read = dispatch!(case.element, T => check::<T>(plan, &region, &array, &store));
    assert_eq!(budget.free(), needed, "everything is given back");
    if case.reuse && slabs && !case.tiled {
        // The region and its halo, each element once; sieving reads more.
        let grown = region
            .axes()
            .iter()
            .zip(&halo)
            .zip(&shape)
            .map(|((axis, halo), extent)| {
                let (lower, upper) = axis.bounds();
                (upper + halo.1).min(*extent) - lower.saturating_sub(halo.0)
            });
        let elements: u64 = grown.product();
        let direct = outcore::Tuning {
            strategy: outcore::Strategy::Direct,
            ..outcore::Tuning::default()
        };
        if !region.is_empty() {
            assert!(read >= elements * case.element.size());
        }
        let plan = Sweep::<u8>::of(&array.tuned(direct))
            .over(region.clone())
            .order(match case.kind {
                1 if !shape.is_empty() => SweepOrder::Along(case.along % shape.len()),
                _ => SweepOrder::Slabs,
            })
            .halo(&halo)
            .thickness(case.thickness)
            .budget(&MemoryBudget::of(1 << 20));
        let read = dispatch!(case.element, T => check::<T>(plan, &region, &array, &store));
        let expected = if region.is_empty() {
            0
        } else {
            elements * case.element.size()
        };
        assert_eq!(read, expected, "each element is read once");
    }
}

proptest! {
    #[test]
    fn tiles_hold_what_the_array_holds(case in cases()) {
        run(&case);
    }
}

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
        "the sweep needs at least 31.3 KiB of memory, but the budget is 31.2 KiB"
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

/// Each element becomes the sum of its old neighbours along axis 0.
fn blur(old: &[u32], rows: usize, columns: usize) -> Vec<u32> {
    let at = |row: usize, column: usize| old[row * columns + column];
    let sum = |row: usize, column: usize| {
        let (above, below) = (row.saturating_sub(1), (row + 1).min(rows - 1));
        at(above, column)
            .wrapping_add(at(row, column).wrapping_mul(3))
            .wrapping_add(at(below, column))
    };
    (0..rows * columns)
        .map(|i| sum(i / columns, i % columns))
        .collect()
}

#[test]
fn in_place_sweeps_see_old_values() {
    for (rows_, thickness, depth, ahead) in [
        (97, 5, 1, 1),
        (97, 1, 3, 2),
        (10, 10, 1, 1),
        (20, 3, 2, 0),
        (20, 3, 0, 1),
    ] {
        let (array, store) = rows(rows_, 7);
        let old: Vec<u32> = array.read(&array.whole()).unwrap();
        store.reset();
        let mut writer =
            WriteBehind::<u32>::start(&array, depth, &MemoryBudget::of(1 << 20)).unwrap();
        let plan = Sweep::<u32>::of(&array)
            .halo(&[(1, 1), (0, 0)])
            .ahead(ahead);
        for tile in plan.thickness(Some(thickness)).start::<u32>().unwrap() {
            let mut tile = tile.unwrap();
            let range = tile.core_range().unwrap();
            let held = tile.section().shape()[0] as usize;
            let new = blur(tile.values(), held, 7);
            tile.values_mut()[range.clone()].copy_from_slice(&new[range]);
            writer.write_core(tile).unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(
            store.counts().bytes_read,
            rows_ * 28,
            "each element is read once"
        );
        assert_eq!(
            array.read::<u32>(&array.whole()).unwrap(),
            blur(&old, rows_ as usize, 7)
        );
    }
}

#[test]
fn cores_in_many_pieces_are_written_too() {
    let (array, _) = rows(9, 20);
    let mut expected: Vec<u32> = array.read(&array.whole()).unwrap();
    let mut writer = WriteBehind::<u32>::start(&array, 2, &MemoryBudget::of(1 << 20)).unwrap();
    let plan = Sweep::<u32>::of(&array)
        .order(SweepOrder::Along(1))
        .halo(&[(0, 0), (2, 1)]);
    for tile in plan.thickness(Some(3)).start::<u32>().unwrap() {
        let mut tile = tile.unwrap();
        tile.values_mut()
            .iter_mut()
            .for_each(|value| *value = value.wrapping_add(1));
        writer.write_core(tile).unwrap();
    }
    writer.finish().unwrap();
    expected
        .iter_mut()
        .for_each(|value| *value = value.wrapping_add(1));
    assert_eq!(array.read::<u32>(&array.whole()).unwrap(), expected);
}

#[test]
fn a_full_disk_is_reported() {
    let (array, store) = rows(100, 10);
    store.inner().fail_from(Operation::Write, 2, Fault::NoSpace);
    let budget = MemoryBudget::of(1 << 20);
    // All of them in flight: finish reports.
    let mut writer = WriteBehind::<u32>::start(&array, 10, &budget).unwrap();
    for row in 0..10 {
        let section = array.section(&format!("{row}, :")).unwrap();
        let values = writer.buffer(10).unwrap();
        writer.write(&section, values).unwrap();
    }
    let message = writer.finish().unwrap_err().to_string();
    assert!(message.contains("No space left"), "{message}");
    assert_eq!(
        store.inner().struck(),
        1,
        "nothing is written after a failure"
    );
    // One in flight: a later write reports, and then finish, too.
    let mut writer = WriteBehind::<u32>::start(&array, 1, &budget).unwrap();
    let section = array.section("0, :").unwrap();
    let outcomes: Vec<bool> = (0..4)
        .map(|_| {
            let values = writer.buffer(10);
            values
                .and_then(|values| writer.write(&section, values))
                .is_err()
        })
        .collect();
    assert!(!outcomes[0] && outcomes[3], "{outcomes:?}");
    assert!(writer.finish().is_err());
    assert_eq!(budget.free(), 1 << 20);
}

#[test]
fn the_writer_bounds_its_buffers_and_checks_at_once() {
    let (array, _) = rows(10, 10);
    let budget = MemoryBudget::of(3 * 40);
    let mut writer = WriteBehind::<u32>::start(&array, 2, &budget).unwrap();
    let held = [
        writer.buffer(10).unwrap(),
        writer.buffer(10).unwrap(),
        writer.buffer(10).unwrap(),
    ];
    assert_eq!(budget.free(), 0);
    assert_eq!(WriteBehind::<u32>::need(2, 10), budget.limit());
    assert!(
        writer
            .buffer(10)
            .unwrap_err()
            .to_string()
            .contains("3 buffers")
    );
    drop(held);
    let values = writer.buffer(10).unwrap();
    let wrong = array.section("0:2, :").unwrap();
    assert!(matches!(
        writer.write(&wrong, values),
        Err(Error::BufferLength { .. })
    ));
    assert!(matches!(writer.buffer(11), Err(Error::Memory { .. })));
    let small = writer.buffer(1).unwrap();
    writer
        .write(&array.section("3, 3").unwrap(), small)
        .unwrap();
    drop(writer);
    assert!(WriteBehind::<f32>::start(&array, 2, &budget).is_err());
}

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
