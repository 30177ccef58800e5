//! What ranks exchange, against the owners and local indices of every element.

use std::collections::{BTreeMap, BTreeSet};

use outcore_geometry::{
    AlignedDistribution, ArraySide, AxisDistribution, AxisExchange, AxisSide, Distribution, Keep,
    Place, Redistribution, Section, Strip, TemplateAxis,
};
use proptest::prelude::*;

/// One axis: a plain distribution of `extent` indices.
fn side(kind: AxisDistribution, extent: u64, ranks: u64) -> ArraySide {
    let distribution = Distribution::new(&[extent], &[kind], &[ranks]).unwrap();
    ArraySide::whole(&distribution.into())
}

/// Every element of the strips: (source, target) -> (before, after, packed).
type Moves = Vec<((u64, u64), (u64, u64, u64))>;

fn moves(exchange: &AxisExchange) -> Moves {
    let mut all = Vec::new();
    let mut add = |strip: &Strip, round: u64| {
        for (piece, element) in
            (0..strip.count).flat_map(|piece| (0..strip.len).map(move |element| (piece, element)))
        {
            let at = |place: Place| place.at + piece * place.step + round * place.advance + element;
            let pair = (strip.source_rank, strip.target_rank);
            all.push((pair, (at(strip.source), at(strip.target), at(strip.packed))));
        }
    };
    for round in 0..exchange.rounds() {
        exchange.strips().iter().for_each(|strip| add(strip, round));
    }
    exchange.rest().iter().for_each(|strip| add(strip, 0));
    all
}

/// What moves, position by position.
fn oracle(source: &AxisSide, target: &AxisSide, keep: Keep) -> Moves {
    let mut packed: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut all = Vec::new();
    for k in 0..source.count() {
        let pair = (source.owner(k), target.owner(k));
        let place = packed.entry(pair).or_default();
        let wanted = |wanted: Option<u64>, rank| wanted.is_none_or(|wanted| wanted == rank);
        if wanted(keep.source, pair.0) && wanted(keep.target, pair.1) {
            all.push((pair, (source.local(k), target.local(k), *place)));
        }
        *place += 1;
    }
    all.sort_unstable();
    all
}

fn check(source: &AxisSide, target: &AxisSide, keep: Keep, cut: u64) -> AxisExchange {
    let exchange = AxisExchange::new(source, target, 0..source.count(), keep, cut);
    let mut found = moves(&exchange);
    found.sort_unstable();
    assert_eq!(found, oracle(source, target, keep));
    assert_eq!(exchange.total(), found.len() as u64);
    for pair in exchange.pairs() {
        let count = found.iter().filter(|(of, _)| *of == pair).count();
        assert_eq!(exchange.count(pair.0, pair.1), count as u64);
    }
    exchange
}

fn kind() -> impl Strategy<Value = AxisDistribution> {
    prop_oneof![
        Just(AxisDistribution::Block),
        Just(AxisDistribution::Cyclic),
        (1u64..21).prop_map(AxisDistribution::CyclicSize),
        (1u64..21).prop_map(AxisDistribution::CyclicSize),
    ]
}

/// A section of an aligned array: owners and local indices come from
/// [`AlignedDistribution`], one by one.
fn check_against_alignment(side: &ArraySide, section: &Section) {
    let (aligned, axis) = (side.aligned(), &side.axes()[0]);
    for k in 0..axis.count() {
        let index = [section.axes()[0].index(k)];
        let owners = aligned.owners(&index);
        let first = side.rank_at(&[axis.owner(k)]);
        let ranks: BTreeSet<u64> = side.copies().iter().map(|copy| first + copy).collect();
        assert_eq!(ranks, owners.into_iter().collect());
        for rank in ranks {
            let coordinate = side.coordinates(rank).unwrap();
            assert_eq!(coordinate, [axis.owner(k)]);
            assert_eq!(aligned.to_local(rank, &index), Some(vec![axis.local(k)]));
        }
    }
}

fn aligned() -> impl Strategy<Value = (ArraySide, u64)> {
    let parts = (
        1u64..60,
        -4i64..5,
        0u64..7,
        kind(),
        1u64..8,
        0u8..3,
        1u64..4,
    );
    parts.prop_map(|(extent, stride, margin, kind, ranks, other, grid)| {
        let stride = if stride == 0 { 1 } else { stride };
        let span = (extent - 1) * stride.unsigned_abs();
        let offset = margin + if stride < 0 { span } else { 0 };
        let along = TemplateAxis::Aligned {
            axis: 0,
            stride,
            offset: offset as i64,
        };
        let beside = match other {
            0 => TemplateAxis::Replicated,
            _ => TemplateAxis::Fixed(2),
        };
        let kinds = [AxisDistribution::Cyclic, kind];
        let template = Distribution::new(&[5, span + margin + 3], &kinds, &[grid, ranks]);
        let array = AlignedDistribution::new(&[extent], template.unwrap(), vec![beside, along]);
        (ArraySide::whole(&array.unwrap()), extent)
    })
}

fn section() -> impl Strategy<Value = (u64, u64, u64)> {
    (0u64..9, 1u64..6, 0u64..40)
}

proptest! {
    #[test]
    fn one_axis_moves_as_its_elements_do(
        extent in 0u64..500,
        (before, after) in (kind(), kind()),
        (p, q) in (1u64..13, 1u64..13),
        keep in (0u8..4, 0u64..12, 0u64..12),
        cut in 1u64..600,
    ) {
        let (source, target) = (side(before, extent, p), side(after, extent, q));
        let keep = Keep {
            source: (keep.0 & 1 == 1).then_some(keep.1 % p),
            target: (keep.0 & 2 == 2).then_some(keep.2 % q),
        };
        check(&source.axes()[0], &target.axes()[0], keep, cut);
    }

    #[test]
    fn shares_are_a_partition(
        extent in 0u64..500,
        (before, after) in (kind(), kind()),
        (p, q, parts) in (1u64..13, 1u64..13, 1u64..8),
        cut in 1u64..200,
    ) {
        let (source, target) = (side(before, extent, p), side(after, extent, q));
        let whole = Redistribution::new(source, target).unwrap();
        let mut found: Vec<_> = (0..parts)
            .flat_map(|part| moves(&whole.share(part, parts, cut)[0]))
            .map(|(pair, (before, after, _))| (pair, before, after))
            .collect();
        found.sort_unstable();
        let axes = (&whole.source().axes()[0], &whole.target().axes()[0]);
        let all = oracle(axes.0, axes.1, Keep::default()).into_iter();
        let all: Vec<_> = all.map(|(pair, (before, after, _))| (pair, before, after)).collect();
        prop_assert_eq!(found, all);
    }

    #[test]
    fn sections_of_aligned_arrays_move_as_their_elements_do(
        (one, one_extent) in aligned(),
        (other, other_extent) in aligned(),
        (first, step, count) in section(),
        (other_first, other_step) in (0u64..9, 1u64..6),
        cut in 1u64..50,
        keep in (0u8..4, 0u64..8, 0u64..8),
    ) {
        let fits = |first: u64, step: u64, extent: u64| match extent.checked_sub(first) {
            None | Some(0) => 0,
            Some(rest) => rest.div_ceil(step),
        };
        let count = count.min(fits(first, step, one_extent)).min(fits(other_first, other_step, other_extent));
        let of = |side: &ArraySide, first: u64, step: u64| {
            let upper = if count == 0 { first } else { first + (count - 1) * step + 1 };
            let section = Section::parse(&format!("{first}:{upper}:{step}"), &[1000]).unwrap();
            let side = ArraySide::section(side.aligned(), &section).unwrap_or_else(|_| {
                // Nothing lies anywhere.
                ArraySide::section(side.aligned(), &Section::empty(1)).unwrap()
            });
            check_against_alignment(&side, &section);
            side
        };
        let (source, target) = (of(&one, first, step), of(&other, other_first, other_step));
        let (source, target) = (&source.axes()[0], &target.axes()[0]);
        let keep = Keep {
            source: (keep.0 & 1 == 1).then_some(keep.1 % source.ranks()),
            target: (keep.0 & 2 == 2).then_some(keep.2 % target.ranks()),
        };
        check(source, target, keep, cut);
    }
}

/// How many other ranks a rank sends to and receives from.
fn partners(source: &AxisSide, target: &AxisSide, rank: u64) -> (u64, u64) {
    let to: BTreeSet<u64> = (0..source.count())
        .filter(|k| source.owner(*k) == rank)
        .map(|k| target.owner(k))
        .collect();
    let from: BTreeSet<u64> = (0..source.count())
        .filter(|k| target.owner(*k) == rank)
        .map(|k| source.owner(k))
        .collect();
    let others = |set: BTreeSet<u64>| set.iter().filter(|other| **other != rank).count() as u64;
    (others(to), others(from))
}

/// Thakur 1995, theorems 3.1 to 3.3; the latter two need `N >= x P` with the
/// larger block size, which the thesis does not say.
#[test]
fn partners_are_as_many_as_the_theorems_say() {
    for ranks in 1..9 {
        for (small, k) in (1..5).flat_map(|y| (1..8).map(move |k| (y, k))) {
            let large = small * k;
            for extent in [large * ranks, large * ranks + 1, 3 * large * ranks + 2] {
                let coarse = side(AxisDistribution::CyclicSize(large), extent, ranks);
                let fine = side(AxisDistribution::CyclicSize(small), extent, ranks);
                let (coarse, fine) = (&coarse.axes()[0], &fine.axes()[0]);
                for rank in 0..ranks {
                    for (to, from) in [partners(coarse, fine, rank), partners(fine, coarse, rank)] {
                        for count in [to, from] {
                            match k < ranks {
                                true => assert!(count == k || count == k - 1, "{large} {small}"),
                                false => assert_eq!(count, ranks - 1),
                            }
                        }
                    }
                }
            }
        }
        for extent in 1..80 {
            let block = side(AxisDistribution::Block, extent, ranks);
            let cyclic = side(AxisDistribution::Cyclic, extent, ranks);
            let (block, cyclic) = (&block.axes()[0], &cyclic.axes()[0]);
            for rank in 0..ranks {
                let (to, from) = partners(block, cyclic, rank);
                let local = block.local_count(rank);
                match local >= ranks {
                    true => assert_eq!(to, ranks - 1),
                    false => assert!(to == local || to + 1 == local),
                }
                let holders = extent.div_ceil(block.local_count(0));
                assert!(from <= cyclic.local_count(rank).min(holders));
            }
        }
    }
}

/// Without the condition on `N` the theorems fail, as they are printed.
#[test]
fn small_arrays_have_fewer_partners() {
    let coarse = side(AxisDistribution::CyclicSize(6), 7, 4);
    let fine = side(AxisDistribution::CyclicSize(2), 7, 4);
    assert_eq!(partners(&coarse.axes()[0], &fine.axes()[0], 1), (1, 1));
}

/// Strips are few, however large the array: one period's, or one for each
/// partner and block.
#[test]
fn plans_do_not_grow_with_the_array() {
    for extent in [1u64 << 20, 1 << 40] {
        let strips = |before, after| {
            let (source, target) = (side(before, extent, 4), side(after, extent, 4));
            let redistribution = Redistribution::new(source, target).unwrap();
            let sends = redistribution.sends(1, u64::MAX).unwrap();
            sends[0].strips().len() + sends[0].rest().len()
        };
        let cyclic = AxisDistribution::CyclicSize;
        assert!(strips(cyclic(11), cyclic(3)) < 60);
        assert!(strips(cyclic(15), cyclic(10)) < 30);
        assert_eq!(strips(AxisDistribution::Block, AxisDistribution::Cyclic), 4);
        // The first and the last elements of a rank are no whole round.
        assert_eq!(strips(AxisDistribution::Cyclic, AxisDistribution::Block), 8);
        assert_eq!(strips(cyclic(4), cyclic(2)), 2);
    }
}

/// Every pair of distributions with blocks up to 20 on up to 12 ranks; all
/// extents up to 500 take a while, and have `PROPTEST_CASES` to ask for them.
#[test]
fn every_block_size_and_rank_count() {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let full = cases.and_then(|cases| cases.parse::<u64>().ok()) >= Some(10_000);
    let extents: Vec<u64> = match full {
        true => vec![1, 7, 60, 239, 240, 241, 499, 500],
        false => vec![241],
    };
    let ranks: Vec<u64> = if full {
        (1..13).collect()
    } else {
        vec![1, 2, 3, 4, 6, 12]
    };
    for (p, q) in ranks
        .iter()
        .flat_map(|p| ranks.iter().map(move |q| (*p, *q)))
    {
        for (x, y) in (1..21).flat_map(|x| (1..21).map(move |y| (x, y))) {
            for extent in &extents {
                let source = side(AxisDistribution::CyclicSize(x), *extent, p);
                let target = side(AxisDistribution::CyclicSize(y), *extent, q);
                check(
                    &source.axes()[0],
                    &target.axes()[0],
                    Keep::default(),
                    u64::MAX,
                );
            }
        }
    }
}

#[test]
fn shapes_must_agree() {
    let (one, other) = (
        side(AxisDistribution::Block, 10, 2),
        side(AxisDistribution::Block, 11, 2),
    );
    let error = Redistribution::new(one, other).unwrap_err().to_string();
    assert_eq!(
        error,
        "what moves has shape 10, but where it goes has shape 11"
    );
}
