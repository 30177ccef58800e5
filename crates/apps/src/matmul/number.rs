//! [`Number`]: what matrices can be multiplied of.

use std::ops::{AddAssign, Mul};

use bytemuck::Pod;
use outcore::{Complex, Element};

/// An element type that the kernel multiplies: `f32`, `f64`, and complex numbers
/// of these.
pub trait Number: Element + Pod + AddAssign + Mul<Output = Self> {
    /// One.
    const ONE: Self;
    /// The floating-point operations of a multiplication and an addition.
    const OPERATIONS: u64;

    /// How far it is from another number.
    fn distance(self, other: Self) -> f64;
}

impl Number for f32 {
    const ONE: Self = 1.0;
    const OPERATIONS: u64 = 2;

    fn distance(self, other: Self) -> f64 {
        f64::from(self - other).abs()
    }
}

impl Number for f64 {
    const ONE: Self = 1.0;
    const OPERATIONS: u64 = 2;

    fn distance(self, other: Self) -> f64 {
        (self - other).abs()
    }
}

impl Number for Complex<f32> {
    const ONE: Self = Complex::new(1.0, 0.0);
    const OPERATIONS: u64 = 8;

    fn distance(self, other: Self) -> f64 {
        f64::from((self - other).norm())
    }
}

impl Number for Complex<f64> {
    const ONE: Self = Complex::new(1.0, 0.0);
    const OPERATIONS: u64 = 8;

    fn distance(self, other: Self) -> f64 {
        (self - other).norm()
    }
}

/// Runs the same code for each element type that is a [`Number`]; fails for
/// others.
macro_rules! of_number {
    (($name:expr, $type:expr), $number:ident => $body:expr) => {
        match $type {
            outcore::ElementType::F32 => {
                type $number = f32;
                $body
            }
            outcore::ElementType::F64 => {
                type $number = f64;
                $body
            }
            outcore::ElementType::C64 => {
                type $number = outcore::Complex<f32>;
                $body
            }
            outcore::ElementType::C128 => {
                type $number = outcore::Complex<f64>;
                $body
            }
            other => Err(outcore::Error::Invalid(format!(
                "{} holds {other} elements; f32, f64, c64 and c128 are multiplied",
                $name
            ))),
        }
    };
}

pub(crate) use of_number;
