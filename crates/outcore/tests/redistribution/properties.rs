//! Every method and carrier, against the place of every element.

use outcore::{
    AlignedDistribution, Arrival, AxisDistribution, Carrier, Comm, DistributedArray, Distribution,
    Error, RedistributionMethod, RedistributionPlan, Section, TemplateAxis, Transfer,
};
use proptest::prelude::*;

fn kind() -> impl Strategy<Value = AxisDistribution> {
    prop_oneof![
        Just(AxisDistribution::Block),
        Just(AxisDistribution::Cyclic),
        (1u64..21).prop_map(AxisDistribution::CyclicSize),
    ]
}

/// One axis: its extent, and its kind and number of ranks before and after.
type Axis = (u64, (AxisDistribution, u64), (AxisDistribution, u64));

fn axes() -> impl Strategy<Value = Vec<Axis>> {
    let ranks = || prop_oneof![Just(1u64), 1u64..13];
    let axis = |extent| (extent, (kind(), ranks()), (kind(), ranks()));
    prop_oneof![
        proptest::collection::vec(axis(0u64..500), 1..2),
        proptest::collection::vec(axis(0u64..24), 2..3),
        proptest::collection::vec(axis(0u64..9), 3..4),
    ]
}

/// A distribution on at most 12 ranks: axes lose ranks until there are so few.
fn distribution(shape: &[u64], sides: Vec<(AxisDistribution, u64)>) -> AlignedDistribution {
    let (kinds, mut grid): (Vec<_>, Vec<u64>) = sides.into_iter().unzip();
    while grid.iter().product::<u64>() > 12 {
        let most = grid.iter_mut().max().expect("a product has a factor");
        *most -= 1;
    }
    Distribution::new(shape, &kinds, &grid).unwrap().into()
}

fn number(shape: &[u64], index: &[u64]) -> u64 {
    let place = index.iter().zip(shape);
    1 + place.fold(0, |number, (at, extent)| number * extent + at)
}

fn numbered(comm: &Comm, like: &AlignedDistribution, node: bool) -> DistributedArray<u64> {
    let array = match node {
        true => DistributedArray::aligned(comm, like.clone()),
        false => DistributedArray::private(comm, like.clone()),
    };
    let (mut array, shape) = (array.unwrap(), like.shape().to_vec());
    array.fill_with(|index| number(&shape, index));
    array
}

fn check(array: &DistributedArray<u64>) {
    let shape = array.shape().to_vec();
    for (index, value) in array.iter() {
        assert_eq!(*value, number(&shape, &index), "{index:?}");
    }
}

/// There by every method and carrier, and back with the same plan.
fn there_and_back(from: &AlignedDistribution, to: &AlignedDistribution) {
    let ranks = from.ranks().max(to.ranks()) as usize;
    outcore::run(ranks, |comm| {
        let mut before = numbered(comm, from, true);
        for method in RedistributionMethod::ALL {
            for (carrier, arrival) in [
                (Carrier::Memory, Arrival::Together),
                (Carrier::Messages, Arrival::Together),
                (Carrier::Messages, Arrival::AsTheyCome),
            ] {
                let plan = RedistributionPlan::with_method(comm, from, to, method)?;
                let plan = plan.carrier(carrier).arrival(arrival);
                let mut after = DistributedArray::<u64>::aligned(comm, to.clone())?;
                plan.move_array(comm, &before, &mut after)?;
                check(&after);
                before.fill(0);
                plan.move_back(comm, &after, &mut before)?;
                check(&before);
            }
        }
        Ok::<(), Error>(())
    })
    .unwrap();
}

proptest! {
    #[test]
    fn all_methods_move_every_element(axes in axes()) {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let from = distribution(&shape, axes.iter().map(|axis| axis.1).collect());
        let to = distribution(&shape, axes.iter().map(|axis| axis.2).collect());
        there_and_back(&from, &to);
    }

    #[test]
    fn elements_of_any_size_move_together(
        extent in 0u64..300,
        (before, after) in (kind(), kind()),
        (p, q) in (1u64..6, 1u64..6),
        messages in any::<bool>(),
    ) {
        let side = |kind, ranks| distribution(&[extent, 2], vec![(kind, ranks), (AxisDistribution::Collapsed, 1)]);
        let (from, to) = (side(before, p), side(after, q));
        outcore::run(p.max(q) as usize, |comm| {
            let plan = RedistributionPlan::new(comm, &from, &to)?;
            let plan = plan.carrier(if messages { Carrier::Messages } else { Carrier::Auto });
            let numbers = numbered(comm, &from, true);
            let mut small = DistributedArray::<[u8; 3]>::aligned(comm, from.clone())?;
            small.fill_with(|index| [index[0] as u8, index[1] as u8, 7]);
            let mut large = DistributedArray::<[u64; 5]>::aligned(comm, from.clone())?;
            large.fill_with(|index| [index[0], 2, 3, index[1], 5]);
            let mut moved = (
                DistributedArray::<u64>::aligned(comm, to.clone())?,
                DistributedArray::<[u8; 3]>::aligned(comm, to.clone())?,
                DistributedArray::<[u64; 5]>::private(comm, to.clone())?,
            );
            plan.run(comm, &mut [
                Transfer::new(numbers.local(), moved.0.local_mut()),
                Transfer::new(small.local(), moved.1.local_mut()),
                Transfer::new(large.local(), moved.2.local_mut()),
            ])?;
            check(&moved.0);
            assert!(moved.1.iter().all(|(at, value)| *value == [at[0] as u8, at[1] as u8, 7]));
            assert!(moved.2.iter().all(|(at, value)| *value == [at[0], 2, 3, at[1], 5]));
            Ok::<(), Error>(())
        }).unwrap();
    }

    #[test]
    fn sections_are_assigned(
        (first, step, count) in (0u64..9, 1u64..6, 0u64..40),
        (other_first, other_step) in (0u64..9, 1u64..6),
        (before, after) in (kind(), kind()),
        (p, q) in (1u64..7, 1u64..7),
        messages in any::<bool>(),
    ) {
        let extent = |first: u64, step: u64| first + count * step + 3;
        let section = |first: u64, step: u64, extent: u64| {
            let upper = if count == 0 { first } else { first + (count - 1) * step + 1 };
            Section::parse(&format!("{first}:{upper}:{step}, ::2"), &[extent, 6]).unwrap()
        };
        let (n, m) = (extent(first, step), extent(other_first, other_step));
        let side = |extent, kind, ranks| distribution(&[extent, 6], vec![(kind, ranks), (AxisDistribution::Collapsed, 1)]);
        let (from, to) = (side(n, before, p), side(m, after, q));
        let (taken, given) = (section(first, step, n), section(other_first, other_step, m));
        outcore::run(p.max(q) as usize, |comm| {
            let source = numbered(comm, &from, true);
            let mut target = DistributedArray::<u64>::aligned(comm, to.clone())?;
            if messages {
                let plan = RedistributionPlan::of_sections(comm, (&from, &taken), (&to, &given))?;
                plan.carrier(Carrier::Messages).move_array(comm, &source, &mut target)?;
            } else {
                target.assign(comm, &given, (&source, &taken))?;
            }
            for (index, value) in target.iter() {
                let places = (given.axes()[0].position(index[0]), given.axes()[1].position(index[1]));
                let expected = match places {
                    (Some(row), Some(column)) => {
                        number(&[n, 6], &[taken.axes()[0].index(row), taken.axes()[1].index(column)])
                    }
                    _ => 0,
                };
                assert_eq!(*value, expected);
            }
            Ok::<(), Error>(())
        }).unwrap();
    }

    #[test]
    fn aligned_arrays_follow_their_templates(
        extent in 1u64..40,
        (stride, offset) in (prop_oneof![-3i64..0, 1i64..4], 0i64..5),
        (before, after, beside) in (kind(), kind(), kind()),
        (p, q, r) in (1u64..5, 1u64..5, 1u64..3),
        (copies, later) in (0u8..3, 0u8..3),
        messages in any::<bool>(),
    ) {
        let span = (extent - 1) * stride.unsigned_abs();
        let offset = offset + if stride < 0 { span as i64 } else { 0 };
        let template = |kind, ranks| {
            Distribution::new(&[span + 5, 4], &[kind, beside], &[ranks, r]).unwrap()
        };
        let aligned = |kind, ranks, copies: u8| {
            let along = TemplateAxis::Aligned { axis: 0, stride, offset };
            let other = if copies == 0 { TemplateAxis::Replicated } else { TemplateAxis::Fixed(u64::from(copies)) };
            AlignedDistribution::new(&[extent, 3], template(kind, ranks), vec![along, other]).unwrap()
        };
        let (from, to) = (aligned(before, p, copies), aligned(after, q, later));
        outcore::run((p.max(q) * r) as usize, |comm| {
            let mut source = numbered(comm, &from, true);
            let plan = RedistributionPlan::new(comm, &from, &to)?;
            let plan = plan.carrier(if messages { Carrier::Messages } else { Carrier::Auto });
            let mut target = DistributedArray::<u64>::aligned(comm, to.clone())?;
            plan.move_array(comm, &source, &mut target)?;
            check(&target);
            source.fill(0);
            plan.move_back(comm, &target, &mut source)?;
            check(&source);
            // REDISTRIBUTE of the template, and REALIGN.
            let followed = source.with_template(comm, &template(after, q))?;
            check(&followed);
            assert_eq!(followed.distribution().template(), to.template());
            check(&followed.realign(comm, to.alignment().clone())?);
            Ok::<(), Error>(())
        }).unwrap();
    }
}

/// Every pair of block sizes and rank counts of one axis, by every method, at
/// extents up to 500 that differ from pair to pair. (That tables are right at every
/// extent is shown where they are made.)
#[test]
#[ignore = "minutes, if optimised"]
fn every_block_size_and_rank_count_moves() {
    for (p, q) in (1..13).flat_map(|p| (1..13).map(move |q| (p, q))) {
        outcore::run(p.max(q) as usize, |comm| {
            for (x, y) in (1..21).flat_map(|x| (1..21).map(move |y| (x, y))) {
                for (number, method) in (0..).zip(RedistributionMethod::ALL) {
                    let extent = (101 * p + 211 * q + 307 * x + 401 * y + 89 * number) % 501;
                    let side = |block, ranks| {
                        distribution(
                            &[extent],
                            vec![(AxisDistribution::CyclicSize(block), ranks)],
                        )
                    };
                    let (from, to) = (side(x, p), side(y, q));
                    let mut before = numbered(comm, &from, true);
                    let mut after = DistributedArray::<u64>::aligned(comm, to.clone())?;
                    for carrier in [Carrier::Memory, Carrier::Messages] {
                        let plan = RedistributionPlan::with_method(comm, &from, &to, method)?;
                        let plan = plan.carrier(carrier);
                        after.fill(0);
                        plan.move_array(comm, &before, &mut after)?;
                        check(&after);
                        before.fill(0);
                        plan.move_back(comm, &after, &mut before)?;
                        check(&before);
                    }
                }
            }
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

/// The thesis' examples, and the shapes of grids that change.
#[test]
fn grids_change_their_shape() {
    let of = |text: &str, ranks, grid: Option<&[u64]>| {
        AlignedDistribution::from(Distribution::parse(text, &[24, 30], ranks, grid).unwrap())
    };
    let all = [
        of("block,*", 4, None),
        of("*,block", 4, None),
        of("cyclic,*", 3, None),
        of("*,cyclic(4)", 6, None),
        of("block,block", 4, Some(&[2, 2])),
        of("cyclic(11),cyclic(11)", 4, Some(&[2, 2])),
        of("cyclic(3),cyclic(3)", 4, Some(&[2, 2])),
        of("block(15),cyclic(2)", 6, Some(&[2, 3])),
        of("*,*", 1, None),
    ];
    for (from, to) in all
        .iter()
        .flat_map(|from| all.iter().map(move |to| (from, to)))
    {
        there_and_back(from, to);
    }
}

/// By way of other distributions where the method says so.
#[test]
fn methods_have_their_steps() {
    outcore::run(4, |comm| {
        let side = |text: &str| {
            AlignedDistribution::from(Distribution::parse(text, &[60, 60], 4, None).unwrap())
        };
        let steps = |from: &str, to: &str, method| {
            let plan = RedistributionPlan::with_method(comm, &side(from), &side(to), method);
            plan.unwrap().steps()
        };
        let (from, to) = ("cyclic(6),cyclic(4)", "cyclic(4),cyclic(6)");
        let counts = RedistributionMethod::ALL.map(|method| steps(from, to, method));
        assert_eq!(counts, [1, 1, 2, 2, 1, 2]);
        // Only one axis changes: one step.
        assert_eq!(steps("cyclic(6),cyclic(4)", "cyclic(6),cyclic", RedistributionMethod::ByAxis), 1);
        let plan = RedistributionPlan::with_method(comm, &side(from), &side(to), RedistributionMethod::Lcm)?;
        let text = plan.to_string();
        assert!(text.starts_with("lcm: 2 steps\n  60x60: cyclic(6),cyclic(4) on 2x2 -> cyclic(12),cyclic(12) on 2x2\n"), "{text}");
        Ok::<(), Error>(())
    })
    .unwrap();
}
