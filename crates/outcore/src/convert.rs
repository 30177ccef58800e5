//! Elements of one type as elements of another.
//!
//! | from, to | rule |
//! |---|---|
//! | anything to a float | the nearest value; beyond the largest it does not fit |
//! | float to integer | the fraction is cut off; what is out of range does not fit, a NaN never does |
//! | integer to integer | out of range does not fit |
//! | anything to bool | 0 and 1 fit, and nothing between them |
//! | complex to others | its imaginary part must be 0, always |
//!
//! What does not fit is refused, or becomes the nearest value that does
//! ([`Fit::Saturate`]). Infinities and NaNs stay what they are between floats.

use half::f16;
use num_complex::Complex;

use crate::dispatch;
use crate::element::ElementType;

/// What happens to a value that the new type does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It is an error.
    Refuse,
    /// It becomes the nearest value that fits; NaNs and imaginary parts stay errors.
    Saturate,
}

/// Converts all elements; the buffers are in this machine's byte order and hold
/// equally many. Otherwise the number of the first element that does not fit.
pub fn convert(
    (from, source): (ElementType, &[u8]),
    (to, target): (ElementType, &mut [u8]),
    fit: Fit,
) -> Result<(), usize> {
    dispatch!(from, F => dispatch!(to, T => each::<F, T>(source, target, fit)))
}

fn each<F: Number, T: Number>(source: &[u8], target: &mut [u8], fit: Fit) -> Result<(), usize> {
    let sources = source.chunks_exact(size_of::<F>());
    let targets = target.chunks_exact_mut(size_of::<T>());
    for (number, (source, target)) in sources.zip(targets).enumerate() {
        if !T::put(F::wide(source), target, fit) {
            return Err(number);
        }
    }
    Ok(())
}

/// A number of any type.
#[derive(Clone, Copy)]
enum Wide {
    Whole(i128),
    Real(f64),
    Complex(f64, f64),
}

/// How a type is read from bytes, and written to them.
trait Number {
    fn wide(bytes: &[u8]) -> Wide;

    /// False if the number does not fit.
    fn put(number: Wide, bytes: &mut [u8], fit: Fit) -> bool;
}

/// The real part of a number that has no other.
fn real(number: Wide) -> Option<Wide> {
    match number {
        Wide::Complex(re, 0.0) => Some(Wide::Real(re)),
        Wide::Complex(..) => None,
        other => Some(other),
    }
}

/// The nearest integer between the limits, if that is allowed.
#[inline(always)]
fn whole(number: Wide, (least, most): (i128, i128), fit: Fit) -> Option<i128> {
    let value = match real(number)? {
        Wide::Whole(value) => value,
        // Infinities and what is beyond 127 bits saturate.
        Wide::Real(value) if !value.is_nan() => value as i128,
        _ => return None,
    };
    let nearest = value.clamp(least, most);
    (nearest == value || fit == Fit::Saturate).then_some(nearest)
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn wide(bytes: &[u8]) -> Wide {
                Wide::Whole(bytemuck::pod_read_unaligned::<Self>(bytes).into())
            }

            #[inline(always)]
            fn put(number: Wide, bytes: &mut [u8], fit: Fit) -> bool {
                let Some(value) = whole(number, (Self::MIN.into(), Self::MAX.into()), fit) else {
                    return false;
                };
                bytes.copy_from_slice(&(value as Self).to_ne_bytes());
                true
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Number for bool {
    fn wide(bytes: &[u8]) -> Wide {
        Wide::Whole((bytes[0] != 0).into())
    }

    fn put(number: Wide, bytes: &mut [u8], fit: Fit) -> bool {
        // Here a fraction is not cut off: 0.7 is no flag, and the nearest is 1.
        let number = match (real(number), fit) {
            (Some(Wide::Real(value)), Fit::Refuse) if value != 0.0 && value != 1.0 => return false,
            (Some(Wide::Real(value)), Fit::Saturate) => Wide::Real(value.round()),
            (Some(other), _) => other,
            (None, _) => return false,
        };
        let Some(value) = whole(number, (0, 1), fit) else {
            return false;
        };
        bytes[0] = value as u8;
        true
    }
}

/// A float that was rounded to `rounded`, unless it did not fit.
#[inline(always)]
fn finite<T: Copy>(exact_is_finite: bool, rounded: (T, bool), most: T, fit: Fit) -> Option<T> {
    match (exact_is_finite && !rounded.1, fit) {
        (false, _) => Some(rounded.0),
        (true, Fit::Saturate) => Some(most),
        (true, Fit::Refuse) => None,
    }
}

macro_rules! floats {
    ($($type:ident, $of_whole:expr, $of_real:expr;)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn wide(bytes: &[u8]) -> Wide {
                Wide::Real(bytemuck::pod_read_unaligned::<Self>(bytes).into())
            }

            #[inline(always)]
            fn put(number: Wide, bytes: &mut [u8], fit: Fit) -> bool {
                let (rounded, was_finite, negative) = match real(number) {
                    Some(Wide::Whole(value)) => ($of_whole(value), true, value < 0),
                    Some(Wide::Real(value)) => ($of_real(value), value.is_finite(), value < 0.0),
                    _ => return false,
                };
                let limit = if negative { Self::MIN } else { Self::MAX };
                let fitting = finite(was_finite, (rounded, rounded.is_finite()), limit, fit);
                let Some(value) = fitting else { return false };
                bytes.copy_from_slice(&value.to_ne_bytes());
                true
            }
        }

        impl Number for Complex<$type> {
            #[inline(always)]
            fn wide(bytes: &[u8]) -> Wide {
                let value = bytemuck::pod_read_unaligned::<Self>(bytes);
                Wide::Complex(value.re.into(), value.im.into())
            }

            #[inline(always)]
            fn put(number: Wide, bytes: &mut [u8], fit: Fit) -> bool {
                let (re, im) = match number {
                    Wide::Complex(re, im) => (Wide::Real(re), Wide::Real(im)),
                    other => (other, Wide::Real(0.0)),
                };
                let (first, second) = bytes.split_at_mut(size_of::<$type>());
                $type::put(re, first, fit) && $type::put(im, second, fit)
            }
        }
    )*};
}

floats! {
    f32, |value: i128| value as f32, |value: f64| value as f32;
    f64, |value: i128| value as f64, |value: f64| value;
}

/// The nearest half. Through a single that is rounded to odd, so that what was cut off
/// still counts when that is rounded: rounding to the nearest twice would not do.
fn half(value: f64) -> f16 {
    let single = value as f32;
    if !single.is_finite() || f64::from(single) == value {
        return f16::from_f32(single);
    }
    let too_far = f64::from(single).abs() > value.abs();
    let towards_zero = single.to_bits() - u32::from(too_far);
    f16::from_f32(f32::from_bits(towards_zero | 1))
}

impl Number for f16 {
    fn wide(bytes: &[u8]) -> Wide {
        Wide::Real(bytemuck::pod_read_unaligned::<Self>(bytes).into())
    }

    fn put(number: Wide, bytes: &mut [u8], fit: Fit) -> bool {
        // Integers that a half can hold are exact in 64 bits; others are too large.
        let value = match real(number) {
            Some(Wide::Whole(value)) => value as f64,
            Some(Wide::Real(value)) => value,
            _ => return false,
        };
        let rounded = half(value);
        let limit = if value < 0.0 { Self::MIN } else { Self::MAX };
        let fitting = finite(
            value.is_finite(),
            (rounded, rounded.is_finite()),
            limit,
            fit,
        );
        let Some(value) = fitting else { return false };
        bytes.copy_from_slice(&value.to_ne_bytes());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;

    fn one<F: Element, T: Element + bytemuck::AnyBitPattern>(value: F, fit: Fit) -> Option<T> {
        let source = [value];
        let mut target = vec![0; size_of::<T>()];
        let bytes = bytemuck::cast_slice(&source);
        convert((F::TYPE, bytes), (T::TYPE, &mut target), fit).ok()?;
        Some(bytemuck::pod_read_unaligned(&target))
    }

    #[test]
    fn what_fits_is_the_nearest_and_what_does_not_is_refused() {
        let refuse = Fit::Refuse;
        assert_eq!(one::<f64, i32>(-3.9, refuse), Some(-3));
        assert_eq!(one::<f64, u8>(255.9, refuse), Some(255));
        assert_eq!(one::<f64, u8>(256.0, refuse), None);
        assert_eq!(one::<i16, u8>(-1, refuse), None);
        assert_eq!(one::<u64, i64>(u64::MAX, refuse), None);
        assert_eq!(one::<i64, f32>(16_777_217, refuse), Some(16_777_216.0));
        assert_eq!(one::<f64, f32>(1e300, refuse), None);
        assert_eq!(one::<f64, f32>(f64::INFINITY, refuse), Some(f32::INFINITY));
        assert!(one::<f32, f64>(f32::NAN, refuse).unwrap().is_nan());
        assert_eq!(one::<i32, f16>(70_000, refuse), None);
        assert_eq!(one::<bool, f32>(true, refuse), Some(1.0));
        assert_eq!(
            one::<u8, Complex<f32>>(7, refuse),
            Some(Complex::new(7.0, 0.0))
        );
        assert_eq!(
            one::<Complex<f64>, f32>(Complex::new(2.0, 0.0), refuse),
            Some(2.0)
        );
        assert_eq!(
            one::<Complex<f64>, f32>(Complex::new(2.0, 1.0), refuse),
            None
        );
        // Halfway between two halves and a little more, which a single does not hold.
        let above = 1.0 + 0.5f64.powi(11) + 0.5f64.powi(40);
        assert_eq!(one::<f64, f16>(above, refuse), Some(f16::from_bits(0x3c01)));
        assert_eq!(
            one::<f64, f16>(-above, refuse),
            Some(f16::from_bits(0xbc01))
        );
        let mut flag = [9];
        let two = [2u8];
        assert_eq!(
            convert(
                (ElementType::U8, &two),
                (ElementType::Bool, &mut flag),
                refuse
            ),
            Err(0)
        );
    }

    #[test]
    fn only_0_and_1_are_flags() {
        let flag = |value: f64, fit| {
            let mut flag = [9];
            let bytes = value.to_ne_bytes();
            let done = convert(
                (ElementType::F64, &bytes),
                (ElementType::Bool, &mut flag),
                fit,
            );
            done.ok().map(|()| flag[0])
        };
        for (value, refused, nearest) in [
            (0.0, Some(0), Some(0)),
            (-0.0, Some(0), Some(0)),
            (1.0, Some(1), Some(1)),
            (0.4, None, Some(0)),
            (0.5, None, Some(1)),
            (1.9, None, Some(1)),
            (-0.9, None, Some(0)),
            (f64::INFINITY, None, Some(1)),
            (f64::NAN, None, None),
        ] {
            assert_eq!(flag(value, Fit::Refuse), refused, "{value}");
            assert_eq!(flag(value, Fit::Saturate), nearest, "{value}");
        }
    }

    #[test]
    fn saturating_takes_the_nearest_but_no_nan() {
        let saturate = Fit::Saturate;
        assert_eq!(one::<f64, u8>(-5.0, saturate), Some(0));
        assert_eq!(one::<f64, i64>(f64::INFINITY, saturate), Some(i64::MAX));
        assert_eq!(one::<f64, f32>(-1e300, saturate), Some(f32::MIN));
        assert_eq!(one::<i32, f16>(70_000, saturate), Some(f16::MAX));
        assert_eq!(one::<f64, i32>(f64::NAN, saturate), None);
        assert_eq!(
            one::<Complex<f64>, u8>(Complex::new(1.0, 1.0), saturate),
            None
        );
    }

    #[test]
    fn the_first_that_does_not_fit_is_told() {
        let values = [1.0f64, 2.0, 1e9, 1e9];
        let mut bytes = [0; 4];
        let source = bytemuck::cast_slice(&values);
        let found = convert(
            (ElementType::F64, source),
            (ElementType::U8, &mut bytes),
            Fit::Refuse,
        );
        assert_eq!(found, Err(2));
    }
}
