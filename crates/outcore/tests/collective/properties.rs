//! Random sections of random arrays by any number of ranks.

use std::sync::Arc;

use outcore::storage::MemoryStore;
use outcore::{Array, Direction, Error, MemoryBudget};
use proptest::prelude::*;

use crate::oracle::{Case, byte, cases_of};

/// The array of a case, which all ranks have in one memory.
pub(crate) fn in_memory(case: &Case) -> (Arc<MemoryStore>, Array) {
    let memory = Arc::new(MemoryStore::from(case.contents()));
    let array = case.array_in(memory.clone());
    (memory, array)
}

/// Each case starts ranks: a fifth of the usual number.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases / 5,
        ..usual
    }
}

/// The memory of a case: what it says if that is enough, else the least that is.
fn budget(case: &Case, direction: Direction) -> MemoryBudget {
    let Some(memory) = case.memory else {
        return MemoryBudget::of(0);
    };
    let (_, array) = in_memory(case);
    let budget = MemoryBudget::of(memory);
    let outcome = outcore::run(case.ranks(), |comm| {
        let section = &case.sections[comm.rank()];
        case.calls(&array, &budget)
            .plan(comm, section, direction)
            .map(drop)
    });
    let Err(error) = outcome else {
        return budget;
    };
    let text = error.to_string();
    let Some(least) = least(&text) else {
        panic!("{text}");
    };
    assert!(least > memory);
    MemoryBudget::of(least)
}

/// The bytes named by "... needs at least 7.5 KiB of memory ...".
fn least(text: &str) -> Option<u64> {
    let (_, amount) = text.split_once("a collective call needs at least ")?;
    let mut words = amount.split(' ');
    let number: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()? {
        "bytes" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number * unit) as u64)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn reads_give_every_rank_its_section(case in cases_of(1..=16)) {
        let (memory, array) = in_memory(&case);
        let budget = budget(&case, Direction::Read);
        let file = memory.to_vec();
        outcore::run(case.ranks(), |comm| {
            let section = &case.sections[comm.rank()];
            let expected = case.expected(&file, array.layout(), section);
            let mut found = vec![0xaa; expected.len()];
            let moved = case.calls(&array, &budget).read_bytes(comm, section, &mut found)?;
            assert_eq!(found, expected);
            assert_eq!(moved.useful, expected.len() as u64);
            Ok::<(), Error>(())
        })
        .unwrap();
        prop_assert_eq!(memory.to_vec(), file);
    }

    #[test]
    fn writes_leave_the_data_of_the_highest_rank(case in cases_of(1..=16)) {
        let (memory, array) = in_memory(&case);
        let budget = budget(&case, Direction::Write);
        let mut file = memory.to_vec();
        for rank in 0..case.ranks() {
            let data = case.data(rank, 0);
            case.apply(&mut file, array.layout(), &case.sections[rank], &data);
        }
        outcore::run(case.ranks(), |comm| {
            let section = &case.sections[comm.rank()];
            let data = case.data(comm.rank(), 0);
            case.calls(&array, &budget).write_bytes(comm, section, &data)
        })
        .unwrap();
        prop_assert_eq!(memory.to_vec(), file);
    }

    /// Plans that are kept: what is written changes from time to time.
    #[test]
    fn plans_can_be_executed_again(case in cases_of(1..=16)) {
        let (memory, array) = in_memory(&case);
        let (reading, writing) = (budget(&case, Direction::Read), budget(&case, Direction::Write));
        outcore::run(case.ranks(), |comm| {
            let section = &case.sections[comm.rank()];
            let read = case.calls(&array, &reading).plan(comm, section, Direction::Read)?;
            let write = case.calls(&array, &writing).plan(comm, section, Direction::Write)?;
            for round in 0..3 {
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
                let mut found = vec![byte(round, 7); expected.len()];
                read.read_bytes(comm, &mut found)?;
                assert_eq!(found, expected);
            }
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}
