//! [`Number`]: how each element type is summed.
//!
//! A chunk has at most [`CHUNK`] elements, so that it stays in the processor's
//! first cache while several loops go over it, and so that sums of integers of up
//! to 32 bits fit 64. Sums of floats are in f64. The squared distances from the mean
//! come from the sum of squares where that loses nothing worth mentioning, and from
//! a second loop over the chunk where it would.

use outcore::{Complex, Element, f16};

use super::kernel::{Folded, Real};
use super::summary::Chunk;
use super::value::Value;
use crate::cpu::vectorised;

/// The elements of a chunk.
pub(crate) const CHUNK: usize = 4096;

/// The squared distances must be at least this part of the squares for their
/// difference to be taken: at worst 1e-10 of them is rounding then.
const SOUND: f64 = 1e-3;

/// An element type of which there are statistics.
pub(crate) trait Number: Element {
    /// The sum of nothing.
    const ZERO: Value;

    /// What at most [`CHUNK`] elements come to.
    fn chunk(values: &[Self]) -> Chunk;

    /// The same of at most so many elements at an address, in one pass; `None` if
    /// that does not tell everything.
    ///
    /// # Safety
    ///
    /// So many elements can be read from `values` on, which is aligned. Others may
    /// change them meanwhile.
    unsafe fn glance(values: *const Self, count: usize) -> Option<Chunk> {
        let _ = (values, count);
        None
    }

    /// The number; a NaN is `Real`.
    fn value(self) -> Value;
}

/// A chunk without numbers.
fn nothing(nans: u64, zero: Value) -> Chunk {
    Chunk {
        count: 0,
        nans,
        least: zero,
        most: zero,
        sum: zero,
        squares: 0.0,
    }
}

/// A chunk of which one pass tells everything: no NaN, nothing infinite, and squares
/// that do not cancel.
fn plain<T: Real>(count: usize, folded: &Folded<T>) -> Option<Chunk> {
    let Folded { sum, squares, .. } = *folded;
    let apart = squares - sum * (sum / count as f64);
    // False for a NaN, too.
    let sound = apart >= SOUND * squares && squares.is_finite() && count > 0;
    sound.then(|| of_folded(count, folded, apart, 0))
}

fn of_folded<T: Real>(count: usize, folded: &Folded<T>, apart: f64, nans: u64) -> Chunk {
    Chunk {
        count: count as u64,
        nans,
        least: Value::Real(folded.least.widened()),
        most: Value::Real(folded.most.widened()),
        sum: Value::Real(folded.sum),
        squares: apart,
    }
}

/// Of floats without NaNs.
fn chunk_of_reals<T: Real + Whole>(values: &[T], folded: &Folded<T>, nans: u64) -> Chunk {
    if values.is_empty() {
        return nothing(nans, Value::Real(0.0));
    }
    let mut chunk = match plain(values.len(), folded) {
        Some(chunk) => chunk,
        None => {
            let mean = folded.sum / values.len() as f64;
            of_folded(values.len(), folded, squared_distances(values, mean), 0)
        }
    };
    chunk.nans = nans;
    chunk
}

/// Of floats: NaNs are left out, if the sum says that there may be some.
fn chunk_of_floats<T: Real + Whole>(values: &[T]) -> Chunk {
    let folded = T::fold(values);
    if folded.sum.is_finite() {
        return chunk_of_reals(values, &folded, 0);
    }
    let mut kept = [T::default(); CHUNK];
    let mut count = 0;
    for value in values {
        kept[count] = *value;
        count += usize::from(!value.widened().is_nan());
    }
    let kept = &kept[..count];
    chunk_of_reals(kept, &T::fold(kept), (values.len() - count) as u64)
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const ZERO: Value = Value::Real(0.0);

            fn chunk(values: &[Self]) -> Chunk {
                chunk_of_floats(values)
            }

            unsafe fn glance(values: *const Self, count: usize) -> Option<Chunk> {
                // SAFETY: as the caller says.
                plain(count, &unsafe { Self::fold_at(values, count) })
            }

            fn value(self) -> Value {
                Value::Real(self.into())
            }
        }
    )*};
}

floats!(f32, f64);

/// Types whose chunks are brought into another one first.
macro_rules! through {
    ($($type:ty, $real:ty, $of:expr);*) => {$(
        impl Number for $type {
            const ZERO: Value = Value::Real(0.0);

            fn chunk(values: &[Self]) -> Chunk {
                let mut reals = [<$real>::default(); CHUNK];
                let reals = &mut reals[..values.len()];
                for (real, value) in reals.iter_mut().zip(values) {
                    *real = $of(*value);
                }
                chunk_of_floats(reals)
            }

            fn value(self) -> Value {
                Value::Real(f64::from($of(self)))
            }
        }
    )*};
}

through! {
    f16, f32, f16::to_f32;
    Complex<f32>, f64, |value: Complex<f32>| {
        let (re, im) = (f64::from(value.re), f64::from(value.im));
        match re.is_infinite() || im.is_infinite() {
            true => f64::INFINITY,
            false => (re * re + im * im).sqrt(),
        }
    };
    Complex<f64>, f64, |value: Complex<f64>| value.re.hypot(value.im)
}

/// A number as a float.
pub(crate) trait Whole: Copy {
    /// Rounded beyond 53 bits.
    fn float(self) -> f64;
}

macro_rules! as_float {
    ($($type:ty)*) => {$(
        impl Whole for $type {
            #[inline(always)]
            fn float(self) -> f64 {
                self.into()
            }
        }
    )*};
}

as_float!(f32 f64);

vectorised! {
    /// The sum of the squared distances from `mean`, which is rounded.
    fn squared_distances[T: Whole](values: &[T], mean: f64) -> f64 {
        let (mut first, mut second) = ([0.0; 32], [0.0; 32]);
        let (groups, rest) = values.as_chunks::<32>();
        for group in groups {
            for at in 0..32 {
                let distance = group[at].float() - mean;
                first[at] += distance;
                second[at] += distance * distance;
            }
        }
        for (at, value) in rest.iter().enumerate() {
            let distance = value.float() - mean;
            first[at] += distance;
            second[at] += distance * distance;
        }
        let first: f64 = first.iter().sum();
        let apart = second.iter().sum::<f64>() - first * first / values.len() as f64;
        // What is infinite has no deviation; what rounding makes negative is none.
        if apart < 0.0 { 0.0 } else { apart }
    }
}

macro_rules! integers {
    ($($type:ty, $wide:ty);*) => {$(
        impl Whole for $type {
            #[inline(always)]
            fn float(self) -> f64 {
                self as f64
            }
        }

        impl Number for $type {
            const ZERO: Value = Value::Integer(0);

            fn chunk(values: &[Self]) -> Chunk {
                vectorised! {
                    fn extremes_and_sum[T: Copy](values: &[$type], none: T) -> ($type, $type, $wide, T) {
                        let least = values.iter().fold(<$type>::MAX, |a, b| a.min(*b));
                        let most = values.iter().fold(<$type>::MIN, |a, b| a.max(*b));
                        let sum = values.iter().fold(0, |sum: $wide, value| sum + *value as $wide);
                        (least, most, sum, none)
                    }
                }
                if values.is_empty() {
                    return nothing(0, Self::ZERO);
                }
                let (least, most, sum, ()) = extremes_and_sum(values, ());
                let mean = sum as f64 / values.len() as f64;
                Chunk {
                    count: values.len() as u64,
                    nans: 0,
                    least: least.value(),
                    most: most.value(),
                    sum: Value::Integer(sum.into()),
                    squares: squared_distances(values, mean),
                }
            }

            fn value(self) -> Value {
                Value::Integer(self.into())
            }
        }
    )*};
}

integers! {
    i8, i64; i16, i64; i32, i64; i64, i128;
    u8, i64; u16, i64; u32, i64; u64, i128
}

impl Number for bool {
    const ZERO: Value = Value::Integer(0);

    fn chunk(values: &[Self]) -> Chunk {
        u8::chunk(bytemuck::cast_slice(values))
    }

    fn value(self) -> Value {
        Value::Integer(self.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(chunk: &Chunk, squares: f64) -> bool {
        (chunk.squares - squares).abs() <= 1e-9 * squares
    }

    #[test]
    fn nans_are_counted_and_left_out() {
        let chunk = f32::chunk(&[1.0, f32::NAN, 3.0, f32::NAN]);
        assert_eq!((chunk.count, chunk.nans), (2, 2));
        assert_eq!(
            (chunk.least, chunk.most),
            (Value::Real(1.0), Value::Real(3.0))
        );
        assert_eq!(chunk.sum, Value::Real(4.0));
        assert!(close(&chunk, 2.0));
        let none = f64::chunk(&[f64::NAN; 5]);
        assert_eq!((none.count, none.nans), (0, 5));
        let endless = f64::chunk(&[1.0, f64::INFINITY, f64::NAN, -1.0]);
        assert_eq!((endless.count, endless.nans), (3, 1));
        assert_eq!(endless.most, Value::Real(f64::INFINITY));
        assert!(endless.squares.is_nan());
    }

    #[test]
    fn a_small_deviation_from_a_large_mean_is_found() {
        let values: Vec<f64> = (0..4096).map(|at| 1e9 + f64::from(at % 2)).collect();
        assert!(close(&f64::chunk(&values), 1024.0));
        let values: Vec<f32> = (0..4096).map(|at| 1e7 + (at % 2) as f32).collect();
        assert!(close(&f32::chunk(&values), 1024.0));
        let values: Vec<i64> = (0..4096).map(|at| (1 << 52) + at % 2).collect();
        assert!(close(&i64::chunk(&values), 1024.0));
    }

    #[test]
    fn integers_are_exact() {
        let chunk = u64::chunk(&[u64::MAX; 4096]);
        assert_eq!(chunk.sum, Value::Integer(4096 * i128::from(u64::MAX)));
        assert_eq!(chunk.squares, 0.0);
        let chunk = i32::chunk(&[i32::MIN; 4096]);
        assert_eq!(chunk.sum, Value::Integer(4096 * i128::from(i32::MIN)));
        let chunk = bool::chunk(&[true, false, true, true]);
        assert_eq!(chunk.sum, Value::Integer(3));
        assert!(close(&chunk, 0.75));
    }

    #[test]
    fn complex_numbers_count_by_their_modulus() {
        let chunk = Complex::<f32>::chunk(&[Complex::new(3.0, -4.0), Complex::new(0.0, 1.0)]);
        assert_eq!(
            (chunk.least, chunk.most),
            (Value::Real(1.0), Value::Real(5.0))
        );
        let chunk = f16::chunk(&[f16::from_f32(0.5), f16::NAN]);
        assert_eq!((chunk.sum, chunk.nans), (Value::Real(0.5), 1));
    }
}
