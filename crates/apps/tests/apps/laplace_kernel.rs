//! Fused sweeps against the plain loop, bit for bit.

use outcore_apps::Float;
use outcore_apps::laplace::{Edges, Grid, relax};
use proptest::prelude::*;

/// One sweep over the whole array, element by element.
fn plain<T: Float>(values: &[T], shape: &[usize], edges: Edges) -> Vec<T> {
    let factor = T::of(1.0 / (2 * shape.len()) as f64);
    let step = |axis: usize| shape[axis + 1..].iter().product::<usize>();
    let sweep = |at: usize| {
        let mut sum = None;
        for (axis, n) in shape.iter().enumerate() {
            let index = at / step(axis) % n;
            if edges == Edges::Fixed && (index == 0 || index + 1 == *n) {
                return values[at];
            }
            for other in [(index + n - 1) % n, (index + 1) % n] {
                let value = values[at - index * step(axis) + other * step(axis)];
                sum = Some(sum.map_or(value, |sum| sum + value));
            }
        }
        sum.unwrap() * factor
    };
    (0..values.len()).map(sweep).collect()
}

fn check<T: Float>(shape: &[usize], edges: Edges, sweeps: usize, parts: usize, seed: u64) {
    let count: usize = shape.iter().product();
    let mut state = seed;
    let values: Vec<T> = (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            T::of((state >> 33) as f64 / 3.0 - 1e8)
        })
        .collect();
    let mut expected = values.clone();
    let mut change = 0.0f64;
    for _ in 0..sweeps {
        let next = plain(&expected, shape, edges);
        change = next.iter().zip(&expected).fold(0.0, |largest, (new, old)| {
            (*new - *old).magnitude().to_f64().max(largest)
        });
        expected = next;
    }
    let grid = Grid::new(shape, edges);
    let mut found = Vec::new();
    let mut largest = 0.0f64;
    for part in 0..parts {
        let core = part * shape[0] / parts..(part + 1) * shape[0] / parts;
        let mut planes = vec![T::of(0.0); core.len() * grid.plane_len()];
        largest = largest.max(relax(&grid, &values, core, sweeps, &mut planes).unwrap());
        found.extend(planes);
    }
    assert_eq!(
        bytemuck::cast_slice::<T, u8>(&found),
        bytemuck::cast_slice::<T, u8>(&expected)
    );
    assert_eq!(largest, change);
}

proptest! {
    #[test]
    fn fused_sweeps_are_the_plain_loop(
        shape in prop_oneof![
            (1usize..40).prop_map(|n| vec![n]),
            (1usize..20, 1usize..40).prop_map(|(m, n)| vec![m, n]),
            (1usize..9, 1usize..7, 1usize..7).prop_map(|(l, m, n)| vec![l, m, n]),
            (1usize..5, 1usize..5, 1usize..4, 1usize..4).prop_map(|(k, l, m, n)| vec![k, l, m, n]),
            (1usize..4, 1usize..4, 1usize..4, 1usize..4, 3usize..5)
                .prop_map(|(j, k, l, m, n)| vec![j, k, l, m, n]),
        ],
        periodic in any::<bool>(),
        sweeps in 1usize..8,
        parts in 1usize..5,
        seed in any::<u64>(),
    ) {
        let edges = if periodic { Edges::Periodic } else { Edges::Fixed };
        check::<f32>(&shape, edges, sweeps, parts, seed);
        check::<f64>(&shape, edges, sweeps, parts, seed);
    }
}
