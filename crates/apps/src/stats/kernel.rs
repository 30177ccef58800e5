//! The inner loop for floats: extremes, sum and sum of squares of one chunk in one
//! pass, which a few cycles for each cache line suffice for.
//!
//! Values come by address, since they may stand in a mapping, which others may
//! change meanwhile; none is read twice. What comes next in memory is asked for
//! some lines ahead: the processor does not go over the borders of pages by itself.
//! Several accumulators of each kind, so that no addition waits for the one before.
//! What a NaN does to the extremes is not said; sums become NaN, and the caller
//! looks at that.

/// What one pass over some values comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Folded<T> {
    /// Infinite the wrong way round for no value.
    pub(crate) least: T,
    pub(crate) most: T,
    /// In f64.
    pub(crate) sum: f64,
    pub(crate) squares: f64,
}

/// A float of which chunks are summed.
pub(crate) trait Real: Copy + PartialOrd + Default {
    /// One pass over `count` values.
    ///
    /// # Safety
    ///
    /// So many values can be read from `values` on, which is aligned.
    unsafe fn fold_at(values: *const Self, count: usize) -> Folded<Self>;

    /// The value.
    fn widened(self) -> f64;

    /// One pass.
    fn fold(values: &[Self]) -> Folded<Self> {
        // SAFETY: these are the values of a slice.
        unsafe { Self::fold_at(values.as_ptr(), values.len()) }
    }
}

macro_rules! real {
    ($type:ident, $wide:ident) => {
        impl Real for $type {
            #[inline]
            unsafe fn fold_at(values: *const Self, count: usize) -> Folded<Self> {
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("avx2")
                    && std::arch::is_x86_feature_detected!("fma")
                {
                    // SAFETY: the processor has what the function is compiled for; the
                    // rest is as the caller says.
                    return unsafe { wide::$wide(values, count) };
                }
                let none = (Self::INFINITY, Self::NEG_INFINITY);
                // SAFETY: as the caller says.
                unsafe { portable(values, count, none) }
            }

            #[inline(always)]
            fn widened(self) -> f64 {
                self.into()
            }
        }
    };
}

real!(f32, single);
real!(f64, double);

/// The smaller one; the second if they cannot be compared.
fn lesser<T: PartialOrd>(a: T, b: T) -> T {
    if a < b { a } else { b }
}

/// The larger one; the second if they cannot be compared.
fn greater<T: PartialOrd>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

/// On any processor.
///
/// # Safety
///
/// As for [`Real::fold_at`].
unsafe fn portable<T: Real>(values: *const T, count: usize, none: (T, T)) -> Folded<T> {
    let (mut least, mut most) = ([none.0; 8], [none.1; 8]);
    let (mut sums, mut squares) = ([0.0; 8], [0.0; 8]);
    let mut add = |start: usize, end: usize| {
        for at in 0..end {
            // SAFETY: one of the values, as the caller says.
            let value = unsafe { *values.add(start + at) };
            least[at] = lesser(value, least[at]);
            most[at] = greater(value, most[at]);
            let value = value.widened();
            sums[at] += value;
            squares[at] += value * value;
        }
    };
    (0..count / 8).for_each(|group| add(8 * group, 8));
    add(count / 8 * 8, count % 8);
    Folded {
        least: least.into_iter().fold(none.0, lesser),
        most: most.into_iter().fold(none.1, greater),
        sum: sums.iter().sum(),
        squares: squares.iter().sum(),
    }
}

/// With vectors of 32 bytes.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    use super::{Folded, greater, lesser, portable};

    /// How far ahead memory is asked for: most of a page.
    const AHEAD: usize = 3 << 10;

    /// Values of a turn.
    const TURN: usize = 16;

    macro_rules! wide {
        ($name:ident, $type:ident, $lanes:literal, $set:ident, $load:ident, $min:ident, $max:ident,
         $store:ident, $widened:expr) => {
            /// # Safety
            ///
            /// As for [`Real::fold_at`](super::Real::fold_at).
            #[target_feature(enable = "avx2,fma")]
            pub(super) unsafe fn $name(values: *const $type, count: usize) -> Folded<$type> {
                const VECTORS: usize = TURN / $lanes;
                let none = ($type::INFINITY, $type::NEG_INFINITY);
                let mut least = [$set(none.0); 2];
                let mut most = [$set(none.1); 2];
                let mut sums = [_mm256_setzero_pd(); 4];
                let mut squares = [_mm256_setzero_pd(); 4];
                let turns = count / TURN;
                for turn in 0..turns {
                    // SAFETY: the turn has 16 values, as the caller says. What is asked
                    // for ahead need not exist.
                    unsafe {
                        let group = values.add(turn * TURN);
                        for line in 0..VECTORS / 2 {
                            let ahead = group.wrapping_byte_add(AHEAD + 64 * line);
                            _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                        }
                        for at in 0..VECTORS {
                            let value = $load(group.add(at * $lanes));
                            least[at % 2] = $min(value, least[at % 2]);
                            most[at % 2] = $max(value, most[at % 2]);
                        }
                        for at in 0..4 {
                            let value: __m256d = ($widened)(group.add(4 * at));
                            sums[at] = _mm256_add_pd(sums[at], value);
                            squares[at] = _mm256_fmadd_pd(value, value, squares[at]);
                        }
                    }
                }
                let (mut low, mut high) = ([0.0; $lanes], [0.0; $lanes]);
                // SAFETY: each array holds one vector.
                unsafe {
                    $store(low.as_mut_ptr(), $min(least[0], least[1]));
                    $store(high.as_mut_ptr(), $max(most[0], most[1]));
                }
                let all = |of: [__m256d; 4]| {
                    let all =
                        _mm256_add_pd(_mm256_add_pd(of[0], of[1]), _mm256_add_pd(of[2], of[3]));
                    let mut lanes = [0.0; 4];
                    // SAFETY: the array holds one vector.
                    unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), all) };
                    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
                };
                let done = turns * TURN;
                // SAFETY: what is left of the values.
                let rest = unsafe { portable(values.add(done), count - done, none) };
                Folded {
                    least: low.into_iter().fold(rest.least, lesser),
                    most: high.into_iter().fold(rest.most, greater),
                    sum: all(sums) + rest.sum,
                    squares: all(squares) + rest.squares,
                }
            }
        };
    }

    wide!(
        single,
        f32,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_min_ps,
        _mm256_max_ps,
        _mm256_storeu_ps,
        |at: *const f32| _mm256_cvtps_pd(_mm_loadu_ps(at))
    );
    wide!(
        double,
        f64,
        4,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_min_pd,
        _mm256_max_pd,
        _mm256_storeu_pd,
        |at: *const f64| _mm256_loadu_pd(at)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_agree_with_plain_loops() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 40) as f32 / 1000.0 - 7000.0
        };
        let values: Vec<f32> = (0..300).map(|_| next()).collect();
        let wide: Vec<f64> = values.iter().map(|value| (*value).into()).collect();
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        for count in [0, 1, 7, 15, 16, 17, 31, 32, 33, 64, 100, 299] {
            for start in [0, 1] {
                let (values, wide) = (&values[start..][..count], &wide[start..][..count]);
                // SAFETY: these are the values of a slice.
                let expected = unsafe { portable(wide.as_ptr(), count, none) };
                let near = |sum: f64, squares: f64| {
                    (sum - expected.sum).abs() <= 1e-9 * expected.squares.sqrt().max(1.0)
                        && (squares - expected.squares).abs() <= 1e-12 * expected.squares
                };
                let (single, double) = (f32::fold(values), f64::fold(wide));
                assert!(near(single.sum, single.squares), "{count}");
                assert!(near(double.sum, double.squares), "{count}");
                let extremes = (expected.least, expected.most);
                assert_eq!((double.least, double.most), extremes);
                assert_eq!((single.least.into(), single.most.into()), extremes);
            }
        }
    }
}
