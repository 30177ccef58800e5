//! Squares of 4-byte and 8-byte elements in registers, where the processor has
//! AVX2: half the time of the loop over elements, which moves each one by itself.

use std::arch::x86_64::*;

/// Whether this processor can.
pub(super) fn is_available() -> bool {
    std::is_x86_feature_detected!("avx2")
}

/// Transposes a square of 16 lines of 16 elements of 4 bytes.
///
/// # Safety
///
/// [`is_available`]; the lines, which are so many bytes apart, can be read and
/// written.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn square_of_4(
    (from, from_step): (*const u8, usize),
    (to, to_step): (*mut u8, usize),
) {
    for row in [0, 8] {
        for column in [0, 8] {
            // SAFETY: passed on to the caller.
            unsafe {
                eight_by_eight(
                    (from.add(row * from_step + 4 * column), from_step),
                    (to.add(column * to_step + 4 * row), to_step),
                );
            }
        }
    }
}

/// # Safety
///
/// As for [`square_of_4`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn eight_by_eight((from, from_step): (*const u8, usize), (to, to_step): (*mut u8, usize)) {
    let mut lines = [_mm256_setzero_ps(); 8];
    for (row, line) in lines.iter_mut().enumerate() {
        // SAFETY: passed on to the caller; the load needs no alignment.
        *line = unsafe { _mm256_loadu_ps(from.add(row * from_step).cast()) };
    }
    // Pairs of elements, then fours, then the halves of lines.
    let [a, b, c, d, e, f, g, h] = lines;
    let pairs = |a, b, c, d| {
        let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let (low2, high2) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
        [
            _mm256_shuffle_ps::<0x44>(low, low2),
            _mm256_shuffle_ps::<0xee>(low, low2),
            _mm256_shuffle_ps::<0x44>(high, high2),
            _mm256_shuffle_ps::<0xee>(high, high2),
        ]
    };
    let (upper, lower) = (pairs(a, b, c, d), pairs(e, f, g, h));
    for at in 0..4 {
        let first = _mm256_permute2f128_ps::<0x20>(upper[at], lower[at]);
        let second = _mm256_permute2f128_ps::<0x31>(upper[at], lower[at]);
        // SAFETY: passed on to the caller; the stores need no alignment.
        unsafe {
            _mm256_storeu_ps(to.add(at * to_step).cast(), first);
            _mm256_storeu_ps(to.add((at + 4) * to_step).cast(), second);
        }
    }
}

/// Transposes a square of 8 lines of 8 elements of 8 bytes.
///
/// # Safety
///
/// As for [`square_of_4`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn square_of_8(
    (from, from_step): (*const u8, usize),
    (to, to_step): (*mut u8, usize),
) {
    for row in [0, 4] {
        for column in [0, 4] {
            // SAFETY: passed on to the caller.
            unsafe {
                four_by_four(
                    (from.add(row * from_step + 8 * column), from_step),
                    (to.add(column * to_step + 8 * row), to_step),
                );
            }
        }
    }
}

/// # Safety
///
/// As for [`square_of_4`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn four_by_four((from, from_step): (*const u8, usize), (to, to_step): (*mut u8, usize)) {
    let mut lines = [_mm256_setzero_pd(); 4];
    for (row, line) in lines.iter_mut().enumerate() {
        // SAFETY: passed on to the caller; the load needs no alignment.
        *line = unsafe { _mm256_loadu_pd(from.add(row * from_step).cast()) };
    }
    let [a, b, c, d] = lines;
    let (even, odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
    let (even2, odd2) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
    let turned = [
        _mm256_permute2f128_pd::<0x20>(even, even2),
        _mm256_permute2f128_pd::<0x20>(odd, odd2),
        _mm256_permute2f128_pd::<0x31>(even, even2),
        _mm256_permute2f128_pd::<0x31>(odd, odd2),
    ];
    for (column, line) in turned.into_iter().enumerate() {
        // SAFETY: passed on to the caller; the store needs no alignment.
        unsafe { _mm256_storeu_pd(to.add(column * to_step).cast(), line) };
    }
}
