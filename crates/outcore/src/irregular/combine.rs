//! [`Combine`]: values that are added to what stands there, or compared with it,
//! instead of taking its place.

use half::f16;
use num_complex::Complex;

use crate::element::{Element, ElementType};
use crate::error::{Error, Result};
use crate::execute::points::{Points, Sides, walk};

/// How a value changes what stands in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The sum; of integers modulo 2 to the number of bits.
    Add,
    /// The smaller one; a NaN loses against a number.
    Min,
    /// The larger one; a NaN loses against a number.
    Max,
}

impl Combine {
    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

impl std::str::FromStr for Combine {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let all = [Self::Add, Self::Min, Self::Max];
        let found = all.into_iter().find(|combine| combine.name() == text);
        found.ok_or_else(|| {
            Error::Invalid(format!(
                "values cannot be combined by '{text}'; they can by add, min and max"
            ))
        })
    }
}

/// Combines the values of a list with what stands in the image.
///
/// # Safety
///
/// As for [`crate::execute::points::scatter`]; records consist of whole numbers
/// of the type that it was made for.
pub(super) type CombinePoints = unsafe fn(&Points<'_>, Sides);

/// Numbers that can be combined.
pub trait Number: Element {
    #[doc(hidden)]
    fn combined(how: Combine, there: Self, new: Self) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty: $add:expr;)*) => {$(
        impl Number for $type {
            fn combined(how: Combine, there: Self, new: Self) -> Option<Self> {
                let add: fn(Self, Self) -> Self = $add;
                Some(match how {
                    Combine::Add => add(there, new),
                    Combine::Min => there.min(new),
                    Combine::Max => there.max(new),
                })
            }
        }
    )*};
}

numbers! {
    i8: i8::wrapping_add; i16: i16::wrapping_add; i32: i32::wrapping_add; i64: i64::wrapping_add;
    u8: u8::wrapping_add; u16: u16::wrapping_add; u32: u32::wrapping_add; u64: u64::wrapping_add;
    f16: |a, b| a + b; f32: |a, b| a + b; f64: |a, b| a + b;
}

macro_rules! sums_only {
    ($($type:ty)*) => {$(
        impl Number for $type {
            fn combined(how: Combine, there: Self, new: Self) -> Option<Self> {
                (how == Combine::Add).then_some(there + new)
            }
        }
    )*};
}

sums_only! { Complex<f32> Complex<f64> }

/// What combines numbers of the type `T`; fails if they cannot be.
pub(super) fn of<T: Number>(how: Combine) -> Result<CombinePoints> {
    let zero = T::zeroed();
    if T::combined(how, zero, zero).is_none() {
        return Err(Error::Invalid(format!(
            "{} numbers have no {}",
            T::TYPE,
            how.name()
        )));
    }
    Ok(match how {
        Combine::Add => add::<T>,
        Combine::Min => min::<T>,
        Combine::Max => max::<T>,
    })
}

/// The same for numbers of a type that is known by its name.
pub(super) fn of_type(element: ElementType, how: Combine) -> Result<CombinePoints> {
    match element {
        ElementType::Bool => Err(Error::Invalid(format!(
            "bool values have no {}",
            how.name()
        ))),
        ElementType::I8 => of::<i8>(how),
        ElementType::I16 => of::<i16>(how),
        ElementType::I32 => of::<i32>(how),
        ElementType::I64 => of::<i64>(how),
        ElementType::U8 => of::<u8>(how),
        ElementType::U16 => of::<u16>(how),
        ElementType::U32 => of::<u32>(how),
        ElementType::U64 => of::<u64>(how),
        ElementType::F16 => of::<f16>(how),
        ElementType::F32 => of::<f32>(how),
        ElementType::F64 => of::<f64>(how),
        ElementType::C64 => of::<Complex<f32>>(how),
        ElementType::C128 => of::<Complex<f64>>(how),
    }
}

macro_rules! points {
    ($($name:ident $how:ident)*) => {$(
        unsafe fn $name<T: Number>(points: &Points<'_>, sides: Sides) {
            let components = sides.size / size_of::<T>();
            walk(points, points.lengths, |at, place, len| {
                for step in 0..len {
                    let image = sides.image.wrapping_add((at + step) * sides.size).cast::<T>();
                    let value = sides.values.wrapping_add((place + step) * sides.stride).cast::<T>();
                    for component in 0..components {
                        let (image, value) = (image.wrapping_add(component), value.wrapping_add(component));
                        // SAFETY: passed on to the caller.
                        unsafe {
                            let (there, new) = (image.read_unaligned(), value.read_unaligned());
                            // What cannot be combined was refused before.
                            image.write_unaligned(T::combined(Combine::$how, there, new).unwrap_or(new));
                        }
                    }
                }
            });
        }
    )*};
}

points! { add Add min Min max Max }
