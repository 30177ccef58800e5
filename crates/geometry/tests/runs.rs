//! Runs against an oracle that places every element by itself.

use outcore_geometry::{AxisSection, Footprint, Layout, Order, Parts, Pass, Run, Section};
use proptest::prelude::*;

/// Every index of a section in the order of a dense buffer.
fn elements(section: &Section, slowest_first: &[usize]) -> Vec<Vec<u64>> {
    let mut points = vec![vec![0; section.axes().len()]];
    if section.is_empty() {
        return Vec::new();
    }
    for axis in slowest_first {
        let taken = &section.axes()[*axis];
        points = points
            .iter()
            .flat_map(|point| {
                (0..taken.count()).map(move |at| {
                    let mut point = point.clone();
                    point[*axis] = taken.index(at);
                    point
                })
            })
            .collect();
    }
    points
}

/// The file offset of one element, by the definition of the layout.
fn offset(layout: &Layout, index: &[u64]) -> u64 {
    let whole = layout.shape().to_vec();
    let tile = layout.tile().map_or(whole.clone(), <[u64]>::to_vec);
    let (mut tile_number, mut inside, mut tile_len) = (0, 0, 1);
    for axis in layout.slowest_first() {
        let tiles = whole[*axis].div_ceil(tile[*axis]);
        tile_number = tile_number * tiles + index[*axis] / tile[*axis];
        inside = inside * tile[*axis] + index[*axis] % tile[*axis];
        tile_len *= tile[*axis];
    }
    (tile_number * tile_len + inside) * layout.element_size()
}

fn oracle(layout: &Layout, section: &Section) -> Vec<Run> {
    let size = layout.element_size();
    let mut runs: Vec<Run> = elements(section, layout.slowest_first())
        .iter()
        .enumerate()
        .map(|(at, index)| Run {
            file_offset: offset(layout, index),
            buffer_offset: at as u64 * size,
            len: size,
        })
        .collect();
    runs.sort_by_key(|run| run.file_offset);
    runs.dedup_by(|next, run| {
        let touches = run.file_offset + run.len == next.file_offset
            && run.buffer_offset + run.len == next.buffer_offset;
        if touches {
            run.len += next.len;
        }
        touches
    });
    runs
}

fn check(layout: &Layout, section: &Section) {
    let expected = oracle(layout, section);
    let mut walk = layout.runs(section).unwrap();
    let totals = walk.totals();
    let found: Vec<Run> = walk.by_ref().collect();
    assert_eq!(found, expected, "{section} of {layout:?}");
    assert_eq!(walk.next(), None);
    let folded = layout
        .runs(section)
        .unwrap()
        .fold(Vec::new(), |mut runs, run| {
            runs.push(run);
            runs
        });
    assert_eq!(folded, expected, "folded: {section} of {layout:?}");
    assert_eq!(walk.totals(), totals);
    let tiles = walk.tiles().count() as u64;
    assert_eq!(walk.tile_count(), tiles, "tiles: {section} of {layout:?}");
    let bytes: u64 = expected.iter().map(|run| run.len).sum();
    assert_eq!(
        totals,
        (expected.len() as u64, bytes),
        "{section} of {layout:?}"
    );
    assert_eq!(bytes, section.count() * layout.element_size());
    check_passes(layout, section, &expected);
    for gap in [0, 1, 5, 16, 1000] {
        check_footprint(layout, section, &expected, gap);
    }
}

/// The passes are the same runs, perhaps less coalesced.
fn check_passes(layout: &Layout, section: &Section, expected: &[Run]) {
    let mut walk = layout.runs(section).unwrap();
    walk.next();
    let mut found: Vec<Run> = Vec::new();
    for pass in walk.passes() {
        assert_eq!(
            pass.file_extent(),
            pass.run(pass.count - 1).file_offset + pass.first.len - pass.first.file_offset
        );
        let (head, tail) = pass.split(pass.count / 2);
        for part in [Some(head), tail].into_iter().flatten() {
            found.extend((0..part.count).map(|at| part.run(at)));
        }
    }
    found.dedup_by(|next, run| {
        let touches = run.file_offset + run.len == next.file_offset
            && run.buffer_offset + run.len == next.buffer_offset;
        if touches {
            run.len += next.len;
        }
        touches
    });
    assert_eq!(found, expected, "passes: {section} of {layout:?}");
}

/// Windows and counts against every byte by itself. `seed` picks the offsets.
fn check_windows(layout: &Layout, section: &Section, seed: u64) {
    let mut walk = layout.runs(section).unwrap();
    walk.next();
    let mut wanted: Vec<(u64, u64)> = Vec::new();
    for run in oracle(layout, section) {
        wanted.extend((0..run.len).map(|at| (run.file_offset + at, run.buffer_offset + at)));
    }
    let len = layout.byte_len();
    let offsets = (0..8u64).map(|at| seed.wrapping_mul(2 * at + 1).rotate_left(9 * at as u32));
    let mut offsets: Vec<u64> = offsets.map(|offset| offset % (len + 2)).collect();
    offsets.extend([0, 1, len, len + 1, u64::MAX]);
    for &start in &offsets {
        let below = wanted.partition_point(|byte| byte.0 < start);
        assert_eq!(
            walk.bytes_below(start),
            below as u64,
            "below {start}: {section} of {layout:?}"
        );
        for &end in &offsets {
            let mut window = walk.window(start, end);
            let mut found = Vec::new();
            for pass in window.by_ref() {
                assert!(pass.count > 0 && pass.first.len > 0);
                for run in (0..pass.count).map(|at| pass.run(at)) {
                    found.extend(
                        (0..run.len).map(|at| (run.file_offset + at, run.buffer_offset + at)),
                    );
                }
            }
            assert_eq!(window.next(), None);
            let inside = wanted.iter().copied();
            let inside: Vec<_> = inside.filter(|(at, _)| (start..end).contains(at)).collect();
            assert_eq!(found, inside, "{start}..{end}: {section} of {layout:?}");
            if walk.is_ordered() && start <= end {
                let range = walk.bytes_below(start)..walk.bytes_below(end);
                assert!(inside.iter().map(|byte| byte.1).eq(range));
            }
        }
    }
}

/// Elements at some positions of a section, in a buffer that holds all of it.
fn check_positions(layout: &Layout, section: &Section, seed: u64) {
    let mut seed = seed;
    let mut below = |limit: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(99);
        (seed >> 33) % limit
    };
    let axes = section.shape().into_iter().map(|count| {
        let (lower, upper) = (below(count + 1), below(count + 1));
        AxisSection::range(lower, upper.max(lower), 1 + below(4)).unwrap()
    });
    let positions = Section::new(axes.collect()).unwrap();
    let size = layout.element_size();
    let taken = section.select(&positions);
    let whole = elements(section, layout.slowest_first());
    let mut expected: Vec<(u64, u64)> = whole
        .iter()
        .enumerate()
        .filter(|(_, index)| taken.contains(index))
        .flat_map(|(at, index)| {
            let from = offset(layout, index);
            (0..size).map(move |byte| (from + byte, at as u64 * size + byte))
        })
        .collect();
    expected.sort_unstable();
    let runs = layout.runs_at(section, &positions).unwrap();
    assert_eq!(runs.totals().1, expected.len() as u64);
    assert_eq!(runs.clone().count() as u64, runs.totals().0);
    let bytes =
        |run: Run| (0..run.len).map(move |at| (run.file_offset + at, run.buffer_offset + at));
    let found: Vec<(u64, u64)> = runs.clone().flat_map(bytes).collect();
    assert_eq!(found, expected, "{positions} of {section} of {layout:?}");
    let passes = runs.passes();
    let runs = passes.flat_map(|pass| (0..pass.count).map(move |at| pass.run(at)));
    assert!(runs.flat_map(bytes).eq(expected));
}

fn check_footprint(layout: &Layout, section: &Section, expected: &[Run], gap: u64) {
    let footprint = layout.runs(section).unwrap().footprint(gap);
    let (Some(first), Some(last)) = (expected.first(), expected.last()) else {
        return assert_eq!(footprint, Footprint::default());
    };
    let (mut accesses, mut bytes, mut end) = (0, 0, None::<u64>);
    for run in expected {
        let between = end.map(|end| run.file_offset - end);
        match between.filter(|between| *between <= gap) {
            Some(between) => bytes += between,
            None => accesses += 1,
        }
        bytes += run.len;
        end = Some(run.file_offset + run.len);
    }
    let (start, end) = (first.file_offset, last.file_offset + last.len);
    assert_eq!(
        footprint,
        Footprint {
            accesses,
            bytes,
            start,
            end
        },
        "gap {gap}: {section} of {layout:?}"
    );
}

fn axis() -> impl Strategy<Value = (u64, AxisSection, u64)> {
    (1u64..9, 1u64..6).prop_flat_map(|(extent, tile)| {
        let range = (0..=extent, 0..=extent, 1u64..5)
            .prop_map(|(lower, upper, stride)| AxisSection::range(lower, upper, stride).unwrap());
        let whole = Just(AxisSection::span(0, extent));
        let list = proptest::collection::btree_set(0..extent, 0..extent as usize + 1)
            .prop_map(|set| AxisSection::list(set.into_iter().collect::<Vec<_>>()).unwrap());
        (Just(extent), prop_oneof![range, whole, list], Just(tile))
    })
}

proptest! {
    #[test]
    fn runs_are_those_of_the_oracle(
        (axes, order) in proptest::collection::vec(axis(), 0..5).prop_flat_map(|axes| {
            let order = Just((0..axes.len()).collect::<Vec<_>>()).prop_shuffle();
            (Just(axes), order)
        }),
        element_size in prop_oneof![Just(1u64), Just(2), Just(4), Just(8), Just(16), Just(3)],
        tiled in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let tile: Vec<u64> = axes.iter().map(|axis| axis.2).collect();
        let section = Section::new(axes.iter().map(|axis| axis.1.clone()).collect()).unwrap();
        let layout = Layout::new(
            &shape, element_size, &Order::Axes(order), tiled.then_some(&tile[..]),
        ).unwrap();
        check(&layout, &section);
        check_windows(&layout, &section, seed);
        check_positions(&layout, &section, seed);
    }
}

#[test]
fn eight_axes_and_none() {
    let shape = [2, 3, 2, 2, 3, 2, 2, 3];
    for order in [Order::Row, Order::Column] {
        let layout = Layout::new(&shape, 4, &order, None).unwrap();
        check(&layout, &Section::whole(&shape).unwrap());
        check(
            &layout,
            &Section::parse("::2, 1:, :, 0, ::2, :, :, 1:3", &shape).unwrap(),
        );
        let scalar = Layout::new(&[], 8, &order, None).unwrap();
        check(&scalar, &Section::whole(&[]).unwrap());
    }
    let tiled = Layout::new(&shape, 4, &Order::Row, Some(&[1, 2, 2, 1, 2, 2, 1, 2])).unwrap();
    check(&tiled, &Section::whole(&shape).unwrap());
}

#[test]
fn runs_that_touch_where_the_loop_turns_over_are_one() {
    let layout = Layout::new(&[4, 10], 1, &Order::Row, None).unwrap();
    let section = Section::parse(":, ::9", layout.shape()).unwrap();
    check(&layout, &section);
    assert_eq!(layout.runs(&section).unwrap().totals(), (5, 8));
}

#[test]
fn positions_outside_and_lists_of_them_are_refused() {
    let layout = Layout::new(&[4, 10], 1, &Order::Row, None).unwrap();
    let section = Section::parse("1:3, ::3", layout.shape()).unwrap();
    for (positions, shape) in [("2, :", [3, 4]), (":, 4", [2, 5]), (":, [0,2]", [2, 4])] {
        let positions = Section::parse(positions, &shape).unwrap();
        assert!(layout.runs_at(&section, &positions).is_err(), "{positions}");
    }
}

#[test]
fn huge_sections_are_counted_without_walking() {
    let layout = Layout::new(&[1 << 30, 1 << 30], 4, &Order::Row, None).unwrap();
    let section = Section::parse("::2, ::2", layout.shape()).unwrap();
    assert_eq!(layout.runs(&section).unwrap().totals(), (1 << 58, 1 << 60));
    let last = layout
        .runs(&section.slice(0, (1 << 29) - 1, 1 << 29))
        .unwrap()
        .next()
        .unwrap();
    assert_eq!(last.file_offset, ((1 << 30) - 2) * (1 << 32));
}

#[test]
fn huge_sections_are_entered_in_the_middle() {
    for tile in [None, Some(&[1 << 10, 1 << 9][..])] {
        let layout = Layout::new(&[1 << 30, 1 << 30], 4, &Order::Row, tile).unwrap();
        let section = Section::parse("::2, 1::2", layout.shape()).unwrap();
        let runs = layout.runs(&section).unwrap();
        let middle = layout.byte_len() / 2;
        assert_eq!(runs.bytes_below(middle), 1 << 59);
        let pass = runs.window(middle + 6, middle + 22).next().unwrap();
        assert_eq!((pass.first.file_offset, pass.first.len), (middle + 6, 2));
        assert_eq!(runs.window(middle + 6, middle + 22).count(), 3);
    }
}

#[test]
fn long_lists_are_entered_in_the_middle() {
    let layout = Layout::new(&[1 << 20], 4, &Order::Row, None).unwrap();
    for step in [1, 3] {
        let list: Vec<u64> = (0..1 << 18).map(|at| at * step).collect();
        let count = list.len() as u64;
        let section = Section::new(vec![AxisSection::list(list).unwrap()]).unwrap();
        let mut runs = layout.runs(&section).unwrap();
        let bytes = |passes: &mut dyn Iterator<Item = Pass>| -> u64 {
            passes.map(|pass| pass.count * pass.first.len).sum()
        };
        assert_eq!(bytes(&mut runs.passes()), 4 * count);
        let (start, end) = (1 << 18, 3 << 17);
        let inside = runs.bytes_below(end) - runs.bytes_below(start);
        assert_eq!(bytes(&mut runs.window(start, end)), inside);
        let whole = if step == 1 { count } else { 1 };
        assert_eq!(runs.next().unwrap().len, 4 * whole);
    }
}

#[test]
fn passes_are_cut_where_one_says() {
    let run = |file_offset, buffer_offset, len| Run {
        file_offset,
        buffer_offset,
        len,
    };
    let pass = Pass {
        first: run(10, 0, 4),
        count: 3,
        file_step: 6,
        buffer_step: 4,
    };
    for at in 0..30 {
        let (before, behind) = pass.cut(at);
        let bytes = |parts: Parts| -> Vec<(u64, u64)> {
            let runs = parts
                .into_iter()
                .flatten()
                .flat_map(|part| (0..part.count).map(move |k| part.run(k)));
            runs.flat_map(|run| {
                (0..run.len).map(move |k| (run.file_offset + k, run.buffer_offset + k))
            })
            .collect()
        };
        let all = bytes([Some(pass), None]);
        let split = all.partition_point(|byte| byte.0 < at);
        assert_eq!(bytes(before), all[..split], "before {at}");
        assert_eq!(bytes(behind), all[split..], "behind {at}");
    }
}

#[test]
fn lists_are_walked_in_stretches_of_equal_steps() {
    let passes = |list: &[u64]| -> Vec<(u64, u64, u64)> {
        let section = Section::new(vec![AxisSection::list(list).unwrap()]).unwrap();
        let layout = Layout::new(&[100], 4, &Order::Row, None).unwrap();
        check(&layout, &section);
        let passes = layout.runs(&section).unwrap().passes();
        passes
            .map(|pass| (pass.first.len, pass.count, pass.file_step))
            .collect()
    };
    // Blocks of neighbours are one run each.
    assert_eq!(passes(&[3, 4, 5, 12, 13, 14]), [(12, 1, 0); 2]);
    // Equal steps are one pass, until the step changes.
    assert_eq!(passes(&[0, 7, 14, 21, 30]), [(4, 4, 28), (4, 1, 0)]);
    // A single one does not tear what follows apart.
    assert_eq!(passes(&[0, 9, 10, 11]), [(4, 1, 0), (12, 1, 0)]);
}
