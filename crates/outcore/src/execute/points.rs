//! Copies between an image of a part of a file, or a packet, and values that
//! stand at listed places.
//!
//! An entry of the list is a number of records (one, unless there are lengths)
//! that stand together on both sides. A record has `size` bytes; on the side of
//! the image records follow one another, on that of the values they begin
//! `stride` bytes apart.

use std::ptr;

/// Where the entries of a list stand on one side, counted in records.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At<'a> {
    /// One after the other.
    Next,
    /// At these places.
    Short(&'a [u32]),
    /// At these places.
    Long(&'a [u64]),
}

impl<'a> At<'a> {
    /// The places of some of the entries.
    pub(crate) fn part(self, entries: std::ops::Range<usize>) -> Self {
        match self {
            At::Next => At::Next,
            At::Short(places) => At::Short(&places[entries]),
            At::Long(places) => At::Long(&places[entries]),
        }
    }
}

/// A list of entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Points<'a> {
    pub(crate) entries: usize,
    pub(crate) image: At<'a>,
    pub(crate) values: At<'a>,
    /// How many records each entry has; one if there is no list.
    pub(crate) lengths: Option<&'a [u32]>,
}

/// The memory on both sides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides {
    pub(crate) image: *mut u8,
    pub(crate) values: *mut u8,
    /// The bytes of a record.
    pub(crate) size: usize,
    /// The bytes from one record of the values to the next.
    pub(crate) stride: usize,
}

/// Copies from the image to the values.
///
/// # Safety
///
/// All records of all entries must lie in memory that may be read, on the side
/// of the image, and written, on that of the values, and the two do not overlap.
pub(crate) unsafe fn gather(points: &Points<'_>, sides: Sides) {
    // SAFETY: passed on to the caller.
    each(points, sides, |image, values, size| unsafe {
        ptr::copy_nonoverlapping(image.cast_const(), values, size)
    });
}

/// Copies from the values to the image, in the order of the list.
///
/// # Safety
///
/// As for [`gather`], with the sides swapped.
pub(crate) unsafe fn scatter(points: &Points<'_>, sides: Sides) {
    // SAFETY: passed on to the caller.
    each(points, sides, |image, values, size| unsafe {
        ptr::copy_nonoverlapping(values.cast_const(), image, size)
    });
}

/// Calls `copy` with the places of each stretch of records that is contiguous on
/// both sides, and its length in bytes; a constant where records are single and
/// as long as a number, so that it becomes one move.
#[inline(always)]
fn each(points: &Points<'_>, sides: Sides, copy: impl Fn(*mut u8, *mut u8, usize)) {
    let Sides {
        image,
        values,
        size,
        stride,
    } = sides;
    if let Some(lengths) = points.lengths {
        walk(points, Some(lengths), |at, place, len| {
            let (mut from, mut to) = (
                image.wrapping_add(at * size),
                values.wrapping_add(place * stride),
            );
            if size == stride {
                copy(from, to, len * size);
                return;
            }
            for _ in 0..len {
                copy(from, to, size);
                (from, to) = (from.wrapping_add(size), to.wrapping_add(stride));
            }
        });
        return;
    }
    macro_rules! single {
        ($size:expr, $stride:expr) => {
            walk(points, None, |at, place, _| {
                copy(
                    image.wrapping_add(at * $size),
                    values.wrapping_add(place * $stride),
                    $size,
                )
            })
        };
    }
    match (size, stride) {
        (1, 1) => single!(1, 1),
        (2, 2) => single!(2, 2),
        (4, 4) => single!(4, 4),
        (8, 8) => single!(8, 8),
        (16, 16) => single!(16, 16),
        (4, _) => single!(4, stride),
        (8, _) => single!(8, stride),
        (12, 12) => single!(12, 12),
        (24, 24) => single!(24, 24),
        _ => single!(size, stride),
    }
}

/// Calls `visit` for each entry with where it stands in the image and in the
/// values, and its length.
#[inline(always)]
pub(crate) fn walk(
    points: &Points<'_>,
    lengths: Option<&[u32]>,
    mut visit: impl FnMut(usize, usize, usize),
) {
    let entries = points.entries;
    let Some(lengths) = lengths else {
        match (points.image, points.values) {
            (At::Short(image), At::Short(values)) => {
                let pairs = image[..entries].iter().zip(&values[..entries]);
                pairs.for_each(|(at, place)| visit(*at as usize, *place as usize, 1));
            }
            (At::Short(image), At::Next) => {
                let pairs = image[..entries].iter().enumerate();
                pairs.for_each(|(place, at)| visit(*at as usize, place, 1));
            }
            (At::Next, At::Short(values)) => {
                let pairs = values[..entries].iter().enumerate();
                pairs.for_each(|(at, place)| visit(at, *place as usize, 1));
            }
            (image, values) => (0..entries).for_each(|entry| {
                visit(place(image, entry, entry), place(values, entry, entry), 1)
            }),
        }
        return;
    };
    let mut before = 0;
    for (entry, len) in lengths[..entries].iter().enumerate() {
        let (at, place) = (
            place(points.image, entry, before),
            place(points.values, entry, before),
        );
        visit(at, place, *len as usize);
        before += *len as usize;
    }
}

#[inline(always)]
fn place(at: At<'_>, entry: usize, before: usize) -> usize {
    match at {
        At::Next => before,
        At::Short(places) => places[entry] as usize,
        At::Long(places) => places[entry] as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(image: &mut [u8], values: &mut [u8], size: usize, stride: usize) -> Sides {
        Sides {
            image: image.as_mut_ptr(),
            values: values.as_mut_ptr(),
            size,
            stride,
        }
    }

    #[test]
    fn points_and_runs_reach_their_places() {
        for size in [1, 2, 3, 4, 8, 12, 16, 24] {
            let stride = 2 * size;
            for stride in [size, stride] {
                let from: Vec<u8> = (0..8 * stride).map(|byte| byte as u8).collect();
                let mut values = from.clone();
                let mut image = vec![0; 8 * size];
                let points = Points {
                    entries: 3,
                    image: At::Short(&[6, 1, 3]),
                    values: At::Long(&[0, 7, 2]),
                    lengths: Some(&[2, 1, 2]),
                };
                // SAFETY: all places lie inside of both buffers.
                unsafe { scatter(&points, sides(&mut image, &mut values, size, stride)) };
                for (at, place) in [(6, 0), (7, 1), (1, 7), (3, 2), (4, 3)] {
                    assert_eq!(
                        image[at * size..(at + 1) * size],
                        from[place * stride..place * stride + size]
                    );
                }
                let mut back = vec![0; 8 * stride];
                let points = Points {
                    entries: 2,
                    image: At::Short(&[6, 3]),
                    values: At::Next,
                    lengths: None,
                };
                // SAFETY: as above.
                unsafe { gather(&points, sides(&mut image, &mut back, size, stride)) };
                assert_eq!(back[..size], from[..size]);
                assert_eq!(
                    back[stride..stride + size],
                    from[2 * stride..2 * stride + size]
                );
            }
        }
    }
}
