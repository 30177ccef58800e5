//! Random sections of random arrays by any number of ranks.

use outcore::Error;
use proptest::prelude::*;

use crate::oracle::{Case, byte, cases};

/// Each case starts ranks: a fifth of the usual number.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases / 5,
        ..usual
    }
}

/// What rank `rank` writes.
fn data(case: &Case, rank: usize, size: u64) -> Vec<u8> {
    let bytes = case.sections[rank].count() * size;
    (0..bytes).map(|at| byte(at, rank as u64 + 1)).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn reads_give_every_rank_its_section(case in cases()) {
        let (memory, array) = case.array();
        let file = memory.to_vec();
        outcore::run(case.ranks(), |comm| {
            let section = &case.sections[comm.rank()];
            let expected = case.expected(&file, array.layout(), section);
            let mut found = vec![0xaa; expected.len()];
            let calls = array.collective().domains(case.domains).window(case.window);
            calls.read_bytes(comm, section, &mut found)?;
            assert_eq!(found, expected);
            Ok::<(), Error>(())
        })
        .unwrap();
        prop_assert_eq!(memory.to_vec(), file);
    }

    #[test]
    fn writes_leave_the_data_of_the_highest_rank(case in cases()) {
        let (memory, array) = case.array();
        let size = array.layout().element_size();
        let mut file = memory.to_vec();
        for rank in 0..case.ranks() {
            let data = data(&case, rank, size);
            case.apply(&mut file, array.layout(), &case.sections[rank], &data);
        }
        outcore::run(case.ranks(), |comm| {
            let section = &case.sections[comm.rank()];
            let calls = array.collective().domains(case.domains).window(case.window);
            calls.write_bytes(comm, section, &data(&case, comm.rank(), size))
        })
        .unwrap();
        prop_assert_eq!(memory.to_vec(), file);
    }
}
