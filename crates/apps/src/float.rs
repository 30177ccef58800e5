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
        }
    )*};
}

floats!(f32 f64);
