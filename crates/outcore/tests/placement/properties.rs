//! Loading, exchanging overlap and storing, over shapes, distributions,
//! overlaps, ranks and types.

use outcore::{Array, Error, LocalArray, MemoryBudget};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::oracle::{Case, cases, contents, in_memory, is_possible, numbered};

/// Each case starts ranks and makes files: a fifth of the usual number.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases / 5,
        ..usual
    }
}

fn check(case: &Case, other_layout: &str, memory: u64) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("local.oc");
    let name = path.to_str().unwrap();
    let descriptor = case.descriptor();
    let other = descriptor.clone().layout(other_layout.parse().unwrap());
    let source = numbered(&other);
    let target = in_memory(&other);
    let budget = MemoryBudget::of(memory);
    outcore::run(case.ranks, |comm| {
        let local = LocalArray::create_all(comm, name, &descriptor, &case.placement())?;
        local.load(comm, &source, &budget)?;
        let exchanged = local.exchange_overlap(comm, case.boundary);
        if case.too_deep() {
            let message = exchanged.expect_err("too deep").to_string();
            assert!(
                message.contains("deeper than the neighbour's block"),
                "{message}"
            );
        } else {
            exchanged?;
            let part = local.part();
            assert_eq!(contents(part, &part.whole()), case.part(comm.rank()));
        }
        // Every owned element is where to_global and owned say.
        let (owned, global) = (local.owned(), local.owned_globally());
        assert_eq!(owned.shape(), global.shape());
        let blocks: u64 = local.blocks().map(|block| block.part.count()).sum();
        assert_eq!(blocks, owned.count());
        if !owned.is_empty() {
            let index = |section: &outcore::Section| -> Vec<u64> {
                section
                    .axes()
                    .iter()
                    .map(|axis| axis.last().unwrap())
                    .collect()
            };
            assert_eq!(local.to_global(&index(&owned)), Some(index(&global)));
            assert_eq!(local.to_part(&index(&global)), Some(index(&owned)));
        }
        // Back, and through the view of the whole.
        local.store(comm, &target, &budget)?;
        if comm.rank() == 0 {
            let whole = Array::open_writable(name)?;
            let same = numbered(&descriptor);
            assert_eq!(
                contents(&whole, &whole.whole()),
                contents(&same, &same.whole())
            );
        }
        Ok::<(), Error>(())
    })
    .unwrap();
    assert_eq!(
        contents(&target, &target.whole()),
        contents(&source, &source.whole())
    );
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn parts_hold_what_the_oracle_says(
        case in cases(),
        other in proptest::sample::select(vec!["row", "column"]),
        memory in proptest::sample::select(vec![2048u64, 5000, 1 << 20]),
    ) {
        prop_assume!(is_possible(&case));
        check(&case, other, memory);
    }

    /// Sections of the view of the whole, read and written.
    #[test]
    fn sections_of_the_whole_are_sections_of_one_array(
        case in cases(),
        cut in proptest::collection::vec((0u64..13, 0u64..13, 1u64..4), 3),
    ) {
        prop_assume!(is_possible(&case));
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("local.oc");
        let descriptor = case.descriptor();
        let placed = descriptor.clone().placed(case.placement());
        let local = Array::create(path.to_str().unwrap(), &placed).unwrap();
        let plain = numbered(&descriptor);
        let axes = case.shape.iter().zip(&cut).map(|(extent, (lower, upper, stride))| {
            let (lower, upper) = (lower.min(extent), upper.min(extent));
            outcore::AxisSection::range(*lower, *upper, *stride).unwrap()
        });
        let section = outcore::Section::new(axes.collect()).unwrap();
        for strategy in ["direct", "sieving", "auto"] {
            let tuning = outcore::Tuning {
                strategy: strategy.parse().unwrap(),
                ..Default::default()
            };
            let (local, twin) = (local.tuned(tuning), in_memory(&descriptor));
            let (whole, zeros) = (local.whole(), in_memory(&descriptor));
            local.write_bytes(&whole, &contents(&zeros, &whole)).unwrap();
            local.write_bytes(&section, &contents(&plain, &section)).unwrap();
            twin.write_bytes(&section, &contents(&plain, &section)).unwrap();
            prop_assert_eq!(contents(&local, &whole), contents(&twin, &whole));
            prop_assert_eq!(contents(&local, &section), contents(&twin, &section));
        }
    }
}
