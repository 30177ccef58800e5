//! [`Kind`]: the types of classic NetCDF files.

use crate::element::ElementType;
use crate::format::fields::Parsed;

/// A type by its name in the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Byte,
    /// A byte of a text; an array of them holds `u8`.
    Char,
    Short,
    Int,
    Float,
    Double,
    Ubyte,
    Ushort,
    Uint,
    Int64,
    Uint64,
}

/// With their numbers and elements. The first that has an element is what new
/// files use for it.
const ALL: [(Kind, u32, ElementType); 11] = [
    (Kind::Byte, 1, ElementType::I8),
    (Kind::Short, 3, ElementType::I16),
    (Kind::Int, 4, ElementType::I32),
    (Kind::Float, 5, ElementType::F32),
    (Kind::Double, 6, ElementType::F64),
    (Kind::Ubyte, 7, ElementType::U8),
    (Kind::Ushort, 8, ElementType::U16),
    (Kind::Uint, 9, ElementType::U32),
    (Kind::Int64, 10, ElementType::I64),
    (Kind::Uint64, 11, ElementType::U64),
    (Kind::Char, 2, ElementType::U8),
];

impl Kind {
    /// The type of this number, in a file of this version.
    pub(super) fn of_number(number: u32, version: u8) -> Parsed<Self> {
        let found = ALL.iter().find(|(_, known, _)| *known == number);
        match found {
            Some((kind, ..)) if version == 5 || kind.is_old() => Ok(*kind),
            _ => Err(
                format!("type {number} is not known in CDF-{version}; the file is damaged").into(),
            ),
        }
    }

    /// The type for elements of a new file; `None` if the format has none.
    pub(super) fn of_element(element: ElementType) -> Option<Self> {
        let found = ALL.iter().find(|(_, _, known)| *known == element);
        found.map(|(kind, ..)| *kind)
    }

    /// Whether CDF-1 and CDF-2 have it.
    pub(super) fn is_old(self) -> bool {
        self.number() <= 6
    }

    pub(super) fn number(self) -> u32 {
        self.entry().1
    }

    pub(super) fn element(self) -> ElementType {
        self.entry().2
    }

    fn entry(self) -> (Self, u32, ElementType) {
        let found = ALL.iter().find(|(kind, ..)| *kind == self);
        *found.expect("the table has every kind")
    }
}
