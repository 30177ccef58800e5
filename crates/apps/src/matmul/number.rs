//! [`Number`]: what matrices can be multiplied of.

use std::ops::AddAssign;

use bytemuck::Pod;
use outcore::{Complex, Element};

/// An element type that the kernel multiplies: `f32`, `f64`, and complex numbers
/// of these.
pub trait Number: Element + Pod + AddAssign {
    /// One.
    const ONE: Self;
    /// The floating-point operations of a multiplication and an addition.
    const OPERATIONS: u64;
}

impl Number for f32 {
    const ONE: Self = 1.0;
    const OPERATIONS: u64 = 2;
}

impl Number for f64 {
    const ONE: Self = 1.0;
    const OPERATIONS: u64 = 2;
}

impl Number for Complex<f32> {
    const ONE: Self = Complex::new(1.0, 0.0);
    const OPERATIONS: u64 = 8;
}

impl Number for Complex<f64> {
    const ONE: Self = Complex::new(1.0, 0.0);
    const OPERATIONS: u64 = 8;
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
                "{} holds {other} elements; matrices of f32, f64, c64 and c128 are multiplied",
                $name
            ))),
        }
    };
}

pub(super) use of_number;
