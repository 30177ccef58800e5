//! The memory that a sweep really takes, alone in its process.

use outcore::{
    Array, ArrayDescriptor, ElementType, MemoryBudget, PeakMemory, Sweep, SweepOrder, WriteBehind,
};

#[test]
fn peak_memory_stays_within_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("a.oc");
    let descriptor = ArrayDescriptor::new(&[12 << 10, 1 << 10], ElementType::F64);
    let array = Array::create(name.to_str().unwrap(), &descriptor).unwrap();
    let watch = PeakMemory::watch();
    let Some(before) = watch.bytes() else { return };
    let budget = MemoryBudget::of(8 << 20);
    for order in [
        SweepOrder::Slabs,
        SweepOrder::Along(1),
        SweepOrder::Tiles(vec![256, 256]),
    ] {
        let mut writer = WriteBehind::<f64>::start(&array, 1, &budget.share(2)).unwrap();
        let plan = Sweep::<f64>::of(&array)
            .order(order.clone())
            .halo(&[(1, 1); 2])
            .ahead(1);
        let plan = plan.budget(&budget.share(2));
        let thickness = (order == SweepOrder::Along(1)).then_some(8);
        for tile in plan.thickness(thickness).start::<f64>().unwrap() {
            let tile = tile.unwrap();
            let mut values = writer.buffer(tile.core().count() as usize).unwrap();
            tile.copy_core(&mut values);
            values.iter_mut().for_each(|value| *value += 1.0);
            writer.write(tile.core(), values).unwrap();
        }
        writer.finish().unwrap();
    }
    let peak = watch.bytes().unwrap() - before;
    assert!(peak <= (8 << 20) + (4 << 20), "{peak} bytes");
    let corner: Vec<f64> = array.read(&array.section("12287, 1023").unwrap()).unwrap();
    assert!(corner[0] >= 1.0);
}
