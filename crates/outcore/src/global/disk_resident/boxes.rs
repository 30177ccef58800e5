//! Copies between two dense buffers: what a section takes of the one goes to
//! what a section of the same shape takes of the other.

use outcore_geometry::Section;

use crate::execute::copy::strided;

/// One end of a copy: a dense buffer, the last axis fastest, and the section of
/// it that is meant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) shape: &'a [u64],
    pub(crate) section: &'a Section,
}

/// Equal stretches of bytes, at equal distances on both sides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strip {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) from_step: usize,
    pub(crate) to_step: usize,
    pub(crate) count: usize,
    pub(crate) len: usize,
}

/// Calls `each` with all strips of two sections of the same shape, whose
/// elements have `size` bytes.
pub(crate) fn strips(from: Side<'_>, to: Side<'_>, size: usize, mut each: impl FnMut(Strip)) {
    let axes = from.section.axes().len();
    if from.section.is_empty() {
        return;
    }
    let (from_steps, to_steps) = (steps(from.shape, size), steps(to.shape, size));
    // 1. The last axes that are adjacent on both sides are one stretch.
    let mut strip = Strip {
        from: 0,
        to: 0,
        from_step: 0,
        to_step: 0,
        count: 1,
        len: size,
    };
    let mut outer = axes;
    while outer > 0 {
        let axis = outer - 1;
        let (here, there) = (&from.section.axes()[axis], &to.section.axes()[axis]);
        let adjacent = strip.len == from_steps[axis] && strip.len == to_steps[axis];
        let dense =
            |axis: &outcore_geometry::AxisSection| axis.count() == 1 || axis.stride() == Some(1);
        if !(adjacent && dense(here) && dense(there)) {
            break;
        }
        strip.from += here.index(0) as usize * from_steps[axis];
        strip.to += there.index(0) as usize * to_steps[axis];
        strip.len *= here.count() as usize;
        outer -= 1;
    }
    // 2. One axis more is a strip, if its steps are equal.
    if outer > 0 {
        let axis = outer - 1;
        let (here, there) = (&from.section.axes()[axis], &to.section.axes()[axis]);
        if let (Some(here_stride), Some(there_stride)) = (here.stride(), there.stride()) {
            strip.from += here.index(0) as usize * from_steps[axis];
            strip.to += there.index(0) as usize * to_steps[axis];
            strip.from_step = here_stride as usize * from_steps[axis];
            strip.to_step = there_stride as usize * to_steps[axis];
            strip.count = here.count() as usize;
            outer -= 1;
        }
    }
    // 3. The others are loops.
    let mut at = vec![0u64; outer];
    loop {
        let mut next = strip;
        for axis in 0..outer {
            next.from += from.section.axes()[axis].index(at[axis]) as usize * from_steps[axis];
            next.to += to.section.axes()[axis].index(at[axis]) as usize * to_steps[axis];
        }
        each(next);
        let mut axis = outer;
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            at[axis] += 1;
            if at[axis] < from.section.axes()[axis].count() {
                break;
            }
            at[axis] = 0;
        }
    }
}

/// The bytes from one index of an axis to the next.
fn steps(shape: &[u64], size: usize) -> Vec<usize> {
    let mut steps = vec![size; shape.len()];
    for axis in (1..shape.len()).rev() {
        steps[axis - 1] = steps[axis] * shape[axis] as usize;
    }
    steps
}

/// Copies elements of `size` bytes between sections of the same shape.
pub(crate) fn copy_box(
    (from, from_side): (&[u8], Side<'_>),
    (to, to_side): (&mut [u8], Side<'_>),
    size: usize,
) {
    let (start, end) = (to.as_mut_ptr(), to.len());
    strips(from_side, to_side, size, |strip| {
        let last = strip.count - 1;
        let inside = |at: usize, step: usize, len: usize| at + last * step + strip.len <= len;
        assert!(
            inside(strip.from, strip.from_step, from.len()) && inside(strip.to, strip.to_step, end),
            "a section must lie inside its buffer"
        );
        // SAFETY: both ranges have just been checked, and a mutable slice does
        // not overlap with another one.
        unsafe {
            strided(
                (from.as_ptr().add(strip.from), strip.from_step),
                (start.add(strip.to), strip.to_step),
                (strip.count, strip.len),
            );
        }
    });
}

/// Where a section of a dense buffer is one stretch of bytes, where that is.
pub(crate) fn stretch(side: Side<'_>, size: usize) -> Option<std::ops::Range<usize>> {
    let whole = side.section.shape();
    let dense = Section::whole(&whole).ok()?;
    let own = Side {
        shape: &whole,
        section: &dense,
    };
    let bytes = side.section.count() as usize * size;
    let mut found = None;
    let mut strips_seen = 0;
    strips(side, own, size, |strip| {
        strips_seen += 1;
        if strip.count * strip.len == bytes && (strip.count == 1 || strip.from_step == strip.len) {
            found = Some(strip.from..strip.from + bytes);
        }
    });
    found.filter(|_| strips_seen == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_section_goes_to_any_other_of_its_shape() {
        let shapes = ([4u64, 6, 5], [7u64, 6, 9]);
        let cases = [
            (":, :, :", "1:5, :, 2:7"),
            ("::3, 1:5:2, :", "0:6:5, [0,4], 1:6"),
            ("2, :, ::2", "6, :, 3:6"),
            ("[0,1,3], 5, 0:4", "4:7, 0, 0:8:2"),
            ("1:3, :, :", "3:5, :, 0:9:2"),
        ];
        for (here, there) in cases {
            let here = Section::parse(here, &shapes.0).unwrap();
            let there_text = there;
            let there = Section::parse(there, &shapes.1).unwrap();
            let there = match there.shape() == here.shape() {
                true => there,
                false => panic!("{here} is not of the shape of {there_text}"),
            };
            let from: Vec<u16> = (0..120).collect();
            let mut to = vec![999u16; 7 * 6 * 9];
            copy_box(
                (
                    bytemuck::cast_slice(&from),
                    Side {
                        shape: &shapes.0,
                        section: &here,
                    },
                ),
                (
                    bytemuck::cast_slice_mut(&mut to),
                    Side {
                        shape: &shapes.1,
                        section: &there,
                    },
                ),
                2,
            );
            let mut copied = 0;
            for a in 0..here.axes()[0].count() {
                for b in 0..here.axes()[1].count() {
                    for c in 0..here.axes()[2].count() {
                        let at = |section: &Section, shape: &[u64]| {
                            let index = [a, b, c].into_iter().zip(section.axes());
                            let index = index.map(|(at, axis)| axis.index(at));
                            index.zip(shape).fold(0, |place, (at, n)| place * n + at) as usize
                        };
                        assert_eq!(to[at(&there, &shapes.1)], from[at(&here, &shapes.0)]);
                        copied += 1;
                    }
                }
            }
            assert_eq!(to.iter().filter(|value| **value != 999).count(), copied);
        }
    }

    #[test]
    fn stretches_are_found() {
        let shape = [4, 6];
        let found = |text: &str| {
            let section = Section::parse(text, &shape).unwrap();
            let side = Side {
                shape: &shape,
                section: &section,
            };
            stretch(side, 8)
        };
        assert_eq!(found(":, :"), Some(0..192));
        assert_eq!(found("1:3, :"), Some(48..144));
        assert_eq!(found("2, 1:4"), Some(104..128));
        assert_eq!(found("1:3, 0:5"), None);
        assert_eq!(found("::2, :"), None);
    }
}
