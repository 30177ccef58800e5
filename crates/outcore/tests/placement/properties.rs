//! Loading, exchanging overlap and storing, over shapes, distributions,
//! overlaps, ranks and types.

use outcore::{Array, ArrayDescriptor, Error, LocalArray, MemoryBudget, Partitions};
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

/// A section of `shape` in the lower or upper corner of an array of `extents`.
fn corner(extents: &[u64], shape: &[u64], upper: bool) -> outcore::Section {
    let axes = extents.iter().zip(shape).map(|(extent, length)| {
        let start = if upper { extent - length } else { 0 };
        outcore::AxisSection::span(start, start + length)
    });
    outcore::Section::new(axes.collect()).unwrap()
}

proptest! {
    #![proptest_config(config())]

    /// A box of one rank's part into the corners of others' parts.
    #[test]
    fn a_multicast_reaches_just_its_receivers(
        case in cases(),
        root in 0usize..16,
        receivers in any::<u16>(),
        cut in proptest::collection::vec(0u64..9, 3),
    ) {
        prop_assume!(is_possible(&case));
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("local.oc");
        let name = path.to_str().unwrap();
        let (descriptor, root) = (case.descriptor(), root % case.ranks);
        let to: Vec<usize> = (0..case.ranks)
            .filter(|rank| receivers >> rank & 1 == 1 && *rank != root)
            .collect();
        outcore::run(case.ranks, |comm| {
            let local = LocalArray::create_all(comm, name, &descriptor, &case.placement())?;
            let part = local.part();
            let whole = part.whole();
            let mine = vec![comm.rank() as u8 % 2; contents(part, &whole).len()];
            part.write_bytes(&whole, &mine)?;
            // As much as every part has.
            let least = comm.all_reduce(part.shape(), outcore::Op::Min)?;
            let shape: Vec<u64> = least.iter().zip(&cut).map(|(n, cut)| *n.min(cut)).collect();
            let from = corner(part.shape(), &shape, false);
            let into = corner(part.shape(), &shape, comm.rank() % 3 == 1);
            local.multicast(comm, root, &from, &to, &into)?;
            let mut sent = vec![root as u8 % 2; contents(part, &into).len()];
            if to.contains(&comm.rank()) {
                assert_eq!(contents(part, &into), sent);
                sent.fill(comm.rank() as u8 % 2);
                part.write_bytes(&into, &sent)?;
            }
            assert_eq!(contents(part, &whole), mine);
            Ok::<(), Error>(())
        })
        .unwrap();
    }

    /// Partitions hold every element once, with its halo, within the memory.
    #[test]
    fn partitions_are_shares_of_everything(
        case in cases(),
        divided in 0usize..3,
        slices in 1u64..9,
    ) {
        let descriptor = ArrayDescriptor::new(&case.shape, outcore::ElementType::I64)
            .layout(case.layout.parse().unwrap());
        let (source, target) = (numbered(&descriptor), in_memory(&descriptor));
        let divided = divided % case.shape.len();
        let elements: u64 = case.shape.iter().map(|extent| (*extent).max(1)).product();
        let memory = (elements * 8 * slices / 4 + 64) * case.ranks as u64;
        let budget = MemoryBudget::of(memory);
        let partitions = Partitions::of(&source).halo(&case.overlap).divided_along(divided);
        let outcome = outcore::run(case.ranks, |comm| {
            for partition in partitions.start(comm, &budget)? {
                let mut share = partition.load::<i64>(comm)?;
                let bytes = share.section().count() * 8;
                assert!(bytes <= memory / case.ranks as u64);
                assert_eq!(share.values(), source.read::<i64>(share.section())?);
                let inside = share.section().select(&share.core_within());
                assert!(inside.is_empty() || inside == *share.core());
                share.values_mut().iter_mut().for_each(|value| *value += 1);
                partition.store(comm, &share, &target)?;
            }
            Ok::<(), Error>(())
        });
        match outcome {
            Err(error) => {
                prop_assert!(error.to_string().contains("the smallest partition"), "{}", error);
            }
            Ok(_) => {
                let whole = source.whole();
                let found: Vec<i64> = target.read(&whole).unwrap();
                let expected: Vec<i64> = source.read::<i64>(&whole).unwrap();
                prop_assert!(found.iter().zip(expected).all(|(found, from)| *found == from + 1));
            }
        }
    }

    /// The slab loop: each owned element is computed once, from a slab that
    /// fits the memory.
    #[test]
    fn slabs_are_what_a_rank_owns(case in cases(), slices in 1u64..9) {
        prop_assume!(is_possible(&case));
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("local.oc");
        let name = path.to_str().unwrap();
        let descriptor = ArrayDescriptor::new(&case.shape, outcore::ElementType::I64)
            .layout(case.layout.parse().unwrap())
            .placed(case.placement());
        Array::create(name, &descriptor).unwrap();
        for rank in 0..case.ranks {
            let local = LocalArray::open_part_writable(name, rank).unwrap();
            let budget = MemoryBudget::of(local.part().whole().count() * 2 * slices);
            // A sweep has the same slabs, or thinner ones, with more buffers.
            let whole = local.part().read::<i64>(&local.part().whole()).unwrap();
            prop_assert!(whole.iter().all(|value| *value == 0));
            let (ample, mut swept) = (MemoryBudget::of(1 << 20), 0);
            for tile in local.sweep::<i64>(&ample) {
                let mut tile = tile.unwrap();
                prop_assert!(tile.values().iter().all(|value| *value == 0));
                swept += tile.core().count();
                tile.values_mut().fill(1);
                let (core, ones) = (tile.core().clone(), tile.core().count());
                drop(tile);
                // In place: the halos of later slabs hold old values.
                local.part().write(&core, &vec![1i64; ones as usize]).unwrap();
            }
            prop_assert_eq!(swept, local.owned().count());
            local.part().write(&local.part().whole(), &whole).unwrap();
            let Ok(slabs) = local.slabs(1, &budget) else { continue };
            for slab in slabs {
                prop_assert!(slab.with_overlap().count() * 8 <= budget.limit());
                local.part().read::<i64>(&slab.with_overlap()).unwrap();
                let mut core = local.part().read::<i64>(&slab.core()).unwrap();
                core.iter_mut().for_each(|value| *value += 1);
                local.part().write(&slab.core(), &core).unwrap();
            }
            let owned = local.part().read::<i64>(&local.owned()).unwrap();
            prop_assert!(owned.iter().all(|value| *value == 1));
            let all = local.part().read::<i64>(&local.part().whole()).unwrap();
            prop_assert_eq!(all.iter().sum::<i64>() as usize, owned.len());
        }
    }
}
