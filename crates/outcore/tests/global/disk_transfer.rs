//! Whole arrays from and to arrays on disk and in memory.

use outcore::{
    Array, ArrayDescriptor, Blocks, DiskOptions, DiskResident, Disks, DistributedArray,
    Distribution, ElementType, GlobalArray, MemoryBudget, Section, Spread,
};

use crate::oracle::{RANKS, run};

#[test]
fn arrays_come_and_go() {
    let shape = [19u64, 14];
    for ranks in RANKS {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
        run(ranks, |comm, calls| {
            let parts = ranks as u64;
            let distribution = |text| Distribution::parse(text, &shape, parts, None).unwrap();
            let lengths = [vec![8, 11], vec![3, 9, 2]];
            let blocks = Blocks::new(&lengths, ranks, |at| Some((at[0] + at[1]) as usize % ranks));
            let spreads: [Spread; 3] = [
                distribution("block,*").into(),
                distribution("cyclic(2),cyclic").into(),
                blocks?.into(),
            ];
            let whole = Section::whole(&shape).unwrap();
            let all: Vec<f32> = (0..19 * 14).map(|at| at as f32).collect();
            for (number, spread) in spreads.into_iter().enumerate() {
                let options = DiskOptions::new(Disks::Memory);
                let name = format!("t{number}");
                let array = DiskResident::<f32>::create(comm, calls, &name, spread, &options)?;
                // 1. From and to arrays on disk, of either order.
                for layout in ["row", "column"] {
                    let descriptor = ArrayDescriptor::new(&shape, ElementType::F32)
                        .layout(layout.parse().unwrap());
                    let from = file(&format!("from-{number}-{layout}.oc"));
                    let from = Array::create_all(comm, &from, &descriptor)?;
                    if comm.rank() == 0 {
                        let values = match layout {
                            "row" => all.clone(),
                            _ => (0..14 * 19).map(|at| all[at % 19 * 14 + at / 19]).collect(),
                        };
                        from.write(&whole, &values)?;
                    }
                    comm.barrier()?;
                    array.load(comm, &from)?;
                    assert_eq!(array.read(&whole)?, all);
                    let to = file(&format!("to-{number}-{layout}.oc"));
                    let to = Array::create_all(comm, &to, &descriptor)?;
                    array.store(comm, &to)?;
                    assert_eq!(to.read::<f32>(&whole)?, from.read::<f32>(&whole)?);
                }
                // 2. From and to arrays in memory, with room for a part or without.
                for budget in [MemoryBudget::of(1 << 20), MemoryBudget::of(0)] {
                    let mut memory =
                        DistributedArray::<f32>::new(comm, distribution("*,cyclic(3)"))?;
                    memory.fill_with(|at| 1.5 + (14 * at[0] + at[1]) as f32);
                    array.load_distributed(comm, &memory, &budget)?;
                    let expected: Vec<f32> = all.iter().map(|value| value + 1.5).collect();
                    assert_eq!(array.read(&whole)?, expected);
                    memory.fill(0.0);
                    array.store_distributed(comm, &mut memory, &budget)?;
                    assert!(
                        memory
                            .iter()
                            .all(|(at, value)| { *value == 1.5 + (14 * at[0] + at[1]) as f32 })
                    );
                    assert_eq!(budget.free(), budget.limit());
                }
                // 3. From and to a global array.
                let global = GlobalArray::<f32>::new(comm, Some(calls), distribution("cyclic,*"))?;
                array.store_global(comm, &global)?;
                assert_eq!(global.read(&whole)?, array.read(&whole)?);
                global.sync(comm)?;
                global.fill(comm, 4.5)?;
                array.load_global(comm, &global)?;
                assert_eq!(array.read(&whole)?, vec![4.5; all.len()]);
                comm.barrier()?;
                array.accumulate(&whole, &all, if comm.rank() == 0 { 1.0 } else { 0.0 })?;
                array.accumulate(&array.section("0, 0")?, &[0.0], 1.0)?;
                comm.barrier()?;
                // 4. From another one.
                let spread = distribution("cyclic,block");
                let other = DiskResident::<f32>::create(comm, calls, "other", spread, &options)?;
                other.copy_from(comm, &array)?;
                let expected: Vec<f32> = all.iter().map(|value| value + 4.5).collect();
                assert_eq!(other.read(&whole)?, expected);
                // 5. What does not fit is refused on all ranks.
                let mut small = DistributedArray::<f32>::new(
                    comm,
                    Distribution::parse("block,*", &[19, 13], parts, None).unwrap(),
                )?;
                let budget = MemoryBudget::of(0);
                assert!(array.load_distributed(comm, &small, &budget).is_err());
                assert!(array.store_distributed(comm, &mut small, &budget).is_err());
                other.close(comm)?;
                array.close(comm)?;
            }
            Ok(())
        });
    }
}
