//! What the applications ask of locally placed arrays.

use outcore::{Boundary, Comm, Error, LocalArray, Result, shape_text};

/// Whether the axis has several blocks, so that neighbours are elsewhere.
pub(crate) fn is_divided(array: &LocalArray, axis: usize) -> bool {
    let axis = &array.distribution().axes()[axis];
    axis.extent() > axis.block()
}

/// How deep the overlap areas along an axis are, on both sides.
pub(crate) fn depth_along(array: &LocalArray, axis: usize) -> u64 {
    let (below, above) = overlap_of(array, axis);
    below.min(above)
}

/// How deep they can be filled: a neighbour gives at most all of its block.
pub(crate) fn deepest_fill(array: &LocalArray, axis: usize) -> u64 {
    let (below, above) = overlap_of(array, axis);
    let axis = &array.distribution().axes()[axis];
    let last = axis.extent().saturating_sub(1) % axis.block() + 1;
    below.max(above).min(last)
}

fn overlap_of(array: &LocalArray, axis: usize) -> (u64, u64) {
    let placement = array.whole().local.as_ref();
    let overlap = placement.and_then(|placement| placement.overlap.get(axis));
    overlap.copied().unwrap_or((0, 0))
}

/// Collective: fills the overlap areas as deep as is `wanted` along each axis,
/// as far as there are any, corners included.
pub(crate) fn fill(
    comm: &Comm,
    array: &LocalArray,
    boundary: Boundary,
    wanted: impl Fn(usize) -> u64,
) -> Result<()> {
    let axes = 0..array.whole().shape.len();
    let depths = axes.map(|axis| {
        let (below, above) = overlap_of(array, axis);
        wanted(axis).min(below.max(above))
    });
    array.exchange_depths(comm, &depths.collect::<Vec<_>>(), boundary)
}

/// Fails unless both arrays have the same shape, type and placement.
pub(crate) fn check_placed_alike(source: &LocalArray, target: &LocalArray) -> Result<()> {
    let key = |array: &LocalArray| {
        let whole = array.whole();
        let placement = whole.local.as_ref();
        let placement = placement.map(|local| (local.distribution.clone(), local.overlap.clone()));
        let order = array.part().layout().slowest_first().to_vec();
        (whole.shape.clone(), whole.element_type, placement, order)
    };
    if key(source) == key(target) {
        return Ok(());
    }
    let text = |array: &LocalArray| {
        let whole = array.whole();
        format!(
            "{} ({} {})",
            array.name(),
            shape_text(&whole.shape),
            whole.element_type
        )
    };
    Err(Error::Invalid(format!(
        "the result {} must have the shape, type, layout, distribution and overlap areas of {}",
        text(target),
        text(source)
    )))
}
