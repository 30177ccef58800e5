//! [`ElementType`] and [`Element`]: what an array holds.

use std::fmt;
use std::str::FromStr;

use half::f16;
use num_complex::Complex;

use crate::dispatch;
use crate::error::Error;
use crate::fill::value;

/// The type of the elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// One byte, 0 or 1.
    Bool,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Complex of two `f32`.
    C64,
    /// Complex of two `f64`.
    C128,
}

impl ElementType {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::F32,
        Self::F64,
        Self::C64,
        Self::C128,
    ];

    /// The bytes of one element.
    pub fn size(self) -> u64 {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// The bytes that a change of byte order reverses: half an element for
    /// complex numbers.
    pub fn swap_width(self) -> usize {
        match self {
            Self::C64 => 4,
            Self::C128 => 8,
            other => other.size() as usize,
        }
    }

    /// One element, given by its bytes in this machine's order, as text.
    pub fn text(self, bytes: &[u8]) -> String {
        dispatch!(self, T => T::text(bytes))
    }

    /// Appends the element that [`ElementType::text`] gives as `text`: its bytes in this
    /// machine's order.
    ///
    /// ```
    /// let mut bytes = Vec::new();
    /// outcore::ElementType::F32.read_text("-1.5", &mut bytes)?;
    /// assert_eq!(bytes, (-1.5f32).to_ne_bytes());
    /// assert!(outcore::ElementType::U8.read_text("256", &mut bytes).is_err());
    /// # Ok::<(), outcore::Error>(())
    /// ```
    pub fn read_text(self, text: &str, bytes: &mut Vec<u8>) -> Result<(), Error> {
        dispatch!(self, T => {
            let value: T = value(text)?;
            bytes.extend_from_slice(bytemuck::bytes_of(&value));
        });
        Ok(())
    }

    /// The name in texts: `f32`, `c64`, `bool`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::C64 => "c64",
            Self::C128 => "c128",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ElementType {
    type Err = Error;

    /// Reads the names here and NumPy's (`float32`, `int64`, `complex128`).
    fn from_str(text: &str) -> Result<Self, Error> {
        let numpy = match text {
            "int8" => "i8",
            "int16" => "i16",
            "int32" => "i32",
            "int64" => "i64",
            "uint8" => "u8",
            "uint16" => "u16",
            "uint32" => "u32",
            "uint64" => "u64",
            "float16" => "f16",
            "float32" => "f32",
            "float64" => "f64",
            "complex64" => "c64",
            "complex128" => "c128",
            other => other,
        };
        Self::ALL
            .into_iter()
            .find(|candidate| candidate.name() == numpy)
            .ok_or_else(|| {
                let known: Vec<&str> = Self::ALL.iter().map(|t| t.name()).collect();
                Error::Invalid(format!(
                    "there is no element type '{text}'; the types are {}",
                    known.join(", ")
                ))
            })
    }
}

/// The order of the bytes of one number in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") {
        Self::Big
    } else {
        Self::Little
    };

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Big => "big",
        }
    }
}

impl fmt::Display for ByteOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ByteOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "little" => Ok(Self::Little),
            "big" => Ok(Self::Big),
            _ => Err(Error::Invalid(format!(
                "byte order '{text}' must be little or big"
            ))),
        }
    }
}

/// Reverses the bytes of each number of `width` bytes.
pub(crate) fn swap_bytes(bytes: &mut [u8], width: usize) {
    fn each<const WIDTH: usize>(bytes: &mut [u8]) {
        let (numbers, _) = bytes.as_chunks_mut::<WIDTH>();
        numbers.iter_mut().for_each(|number| number.reverse());
    }
    match width {
        2 => each::<2>(bytes),
        4 => each::<4>(bytes),
        8 => each::<8>(bytes),
        _ => {}
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that an array can hold.
pub trait Element: sealed::Sealed + bytemuck::NoUninit + bytemuck::Zeroable + Send + Sync {
    /// The element type it stands for.
    const TYPE: ElementType;

    /// The values as bytes, to be filled by a read that is followed by
    /// [`Element::accept`].
    #[doc(hidden)]
    fn bytes_mut(values: &mut [Self]) -> &mut [u8];

    /// One value, given by its bytes, as text.
    #[doc(hidden)]
    fn text(bytes: &[u8]) -> String;

    /// Makes bytes from a file fit to be seen as values; false if some do not
    /// stand for one.
    #[doc(hidden)]
    fn accept(_bytes: &mut [u8]) -> bool {
        true
    }
}

macro_rules! elements {
    ($($rust:ty => $name:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const TYPE: ElementType = ElementType::$name;

            fn bytes_mut(values: &mut [Self]) -> &mut [u8] {
                bytemuck::cast_slice_mut(values)
            }

            fn text(bytes: &[u8]) -> String {
                bytemuck::pod_read_unaligned::<Self>(bytes).to_string()
            }
        }
    )*};
}

elements! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, f32 => F32, f64 => F64,
    Complex<f32> => C64, Complex<f64> => C128,
}

impl sealed::Sealed for bool {}
impl Element for bool {
    const TYPE: ElementType = ElementType::Bool;

    fn bytes_mut(values: &mut [Self]) -> &mut [u8] {
        // SAFETY: bool has the size and alignment of u8. The bytes may hold
        // other values than 0 and 1 only until `accept`, which every reader
        // calls before the values are looked at, has cleared them.
        unsafe { &mut *(std::ptr::from_mut(values) as *mut [u8]) }
    }

    fn text(bytes: &[u8]) -> String {
        u8::from(bytes[0] != 0).to_string()
    }

    fn accept(bytes: &mut [u8]) -> bool {
        let good = bytes.iter().all(|byte| *byte <= 1);
        if !good {
            bytes.fill(0);
        }
        good
    }
}

/// Evaluates an expression with a Rust type in place of an [`ElementType`]:
/// `dispatch!(array.element_type(), T => size_of::<T>())`.
#[macro_export]
macro_rules! dispatch {
    ($element_type:expr, $rust:ident => $body:expr) => {{
        use $crate::ElementType as E;
        match $element_type {
            E::Bool => {
                type $rust = bool;
                $body
            }
            E::I8 => {
                type $rust = i8;
                $body
            }
            E::I16 => {
                type $rust = i16;
                $body
            }
            E::I32 => {
                type $rust = i32;
                $body
            }
            E::I64 => {
                type $rust = i64;
                $body
            }
            E::U8 => {
                type $rust = u8;
                $body
            }
            E::U16 => {
                type $rust = u16;
                $body
            }
            E::U32 => {
                type $rust = u32;
                $body
            }
            E::U64 => {
                type $rust = u64;
                $body
            }
            E::F16 => {
                type $rust = $crate::f16;
                $body
            }
            E::F32 => {
                type $rust = f32;
                $body
            }
            E::F64 => {
                type $rust = f64;
                $body
            }
            E::C64 => {
                type $rust = $crate::Complex<f32>;
                $body
            }
            E::C128 => {
                type $rust = $crate::Complex<f64>;
                $body
            }
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for element in ElementType::ALL {
            assert_eq!(element.name().parse::<ElementType>().unwrap(), element);
        }
        assert_eq!("float32".parse::<ElementType>().unwrap(), ElementType::F32);
        let message = "f128".parse::<ElementType>().unwrap_err().to_string();
        assert!(
            message.contains("f128") && message.contains("f64"),
            "{message}"
        );
    }

    #[test]
    fn swapping_reverses_each_number() {
        let mut bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        swap_bytes(&mut bytes, 4);
        assert_eq!(bytes, [4, 3, 2, 1, 8, 7, 6, 5]);
        swap_bytes(&mut bytes, 1);
        assert_eq!(bytes, [4, 3, 2, 1, 8, 7, 6, 5]);
    }
}
