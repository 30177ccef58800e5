//! Partitioned in-core computation: the array is cut into partitions that fit
//! the joint memory of all ranks. Each partition is loaded, computed in memory
//! with messages between the ranks, and stored.

use outcore::{Array, ArrayDescriptor, ElementType, Error, Fill, MemoryBudget, Op, Partitions};

const SHAPE: [u64; 2] = [4000, 120];

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let path = std::env::temp_dir().join(format!("partitioned-{}", std::process::id()));
        let mut home = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut home)?;
        if comm.rank() == 0 {
            std::fs::create_dir(&home).expect("the directory can be made");
        }
        comm.barrier()?;
        let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::F64);
        let source = Array::create_all(comm, &format!("{home}/source.oc"), &descriptor)?;
        let target = Array::create_all(comm, &format!("{home}/target.oc"), &descriptor)?;
        if comm.rank() == 0 {
            let mut bytes = vec![0; (SHAPE[0] * SHAPE[1] * 8) as usize];
            Fill::Index.generate(&source, &source.whole(), &mut bytes)?;
            source.write_bytes(&source.whole(), &bytes)?;
        }
        comm.barrier()?;

        // 3.7 MiB of data, 512 KiB of joint memory, rows above and below included.
        let joint = 512 << 10;
        let budget = if comm.transport().shares_memory() {
            MemoryBudget::of(joint)
        } else {
            MemoryBudget::of(joint / comm.size() as u64)
        };
        let partitions = Partitions::of(&source).halo(&[(1, 1), (0, 0)]);
        let (mut count, mut total) = (0, 0.0);
        for partition in partitions.start(comm, &budget)? {
            let mut share = partition.load::<f64>(comm)?;
            // Each element becomes its difference to the row before.
            let width = SHAPE[1] as usize;
            let first = share.core_within().axes()[0].bounds().0 as usize;
            let rows = share.core().shape()[0] as usize;
            for row in (first..first + rows).rev() {
                for column in 0..width {
                    let before = if row == 0 {
                        0.0
                    } else {
                        share.values()[(row - 1) * width + column]
                    };
                    share.values_mut()[row * width + column] -= before;
                }
            }
            // The ranks work on one partition together.
            let core = &share.values()[first * width..][..rows * width];
            total += comm.all_reduce(&[core.iter().sum::<f64>()], Op::Sum)?[0];
            partition.store(comm, &share, &target)?;
            count += 1;
        }
        assert!(count >= 4, "{count} partitions");

        let found: Vec<f64> = target.read(&target.whole())?;
        for (at, found) in found.iter().enumerate() {
            let expected = if (at as u64) < SHAPE[1] {
                at as f64
            } else {
                SHAPE[1] as f64
            };
            assert_eq!(*found, expected);
        }
        assert_eq!(total, found.iter().sum::<f64>());

        comm.barrier()?;
        if comm.rank() == 0 {
            println!("{} ranks computed {count} partitions", comm.size());
            std::fs::remove_dir_all(&home).expect("the arrays can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
