//! Arrays with known contents, and what the kernels make of these in memory.

use std::sync::Arc;

use bytemuck::Pod;
use outcore::storage::MemoryStore;
use outcore::{Array, ArrayDescriptor, Element, reorder};
use outcore_apps::Block;
use outcore_apps::Float;
use outcore_apps::laplace::{Edges, Grid, relax};
use outcore_apps::median::{MedianKernel, Real};

/// An array in memory with this layout, and zeros in it.
pub(crate) fn array<T: Element>(name: &str, shape: &[u64], layout: &str) -> Array {
    let descriptor = ArrayDescriptor::new(shape, T::TYPE).layout(layout.parse().unwrap());
    let store = MemoryStore::from(vec![0; descriptor.byte_len().unwrap() as usize]);
    Array::in_store(name, &descriptor, Arc::new(store)).unwrap()
}

/// Writes row-major values.
pub(crate) fn fill<T: Element + Pod>(array: &Array, values: &[T]) {
    let mut ordered = values.to_vec();
    let row: Vec<usize> = (0..array.shape().len()).collect();
    let order = array.layout().slowest_first();
    let into = bytemuck::cast_slice_mut(&mut ordered);
    reorder(
        array.shape(),
        (bytemuck::cast_slice(values), &row),
        (into, order),
    );
    array.write(&array.whole(), &ordered).unwrap();
}

/// All values in row-major order.
pub(crate) fn contents<T: Element + Pod>(array: &Array) -> Vec<T> {
    let values: Vec<T> = array.read(&array.whole()).unwrap();
    let mut ordered = values.clone();
    let row: Vec<usize> = (0..array.shape().len()).collect();
    let from = (
        bytemuck::cast_slice(&values),
        array.layout().slowest_first(),
    );
    reorder(
        array.shape(),
        from,
        (bytemuck::cast_slice_mut(&mut ordered), &row),
    );
    ordered
}

pub(crate) fn random(count: u64, mut state: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |_| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state >> 29
    })
}

/// The median filter of row-major values.
pub(crate) fn medians<T: Real>(values: &[T], shape: &[u64], window: &[u64]) -> Vec<T> {
    let sizes = |of: &[u64]| of.iter().map(|n| *n as usize).collect::<Vec<_>>();
    let core: Vec<_> = shape.iter().map(|n| 0..*n as usize).collect();
    let mut found = values.to_vec();
    let block = Block {
        values,
        shape: &sizes(shape),
        core: &core,
    };
    MedianKernel::new(&sizes(window))
        .filter(&block, &mut found)
        .unwrap();
    found
}

/// Row-major values after single sweeps, and the change of the last one.
pub(crate) fn swept<T: Float>(
    values: &[T],
    shape: &[u64],
    edges: Edges,
    sweeps: u64,
) -> (Vec<T>, f64) {
    let sizes: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
    let grid = Grid::new(&sizes, edges);
    let mut found = values.to_vec();
    let mut change = 0.0;
    for _ in 0..sweeps {
        let old = found.clone();
        change = relax(&grid, &old, 0..sizes[0], 1, &mut found).unwrap();
    }
    (found, change)
}
