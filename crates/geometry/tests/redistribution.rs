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

fn each_move(exchange: &AxisExchange, mut found: impl FnMut((u64, u64), (u64, u64, u64))) {
    let mut add = |strip: &Strip, round: u64| {
        for (piece, element) in
            (0..strip.count).flat_map(|piece| (0..strip.len).map(move |element| (piece, element)))
        {
            let at = |place: Place| place.at + piece * place.step + round * place.advance + element;
            let pair = (strip.source_rank, strip.target_rank);
            found(pair, (at(strip.source), at(strip.target), at(strip.packed)));
        }
    };
    for round in 0..exchange.rounds() {
        exchange.strips().iter().for_each(|strip| add(strip, round));
    }
    exchange.rest().iter().for_each(|strip| add(strip, 0));
}

fn moves(exchange: &AxisExchange) -> Moves {
    let mut all = Vec::new();
    each_move(exchange, |pair, places| all.push((pair, places)));
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

/// Where each position of an axis that is CYCLIC(x) on P ranks before and CYCLIC(y)
/// on Q ranks after stands, by the definition alone. That does not depend on the
/// extent: so what is right for the longest axis is right, cut short, for all.
struct Definition {
    /// By position.
    moves: Moves,
    /// The position of each local index, by source rank.
    positions: Vec<Vec<usize>>,
}

impl Definition {
    fn new((x, p): (u64, u64), (y, q): (u64, u64), extent: u64) -> Self {
        let mut packed = vec![0; (p * q) as usize];
        let mut positions = vec![Vec::new(); p as usize];
        let place = |k: u64, block: u64, ranks: u64| {
            (k / block % ranks, k / (block * ranks) * block + k % block)
        };
        let moves = (0..extent).map(|k| {
            let (source, before) = place(k, x, p);
            let (target, after) = place(k, y, q);
            positions[source as usize].push(k as usize);
            let sent = &mut packed[(source * q + target) as usize];
            *sent += 1;
            ((source, target), (before, after, *sent - 1))
        });
        let moves = moves.collect();
        Self { moves, positions }
    }

    /// Fails unless the exchange has each of the first `extent` positions that are
    /// to be kept once, as defined. `seen` is of the longest axis.
    fn check(&self, sides: [&ArraySide; 2], extent: u64, keep: Keep, seen: &mut [bool]) -> u64 {
        let [source, target] = sides.map(|side| &side.axes()[0]);
        let exchange = AxisExchange::new(source, target, 0..extent, keep, u64::MAX);
        seen.fill(false);
        let mut count = 0;
        each_move(&exchange, |pair, places| {
            let k = self.positions[pair.0 as usize][places.0 as usize];
            assert!((k as u64) < extent && !seen[k], "position {k} of {extent}");
            assert_eq!(self.moves[k], (pair, places), "position {k} of {extent}");
            assert!(keep.source.is_none_or(|rank| rank == pair.0));
            assert!(keep.target.is_none_or(|rank| rank == pair.1));
            seen[k] = true;
            count += 1;
        });
        assert_eq!(exchange.total(), count);
        count
    }
}

/// Every pair of CYCLIC(x) on P ranks and CYCLIC(y) on Q ranks among these, at
/// every extent: all that moves, what each rank sends, and what each receives.
fn check_pairs(pairs: &[[(u64, u64); 2]], extents: &[u64]) {
    let longest = extents.iter().copied().max().unwrap_or(0);
    let mut seen = vec![false; longest as usize];
    for [from, to] in pairs {
        let definition = Definition::new(*from, *to, longest);
        for extent in extents {
            let [source, target] = [from, to]
                .map(|(block, ranks)| side(AxisDistribution::CyclicSize(*block), *extent, *ranks));
            let mut count = |source_rank, target_rank| {
                let keep = Keep {
                    source: source_rank,
                    target: target_rank,
                };
                definition.check([&source, &target], *extent, keep, &mut seen)
            };
            assert_eq!(count(None, None), *extent);
            assert_eq!(
                (0..from.1).map(|rank| count(Some(rank), None)).sum::<u64>(),
                *extent
            );
            assert_eq!(
                (0..to.1).map(|rank| count(None, Some(rank))).sum::<u64>(),
                *extent
            );
        }
    }
}

/// CYCLIC(x) on P ranks, for all of these.
fn all_of(blocks: impl Iterator<Item = u64>, ranks: &[u64]) -> Vec<(u64, u64)> {
    blocks
        .flat_map(|block| ranks.iter().map(move |ranks| (block, *ranks)))
        .collect()
}

#[test]
fn every_block_size_and_rank_count() {
    let sides = all_of(1..21, &[1, 2, 3, 12]);
    let pairs: Vec<_> = sides
        .iter()
        .flat_map(|from| sides.iter().map(|to| [*from, *to]))
        .collect();
    check_pairs(&pairs, &[241]);
}

/// The part of the whole space of one axis that begins on P ranks: every N up to
/// 500, Q up to 12, x and y up to 20, and the steps by way of CYCLIC(lcm(x, y)) on P
/// ranks. (Those by way of the gcd are among the others.) Axes are exchanged each by
/// itself, so several have nothing else.
fn whole_space_from(p: u64) {
    let targets = all_of(1..21, &(1..13).collect::<Vec<_>>());
    let mut pairs = BTreeSet::new();
    for (x, to) in (1..21).flat_map(|x| targets.iter().map(move |to| (x, *to))) {
        let divisor = (1..=x).rev().find(|d| x % d == 0 && to.0 % d == 0);
        let middle = (x / divisor.unwrap_or(1) * to.0, p);
        pairs.extend([[(x, p), to], [(x, p), middle], [middle, to]]);
    }
    let pairs: Vec<_> = pairs.into_iter().collect();
    check_pairs(&pairs, &(0..501).collect::<Vec<_>>());
}

macro_rules! whole_space {
    ($($name:ident: $ranks:literal),*) => {$(
        #[test]
        #[ignore = "a minute, if optimised"]
        fn $name() {
            whole_space_from($ranks);
        }
    )*};
}

whole_space!(
    everything_from_1_rank: 1, everything_from_2_ranks: 2, everything_from_3_ranks: 3,
    everything_from_4_ranks: 4, everything_from_5_ranks: 5, everything_from_6_ranks: 6,
    everything_from_7_ranks: 7, everything_from_8_ranks: 8, everything_from_9_ranks: 9,
    everything_from_10_ranks: 10, everything_from_11_ranks: 11, everything_from_12_ranks: 12
);

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
