//! Every tile holds what the array holds, and every element is read once.

use outcore::{
    Array, ArrayDescriptor, Element, ElementType, MemoryBudget, Order, Section, Sweep, SweepOrder,
    SweepPlan, dispatch,
};
use proptest::prelude::*;

use crate::arrays::{Counted, array};

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
