//! The arithmetic of one row: averages of neighbours, and how much they
//! changed.
//!
//! Sums are formed from left to right and multiplied by one over the number of
//! neighbours, so that any program that adds in the same order gets the same
//! bits.

use crate::cpu::vectorised;
use crate::float::Float;

vectorised! {
    /// Writes the average of the neighbours, all as long as the result.
    pub(super) fn average[T: Float](neighbours: &[&[T]], factor: T, result: &mut [T]) {
        let count = result.len();
        match neighbours {
            [a, b] => {
                let (a, b) = (&a[..count], &b[..count]);
                for i in 0..count {
                    result[i] = (a[i] + b[i]) * factor;
                }
            }
            [a, b, c, d] => {
                let (a, b, c, d) = (&a[..count], &b[..count], &c[..count], &d[..count]);
                for i in 0..count {
                    result[i] = (((a[i] + b[i]) + c[i]) + d[i]) * factor;
                }
            }
            [a, b, c, d, e, f] => {
                let (a, b, c) = (&a[..count], &b[..count], &c[..count]);
                let (d, e, f) = (&d[..count], &e[..count], &f[..count]);
                for i in 0..count {
                    result[i] = (((((a[i] + b[i]) + c[i]) + d[i]) + e[i]) + f[i]) * factor;
                }
            }
            [first, others @ ..] => {
                result.copy_from_slice(first);
                for other in others {
                    for (sum, value) in result.iter_mut().zip(*other) {
                        *sum = *sum + *value;
                    }
                }
                for sum in result {
                    *sum = *sum * factor;
                }
            }
            [] => {}
        }
    }
}

vectorised! {
    /// The largest difference of two rows; NaN if any is NaN.
    pub(super) fn largest_change[T: Float](new: &[T], old: &[T]) -> f64 {
        // As many at a time as there are in two wide vectors of f32.
        const LANES: usize = 16;
        let mut largest = [T::of(0.0); LANES];
        let mut unknown = [false; LANES];
        let (new_chunks, old_chunks) = (new.chunks_exact(LANES), old.chunks_exact(LANES));
        let rest = new_chunks.remainder().iter().zip(old_chunks.remainder());
        for (new, old) in new_chunks.zip(old_chunks) {
            for lane in 0..LANES {
                let change = (new[lane] - old[lane]).magnitude();
                largest[lane] = if change > largest[lane] { change } else { largest[lane] };
                unknown[lane] |= change.is_unknown();
            }
        }
        for (new, old) in rest {
            let change = (*new - *old).magnitude();
            largest[0] = if change > largest[0] { change } else { largest[0] };
            unknown[0] |= change.is_unknown();
        }
        if unknown.contains(&true) {
            return f64::NAN;
        }
        largest.iter().fold(0.0, |largest, change| change.to_f64().max(largest))
    }
}

/// The larger of two changes; NaN if either is.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_is_never_lost() {
        let old = vec![0.0f32; 100];
        for at in [0, 15, 16, 99] {
            let mut new = vec![1.0f32; 100];
            assert_eq!(largest_change(&new, &old), 1.0);
            new[at] = -3.5;
            assert_eq!(largest_change(&new, &old), 3.5);
            new[at] = f32::NAN;
            assert!(largest_change(&new, &old).is_nan());
        }
        assert!(larger(f64::NAN, 1.0).is_nan() && larger(1.0, f64::NAN).is_nan());
        assert_eq!(larger(1.0, 2.0), 2.0);
    }

    #[test]
    fn any_number_of_neighbours_is_added_in_order() {
        let rows: Vec<Vec<f32>> = (0..10u8).map(|k| vec![0.1 * f32::from(k * k); 3]).collect();
        for count in [2, 4, 6, 8, 10] {
            let rows: Vec<&[f32]> = rows[..count].iter().map(Vec::as_slice).collect();
            let mut result = [0.0; 3];
            average(&rows, 0.3, &mut result);
            let sum = rows[1..].iter().fold(rows[0][1], |sum, row| sum + row[1]);
            assert_eq!(result, [sum * 0.3; 3]);
        }
    }
}
