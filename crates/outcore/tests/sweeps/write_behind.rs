//! Results that are written while the sweep goes on.

use outcore::storage::{Fault, Operation};
use outcore::{Error, MemoryBudget, Sweep, SweepOrder, WriteBehind};

use crate::arrays::rows;

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
    assert_eq!(WriteBehind::<u32>::need(&array, 2, 10), budget.limit());
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
