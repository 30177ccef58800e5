//! The inner loops for floats: extremes and sums of one chunk, which is in the
//! processor's first cache.
//!
//! Extremes and sums are two loops, since together they need more registers than
//! there are. Every loop has several accumulators, so that no addition waits for the one before.
//! What a NaN does to the extremes is not said; sums become NaN, and the caller
//! looks at that.

/// A float of which chunks are summed.
pub(crate) trait Real: Copy + PartialOrd + Default {
    /// The least and the largest value; infinite the wrong way round for none.
    fn extremes(values: &[Self]) -> (Self, Self);

    /// The sum and the sum of squares, in f64.
    fn sums(values: &[Self]) -> (f64, f64);

    /// The value.
    fn widened(self) -> f64;
}

macro_rules! real {
    ($type:ident, $wide:ident) => {
        impl Real for $type {
            fn extremes(values: &[Self]) -> (Self, Self) {
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has what the function is compiled for.
                    return unsafe { wide::$wide::extremes(values) };
                }
                portable_extremes(values, (Self::INFINITY, Self::NEG_INFINITY))
            }

            fn sums(values: &[Self]) -> (f64, f64) {
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has what the function is compiled for.
                    return unsafe { wide::$wide::sums(values) };
                }
                portable_sums(values)
            }

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

fn portable_extremes<T: Real>(values: &[T], none: (T, T)) -> (T, T) {
    values.iter().fold(none, |(least, most), value| {
        (lesser(*value, least), greater(*value, most))
    })
}

fn portable_sums<T: Real>(values: &[T]) -> (f64, f64) {
    let mut sums = [(0.0, 0.0); 8];
    let (groups, rest) = values.as_chunks::<8>();
    let mut add = |values: &[T]| {
        for ((sum, squares), value) in sums.iter_mut().zip(values) {
            let value = value.widened();
            *sum += value;
            *squares += value * value;
        }
    };
    groups.iter().for_each(|group| add(group));
    add(rest);
    let all = sums.iter();
    all.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1))
}

/// With vectors of 32 bytes.
#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{portable_extremes, portable_sums};

    macro_rules! wide {
        ($name:ident, $type:ident, $lanes:literal, $set:ident, $load:ident, $min:ident, $max:ident,
         $store:ident, $widened:expr) => {
            pub(super) mod $name {
                use std::arch::x86_64::*;

                use super::{portable_extremes, portable_sums};

                #[target_feature(enable = "avx2")]
                pub(in super::super) fn extremes(values: &[$type]) -> ($type, $type) {
                    const GROUP: usize = 4 * $lanes;
                    let (groups, rest) = values.as_chunks::<GROUP>();
                    let mut least = [$set($type::INFINITY); 4];
                    let mut most = [$set($type::NEG_INFINITY); 4];
                    for group in groups {
                        for at in 0..4 {
                            // SAFETY: the group has four times so many values.
                            let value = unsafe { $load(group.as_ptr().add(at * $lanes)) };
                            least[at] = $min(value, least[at]);
                            most[at] = $max(value, most[at]);
                        }
                    }
                    let least = $min($min(least[0], least[1]), $min(least[2], least[3]));
                    let most = $max($max(most[0], most[1]), $max(most[2], most[3]));
                    let (mut low, mut high) = ([0.0; $lanes], [0.0; $lanes]);
                    // SAFETY: each array holds one vector.
                    unsafe {
                        $store(low.as_mut_ptr(), least);
                        $store(high.as_mut_ptr(), most);
                    }
                    let none = ($type::INFINITY, $type::NEG_INFINITY);
                    let (least, _) = portable_extremes(&low, none);
                    let (_, most) = portable_extremes(&high, none);
                    portable_extremes(rest, (least, most))
                }

                #[target_feature(enable = "avx2")]
                pub(in super::super) fn sums(values: &[$type]) -> (f64, f64) {
                    let (groups, rest) = values.as_chunks::<16>();
                    let mut sums = [_mm256_setzero_pd(); 4];
                    let mut squares = [_mm256_setzero_pd(); 4];
                    for group in groups {
                        for at in 0..4 {
                            // SAFETY: the group has 16 values, of which four are read.
                            let value: __m256d = unsafe { ($widened)(group.as_ptr().add(4 * at)) };
                            sums[at] = _mm256_add_pd(sums[at], value);
                            let square = _mm256_mul_pd(value, value);
                            squares[at] = _mm256_add_pd(squares[at], square);
                        }
                    }
                    let pairs = |of: [__m256d; 4]| {
                        let all =
                            _mm256_add_pd(_mm256_add_pd(of[0], of[1]), _mm256_add_pd(of[2], of[3]));
                        let mut lanes = [0.0; 4];
                        // SAFETY: the array holds one vector.
                        unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), all) };
                        (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
                    };
                    let more = portable_sums(rest);
                    (pairs(sums) + more.0, pairs(squares) + more.1)
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
        for count in [0, 1, 7, 15, 16, 17, 31, 32, 33, 64, 100, 300] {
            let expected = portable_sums(&wide[..count]);
            let near = |(sum, squares): (f64, f64)| {
                (sum - expected.0).abs() <= 1e-9 * expected.1.sqrt().max(1.0)
                    && (squares - expected.1).abs() <= 1e-12 * expected.1
            };
            assert!(near(f32::sums(&values[..count])), "{count}");
            assert!(near(f64::sums(&wide[..count])), "{count}");
            let none = (f64::INFINITY, f64::NEG_INFINITY);
            let extremes = portable_extremes(&wide[..count], none);
            assert_eq!(f64::extremes(&wide[..count]), extremes);
            let (least, most) = f32::extremes(&values[..count]);
            assert_eq!((f64::from(least), f64::from(most)), extremes);
        }
    }
}
