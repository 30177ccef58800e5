//! [`reorder`]: a dense buffer from one axis order into another.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod kernel;

pub(crate) use kernel::{Step, permute};

/// Copies `from`, a dense buffer of `shape` with the axes in the given order
/// (slowest first), into `to` with the axes in its order. Both have the same
/// length; the size of an element follows from it.
pub fn reorder(shape: &[u64], from: (&[u8], &[usize]), to: (&mut [u8], &[usize])) {
    let ((source, source_order), (target, target_order)) = (from, to);
    assert_eq!(
        source.len(),
        target.len(),
        "both buffers hold the same elements"
    );
    if source_order == target_order || source.is_empty() {
        return target.copy_from_slice(source);
    }
    let count: u64 = shape.iter().product();
    let size = source.len() / count as usize;
    assert_eq!(
        (size * count as usize, size > 0),
        (source.len(), true),
        "buffers hold whole elements"
    );
    let (from, to) = (
        dense_steps(shape, source_order, size),
        dense_steps(shape, target_order, size),
    );
    let axes = (0..shape.len()).map(|axis| Step {
        count: shape[axis] as usize,
        from: from[axis],
        to: to[axis],
    });
    // SAFETY: in a dense buffer with each axis once in its order, every element
    // lies inside; `to` is borrowed mutably, so the two do not overlap.
    unsafe {
        permute(
            &axes.collect::<Vec<_>>(),
            size,
            source.as_ptr(),
            target.as_mut_ptr(),
        )
    };
}

/// The bytes from one index of each axis to the next in a dense buffer of
/// elements of `size` bytes; panics unless `order` names each axis once.
pub(crate) fn dense_steps(shape: &[u64], order: &[usize], size: usize) -> Vec<usize> {
    assert_eq!(order.len(), shape.len(), "an order names each axis");
    let mut steps = vec![0; shape.len()];
    let mut step = size;
    for axis in order.iter().rev() {
        assert_eq!(steps[*axis], 0, "an order names each axis once");
        steps[*axis] = step;
        step *= (shape[*axis] as usize).max(1);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_change_there_and_back() {
        let source: Vec<u8> = (0..2 * 3 * 4 * 2).collect();
        let (mut there, mut back) = (vec![0; source.len()], vec![0; source.len()]);
        let shape = [2, 3, 4];
        reorder(&shape, (&source, &[0, 1, 2]), (&mut there, &[1, 2, 0]));
        // Element (1, 0, 0) stands at 12 in row order, at 1 with axis 0 fastest.
        assert_eq!(there[2..4], source[24..26]);
        reorder(&shape, (&there, &[1, 2, 0]), (&mut back, &[0, 1, 2]));
        assert_eq!(source, back);
    }
}
