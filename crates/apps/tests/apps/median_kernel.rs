//! The median kernel against sorting each window.

use std::ops::Range;

use outcore::f16;
use outcore_apps::Block;
use outcore_apps::median::{MedianKernel, Real};
use proptest::prelude::*;

/// Every index of an array, the last axis fastest.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |found, extent| {
        let longer = |index: Vec<usize>| (0..*extent).map(move |at| [&index[..], &[at]].concat());
        found.into_iter().flat_map(longer).collect()
    })
}

/// The medians of the whole array, each from its sorted window.
fn sorted_medians<T: Real>(
    values: &[T],
    shape: &[usize],
    window: &[usize],
    order: impl Fn(&T, &T) -> std::cmp::Ordering,
) -> Vec<T> {
    let at = |index: &[i64]| {
        let nearest = index.iter().zip(shape);
        nearest.fold(0, |row, (i, n)| {
            row * n + (*i).clamp(0, *n as i64 - 1) as usize
        })
    };
    let around = indices(window);
    let median = |index: Vec<usize>| {
        let mut found: Vec<T> = around
            .iter()
            .map(|offset| {
                let moved: Vec<i64> = (0..shape.len())
                    .map(|axis| (index[axis] + offset[axis]) as i64 - (window[axis] / 2) as i64)
                    .collect();
                values[at(&moved)]
            })
            .collect();
        found.sort_by(&order);
        found[found.len() / 2]
    };
    indices(shape).into_iter().map(median).collect()
}

/// The part of a dense array that `core` names.
fn part<T: Copy>(values: &[T], shape: &[usize], core: &[Range<usize>]) -> Vec<T> {
    let inside = |index: &Vec<usize>| index.iter().zip(core).all(|(i, range)| range.contains(i));
    let pairs = indices(shape).into_iter().zip(values);
    pairs
        .filter(|(index, _)| inside(index))
        .map(|(_, value)| *value)
        .collect()
}

fn check<T: Real + PartialEq>(
    case: &Case,
    make: impl Fn(u64) -> T,
    order: impl Fn(&T, &T) -> std::cmp::Ordering,
) {
    let Case {
        shape,
        window,
        core,
        seed,
    } = case;
    let count: usize = shape.iter().product();
    let mut state = *seed;
    let values: Vec<T> = (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            make(state >> 29)
        })
        .collect();
    let expected = part(&sorted_medians(&values, shape, window, order), shape, core);
    let mut found = vec![values[0]; expected.len()];
    let block = Block {
        values: &values,
        shape,
        core,
    };
    MedianKernel::<T>::new(window)
        .filter(&block, &mut found)
        .unwrap();
    assert!(
        bytemuck::cast_slice::<T, u8>(&found) == bytemuck::cast_slice::<T, u8>(&expected),
        "{case:?}"
    );
}

#[derive(Debug, Clone)]
struct Case {
    shape: Vec<usize>,
    window: Vec<usize>,
    core: Vec<Range<usize>>,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let axis = |most: usize| (1..=most, 0usize..4, any::<(u16, u16)>());
    let axes = prop_oneof![
        Just(vec![130]),
        Just(vec![9, 110]),
        Just(vec![5, 6, 50]),
        Just(vec![3, 3, 4, 6]),
    ];
    (
        axes.prop_flat_map(move |most| most.into_iter().map(axis).collect::<Vec<_>>()),
        any::<u64>(),
    )
        .prop_map(|(axes, seed)| {
            let shape: Vec<usize> = axes.iter().map(|(n, ..)| *n).collect();
            let window = axes
                .iter()
                .map(|(n, half, _)| (2 * half + 1).min((n - 1) / 2 * 2 + 1));
            let core = axes.iter().map(|(n, _, (a, b))| {
                let (a, b) = (usize::from(*a) % (n + 1), usize::from(*b) % (n + 1));
                // Mostly everything.
                if (a + b) % 3 == 0 {
                    a.min(b)..a.max(b)
                } else {
                    0..*n
                }
            });
            Case {
                window: window.collect(),
                core: core.collect(),
                shape,
                seed,
            }
        })
}

proptest! {
    #[test]
    fn every_type_matches_sorted_windows(case in case()) {
        check(&case, |n| n as u8, Ord::cmp);
        check(&case, |n| n as i8, Ord::cmp);
        check(&case, |n| n as u16, Ord::cmp);
        check(&case, |n| n as i16, Ord::cmp);
        check(&case, |n| n as u32, Ord::cmp);
        check(&case, |n| n as i32 % 100, Ord::cmp);
        check(&case, |n| n << 20, Ord::cmp);
        check(&case, |n| (n << 31) as i64, Ord::cmp);
        check(&case, |n| f16::from_bits(n as u16), f16::total_cmp);
        check(&case, |n| f32::from_bits(n as u32), f32::total_cmp);
        check(&case, |n| f64::from_bits(n << 29), f64::total_cmp);
    }
}

#[test]
fn large_windows_of_any_type() {
    let case = Case {
        shape: vec![20, 60],
        window: vec![15, 17],
        core: vec![0..20, 0..60],
        seed: 7,
    };
    check(&case, |n| n as u8, Ord::cmp);
    check(&case, |n| n as i8, Ord::cmp);
    check(&case, |n| n as f32 - 1e9, f32::total_cmp);
}

#[test]
fn a_block_that_does_not_fit_is_refused() {
    let block = Block {
        values: &[1u8; 6],
        shape: &[2, 3],
        core: &[0..2, 0..4],
    };
    let error = MedianKernel::new(&[1, 1])
        .filter(&block, &mut [0; 8])
        .unwrap_err();
    assert!(error.to_string().contains("[2, 3]"), "{error}");
}

#[test]
fn working_memory_grows_with_the_window_and_never_overflows() {
    let bytes = |window: &[usize], core: &[usize]| MedianKernel::<f32>::bytes(window, core);
    // A row of 1000 + 10,000 values, a window, and what names its one row.
    let line = bytes(&[10_001], &[1000]);
    assert!((4 * 21_001..4 * 22_000).contains(&line), "{line}");
    // A ring of 5 planes of 12 rows of 106 values, and a pool for windows of 105.
    let (ring, values) = (bytes(&[5, 3, 7], &[50, 10, 100]), 5 * 12 * 106);
    assert!(
        (4 * values..4 * values + (64 << 10)).contains(&ring),
        "{ring}"
    );
    let huge = usize::MAX / 2;
    assert_eq!(bytes(&[huge, huge, huge], &[huge, huge, huge]), u64::MAX);
}
