//! One interface on every level of the hierarchy, chosen by the budget.

use outcore::{Disks, Distribution, MemoryLevels, Place, Placed, Section};

use crate::oracle::{RANKS, Random, places, run};

#[test]
fn every_level_is_used_alike() {
    let shape = [24u64, 16];
    for ranks in RANKS {
        let directory = tempfile::tempdir().unwrap();
        let disks = directory.path().join("{rank}");
        let disks = Disks::pattern(disks.to_str().unwrap());
        run(ranks, |comm, calls| {
            let spread = || Distribution::parse("block,*", &shape, ranks as u64, None).unwrap();
            let part = spread().local_count(0) * 8;
            // Room for one array in node memory and for one in own memory.
            let levels = MemoryLevels::new(part + 7, disks.clone()).own(part);
            let mut arrays = Vec::new();
            for (name, place) in [
                ("a", Place::NodeMemory),
                ("b", Place::OwnMemory),
                ("c", Place::Disk),
            ] {
                let array = Placed::<i64>::new(comm, calls, name, spread(), &levels)?;
                assert_eq!(array.place(), place, "{}", array.why());
                assert!(array.why().contains("the largest part takes"));
                arrays.push(array);
            }
            let whole = Section::whole(&shape).unwrap();
            for array in &arrays {
                assert_eq!((array.shape(), array.owner(&[0, 0])), (&shape[..], Some(0)));
                // Each rank puts its rows; then all add to random sections.
                let mine = array.section(&format!("{}::{ranks}, :", comm.rank()))?;
                if !mine.is_empty() {
                    array.put(&mine, &vec![1; mine.count() as usize])?;
                }
                array.sync(comm)?;
                let mut expected = vec![1; 24 * 16];
                for rank in 0..ranks {
                    let mut random = Random(rank as u64);
                    for _ in 0..10 {
                        let section = random.section(&shape);
                        places(&section, &shape)
                            .iter()
                            .for_each(|at| expected[*at] += 3 * rank as i64);
                        if rank == comm.rank() {
                            let values = vec![rank as i64; section.count() as usize];
                            array.accumulate(&section, &values, 3)?;
                        }
                    }
                }
                array.prefetch(&whole)?;
                array.sync(comm)?;
                assert_eq!(array.read(&whole)?, expected);
                let outside = Section::parse("0:25, 1", &[25, 16]).unwrap();
                assert!(array.read(&outside).is_err());
                array.sync(comm)?;
            }
            // What is given back can be used again.
            for array in arrays {
                array.close(comm)?;
            }
            let again = Placed::<i64>::new(comm, calls, "d", spread(), &levels)?;
            assert_eq!(again.place(), Place::NodeMemory);
            again.close(comm)
        });
        let left = directory.path().read_dir().unwrap().flatten();
        assert!(
            left.into_iter()
                .all(|disk| disk.path().read_dir().unwrap().count() == 0)
        );
    }
}
