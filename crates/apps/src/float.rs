//! [`Float`]: the numbers that solvers compute with.

use std::ops::{Add, Mul, Sub};

use bytemuck::Pod;
use outcore::Element;

/// A floating-point element type.
pub trait Float:
    Element + Pod + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    /// The nearest value of this type.
    fn of(value: f64) -> Self;

    /// The same value as f64.
    fn to_f64(self) -> f64;

    /// Without its sign.
    fn magnitude(self) -> Self;

    /// Whether it is NaN.
    fn is_unknown(self) -> bool;

    /// Zero instead of a subnormal number, with which processors are many times slower;
    /// NaN stays.
    fn normal_or_zero(self) -> Self;
}

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Float for $type {
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }

            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }

            #[inline(always)]
            fn is_unknown(self) -> bool {
                self.is_nan()
            }

            #[inline(always)]
            fn normal_or_zero(self) -> Self {
                // A comparison and a mask, which vectors have, too.
                if self.abs() < Self::MIN_POSITIVE { 0.0 } else { self }
            }
        }
    )*};
}

floats!(f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_subnormal_numbers_become_zero() {
        for value in [
            0.0,
            1.0,
            -1.0,
            f32::MIN_POSITIVE,
            -f32::MIN_POSITIVE,
            f32::INFINITY,
        ] {
            assert_eq!(value.normal_or_zero(), value);
            assert_eq!(f64::from(value).normal_or_zero(), f64::from(value));
        }
        assert_eq!((f32::MIN_POSITIVE / 2.0).normal_or_zero(), 0.0);
        assert_eq!((-f64::MIN_POSITIVE / 4.0).normal_or_zero(), 0.0);
        assert!(f32::NAN.normal_or_zero().is_nan() && f64::NAN.normal_or_zero().is_nan());
    }
}
