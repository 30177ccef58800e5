//! Copying the runs of a pass between an image of the file and a buffer: the
//! inner loops of everything that is not read or written in place.

use outcore_geometry::Pass;

use crate::element::swap_bytes;

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

/// Reverses the bytes of the numbers of a pass in `image`, which holds the file from
/// `image_offset` on.
pub(super) fn swap_pass(pass: &Pass, image: &mut [u8], image_offset: u64, width: usize) {
    for run in (0..pass.count).map(|at| pass.run(at)) {
        let from = (run.file_offset - image_offset) as usize;
        swap_bytes(&mut image[from..from + run.len as usize], width);
    }
}

/// Panics unless runs that begin at `start` and then every `step` bytes lie
/// within `len` bytes.
fn check(start: usize, step: u64, pass: &Pass, len: usize) {
    let end = start as u64 + (pass.count - 1) * step + pass.first.len;
    assert!(end <= len as u64, "a pass must lie inside its buffer");
}

/// Runs `$copy` with `$len`, which is known to the compiler where that is one of
/// the usual ones: so a piece is moved in registers.
macro_rules! of_known_length {
    ($len:ident => $copy:expr; $($known:literal)*) => {
        match $len {
            $($known => { let $len: usize = $known; $copy })*
            $len => $copy,
        }
    };
    ($len:ident => $copy:expr) => {
        of_known_length!($len => $copy; 1 2 3 4 6 8 10 12 16 20 24 28 32 36 40 44 48 56 64 72 80
            88 96 104 112 120 128)
    };
}

/// Copies `count` pieces of `len` bytes between places that are so many bytes
/// apart.
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
    // SAFETY: passed on to the caller.
    unsafe { of_known_length!(len => pieces(from, to, count, len)) }
}

/// Copies one piece, as [`strided`] does many.
///
/// # Safety
///
/// As there.
#[inline(always)]
pub(crate) unsafe fn once(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: passed on to the caller.
    unsafe { of_known_length!(len => std::ptr::copy_nonoverlapping(from, to, len)) }
}

/// Copies one long piece past the caches: for what is much larger than they
/// are, and so will not be there when it is used. [`streamed`] must follow
/// before others read it.
///
/// # Safety
///
/// As [`strided`].
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE: usize = 64;
    let head = to.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: passed on to the caller; all of it lies within `len` bytes, and
    // what is streamed is aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for line in 0..lines {
            let (from, to) = (from.add(head + line * LINE), to.add(head + line * LINE));
            let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
            let values = [0, 1, 2, 3].map(|at| _mm_loadu_si128(from.add(at)));
            for (at, value) in values.into_iter().enumerate() {
                _mm_stream_si128(to.add(at), value);
            }
        }
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), len - tail);
    }
}

/// Others see what has been [streamed](stream) so far.
#[cfg(target_arch = "x86_64")]
pub(crate) fn streamed() {
    // SAFETY: only waits for what was stored before.
    unsafe { std::arch::x86_64::_mm_sfence() }
}

/// Elsewhere as [`once`].
///
/// # Safety
///
/// As there.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: passed on to the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

/// Nothing is streamed here.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn streamed() {}

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
    fn streams_begin_and_end_anywhere() {
        let from: Vec<u8> = (0..1000).map(|at| at as u8).collect();
        for (start, len) in [(0, 0), (1, 5), (0, 64), (3, 200), (63, 65), (17, 900)] {
            let mut to = vec![0xaa; 1000];
            // SAFETY: both vectors are longer than that.
            unsafe { stream(from[7..].as_ptr(), to[start..].as_mut_ptr(), len) }
            streamed();
            assert_eq!(to[start..start + len], from[7..7 + len]);
            assert!(
                to[..start]
                    .iter()
                    .chain(&to[start + len..])
                    .all(|byte| *byte == 0xaa)
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
