//! What flows along edges, in memory.

use super::problem::EdgeSweep;
use crate::float::Float;

/// Adds to `sums` what flows along edges between the records of `values`, which
/// have so many components each.
pub(super) fn flow<T: Float>(
    edges: &[[u32; 2]],
    values: &[T],
    sums: &mut [T],
    components: usize,
    step_size: T,
) {
    if components == 1 {
        for [a, b] in edges {
            let (a, b) = (*a as usize, *b as usize);
            let amount = step_size * (values[b] - values[a]);
            sums[a] = sums[a] + amount;
            sums[b] = sums[b] - amount;
        }
        return;
    }
    for [a, b] in edges {
        let (a, b) = (*a as usize * components, *b as usize * components);
        for component in 0..components {
            let (a, b) = (a + component, b + component);
            let amount = step_size * (values[b] - values[a]);
            sums[a] = sums[a] + amount;
            sums[b] = sums[b] - amount;
        }
    }
}

/// The same steps on nodes and edges in memory; nodes have so many components
/// each.
///
/// ```
/// use outcore_apps::edge_sweep::{EdgeSweep, sweep_in_memory};
/// let mut values = vec![8.0, 0.0, 0.0];
/// let sweep = EdgeSweep { done: 0, steps: 1, step_size: 0.25 };
/// sweep_in_memory(&[[0, 1], [2, 1]], &mut values, 1, &sweep);
/// assert_eq!(values, [6.0, 2.0, 0.0]);
/// ```
pub fn sweep_in_memory<T: Float>(
    edges: &[[u32; 2]],
    values: &mut [T],
    components: usize,
    sweep: &EdgeSweep,
) {
    let mut old = values.to_vec();
    for _ in sweep.done..sweep.steps {
        old.copy_from_slice(values);
        flow(edges, &old, values, components, T::of(sweep.step_size));
    }
}
