//! [`Fill`]: values that follow from an element's index alone, so that any
//! rank can make, and check, any part of an array.

use std::fmt;
use std::str::FromStr;

use half::f16;
use num_complex::Complex;
use outcore_geometry::Section;

use crate::array::Array;
use crate::dispatch;
use crate::element::{Element, ElementType};
use crate::error::{Error, Result};

/// Values that follow from an element's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fill {
    /// All zeros.
    Zero,
    /// The element's number in row-major order, whatever the layout: what
    /// `numpy.arange(n).reshape(shape)` holds. Wraps around in small types.
    Index,
    /// Pseudo-random from the index and a seed: floats in [0, 1), integers
    /// over their whole range.
    Random(u64),
    /// One value, as text, since its type is the array's.
    Value(String),
}

impl FromStr for Fill {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "zero" => Self::Zero,
            "index" => Self::Index,
            "random" => Self::Random(0),
            value if value.parse::<Complex<f64>>().is_ok() || value.parse::<bool>().is_ok() => {
                Self::Value(value.into())
            }
            _ => {
                return Err(Error::Invalid(format!(
                    "cannot fill with '{text}': it must be zero, index, random or a number"
                )));
            }
        })
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("zero"),
            Self::Index => f.write_str("index"),
            Self::Random(seed) => write!(f, "random (seed {seed})"),
            Self::Value(text) => f.write_str(text),
        }
    }
}

impl Fill {
    /// Fails if the value cannot be an element of this type.
    pub fn check(&self, element_type: ElementType) -> Result<()> {
        if let Self::Value(text) = self {
            dispatch!(element_type, T => value::<T>(text).map(drop))?;
        }
        Ok(())
    }

    /// The bytes of `section` of `array` in the order of its buffers; `bytes`
    /// must have the section's size.
    pub fn generate(&self, array: &Array, section: &Section, bytes: &mut [u8]) -> Result<()> {
        dispatch!(array.element_type(), T => {
            match self {
                Self::Zero => bytes.fill(0),
                Self::Value(text) => each(bytes, std::iter::repeat(value::<T>(text)?)),
                Self::Index => by_index(array, section, bytes, T::from_index),
                Self::Random(seed) => {
                    let salt = scramble(*seed);
                    by_index(array, section, bytes, |i| T::from_random(scramble(i ^ salt)));
                }
            }
        });
        Ok(())
    }
}

/// Writes one value for each element, made from its row-major number.
fn by_index<T: FillElement>(
    array: &Array,
    section: &Section,
    bytes: &mut [u8],
    make: impl Fn(u64) -> T,
) {
    if section.is_empty() {
        return;
    }
    let shape = array.shape();
    let mut steps = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        steps[axis - 1] = steps[axis] * shape[axis];
    }
    let order = array.layout().slowest_first();
    let number = |axis: usize, at: u64| section.axes()[axis].index(at) * steps[axis];
    let Some((fastest, slower)) = order.split_last() else {
        return each(bytes, std::iter::once(make(0)));
    };
    let row = section.axes()[*fastest].count();
    let mut positions = vec![0u64; slower.len()];
    for values in bytes.chunks_mut(row as usize * size_of::<T>()) {
        let base: u64 = slower
            .iter()
            .zip(&positions)
            .map(|(axis, at)| number(*axis, *at))
            .sum();
        each(values, (0..row).map(|at| make(base + number(*fastest, at))));
        for (axis, at) in slower.iter().zip(&mut positions).rev() {
            *at += 1;
            if *at < section.axes()[*axis].count() {
                break;
            }
            *at = 0;
        }
    }
}

fn each<T: Element>(bytes: &mut [u8], values: impl Iterator<Item = T>) {
    for (bytes, value) in bytes.chunks_exact_mut(size_of::<T>()).zip(values) {
        bytes.copy_from_slice(bytemuck::bytes_of(&value));
    }
}

/// The finaliser of SplitMix64: a bijection that spreads every bit.
fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The element that a text is.
pub(crate) fn value<T: FillElement>(text: &str) -> Result<T> {
    T::from_text(text)
        .filter(|value| value.is_in_range() || names_infinity(text))
        .ok_or_else(|| Error::Invalid(format!("'{text}' is not a value of type {}", T::TYPE)))
}

/// Whether a text asks for an infinity or NaN, rather than for a number that is too
/// large for its type.
fn names_infinity(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("inf") || text.contains("nan")
}

/// How an element is made from an index, from random bits and from text.
pub(crate) trait FillElement: Element {
    fn from_index(index: u64) -> Self;
    fn from_random(bits: u64) -> Self;
    fn from_text(text: &str) -> Option<Self>;
    /// Whether it is no infinity, which stands for what its type has no number for.
    fn is_in_range(&self) -> bool {
        true
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl FillElement for $type {
            fn from_index(index: u64) -> Self {
                index as Self
            }
            fn from_random(bits: u64) -> Self {
                bits as Self
            }
            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

/// A float in [0, 1) from the upper bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

impl FillElement for f64 {
    fn from_index(index: u64) -> Self {
        index as Self
    }
    fn from_random(bits: u64) -> Self {
        unit(bits)
    }
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn is_in_range(&self) -> bool {
        self.is_finite()
    }
}

impl FillElement for f32 {
    fn from_index(index: u64) -> Self {
        index as Self
    }
    fn from_random(bits: u64) -> Self {
        (bits >> 40) as Self / (1u32 << 24) as Self
    }
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn is_in_range(&self) -> bool {
        self.is_finite()
    }
}

impl FillElement for f16 {
    fn from_index(index: u64) -> Self {
        Self::from_f32((index % 2048) as f32)
    }
    fn from_random(bits: u64) -> Self {
        Self::from_f32((bits >> 53) as f32 / 2048.0)
    }
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().map(Self::from_f64)
    }
    fn is_in_range(&self) -> bool {
        self.is_finite()
    }
}

impl FillElement for bool {
    fn from_index(index: u64) -> Self {
        index % 2 == 1
    }
    fn from_random(bits: u64) -> Self {
        bits >> 63 == 1
    }
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        }
    }
}

macro_rules! complex {
    ($($part:ty),*) => {$(
        impl FillElement for Complex<$part> {
            fn from_index(index: u64) -> Self {
                Self::new(index as $part, 0.0)
            }
            fn from_random(bits: u64) -> Self {
                Self::new(FillElement::from_random(bits), FillElement::from_random(scramble(bits)))
            }
            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn is_in_range(&self) -> bool {
                self.is_finite()
            }
        }
    )*};
}
complex!(f32, f64);
