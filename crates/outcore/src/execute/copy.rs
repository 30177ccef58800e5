//! Copying the runs of a pass between an image of the file and a buffer: the
//! inner loops of everything that is not read or written in place.

use outcore_geometry::Pass;

/// Copies `pass` out of `image`, which holds the file from `image_offset` on,
/// into `buffer`.
pub(crate) fn gather(pass: &Pass, image: &[u8], image_offset: u64, buffer: &mut [u8]) {
    // SAFETY: a slice is memory that can be read, and does not overlap with
    // one that is mutable.
    unsafe { gather_from(pass, (image.as_ptr(), image.len()), image_offset, buffer) }
}

/// As [`gather`], from memory that is given by its address and length.
///
/// # Safety
///
/// The memory can be read, and does not overlap with `buffer`.
pub(crate) unsafe fn gather_from(
    pass: &Pass,
    image: (*const u8, usize),
    image_offset: u64,
    buffer: &mut [u8],
) {
    // SAFETY: a mutable slice is memory that can be written; the rest is the
    // caller's.
    unsafe {
        gather_between(
            pass,
            image,
            image_offset,
            (buffer.as_mut_ptr(), buffer.len()),
        )
    }
}

/// As [`gather`], into memory that is given by its address and length.
///
/// # Safety
///
/// The memory can be written, and does not overlap with `image`.
pub(crate) unsafe fn gather_to(
    pass: &Pass,
    image: &[u8],
    image_offset: u64,
    buffer: (*mut u8, usize),
) {
    // SAFETY: a slice is memory that can be read; the rest is the caller's.
    unsafe { gather_between(pass, (image.as_ptr(), image.len()), image_offset, buffer) }
}

/// See [`gather_from`] and [`gather_to`].
///
/// # Safety
///
/// As there.
unsafe fn gather_between(
    pass: &Pass,
    image: (*const u8, usize),
    image_offset: u64,
    buffer: (*mut u8, usize),
) {
    let from = pass
        .first
        .file_offset
        .checked_sub(image_offset)
        .expect("a pass lies in its image");
    let (from, to) = (from as usize, pass.first.buffer_offset as usize);
    check(from, pass.file_step, pass, image.1);
    check(to, pass.buffer_step, pass, buffer.1);
    // SAFETY: both ranges have just been checked; the rest is the caller's.
    unsafe {
        strided(
            (image.0.add(from), pass.file_step as usize),
            (buffer.0.add(to), pass.buffer_step as usize),
            (pass.count as usize, pass.first.len as usize),
        );
    }
}

/// Copies `pass` from `buffer` into `image`, which holds the file from
/// `image_offset` on.
pub(crate) fn scatter(pass: &Pass, buffer: &[u8], image: &mut [u8], image_offset: u64) {
    // SAFETY: a mutable slice is memory that can be written, and overlaps with
    // no other.
    unsafe {
        scatter_to(
            pass,
            buffer,
            (image.as_mut_ptr(), image.len()),
            image_offset,
        )
    }
}

/// As [`scatter`], into memory that is given by its address and length.
///
/// # Safety
///
/// The memory can be written, and does not overlap with `buffer`.
pub(crate) unsafe fn scatter_to(
    pass: &Pass,
    buffer: &[u8],
    image: (*mut u8, usize),
    image_offset: u64,
) {
    let to = pass
        .first
        .file_offset
        .checked_sub(image_offset)
        .expect("a pass lies in its image");
    let (from, to) = (pass.first.buffer_offset as usize, to as usize);
    check(from, pass.buffer_step, pass, buffer.len());
    check(to, pass.file_step, pass, image.1);
    // SAFETY: as in `gather_from`.
    unsafe {
        strided(
            (buffer.as_ptr().add(from), pass.buffer_step as usize),
            (image.0.add(to), pass.file_step as usize),
            (pass.count as usize, pass.first.len as usize),
        );
    }
}

/// Panics unless runs that begin at `start` and then every `step` bytes lie
/// within `len` bytes.
fn check(start: usize, step: u64, pass: &Pass, len: usize) {
    let end = start as u64 + (pass.count - 1) * step + pass.first.len;
    assert!(end <= len as u64, "a pass must lie inside its buffer");
}

/// Copies `count` pieces of `len` bytes between places that are `step` apart.
///
/// # Safety
///
/// All pieces lie in memory that may be read from, or written to, and no piece
/// of the one overlaps with one of the other.
pub(crate) unsafe fn strided(
    from: (*const u8, usize),
    to: (*mut u8, usize),
    (count, len): (usize, usize),
) {
    // SAFETY: passed on to the caller. A length that is known lets the
    // compiler move each piece in registers.
    unsafe {
        match len {
            1 => pieces(from, to, count, 1),
            2 => pieces(from, to, count, 2),
            4 => pieces(from, to, count, 4),
            8 => pieces(from, to, count, 8),
            16 => pieces(from, to, count, 16),
            _ => pieces(from, to, count, len),
        }
    }
}

/// See [`strided`].
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn pieces(from: (*const u8, usize), to: (*mut u8, usize), count: usize, len: usize) {
    for at in 0..count {
        // SAFETY: passed on to the caller.
        unsafe {
            std::ptr::copy_nonoverlapping(from.0.add(at * from.1), to.0.add(at * to.1), len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcore_geometry::Run;

    #[test]
    fn every_length_is_gathered_and_scattered() {
        for len in [1u64, 2, 3, 4, 7, 8, 16, 40] {
            let first = Run {
                file_offset: 105,
                buffer_offset: 6,
                len,
            };
            let pass = Pass {
                first,
                count: 5,
                file_step: len + 3,
                buffer_step: len + 1,
            };
            let image: Vec<u8> = (0..=255).collect();
            let mut buffer = vec![0; 250];
            gather(&pass, &image, 100, &mut buffer);
            for run in (0..5).map(|at| pass.run(at)) {
                let (f, b, l) = (
                    run.file_offset as usize - 100,
                    run.buffer_offset as usize,
                    len as usize,
                );
                assert_eq!(buffer[b..b + l], image[f..f + l]);
            }
            let mut back = vec![0; 256];
            scatter(&pass, &buffer, &mut back, 100);
            for run in (0..5).map(|at| pass.run(at)) {
                let f = run.file_offset as usize - 100;
                assert_eq!(back[f..f + len as usize], image[f..f + len as usize]);
            }
            assert_eq!(
                back.iter().filter(|byte| **byte != 0).count() as u64,
                5 * len
            );
        }
    }

    #[test]
    #[should_panic(expected = "inside its buffer")]
    fn a_pass_outside_is_refused() {
        let first = Run {
            file_offset: 0,
            buffer_offset: 0,
            len: 8,
        };
        gather(
            &Pass {
                first,
                count: 2,
                file_step: 8,
                buffer_step: 8,
            },
            &[0; 16],
            0,
            &mut [0; 15],
        );
    }
}
