//! Sections of disk-resident arrays against an array in memory.

use std::sync::{Arc, Mutex};

use outcore::storage::CountedStore;
use outcore::{
    Blocks, DiskOptions, DiskResident, Disks, Distribution, Error, MemoryBudget, Section, Spread,
    Unwritten,
};

use crate::oracle::{RANKS, Random, places, run};

/// The ways in which parts work.
fn ways(disks: &str) -> Vec<DiskOptions> {
    let options = || DiskOptions::new(Disks::pattern(disks));
    let small = MemoryBudget::of(1000);
    vec![
        options(),
        options().block(&[3, 4]),
        options().block(&[3, 4]).cache(&small),
        options().cache(&MemoryBudget::of(1 << 20)).write_back(true),
        options().block(&[2, 5]).cache(&small).write_back(true),
        DiskOptions::new(Disks::Memory).block(&[3, 4]).cache(&small),
    ]
}

fn spreads(shape: &[u64], ranks: usize) -> Vec<Spread> {
    let kinds = ["block,*", "cyclic(2),block", "cyclic,cyclic(3)", "*,block"];
    let distributed = kinds.iter().map(|text| {
        Distribution::parse(text, shape, ranks as u64, None)
            .unwrap()
            .into()
    });
    let lengths = [vec![5, 1, 7, shape[0] - 13], vec![6, shape[1] - 6]];
    let blocks = Blocks::new(&lengths, ranks, |at| {
        Some((at[0] * 2 + at[1]) as usize % ranks)
    });
    distributed.chain([blocks.unwrap().into()]).collect()
}

/// One rank after the other gets, puts and accumulates sections, blocking or not.
#[test]
fn sections_are_those_of_an_array_in_memory() {
    let shape = [23u64, 17];
    for ranks in RANKS {
        let directory = tempfile::tempdir().unwrap();
        let disks = directory.path().join("{rank}");
        let disks = disks.to_str().unwrap();
        for (number, options) in ways(disks).iter().enumerate() {
            let spreads = spreads(&shape, ranks);
            let oracle = Mutex::new(Vec::new());
            run(ranks, |comm, calls| {
                for (kind, spread) in spreads.iter().enumerate() {
                    if (kind + number) % 2 == 1 && ranks > 3 {
                        continue;
                    }
                    // Ranks that are threads have a budget each.
                    let own = MemoryBudget::of(if number == 3 { 1 << 20 } else { 1000 });
                    let options = match options.clone() {
                        plain if number < 2 => plain,
                        cached => cached.cache(&own),
                    };
                    let name = format!("a{number}{kind}");
                    let array =
                        DiskResident::<i32>::create(comm, calls, &name, spread.clone(), &options)?;
                    if comm.rank() == 0 {
                        *oracle.lock().unwrap() = vec![0i32; (shape[0] * shape[1]) as usize];
                    }
                    comm.barrier()?;
                    let mut random = Random(comm.rank() as u64 + 1);
                    for turn in 0..ranks.max(4) {
                        comm.barrier()?;
                        if turn % ranks != comm.rank() {
                            continue;
                        }
                        let mut all = oracle.lock().unwrap();
                        for _ in 0..12 {
                            one_call(&array, &mut random, &shape, &mut all)?;
                        }
                    }
                    comm.barrier()?;
                    let whole = Section::whole(&shape).unwrap();
                    assert_eq!(array.read(&whole)?, *oracle.lock().unwrap());
                    array.sync()?;
                    array.close(comm)?;
                    // Whoever opens it again finds the same.
                    if number < 5 {
                        let again = DiskResident::<i32>::open(comm, calls, &name, &options)?;
                        assert_eq!(again.spread(), spread);
                        assert_eq!(again.read(&whole)?, *oracle.lock().unwrap());
                        let wrong = DiskResident::<f32>::open(comm, calls, &name, &options);
                        assert!(wrong.unwrap_err().to_string().contains("i32"));
                        again.remove(comm)?;
                        assert!(DiskResident::<i32>::open(comm, calls, &name, &options).is_err());
                    }
                }
                Ok(())
            });
        }
    }
}

fn one_call(
    array: &DiskResident<i32>,
    random: &mut Random,
    shape: &[u64],
    all: &mut [i32],
) -> Result<(), Error> {
    let section = random.section(shape);
    let places = places(&section, shape);
    let values: Vec<i32> = places.iter().map(|_| random.below(1000) as i32).collect();
    let set = |all: &mut [i32]| {
        places
            .iter()
            .zip(&values)
            .for_each(|(place, value)| all[*place] = *value);
    };
    let add = |all: &mut [i32]| {
        places
            .iter()
            .zip(&values)
            .for_each(|(place, value)| all[*place] += 3 * value);
    };
    let expected = |all: &[i32]| -> Vec<i32> { places.iter().map(|place| all[*place]).collect() };
    match random.below(7) {
        0 => {
            array.put(&section, &values)?;
            set(all);
        }
        1 => {
            array.start_put(&section, &values)?.wait()?;
            set(all);
        }
        2 => {
            array.accumulate(&section, &values, 3)?;
            add(all);
        }
        3 => {
            array.start_accumulate(&section, &values, 3)?.wait()?;
            add(all);
        }
        4 => {
            array.prefetch(&section)?;
            assert_eq!(array.read(&section)?, expected(all));
        }
        5 => {
            let mut pending = array.start_get(&section)?;
            pending.test()?;
            assert_eq!(pending.wait()?, expected(all));
        }
        _ => assert_eq!(array.read(&section)?, expected(all), "{section}"),
    }
    Ok(())
}

/// Sums of many ranks at once, of sections that overlap, lose nothing.
#[test]
fn accumulations_of_many_lose_nothing() {
    let shape = [12u64, 10];
    for ranks in RANKS {
        let directory = tempfile::tempdir().unwrap();
        let disks = directory.path().join("{rank}");
        let disks = disks.to_str().unwrap();
        for number in 0..4 {
            let sums = Mutex::new(vec![0f64; 120]);
            run(ranks, |comm, calls| {
                let options = ways(disks)[number].clone().replace(true);
                let options = match number < 2 {
                    true => options,
                    false => options.cache(&MemoryBudget::of(1000)),
                };
                let spread = Distribution::parse("block,block", &shape, ranks as u64, None);
                let array =
                    DiskResident::<f64>::create(comm, calls, "sum", spread.unwrap(), &options)?;
                let mut random = Random(comm.rank() as u64);
                for round in 0..30 {
                    let section = random.section(&shape);
                    let values = vec![(round % 5) as f64; section.count() as usize];
                    array.accumulate(&section, &values, 0.5)?;
                    let mut sums = sums.lock().unwrap();
                    for place in places(&section, &shape) {
                        sums[place] += 0.5 * (round % 5) as f64;
                    }
                }
                comm.barrier()?;
                let whole = Section::whole(&shape).unwrap();
                assert_eq!(array.read(&whole)?, *sums.lock().unwrap());
                array.close(comm)
            });
        }
    }
}

/// With a cache that has room for all, each block is read once, whoever asks; and
/// the cache stays within its budget if it has less.
#[test]
fn each_block_is_read_once() {
    let shape = [64u64, 64];
    for ranks in [2, 5] {
        let stores = Mutex::new(Vec::new());
        let stores = Arc::new(stores);
        run(ranks, |comm, calls| {
            let counted = Arc::clone(&stores);
            let budget = MemoryBudget::of(1 << 20);
            let options = DiskOptions::new(Disks::Memory)
                .block(&[8, 8])
                .cache(&budget);
            let options = options.adapter(move |_, store| {
                let store = Arc::new(CountedStore::new(store));
                counted.lock().unwrap().push(Arc::clone(&store));
                store
            });
            let spread = Distribution::parse("block,*", &shape, ranks as u64, None).unwrap();
            let array = DiskResident::<f32>::create(comm, calls, "once", spread, &options)?;
            comm.barrier()?;
            let mut random = Random(comm.rank() as u64);
            for _ in 0..50 {
                array.read(&random.section(&shape))?;
            }
            array.prefetch(&Section::whole(&shape).unwrap())?;
            array.read(&Section::whole(&shape).unwrap())?;
            comm.barrier()?;
            if comm.rank() == 0 {
                let stores = stores.lock().unwrap();
                let bytes: u64 = stores.iter().map(|store| store.counts().bytes_read).sum();
                assert_eq!(bytes, 64 * 64 * 4);
            }
            let part = array.parts()[0].1.shape()[0];
            assert_eq!(budget.limit() - budget.free(), part * 64 * 4);
            array.close(comm)?;

            // Room for two blocks only.
            let budget = MemoryBudget::of(2 * 8 * 8 * 4);
            let options = DiskOptions::new(Disks::Memory)
                .block(&[8, 8])
                .cache(&budget);
            let options = options.write_back(true);
            let spread = Distribution::parse("block,*", &shape, ranks as u64, None).unwrap();
            let array = DiskResident::<f32>::create(comm, calls, "small", spread, &options)?;
            for _ in 0..50 {
                array.read(&random.section(&shape))?;
            }
            let counts = array.cache_counts();
            assert!(counts.misses > 64 / ranks as u64, "{counts:?}");
            let least = MemoryBudget::of(100);
            let options = DiskOptions::new(Disks::Memory).block(&[8, 8]).cache(&least);
            let spread = Distribution::parse("block,*", &shape, ranks as u64, None).unwrap();
            let refused = DiskResident::<f32>::create(comm, calls, "least", spread, &options);
            assert!(refused.unwrap_err().to_string().contains("256 bytes"));
            array.close(comm)
        });
    }
}

/// What is hinted at comes into the cache of the holder before anybody asks for it.
#[test]
fn hints_bring_blocks_in() {
    let shape = [32u64, 32];
    for ranks in [1, 2, 4] {
        run(ranks, |comm, calls| {
            let options = DiskOptions::new(Disks::Memory)
                .block(&[8, 8])
                .cache(&MemoryBudget::of(1 << 20));
            let spread = Distribution::parse("block,*", &shape, ranks as u64, None).unwrap();
            let array = DiskResident::<f32>::create(comm, calls, "hinted", spread, &options)?;
            let whole = Section::whole(&shape).unwrap();
            if comm.rank() == 0 {
                array.prefetch(&whole)?;
            }
            let blocks = 16 / ranks as u64;
            while array.cache_counts().misses < blocks {
                std::thread::yield_now();
            }
            comm.barrier()?;
            array.read(&whole)?;
            comm.barrier()?;
            assert_eq!(array.cache_counts().misses, blocks);
            array.close(comm)
        });
    }
}

/// A rank that holds several parts, and several arrays, may have one budget for all
/// of their caches.
#[test]
fn caches_share_a_budget() {
    let shape = [32u64, 32];
    for write_back in [false, true] {
        run(2, |comm, calls| {
            // Three blocks of 8x8.
            let budget = MemoryBudget::of(3 * 8 * 8 * 4);
            let options = DiskOptions::new(Disks::Memory)
                .block(&[8, 8])
                .cache(&budget)
                .write_back(write_back)
                .holders(&[0, 0, 1, 1]);
            let create = |name| {
                let spread = Distribution::parse("block,*", &shape, 4, None).unwrap();
                DiskResident::<f32>::create(comm, calls, name, spread, &options)
            };
            let (first, second) = (create("first")?, create("second")?);
            let mine = first.section(if comm.rank() == 0 { ":16, :" } else { "16:, :" })?;
            let values: Vec<f32> = (0..512).map(|n| (n + 1000 * comm.rank()) as f32).collect();
            for array in [&first, &second] {
                array.put(&mine, &values)?;
                comm.barrier()?;
                let all = array.read(&Section::whole(&shape).unwrap())?;
                assert!((0..512).all(|n| all[n] == n as f32 && all[512 + n] == (1000 + n) as f32));
                comm.barrier()?;
            }
            first.close(comm)?;
            second.close(comm)
        });
    }
}

/// In an epoch a rank reads each block of others once, and nobody writes.
#[test]
fn readers_keep_blocks_in_epochs() {
    let shape = [40u64, 30];
    for ranks in [1, 3, 5] {
        run(ranks, |comm, calls| {
            let options = DiskOptions::new(Disks::Memory).block(&[10, 10]);
            let spread = Distribution::parse("cyclic(10),*", &shape, ranks as u64, None).unwrap();
            let array = DiskResident::<u16>::create(comm, calls, "epoch", spread, &options)?;
            let whole = Section::whole(&shape).unwrap();
            let all: Vec<u16> = (0..1200).collect();
            if comm.rank() == 0 {
                array.put(&whole, &all)?;
            }
            comm.barrier()?;
            let budget = MemoryBudget::of(1200 * 2);
            array.begin_epoch(comm, &budget)?;
            let mut random = Random(comm.rank() as u64);
            for _ in 0..40 {
                let section = random.section(&shape);
                let expected: Vec<u16> = places(&section, &shape)
                    .iter()
                    .map(|place| *place as u16)
                    .collect();
                assert_eq!(array.read(&section)?, expected);
            }
            array.read(&whole)?;
            let refused = array.put(&whole, &all).unwrap_err().to_string();
            assert!(refused.contains("read-only epoch"), "{refused}");
            assert!(array.accumulate(&whole, &all, 1).is_err());
            let counts = array.end_epoch(comm)?;
            let others = 12 - array.parts()[0].1.shape()[0] / 10 * 3;
            assert_eq!(counts.misses, if ranks == 1 { 0 } else { others });
            array.put(&whole, &all)?;
            array.close(comm)
        });
    }
}

/// A block that nobody has written is an error, if that is wanted, also for a
/// program that opens the array later.
#[test]
fn blocks_never_written_are_told() {
    let shape = [20u64, 20];
    for ranks in [1, 2, 4] {
        let directory = tempfile::tempdir().unwrap();
        let disks = directory.path().join("{rank}");
        run(ranks, |comm, calls| {
            let disks = Disks::pattern(disks.to_str().unwrap());
            let options = DiskOptions::new(disks)
                .block(&[5, 5])
                .unwritten(Unwritten::Error);
            let spread = Distribution::parse("block,*", &shape, ranks as u64, None).unwrap();
            let array = DiskResident::<f64>::create(comm, calls, "w", spread, &options)?;
            let last = array.section("19, 7")?;
            if comm.rank() == 0 {
                array.put(&last, &[1.5])?;
                array.accumulate(&array.section("0, 0")?, &[2.0], 1.0)?;
            }
            comm.barrier()?;
            let check = |array: &DiskResident<f64>| {
                assert_eq!(array.read(&array.section("18:20, 7")?)?, [0.0, 1.5]);
                assert_eq!(array.read(&array.section("0, 0:2")?)?, [2.0, 0.0]);
                let error = array
                    .read(&array.section("19, 7:12")?)
                    .unwrap_err()
                    .to_string();
                assert!(error.contains("never been written"), "{error}");
                Ok::<(), Error>(())
            };
            check(&array)?;
            array.sync_all(comm)?;
            array.close(comm)?;
            let array = DiskResident::open(comm, calls, "w", &options)?;
            check(&array)?;
            array.close(comm)
        });
    }
}

/// Two groups, each with an array on disks of its own; and parts on some ranks only.
#[test]
fn groups_have_their_disks() {
    let directory = tempfile::tempdir().unwrap();
    run(5, |comm, calls| {
        let disks = directory.path().join("of all/{rank}");
        let options = DiskOptions::new(Disks::pattern(disks.to_str().unwrap())).holders(&[1, 4]);
        let spread = Distribution::parse("cyclic(3)", &[100], 2, None).unwrap();
        let array = DiskResident::<u8>::create(comm, calls, "some", spread, &options)?;
        assert_eq!(array.owner(&[4]), Some(4));
        assert_eq!(
            array.parts().len(),
            usize::from([1, 4].contains(&comm.rank()))
        );
        let mine = array.section(&format!("{}:100:5", comm.rank()))?;
        array.put(&mine, &[comm.rank() as u8; 20])?;
        comm.barrier()?;
        let all: Vec<u8> = (0..100).map(|at| at % 5).collect();
        assert_eq!(array.read(&array.section(":")?)?, all);
        assert_eq!(
            directory.path().join("of all").read_dir().unwrap().count(),
            2
        );
        array.close(comm)?;

        let colour = comm.rank() as u64 % 2;
        let group = comm.split(Some(colour), 0)?.unwrap();
        let own_calls = outcore::Procedures::start(&group)?;
        let disks = Disks::list([directory.path().join(format!("group {colour}"))]);
        let ranks = group.size() as u64;
        let spread = Distribution::parse("block", &[30], ranks, None).unwrap();
        let options = DiskOptions::new(disks);
        let array = DiskResident::<u64>::create(&group, &own_calls, "own", spread, &options)?;
        if group.rank() == 0 {
            array.put(&array.section(":")?, &[colour; 30])?;
        }
        group.barrier()?;
        assert_eq!(array.read(&array.section(":")?)?, [colour; 30]);
        array.remove(&group)?;
        own_calls.close()
    });
}

/// Sparse blocks: what nobody holds is zero, and cannot be written.
#[test]
fn blocks_may_be_missing() {
    run(3, |comm, calls| {
        let lengths = [vec![4, 4, 4], vec![5, 5, 5]];
        let blocks = Blocks::new(&lengths, 3, |at| (at[1] <= at[0]).then_some(at[0] as usize))?;
        let options = DiskOptions::new(Disks::Memory);
        let array = DiskResident::<f64>::create(comm, calls, "sparse", blocks, &options)?;
        if comm.rank() == 1 {
            array.put(&array.section("8:12, 0:15")?, &[1.0; 60])?;
            assert!(
                array
                    .put(&array.section("0:12, 10:15")?, &[1.0; 60])
                    .is_err()
            );
            let strips = array.locate(&array.section("3:9, 7")?)?;
            assert_eq!(strips.len(), 2);
        }
        comm.barrier()?;
        let column = array.read(&array.section("0:12, 12")?)?;
        assert_eq!(column[..8], [0.0; 8]);
        assert_eq!(column[8..], [1.0; 4]);
        array.close(comm)
    });
}
