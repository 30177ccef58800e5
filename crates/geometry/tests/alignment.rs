//! Aligned distributions against their definition, element by element.

use std::collections::BTreeSet;

use outcore_geometry::{
    AlignedDistribution, Alignment, AxisDistribution, AxisSection, Distribution, Section,
    TemplateAxis,
};
use proptest::prelude::*;

/// Every way to take one of each list, the last list varying fastest.
fn product(lists: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let mut rows = vec![vec![]];
    for list in lists {
        let extended = |row: &Vec<u64>| {
            let row = row.clone();
            list.iter().map(move |i| [row.as_slice(), &[*i]].concat())
        };
        rows = rows.iter().flat_map(extended).collect();
    }
    rows
}

fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    product(
        &shape
            .iter()
            .map(|extent| (0..*extent).collect())
            .collect::<Vec<_>>(),
    )
}

fn elements(section: &Section) -> Vec<Vec<u64>> {
    let indices = |axis: &AxisSection| (0..axis.count()).map(|at| axis.index(at)).collect();
    product(&section.axes().iter().map(indices).collect::<Vec<_>>())
}

/// One template axis: its extent, kind and ranks, and what it does. An
/// aligned axis takes array axis 0 here and gives the array's extent.
fn template_axis() -> impl Strategy<Value = (u64, AxisDistribution, u64, TemplateAxis, Option<u64>)>
{
    let stride = prop_oneof![Just(1i64), (1i64..5), (-4i64..0)];
    (
        0u64..20,
        1u64..5,
        stride,
        0u64..4,
        0u64..4,
        1u64..4,
        (0u64..4, 0u64..4, 0u64..8),
    )
        .prop_map(
            |(extent, m, stride, before, after, ranks, (kind, target, at))| {
                let reach = stride.unsigned_abs() * extent.saturating_sub(1);
                let (template, target, array) = match target {
                    0 => (extent + 1, TemplateAxis::Replicated, None),
                    1 => (at + after + 1, TemplateAxis::Fixed(at), None),
                    _ => {
                        let offset = (before + if stride < 0 { reach } else { 0 }) as i64;
                        let target = TemplateAxis::Aligned {
                            axis: 0,
                            stride,
                            offset,
                        };
                        (before + reach + 1 + after, target, Some(extent))
                    }
                };
                let (kind, ranks) = match kind {
                    0 => (AxisDistribution::Block, ranks),
                    1 => (AxisDistribution::Cyclic, ranks),
                    2 => (AxisDistribution::CyclicSize(m), ranks),
                    _ => (AxisDistribution::Collapsed, 1),
                };
                (template, kind, ranks, target, array)
            },
        )
}

fn aligned() -> impl Strategy<Value = AlignedDistribution> {
    let axes = proptest::collection::vec(template_axis(), 0..=3);
    (axes, proptest::option::of(0u64..4), any::<bool>()).prop_map(|(axes, collapsed, reversed)| {
        let template: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let kinds: Vec<_> = axes.iter().map(|axis| axis.1).collect();
        let grid: Vec<u64> = axes.iter().map(|axis| axis.2).collect();
        let template = Distribution::new(&template, &kinds, &grid).unwrap();
        // The aligned axes in order or reversed, then a collapsed one.
        let mut shape: Vec<u64> = axes.iter().filter_map(|axis| axis.4).collect();
        let aligned = shape.len();
        if reversed {
            shape.reverse();
        }
        shape.extend(collapsed);
        let mut next = 0;
        let number = |target| match target {
            TemplateAxis::Aligned { stride, offset, .. } => {
                next += 1;
                let axis = if reversed { aligned - next } else { next - 1 };
                TemplateAxis::Aligned {
                    axis,
                    stride,
                    offset,
                }
            }
            other => other,
        };
        let targets = axes.iter().map(|axis| axis.3).map(number).collect();
        AlignedDistribution::new(&shape, template, targets).unwrap()
    })
}

/// The owners of every template element at which `index` stands.
fn owners_by_definition(aligned: &AlignedDistribution, index: &[u64]) -> BTreeSet<u64> {
    let stands = |(target, extent): (&TemplateAxis, &u64)| match *target {
        TemplateAxis::Replicated => (0..*extent).collect(),
        TemplateAxis::Fixed(at) => vec![at],
        TemplateAxis::Aligned {
            axis,
            stride,
            offset,
        } => {
            vec![(stride * index[axis] as i64 + offset) as u64]
        }
    };
    let alignment = aligned.alignment();
    let lists: Vec<_> = alignment
        .axes()
        .iter()
        .zip(alignment.template())
        .map(stands)
        .collect();
    product(&lists)
        .iter()
        .map(|at| aligned.template().owner(at).unwrap())
        .collect()
}

proptest! {
    #[test]
    fn ranks_hold_what_stands_where_they_own(aligned in aligned()) {
        let all = indices(aligned.shape());
        for index in &all {
            let owners = owners_by_definition(&aligned, index);
            prop_assert_eq!(aligned.owners(index), owners.into_iter().collect::<Vec<_>>());
        }
        for rank in 0..aligned.ranks() + 1 {
            let held: Vec<_> =
                all.iter().filter(|index| aligned.owners(index).contains(&rank)).collect();
            let is_local = all.iter().filter(|index| aligned.is_local(rank, index));
            prop_assert_eq!(&held, &is_local.collect::<Vec<_>>());
            prop_assert_eq!(held.len() as u64, aligned.local_count(rank));
            // The local array is the held elements, in global order.
            if aligned.local_count(rank) > 0 {
                let local = indices(&aligned.local_shape(rank));
                prop_assert_eq!(local.len(), held.len());
                for (local, global) in local.iter().zip(&held) {
                    prop_assert_eq!(&aligned.to_local(rank, global).unwrap(), local);
                    prop_assert_eq!(&aligned.to_global(rank, local).unwrap(), *global);
                }
            }
            let outside: Vec<u64> = aligned.local_shape(rank);
            prop_assert!(outside.is_empty() || aligned.to_global(rank, &outside).is_none());
            let sections = aligned.local_sections(rank);
            prop_assert!(sections.iter().all(|section| !section.is_empty()));
            prop_assert!(sections.is_sorted_by_key(|section| elements(section)[0].clone()));
            let mut covered: Vec<_> = sections.iter().flat_map(elements).collect();
            covered.sort();
            prop_assert_eq!(covered.iter().collect::<Vec<_>>(), held);
        }
    }

    #[test]
    fn an_array_on_itself_is_plainly_distributed(
        extent in 0u64..40, m in 1u64..6, ranks in 1u64..5
    ) {
        let kinds = [AxisDistribution::CyclicSize(m), AxisDistribution::Collapsed];
        let plain = Distribution::new(&[extent, 2], &kinds, &[ranks, 1]).unwrap();
        let alignment = Alignment::identity(&[extent, 2]).unwrap();
        let aligned = alignment.distribute(plain.clone()).unwrap();
        for rank in 0..ranks {
            prop_assert_eq!(aligned.local_shape(rank), plain.local_shape(rank));
            prop_assert_eq!(aligned.local_sections(rank), plain.local_sections(rank));
        }
    }
}

#[test]
fn bad_alignments_are_refused() {
    use TemplateAxis::*;
    let refused = |shape: &[u64], axes: Vec<TemplateAxis>, words: &str| {
        let message = Alignment::new(shape, &[20, 0], axes)
            .unwrap_err()
            .to_string();
        assert!(message.contains(words), "{message}");
    };
    let line = |stride, offset| Aligned {
        axis: 0,
        stride,
        offset,
    };
    let words = "index 9 of array axis 0 lands on index 23 of template axis 0, whose extent is 20";
    refused(&[10, 0], vec![line(2, 5), TemplateAxis::identity(1)], words);
    refused(
        &[10, 0],
        vec![line(-1, 8), TemplateAxis::identity(1)],
        "lands on index -1",
    );
    refused(
        &[2],
        vec![line(i64::MAX, i64::MAX), Replicated],
        "index 0 of array axis 0",
    );
    refused(&[2], vec![line(0, 3), Replicated], "stride 0");
    refused(
        &[2],
        vec![TemplateAxis::identity(1), Replicated],
        "the array has 1 axes",
    );
    refused(
        &[0],
        vec![line(1, 0), line(1, 0)],
        "both template axes 0 and 1",
    );
    refused(
        &[2],
        vec![Fixed(20), Replicated],
        "index 20 of template axis 0",
    );
    refused(&[2], vec![line(1, 0), Replicated], "cannot hold copies");
    refused(&[2], vec![line(1, 0)], "the alignment has 1 axes");
    let template = Distribution::parse("block", &[5], 2, None).unwrap();
    assert!(
        Alignment::identity(&[4])
            .unwrap()
            .distribute(template)
            .is_err()
    );
}

#[test]
fn no_axes_is_one_element() {
    let template = Distribution::parse("block,*", &[4, 3], 2, None).unwrap();
    let fixed = vec![TemplateAxis::Fixed(3), TemplateAxis::Replicated];
    let scalar = AlignedDistribution::new(&[], template, fixed).unwrap();
    assert_eq!(scalar.owners(&[]), [1]);
    assert_eq!([0, 1, 2].map(|rank| scalar.local_count(rank)), [0, 1, 0]);
    assert_eq!(scalar.to_local(1, &[]), Some(vec![]));
    assert_eq!(scalar.to_local(0, &[]), None);
}

#[test]
fn huge_extents_do_not_overflow() {
    let extent = 1u64 << 62;
    for (kind, ranks) in [
        (AxisDistribution::Block, 3),
        (AxisDistribution::Cyclic, 7),
        (AxisDistribution::CyclicSize(3), 1 << 50),
        (AxisDistribution::CyclicSize(1 << 60), 3),
        (AxisDistribution::CyclicSize(extent - 1), i64::MAX as u64),
    ] {
        for (stride, offset) in [
            (1, 5),
            (3, 2),
            (-1, extent as i64 - 1),
            (-3, extent as i64 - 2),
        ] {
            let count = extent / 3 - 10;
            let template = Distribution::new(&[extent], &[kind], &[ranks]).unwrap();
            let line = TemplateAxis::Aligned {
                axis: 0,
                stride,
                offset,
            };
            let aligned = AlignedDistribution::new(&[count], template, vec![line]).unwrap();
            for index in [0, 1, count / 2, count - 1] {
                let rank = aligned.owners(&[index])[0];
                let local = aligned.to_local(rank, &[index]).unwrap();
                assert_eq!(aligned.to_global(rank, &local), Some(vec![index]));
                let sections = aligned.local_sections(rank);
                assert_eq!(sections.iter().filter(|s| s.contains(&[index])).count(), 1);
                let held: u64 = sections.iter().map(Section::count).sum();
                assert_eq!(held, aligned.local_count(rank));
            }
        }
    }
}
