//! Every way of moving the sections of all ranks, and who chooses it.

use std::sync::Arc;

use outcore::storage::{Fault, FaultyStore, MemoryStore, Operation};
use outcore::{
    Array, ArrayDescriptor, CollectiveWay, Cost, Direction, ElementType, Error, MemoryBudget,
    Pattern, StorageProfile, Strategy,
};
use proptest::prelude::*;

use crate::oracle::cases_of;
use crate::properties::in_memory;

fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases / 4,
        ..usual
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn all_ways_do_the_same(
        case in cases_of(1..=16),
        way in proptest::sample::select(CollectiveWay::ALL.to_vec()),
    ) {
        let (memory, array) = in_memory(&case);
        let budget = MemoryBudget::of(1 << 30);
        outcore::run(case.ranks(), |comm| {
            let section = &case.sections[comm.rank()];
            let calls = match case.memory {
                Some(_) => array.collective().way(way).budget(&budget),
                None => array.collective().way(way),
            };
            let write = calls.plan(comm, section, Direction::Write)?;
            let read = calls.plan(comm, section, Direction::Read)?;
            if way != CollectiveWay::Auto {
                assert_eq!(read.way(), way);
            }
            for round in 0..2 {
                comm.barrier()?;
                let mut file = memory.to_vec();
                comm.barrier()?;
                for rank in 0..case.ranks() {
                    let data = case.data(rank, round);
                    case.apply(&mut file, array.layout(), &case.sections[rank], &data);
                }
                write.write_bytes(comm, &case.data(comm.rank(), round))?;
                assert_eq!(memory.to_vec(), file);
                let expected = case.expected(&file, array.layout(), section);
                let mut found = vec![0xaa; expected.len()];
                let moved = read.read_bytes(comm, &mut found)?;
                assert_eq!(found, expected);
                assert_eq!(moved.useful, expected.len() as u64);
            }
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

/// A file of 1000 x 1000 numbers of 4 bytes, which is in the page cache.
fn file() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("shared.oc");
    let name = name.to_str().unwrap().to_owned();
    let array = Array::create(
        &name,
        &ArrayDescriptor::new(&[1000, 1000], ElementType::I32),
    );
    let array = array.unwrap();
    array.write(&array.whole(), &vec![1i32; 1_000_000]).unwrap();
    (directory, name)
}

const PATTERNS: [&str; 5] = [
    "p::N, :",
    ":, p::N",
    "100:200, 300:400",
    "20*p:20*p+50, 7:800",
    "[1,7,p+20], ::3",
];

#[test]
fn what_is_in_the_page_cache_is_moved_by_every_rank_for_itself() {
    let (_directory, name) = file();
    for pattern in PATTERNS {
        outcore::run(5, |comm| {
            let array = Array::open_writable(&name)?;
            let pattern: Pattern = pattern.parse().unwrap();
            let section = pattern
                .section(array.shape(), comm.rank() as u64, 5)
                .unwrap();
            let plan = array.collective().plan(comm, &section, Direction::Read)?;
            assert_eq!(plan.way(), CollectiveWay::Independent(Strategy::Auto));
            let mut values = vec![0i32; section.count() as usize];
            plan.read_into(comm, &mut values)?;
            assert!(values.iter().all(|value| *value == 1));
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

/// What each rank believes of its storage is its own affair.
#[test]
fn all_ranks_decide_alike() {
    let (_directory, name) = file();
    let mut chosen = Vec::new();
    for (at, pattern) in PATTERNS.iter().enumerate() {
        for seed in 0..12u64 {
            let direction = [Direction::Read, Direction::Write][seed as usize % 2];
            let ways = outcore::run(6, |comm| {
                let mut random = seed * 31 + 7 * comm.rank() as u64 + at as u64;
                let mut factor = || {
                    random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                    10f64.powi((random >> 33) as i32 % 7 - 3)
                };
                let usual = StorageProfile::default();
                let mut other = |cost: Cost| Cost {
                    each: cost.each * factor(),
                    byte: cost.byte * factor(),
                };
                let profile = StorageProfile {
                    cached_read: other(usual.cached_read),
                    cold_read: other(usual.cold_read),
                    write: other(usual.write),
                    mapped: other(usual.mapped),
                    ..usual
                };
                // Some ranks cannot map it, nor ask what is in the page cache.
                let array = match (comm.rank() as u64 + seed).is_multiple_of(4) {
                    true => {
                        let descriptor = ArrayDescriptor::new(&[1000, 1000], ElementType::I32);
                        let store = Arc::new(MemoryStore::from(vec![1; 4_000_000]));
                        let start = Array::open(&name)?.data_offset();
                        assert_eq!(start, 0);
                        Array::in_store("memory", &descriptor, store)?
                    }
                    false => Array::open_writable(&name)?,
                };
                let array = array.with_profile(profile);
                let pattern: Pattern = pattern.parse().unwrap();
                let section = pattern
                    .section(array.shape(), comm.rank() as u64, 6)
                    .unwrap();
                let plan = array.collective().plan(comm, &section, direction)?;
                Ok::<_, Error>(plan.way())
            })
            .unwrap();
            assert!(
                ways.iter().all(|way| *way == ways[0]),
                "{pattern}: {ways:?}"
            );
            chosen.push(ways[0]);
        }
    }
    for way in [
        CollectiveWay::TwoPhase,
        CollectiveWay::Independent(Strategy::Auto),
    ] {
        assert!(chosen.contains(&way), "{way} is never chosen");
    }
}

/// An input or output error, and a wrong buffer, of one rank that works for
/// itself.
#[test]
fn an_error_of_one_rank_for_itself_reaches_all() {
    for strategy in [Strategy::Auto, Strategy::Direct, Strategy::Sieving] {
        for (operation, failing) in [(Operation::Read, 0), (Operation::Write, 3)] {
            let memory = Arc::new(MemoryStore::from(vec![7; 480]));
            let told = outcore::run(5, |comm| {
                let faulty = Arc::new(FaultyStore::new(memory.clone()));
                let descriptor = ArrayDescriptor::new(&[12, 10], ElementType::I32);
                let array = Array::in_store("shared", &descriptor, faulty.clone())?;
                let mine = array.section(&format!("::2, {}::5", comm.rank()))?;
                let (direction, mut values) = match operation {
                    Operation::Read => (Direction::Read, vec![0i32; 12]),
                    _ => (Direction::Write, vec![9i32; 12]),
                };
                let calls = array.collective().way(CollectiveWay::Independent(strategy));
                let plan = calls.plan(comm, &mine, direction)?;
                let execute = |values: &mut [i32]| match direction {
                    Direction::Read => plan.read_into(comm, values),
                    Direction::Write => plan.write(comm, values),
                };
                if comm.rank() == failing {
                    faulty.fail_from(operation, 0, Fault::Device);
                }
                let first = execute(&mut values).unwrap_err().to_string();
                faulty.clear();
                let len = if comm.rank() == failing { 11 } else { 12 };
                let second = execute(&mut values[..len]).unwrap_err().to_string();
                execute(&mut values)?;
                Ok::<_, Error>((first, second))
            })
            .unwrap();
            let start = format!("rank {failing}: ");
            for (first, second) in &told {
                assert!(
                    first.starts_with(&start) && first.contains("os error 5"),
                    "{first}"
                );
                assert!(
                    second.starts_with(&start) && second.contains("holds 11"),
                    "{second}"
                );
            }
            let values: Vec<i32> = bytemuck::pod_collect_to_vec(&memory.to_vec());
            let odd = values.chunks(10).skip(1).step_by(2).flatten();
            assert!(
                odd.into_iter()
                    .all(|value| *value == i32::from_ne_bytes([7; 4]))
            );
        }
    }
}
