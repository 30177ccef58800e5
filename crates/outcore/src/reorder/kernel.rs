//! [`permute`]: the inner loops of every change of axis order.
//!
//! A box of elements moves between two places in memory. Along each axis it
//! has a step in bytes on either side. Axes that follow one another on both
//! sides are one axis; an axis along which elements touch on both sides makes
//! them one larger element, or a run that is copied as it is. What is left is a
//! transposition in the plane of the two axes that are fastest in the source and
//! in the target, for each index of the others.
//!
//! The plane is cut into squares of 64 bytes by 64 bytes: as many whole lines of
//! the processor's cache are read as are written, and each line is touched once,
//! so it does not matter that lines which are a power of two apart displace one
//! another. A square is turned in memory of its own. Squares are taken from [`BAND`]
//! lines of the source at a time, so that few pages are in use at once.

use std::cmp::Reverse;

use crate::execute::copy::strided;

/// One axis of a box: how many indices, and the bytes from one to the next on
/// either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) count: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// The bytes of a line of the cache.
const LINE: usize = 64;

/// Lines of the source that are gone through together.
const BAND: usize = 64;

/// Copies a box of elements of `size` bytes.
///
/// # Safety
///
/// Every element of the box lies in memory that can be read, and its place in
/// the target in memory that can be written; the two do not overlap, and no two
/// elements have a place in common.
pub(crate) unsafe fn permute(axes: &[Step], size: usize, from: *const u8, to: *mut u8) {
    if axes.iter().any(|axis| axis.count == 0) {
        return;
    }
    let mut axes = folded(axes);
    let mut size = size;
    // Elements that touch on both sides are one.
    if let Some(last) = axes.last()
        && (last.from, last.to) == (size, size)
    {
        size *= last.count;
        axes.pop();
    }
    let Some(rows) = axes.pop() else {
        // SAFETY: passed on to the caller.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, size) };
    };
    let fastest = (0..axes.len()).min_by_key(|at| axes[*at].from);
    let fastest = fastest.filter(|at| axes[*at].from < rows.from && size.is_power_of_two());
    match fastest {
        Some(at) if size <= 16 => {
            let columns = axes.remove(at);
            // SAFETY: passed on to the caller.
            let plane = |from, to| unsafe {
                match size {
                    1 => plane::<1, { LINE }>(rows, columns, from, to),
                    2 => plane::<2, { LINE / 2 }>(rows, columns, from, to),
                    4 => plane::<4, { LINE / 4 }>(rows, columns, from, to),
                    8 => plane::<8, { LINE / 8 }>(rows, columns, from, to),
                    _ => plane::<16, { LINE / 16 }>(rows, columns, from, to),
                }
            };
            // SAFETY: passed on to the caller.
            unsafe { each(&axes, from, to, &plane) };
        }
        _ => {
            // SAFETY: passed on to the caller.
            let line =
                |from, to| unsafe { strided((from, rows.from), (to, rows.to), (rows.count, size)) };
            // SAFETY: passed on to the caller.
            unsafe { each(&axes, from, to, &line) };
        }
    }
}

/// The axes from the slowest to the fastest of the target, those that follow one
/// another on both sides as one, without those of one index.
fn folded(axes: &[Step]) -> Vec<Step> {
    let mut sorted: Vec<Step> = axes.iter().copied().filter(|axis| axis.count > 1).collect();
    sorted.sort_by_key(|axis| Reverse(axis.to));
    let mut folded: Vec<Step> = Vec::with_capacity(sorted.len());
    for axis in sorted {
        match folded.last_mut() {
            Some(outer)
                if (outer.from, outer.to) == (axis.from * axis.count, axis.to * axis.count) =>
            {
                *outer = Step {
                    count: outer.count * axis.count,
                    ..axis
                };
            }
            _ => folded.push(axis),
        }
    }
    folded
}

/// Calls `inner` with the two places of each index of `axes`.
///
/// # Safety
///
/// All of these places lie in the memory that `from` and `to` point into.
unsafe fn each(axes: &[Step], from: *const u8, to: *mut u8, inner: &impl Fn(*const u8, *mut u8)) {
    let Some((axis, faster)) = axes.split_first() else {
        return inner(from, to);
    };
    for at in 0..axis.count {
        // SAFETY: passed on to the caller.
        unsafe {
            each(
                faster,
                from.add(at * axis.from),
                to.add(at * axis.to),
                inner,
            )
        };
    }
}

/// Transposes a plane: `columns` is the axis that is faster in the source,
/// `rows` the one that is faster in the target. `SIDE` elements fill a line.
///
/// # Safety
///
/// As for [`permute`].
unsafe fn plane<const SIZE: usize, const SIDE: usize>(
    rows: Step,
    columns: Step,
    from: *const u8,
    to: *mut u8,
) {
    let dense = columns.from == SIZE && rows.to == SIZE;
    let turn = best_square::<SIZE, SIDE>();
    for band in (0..rows.count).step_by(BAND.max(SIDE)) {
        let end = rows.count.min(band + BAND.max(SIDE));
        for column in (0..columns.count).step_by(SIDE) {
            let wide = SIDE.min(columns.count - column);
            for row in (band..end).step_by(SIDE) {
                let high = SIDE.min(end - row);
                // SAFETY: the square lies in the plane.
                unsafe {
                    let from = from.add(row * rows.from + column * columns.from);
                    let to = to.add(row * rows.to + column * columns.to);
                    if dense && wide == SIDE && high == SIDE {
                        // The same columns of the lines that come next.
                        for at in 0..SIDE {
                            prefetch(from.wrapping_add((at + BAND) * rows.from));
                        }
                        turn((from, rows.from), (to, columns.to));
                    } else {
                        for at in 0..wide {
                            let (from, to) = (from.add(at * columns.from), to.add(at * columns.to));
                            strided((from, rows.from), (to, rows.to), (high, SIZE));
                        }
                    }
                }
            }
        }
    }
}

/// Transposes a square: the address of the first line and the bytes from one line
/// to the next, on either side.
type Square = unsafe fn((*const u8, usize), (*mut u8, usize));

/// The fastest way for squares of such elements on this processor.
fn best_square<const SIZE: usize, const SIDE: usize>() -> Square {
    #[cfg(target_arch = "x86_64")]
    match SIZE {
        4 if super::avx2::is_available() => return super::avx2::square_of_4,
        8 if super::avx2::is_available() => return super::avx2::square_of_8,
        _ => {}
    }
    square::<SIZE, SIDE>
}

/// Asks for the line at an address, which need not be one.
#[inline(always)]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction reads nothing, and does nothing where it could not.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Transposes a square of `SIDE` lines of `SIDE` elements.
///
/// # Safety
///
/// As for [`permute`].
unsafe fn square<const SIZE: usize, const SIDE: usize>(
    (from, from_step): (*const u8, usize),
    (to, to_step): (*mut u8, usize),
) {
    let mut lines = [[[0; SIZE]; SIDE]; SIDE];
    for (row, line) in lines.iter_mut().enumerate() {
        // SAFETY: passed on to the caller; the type has no alignment.
        *line = unsafe {
            from.add(row * from_step)
                .cast::<[[u8; SIZE]; SIDE]>()
                .read()
        };
    }
    (0..SIDE).for_each(|column| {
        let turned: [[u8; SIZE]; SIDE] = std::array::from_fn(|row| lines[row][column]);
        // SAFETY: as above.
        unsafe {
            to.add(column * to_step)
                .cast::<[[u8; SIZE]; SIDE]>()
                .write(turned)
        };
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any box between any two orders, with gaps on both sides, beside a loop
        /// over elements.
        #[test]
        fn boxes_arrive_where_they_belong(
            extents in proptest::collection::vec((1usize..40, 0usize..3, 0usize..3), 1..4),
            seed in any::<u64>(),
            size in proptest::sample::select(vec![1usize, 2, 4, 8, 16]),
        ) {
            let mut order: Vec<usize> = (0..extents.len()).collect();
            order.rotate_left(seed as usize % extents.len());
            if seed & 64 != 0 { order.reverse(); }
            let mut axes = vec![Step { count: 0, from: 0, to: 0 }; extents.len()];
            let (mut from, mut to) = (size, size);
            for axis in (0..extents.len()).rev() {
                axes[axis].count = extents[axis].0;
                axes[axis].from = from;
                from *= extents[axis].0 + extents[axis].1;
            }
            for axis in &order {
                axes[*axis].to = to;
                to *= extents[*axis].0 + extents[*axis].2;
            }
            let source: Vec<u8> = (0..from).map(|at| (at as u64 ^ seed ^ (at as u64 >> 8)) as u8).collect();
            let (mut target, mut expected) = (vec![0xAA; to], vec![0xAA; to]);
            let mut places = vec![(0, 0)];
            for axis in &axes {
                places = places.iter().flat_map(|(from, to)| {
                    (0..axis.count).map(move |at| (from + at * axis.from, to + at * axis.to))
                }).collect();
            }
            for (from, to) in places {
                expected[to..to + size].copy_from_slice(&source[from..from + size]);
            }
            // SAFETY: all places lie in the buffers, as the loop above has shown.
            unsafe { permute(&axes, size, source.as_ptr(), target.as_mut_ptr()) };
            prop_assert_eq!(target, expected);
        }
    }

    #[test]
    fn axes_that_follow_one_another_are_one() {
        let step = |count, from, to| Step { count, from, to };
        assert_eq!(
            folded(&[step(3, 40, 40), step(5, 8, 8), step(2, 4, 4)]),
            [step(30, 4, 4)]
        );
        assert_eq!(
            folded(&[step(1, 7, 9), step(5, 4, 20), step(5, 20, 4)]),
            [step(5, 4, 20), step(5, 20, 4)]
        );
    }
}
