//! [`Sample`]: the element types that are transformed, and what they become.

use outcore::{Complex, Element, ElementType, Error, Result, f16};
use rustfft::FftNum;

use crate::float::Float;

/// The numbers of which spectra are made: `f32` and `f64`.
pub trait FftFloat: FftNum + Float {}

impl FftFloat for f32 {}
impl FftFloat for f64 {}

/// An element that can be transformed.
pub trait Sample: Element + bytemuck::Pod {
    /// The numbers of its spectrum: of the same accuracy, or better.
    type Float: FftFloat;

    /// The element as a complex number.
    fn complex(self) -> Complex<Self::Float>;
}

macro_rules! real {
    ($($sample:ty => $float:ty),* $(,)?) => {$(
        impl Sample for $sample {
            type Float = $float;

            #[inline(always)]
            fn complex(self) -> Complex<$float> {
                Complex::new(self as $float, 0.0)
            }
        }
    )*};
}

real! {
    i8 => f32, u8 => f32, i16 => f32, u16 => f32, f32 => f32,
    i32 => f64, u32 => f64, i64 => f64, u64 => f64, f64 => f64,
}

impl Sample for f16 {
    type Float = f32;

    #[inline(always)]
    fn complex(self) -> Complex<f32> {
        Complex::new(self.to_f32(), 0.0)
    }
}

impl Sample for Complex<f32> {
    type Float = f32;

    #[inline(always)]
    fn complex(self) -> Self {
        self
    }
}

impl Sample for Complex<f64> {
    type Float = f64;

    #[inline(always)]
    fn complex(self) -> Self {
        self
    }
}

/// Evaluates an expression with a Rust type in place of an element type that
/// can be transformed; fails for the others, with the array's name.
macro_rules! of_sample {
    (($name:expr, $element:expr), $rust:ident => $body:expr) => {{
        use outcore::ElementType as E;
        macro_rules! with {
            ($type:ty) => {{
                type $rust = $type;
                $body
            }};
        }
        match $element {
            E::I8 => with!(i8),
            E::I16 => with!(i16),
            E::I32 => with!(i32),
            E::I64 => with!(i64),
            E::U8 => with!(u8),
            E::U16 => with!(u16),
            E::U32 => with!(u32),
            E::U64 => with!(u64),
            E::F16 => with!(outcore::f16),
            E::F32 => with!(f32),
            E::F64 => with!(f64),
            E::C64 => with!(outcore::Complex<f32>),
            E::C128 => with!(outcore::Complex<f64>),
            other => Err($crate::fft::sample::no_number($name, other)),
        }
    }};
}

pub(super) use of_sample;

pub(super) fn no_number(name: &str, element_type: ElementType) -> Error {
    Error::Invalid(format!(
        "{name} holds {element_type} elements, which are no numbers to transform"
    ))
}

/// The element type of the spectrum of an array, or of its real part.
pub fn spectrum_type(name: &str, element_type: ElementType, real: bool) -> Result<ElementType> {
    of_sample!((name, element_type), S => Ok(match real {
        true => <<S as Sample>::Float as Element>::TYPE,
        false => <Complex<<S as Sample>::Float> as Element>::TYPE,
    }))
}
