//! [`Predictor`]: rows that were stored as differences.
//!
//! Horizontal: each sample less the same sample of the pixel before it, in the
//! byte order of the file. Floating point: the most significant bytes of a row,
//! then the next ones, and so on, each byte less the one a pixel before.

use crate::element::{ByteOrder, ElementType};
use crate::format::fields::Parsed;

/// What was done to the rows of a strip or tile before it was compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Predictor {
    None,
    Horizontal,
    FloatingPoint,
}

/// The rows of a piece.
pub(super) struct Rows {
    /// The bytes of a row.
    pub(super) bytes: usize,
    /// The bytes of a sample.
    pub(super) sample: usize,
    /// The samples of a pixel that stand together.
    pub(super) together: usize,
    pub(super) order: ByteOrder,
}

impl Predictor {
    pub(super) fn of_number(number: u64, element: ElementType) -> Parsed<Self> {
        let complex = matches!(element, ElementType::C64 | ElementType::C128);
        let float = matches!(
            element,
            ElementType::F16 | ElementType::F32 | ElementType::F64
        );
        match number {
            1 => Ok(Self::None),
            2 if !complex => Ok(Self::Horizontal),
            3 if float => Ok(Self::FloatingPoint),
            _ => Err(format!("predictor {number} of {element} is not supported").into()),
        }
    }

    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::None => "no predictor",
            Self::Horizontal => "predictor 2",
            Self::FloatingPoint => "predictor 3",
        }
    }

    /// Restores the rows of `data`.
    pub(super) fn undo(self, data: &mut [u8], rows: &Rows) {
        if self == Self::None || rows.bytes == 0 {
            return;
        }
        let mut scratch = Vec::new();
        for row in data.chunks_exact_mut(rows.bytes) {
            match self {
                Self::None => {}
                Self::Horizontal => add_up(row, rows),
                Self::FloatingPoint => join(row, rows, &mut scratch),
            }
        }
    }
}

/// Adds to each number of `row` the one `step` numbers before.
macro_rules! add {
    ($number:ty, $row:expr, $step:expr, $order:expr) => {{
        const SIZE: usize = size_of::<$number>();
        let (numbers, _) = $row.as_chunks_mut::<SIZE>();
        for at in $step..numbers.len() {
            let (before, number) = (numbers[at - $step], numbers[at]);
            numbers[at] = match $order {
                ByteOrder::Little => <$number>::from_le_bytes(number)
                    .wrapping_add(<$number>::from_le_bytes(before))
                    .to_le_bytes(),
                ByteOrder::Big => <$number>::from_be_bytes(number)
                    .wrapping_add(<$number>::from_be_bytes(before))
                    .to_be_bytes(),
            };
        }
    }};
}

fn add_up(row: &mut [u8], rows: &Rows) {
    let (step, order) = (rows.together, rows.order);
    match rows.sample {
        1 => add!(u8, row, step, order),
        2 => add!(u16, row, step, order),
        4 => add!(u32, row, step, order),
        _ => add!(u64, row, step, order),
    }
}

/// Bytes of numbers that stand in planes back to their numbers.
fn join(row: &mut [u8], rows: &Rows, scratch: &mut Vec<u8>) {
    add!(u8, row, rows.together, rows.order);
    scratch.clear();
    scratch.extend_from_slice(row);
    let count = row.len() / rows.sample;
    for (number, bytes) in row.chunks_exact_mut(rows.sample).enumerate() {
        for (plane, byte) in bytes.iter_mut().enumerate() {
            let plane = match rows.order {
                ByteOrder::Big => plane,
                ByteOrder::Little => rows.sample - 1 - plane,
            };
            *byte = scratch[plane * count + number];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_added_up() {
        let rows = |sample, together, order| Rows {
            bytes: 6,
            sample,
            together,
            order,
        };
        let mut data = [1, 2, 3, 254, 1, 1, 5, 0, 0, 0, 0, 1];
        Predictor::Horizontal.undo(&mut data, &rows(1, 3, ByteOrder::Little));
        assert_eq!(data, [1, 2, 3, 255, 3, 4, 5, 0, 0, 5, 0, 1]);
        let mut data = [0, 255, 0, 1, 0, 1];
        Predictor::Horizontal.undo(&mut data, &rows(2, 1, ByteOrder::Big));
        assert_eq!(data, [0, 255, 1, 0, 1, 1]);
        let mut data = [255, 0, 1, 0, 1, 0];
        Predictor::Horizontal.undo(&mut data, &rows(2, 1, ByteOrder::Little));
        assert_eq!(data, [255, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn planes_of_bytes_become_numbers() {
        let numbers = [1.5f32, -2.25, 1e20];
        let mut planes = Vec::new();
        for plane in 0..4 {
            planes.extend(numbers.iter().map(|number| number.to_be_bytes()[plane]));
        }
        let mut stored = planes.clone();
        for at in 1..12 {
            stored[at] = planes[at].wrapping_sub(planes[at - 1]);
        }
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut data = stored.clone();
            let rows = Rows {
                bytes: 12,
                sample: 4,
                together: 1,
                order,
            };
            Predictor::FloatingPoint.undo(&mut data, &rows);
            let expected = numbers.map(|number| match order {
                ByteOrder::Little => number.to_le_bytes(),
                ByteOrder::Big => number.to_be_bytes(),
            });
            assert_eq!(data, expected.concat());
        }
    }
}
