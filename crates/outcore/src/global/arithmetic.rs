//! [`Arithmetic`]: elements that can be added and multiplied.

use half::f16;
use num_complex::Complex;

use crate::element::Element;

/// An element type with sums and products: integers, of which both are modulo 2
/// to the number of bits, and real and complex numbers.
pub trait Arithmetic: Element + PartialEq {
    /// One.
    const ONE: Self;

    /// Whether the crate `gemm` multiplies matrices of it.
    #[doc(hidden)]
    const GEMM: bool;

    /// The sum.
    fn plus(self, other: Self) -> Self;

    /// The product.
    fn times(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Arithmetic for $type {
            const ONE: Self = 1;
            const GEMM: bool = false;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )*};
}

macro_rules! numbers {
    ($($type:ty: $one:expr, $gemm:expr;)*) => {$(
        impl Arithmetic for $type {
            const ONE: Self = $one;
            const GEMM: bool = $gemm;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
        }
    )*};
}

integers! { i8 i16 i32 i64 u8 u16 u32 u64 }

numbers! {
    f16: f16::ONE, false;
    f32: 1.0, true;
    f64: 1.0, true;
    Complex<f32>: Complex::new(1.0, 0.0), true;
    Complex<f64>: Complex::new(1.0, 0.0), true;
}

/// Runs a loop body once more with AVX2, where the processor has it: the same
/// operations in the same order, four or eight elements at a time.
macro_rules! with_avx2 {
    ($(#[$doc:meta])* unsafe fn $name:ident<T: Arithmetic>($($arg:ident: $type:ty),*) $body:block) => {
        $(#[$doc])*
        pub(super) unsafe fn $name<T: Arithmetic>($($arg: $type),*) {
            #[inline(always)]
            unsafe fn plain<T: Arithmetic>($($arg: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            unsafe fn wide<T: Arithmetic>($($arg: $type),*) {
                // SAFETY: passed on to the caller.
                unsafe { plain($($arg),*) }
            }

            #[cfg(target_arch = "x86_64")]
            if std::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2; the rest is passed on.
                return unsafe { wide($($arg),*) };
            }
            // SAFETY: passed on to the caller.
            unsafe { plain($($arg),*) }
        }
    };
}

with_avx2! {
    /// `target[i] += scale * values[i]` for all `i < count`.
    ///
    /// # Safety
    ///
    /// `count` aligned elements of both can be read, and of `target` written,
    /// which nobody else writes meanwhile; the two do not overlap.
    unsafe fn add_scaled<T: Arithmetic>(target: *mut T, values: *const T, count: usize, scale: T) {
        if scale == T::ONE {
            for at in 0..count {
                // SAFETY: passed on to the caller.
                unsafe { *target.add(at) = (*target.add(at)).plus(*values.add(at)) };
            }
            return;
        }
        for at in 0..count {
            // SAFETY: passed on to the caller.
            unsafe { *target.add(at) = (*target.add(at)).plus(scale.times(*values.add(at))) };
        }
    }
}

with_avx2! {
    /// `target[i] *= scale` for all `i < count`.
    ///
    /// # Safety
    ///
    /// As for [`add_scaled`].
    unsafe fn multiply<T: Arithmetic>(target: *mut T, count: usize, scale: T) {
        for at in 0..count {
            // SAFETY: passed on to the caller.
            unsafe { *target.add(at) = (*target.add(at)).times(scale) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_with_and_without_scale() {
        let mut sums = [1.0f64; 37];
        let values: Vec<f64> = (0..37).map(f64::from).collect();
        // SAFETY: both have 37 elements of their own.
        unsafe {
            add_scaled(sums.as_mut_ptr(), values.as_ptr(), 37, 1.0);
            add_scaled(sums.as_mut_ptr(), values.as_ptr(), 37, -3.0);
            multiply(sums.as_mut_ptr(), 37, 2.0);
        }
        assert!(
            sums.iter()
                .zip(&values)
                .all(|(sum, value)| *sum == 2.0 - 4.0 * value)
        );
        assert_eq!(250u8.plus(10).times(3), 12);
        assert_eq!(f16::from_f32(1.5).times(f16::ONE).to_f32(), 1.5);
    }
}
