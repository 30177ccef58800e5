//! [`reorder`]: a dense buffer from one axis order into another.

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
    match size {
        1 => gather::<1>(shape, source, source_order, target, target_order),
        2 => gather::<2>(shape, source, source_order, target, target_order),
        4 => gather::<4>(shape, source, source_order, target, target_order),
        8 => gather::<8>(shape, source, source_order, target, target_order),
        16 => gather::<16>(shape, source, source_order, target, target_order),
        _ => panic!("no element has {size} bytes"),
    }
}

/// Goes through the target in its order and fetches each element.
fn gather<const SIZE: usize>(
    shape: &[u64],
    source: &[u8],
    source_order: &[usize],
    target: &mut [u8],
    target_order: &[usize],
) {
    let (source, _) = source.as_chunks::<SIZE>();
    let (target, _) = target.as_chunks_mut::<SIZE>();
    let mut steps = vec![0; shape.len()];
    let mut step = 1;
    for axis in source_order.iter().rev() {
        steps[*axis] = step;
        step *= shape[*axis] as usize;
    }
    let (fastest, slower) = target_order
        .split_last()
        .expect("two orders differ only with axes");
    let mut positions = vec![0; slower.len()];
    for line in target.chunks_exact_mut(shape[*fastest] as usize) {
        let start: usize = slower
            .iter()
            .zip(&positions)
            .map(|(axis, at)| steps[*axis] * at)
            .sum();
        let fetched = source[start..].iter().step_by(steps[*fastest]);
        line.iter_mut()
            .zip(fetched)
            .for_each(|(element, from)| *element = *from);
        for (axis, at) in slower.iter().zip(&mut positions).rev() {
            *at += 1;
            if *at < shape[*axis] as usize {
                break;
            }
            *at = 0;
        }
    }
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
