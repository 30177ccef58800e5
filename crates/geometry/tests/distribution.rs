//! Distributions against the thesis' formulas, and against dealing out blocks
//! one by one.

use std::collections::BTreeSet;

use outcore_geometry::{AxisDistribution, AxisSection, DistributedAxis, Distribution, Section};
use proptest::prelude::*;

/// Every index of an array of `shape`, row-major.
fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    let mut rows = vec![vec![]];
    for extent in shape {
        let extended = |row: &Vec<u64>| {
            let row = row.clone();
            (0..*extent).map(move |i| [row.as_slice(), &[i]].concat())
        };
        rows = rows.iter().flat_map(extended).collect();
    }
    rows
}

/// The elements of a section, row-major.
fn elements(section: &Section) -> Vec<Vec<u64>> {
    let at = |position: Vec<u64>| -> Vec<u64> {
        section
            .axes()
            .iter()
            .zip(position)
            .map(|(axis, p)| axis.index(p))
            .collect()
    };
    indices(&section.shape()).into_iter().map(at).collect()
}

/// Checks one axis against `owner`, `local` and `global`, which count from 1
/// (ranks from 0), as Table 3.1 of Thakur 1995 does.
fn check_axis(
    axis: &DistributedAxis,
    owner: impl Fn(u64) -> u64,
    local: impl Fn(u64) -> u64,
    global: impl Fn(u64, u64) -> u64,
) {
    let mut owned = vec![Vec::new(); axis.ranks() as usize];
    for g in 1..=axis.extent() {
        let (p, l) = (owner(g), local(g));
        assert_eq!(
            (axis.owner(g - 1), axis.to_local(g - 1) + 1),
            (p, l),
            "{axis:?} {g}"
        );
        assert_eq!(
            (axis.to_global(p, l - 1) + 1, global(p, l)),
            (g, g),
            "{axis:?} {g}"
        );
        owned[p as usize].push(g - 1);
    }
    for (rank, owned) in owned.iter().enumerate() {
        let rank = rank as u64;
        assert_eq!(axis.local_count(rank), owned.len() as u64);
        assert_eq!(rank < axis.used_ranks(), !owned.is_empty());
        let sections = axis.sections(rank);
        assert!(sections.is_sorted_by_key(AxisSection::first));
        let mut all: Vec<u64> = sections
            .iter()
            .flat_map(|s| (0..s.count()).map(|at| s.index(at)))
            .collect();
        all.sort_unstable();
        assert_eq!(all, *owned, "{axis:?} rank {rank}");
        let blocks = axis.local_count(rank).div_ceil(axis.block());
        assert!(sections.len() as u64 <= blocks.min(axis.block()));
    }
}

#[test]
fn every_kind_follows_table_3_1() {
    /// CD: the quotient rounded up.
    fn cd(a: u64, b: u64) -> u64 {
        a.div_ceil(b)
    }
    /// m + CR(a, m), where CR is the remainder that belongs to CD.
    fn plus_cr(a: u64, m: u64) -> u64 {
        m + a - m * cd(a, m)
    }
    for n in 0..=60 {
        for p in 1..=7 {
            let axis = |kind| DistributedAxis::new(kind, n, p);
            let cyclic = axis(AxisDistribution::Cyclic).unwrap();
            check_axis(
                &cyclic,
                |g| (g - 1) % p,
                |g| (g - 1) / p + 1,
                |r, l| (l - 1) * p + r + 1,
            );
            let m = cd(n, p);
            let block = axis(AxisDistribution::Block).unwrap();
            check_axis(
                &block,
                |g| cd(g, m) - 1,
                |g| plus_cr(g, m),
                |r, l| l + m * r,
            );
            for m in 1..=9 {
                let block = axis(AxisDistribution::BlockSize(m));
                assert_eq!(block.is_ok(), m * p >= n);
                if let Ok(block) = block {
                    check_axis(
                        &block,
                        |g| cd(g, m) - 1,
                        |g| plus_cr(g, m),
                        |r, l| l + m * r,
                    );
                }
                let cyclic = axis(AxisDistribution::CyclicSize(m)).unwrap();
                check_axis(
                    &cyclic,
                    |g| (cd(g, m) - 1) % p,
                    |g| (g - 1) % m + 1 + (g - 1) / (m * p) * m,
                    |r, l| (l - 1) % m + 1 + (p * ((l - 1) / m) + r) * m,
                );
            }
        }
    }
}

#[test]
fn cyclic_in_blocks_of_the_block_size_is_block() {
    for (n, p) in [(60, 7), (12, 4), (5, 4), (1, 3)] {
        let block = DistributedAxis::new(AxisDistribution::Block, n, p).unwrap();
        let size = n.div_ceil(p);
        let cyclic = DistributedAxis::new(AxisDistribution::CyclicSize(size), n, p).unwrap();
        assert!((0..p).all(|rank| block.sections(rank) == cyclic.sections(rank)));
    }
}

#[test]
fn sections_are_few_and_as_expected() {
    let text = |kinds: &str, shape: &[u64], grid: &[u64], rank| -> Vec<String> {
        let ranks = grid.iter().product();
        let distribution = Distribution::parse(kinds, shape, ranks, Some(grid)).unwrap();
        distribution
            .local_sections(rank)
            .iter()
            .map(Section::to_string)
            .collect()
    };
    assert_eq!(text("block,*", &[10, 6], &[4, 1], 3), ["9:10, 0:6"]);
    assert_eq!(
        text("cyclic,cyclic", &[10, 6], &[3, 2], 3),
        ["1:8:3, 1:6:2"]
    );
    assert_eq!(text("cyclic(5)", &[23], &[2], 0), ["0:5", "10:15", "20:23"]);
    assert_eq!(text("cyclic(2)", &[22], &[2], 1), ["2:19:4", "3:20:4"]);
    let both = text("cyclic(5),cyclic(2)", &[12, 22], &[2, 2], 1);
    assert_eq!(
        both,
        [
            "0:5, 2:19:4",
            "0:5, 3:20:4",
            "10:12, 2:19:4",
            "10:12, 3:20:4"
        ]
    );
    assert_eq!(text("cyclic(3)", &[100], &[1], 0), ["0:100"]);
}

/// A shape with up to three axes, a kind and a grid extent for each.
fn distribution() -> impl Strategy<Value = Distribution> {
    let axis = (0u64..16, 0u64..5, 1u64..4, 1u64..5).prop_map(|(extent, kind, ranks, m)| {
        let (kind, ranks) = match kind {
            0 => (AxisDistribution::Block, ranks),
            1 => (
                AxisDistribution::BlockSize(m + extent.div_ceil(ranks)),
                ranks,
            ),
            2 => (AxisDistribution::Cyclic, ranks),
            3 => (AxisDistribution::CyclicSize(m), ranks),
            _ => (AxisDistribution::Collapsed, 1),
        };
        (extent, kind, ranks)
    });
    proptest::collection::vec(axis, 0..=3).prop_map(|axes| {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let kinds: Vec<_> = axes.iter().map(|axis| axis.1).collect();
        let grid: Vec<u64> = axes.iter().map(|axis| axis.2).collect();
        Distribution::new(&shape, &kinds, &grid).unwrap()
    })
}

/// A section of an array of about the extents above, some of it outside.
fn section(axes: usize) -> impl Strategy<Value = Section> {
    let axis = prop_oneof![
        (0u64..8, 0u64..20, 1u64..5)
            .prop_map(|(lower, upper, stride)| AxisSection::range(lower, upper, stride).unwrap()),
        proptest::collection::btree_set(0u64..18, 0..6)
            .prop_map(|set| AxisSection::list(set.into_iter().collect::<Vec<_>>()).unwrap()),
    ];
    proptest::collection::vec(axis, axes).prop_map(|axes| Section::new(axes).unwrap())
}

proptest! {
    #[test]
    fn every_element_has_one_owner_and_one_place(distribution in distribution()) {
        let grid = distribution.grid();
        let coordinates: Vec<_> = indices(grid);
        prop_assert_eq!(coordinates.len() as u64, distribution.ranks());
        let mut seen = BTreeSet::new();
        for (rank, at) in coordinates.into_iter().enumerate() {
            let rank = rank as u64;
            prop_assert_eq!(distribution.coordinates(rank), Some(at));
            // The local array is the owned elements, in global order.
            let owned: Vec<_> = indices(distribution.shape())
                .into_iter().filter(|i| distribution.owner(i) == Some(rank)).collect();
            let local = indices(&distribution.local_shape(rank));
            prop_assert_eq!(local.len() as u64, distribution.local_count(rank));
            prop_assert_eq!(local.len(), owned.len());
            for (local, global) in local.iter().zip(&owned) {
                prop_assert_eq!(&distribution.to_local(global).unwrap(), local);
                prop_assert_eq!(&distribution.to_global(rank, local).unwrap(), global);
            }
            // The sections hold them, each once, in order of first elements.
            let sections = distribution.local_sections(rank);
            let all: Vec<_> = sections.iter().flat_map(elements).collect();
            prop_assert_eq!(all.len(), owned.len());
            prop_assert_eq!(all.iter().collect::<BTreeSet<_>>(), owned.iter().collect());
            prop_assert!(sections.iter().all(|section| !section.is_empty()));
            prop_assert!(sections.is_sorted_by_key(|section| elements(section)[0].clone()));
            for element in all {
                prop_assert!(seen.insert(element));
            }
        }
        prop_assert_eq!(seen.len(), indices(distribution.shape()).len());
    }

    #[test]
    fn owners_of_a_section_share_it(
        (distribution, section) in distribution().prop_flat_map(|distribution| {
            let axes = distribution.shape().len();
            (Just(distribution), section(axes))
        })
    ) {
        for rank in 0..distribution.ranks() + 1 {
            let mut expected: Vec<_> = elements(&section)
                .into_iter().filter(|i| distribution.owner(i) == Some(rank)).collect();
            let mut found = Vec::new();
            let parts = distribution.owned_parts(rank, &section).unwrap();
            prop_assert!(parts.is_sorted_by_key(|part| elements(&part.global)[0].clone()));
            for part in parts {
                prop_assert!(!part.global.is_empty());
                prop_assert_eq!(part.global.shape(), part.local.shape());
                for (global, local) in elements(&part.global).iter().zip(elements(&part.local)) {
                    prop_assert_eq!(distribution.to_local(global), Some(local));
                    found.push(global.clone());
                }
            }
            expected.sort();
            found.sort();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn chosen_grids_are_valid(
        ranks in 1u64..200,
        axes in proptest::collection::vec((1u64..50, 0usize..4), 1..5)
    ) {
        let names = ["block", "cyclic", "cyclic(3)", "*"];
        let text: Vec<&str> = axes.iter().map(|axis| names[axis.1]).collect();
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let distribution = Distribution::parse(&text.join(","), &shape, ranks, None).unwrap();
        prop_assert_eq!(distribution.ranks(), ranks);
        prop_assert_eq!(distribution.to_string(), text.join(","));
        let grid: u64 = distribution.grid().iter().product();
        prop_assert_eq!(grid, if text.iter().all(|kind| *kind == "*") { 1 } else { ranks });
    }
}
