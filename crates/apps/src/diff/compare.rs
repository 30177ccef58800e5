//! Comparing numbers in memory.

use outcore::{Complex, Element, ElementType, dispatch, f16};

/// What counts as equal.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tolerance {
    /// Numbers that are at most this far apart do.
    pub absolute: f64,
    /// Numbers that are at most this part of the larger one apart do.
    pub relative: f64,
    /// Whether two NaNs differ.
    pub nan_differs: bool,
}

/// The largest difference of a kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// How large it is.
    pub size: f64,
    /// The number of the position, in the axis order of the first array; the first
    /// of several.
    pub(crate) place: u64,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Differences {
    /// Elements that were compared.
    pub elements: u64,
    /// Elements that are not equal.
    pub differing: u64,
    /// Elements that differ by more than the tolerance.
    pub beyond: u64,
    /// Of those, elements that are a NaN in one array only.
    pub one_nan: u64,
    /// The largest difference.
    pub absolute: Option<Peak>,
    /// The largest difference as a part of the larger number.
    pub relative: Option<Peak>,
    /// The first element that differs by more than the tolerance.
    pub first: Option<Peak>,
}

/// The words of differences in a message.
const WORDS: usize = 13;

impl Differences {
    /// Joins what was found elsewhere.
    pub(crate) fn join(&mut self, other: &Self) {
        self.elements += other.elements;
        self.differing += other.differing;
        self.beyond += other.beyond;
        self.one_nan += other.one_nan;
        larger(&mut self.absolute, other.absolute);
        larger(&mut self.relative, other.relative);
        larger(&mut self.first, other.first);
    }

    pub(crate) fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..4].copy_from_slice(&[self.elements, self.differing, self.beyond, self.one_nan]);
        let peaks = [self.absolute, self.relative, self.first];
        for (words, peak) in words[4..].chunks_exact_mut(3).zip(peaks) {
            if let Some(Peak { size, place }) = peak {
                words.copy_from_slice(&[1, size.to_bits(), place]);
            }
        }
        words
    }

    pub(crate) fn of_words(words: &[u64]) -> Self {
        let peak = |at: usize| {
            (words[at] == 1).then(|| Peak {
                size: f64::from_bits(words[at + 1]),
                place: words[at + 2],
            })
        };
        Self {
            elements: words[0],
            differing: words[1],
            beyond: words[2],
            one_nan: words[3],
            absolute: peak(4),
            relative: peak(7),
            first: peak(10),
        }
    }

    fn differs(&mut self, size: Size, tolerance: &Tolerance, place: u64) {
        self.differing += 1;
        let within = match size {
            Size::OneNan => {
                self.one_nan += 1;
                false
            }
            Size::BothNan => false,
            Size::Apart { distance, scale } => {
                larger(
                    &mut self.absolute,
                    Some(Peak {
                        size: distance,
                        place,
                    }),
                );
                let size = match distance.is_finite() {
                    true => distance / scale,
                    false => f64::INFINITY,
                };
                larger(&mut self.relative, Some(Peak { size, place }));
                // No tolerance reaches from a number to an infinity.
                distance.is_finite()
                    && (distance <= tolerance.absolute || distance <= tolerance.relative * scale)
            }
        };
        if !within {
            self.beyond += 1;
            larger(&mut self.first, Some(Peak { size: 0.0, place }));
        }
    }
}

/// Keeps the larger peak; of equal ones the first.
fn larger(best: &mut Option<Peak>, other: Option<Peak>) {
    let Some(other) = other else { return };
    let takes = best.is_none_or(|best| {
        other.size > best.size || (other.size == best.size && other.place < best.place)
    });
    if takes {
        *best = Some(other);
    }
}

/// How two elements that are not equal differ.
enum Size {
    OneNan,
    BothNan,
    Apart { distance: f64, scale: f64 },
}

/// The numbers of some elements.
enum Numbers {
    Whole(Vec<i128>),
    Complex(Vec<Complex<f64>>),
}

/// Elements compared at a time.
const CHUNK: usize = 1024;

/// Compares elements of two types, given by their bytes in this machine's order,
/// equally many; `place` tells the number of each.
pub(crate) fn compare(
    (left_type, left): (ElementType, &[u8]),
    (right_type, right): (ElementType, &[u8]),
    tolerance: &Tolerance,
    place: impl Fn(u64) -> u64,
    found: &mut Differences,
) {
    let (width, other) = (left_type.size() as usize, right_type.size() as usize);
    found.elements += (left.len() / width) as u64;
    let same_type = left_type == right_type;
    let chunks = left.chunks(CHUNK * width).zip(right.chunks(CHUNK * other));
    for (at, (left, right)) in chunks.enumerate() {
        // Equal bytes are equal numbers, unless NaNs count.
        if same_type && left == right && !(tolerance.nan_differs && has_nans(left_type)) {
            continue;
        }
        let start = (at * CHUNK) as u64;
        let mut differs = |number: usize, size: Size| {
            found.differs(size, tolerance, place(start + number as u64));
        };
        match (numbers(left_type, left), numbers(right_type, right)) {
            (Numbers::Whole(left), Numbers::Whole(right)) => {
                for (number, (a, b)) in left.iter().zip(&right).enumerate() {
                    if a != b {
                        let scale = a.unsigned_abs().max(b.unsigned_abs()) as f64;
                        let distance = a.abs_diff(*b) as f64;
                        differs(number, Size::Apart { distance, scale });
                    }
                }
            }
            (left, right) => {
                let (left, right) = (left.complex(), right.complex());
                for (number, (a, b)) in left.iter().zip(&right).enumerate() {
                    if a == b {
                        continue;
                    }
                    match (a.is_nan(), b.is_nan()) {
                        (true, true) if tolerance.nan_differs => differs(number, Size::BothNan),
                        (true, true) => {}
                        (false, false) => {
                            // Infinities may be equal in one part.
                            let part = |a: f64, b: f64| if a == b { 0.0 } else { a - b };
                            let apart = Complex::new(part(a.re, b.re), part(a.im, b.im));
                            let distance = modulus(apart);
                            let scale = modulus(*a).max(modulus(*b));
                            differs(number, Size::Apart { distance, scale });
                        }
                        _ => differs(number, Size::OneNan),
                    }
                }
            }
        }
    }
}

fn modulus(value: Complex<f64>) -> f64 {
    match value.im == 0.0 {
        true => value.re.abs(),
        false => value.re.hypot(value.im),
    }
}

fn has_nans(element: ElementType) -> bool {
    use ElementType::{C64, C128, F16, F32, F64};
    matches!(element, F16 | F32 | F64 | C64 | C128)
}

fn numbers(element: ElementType, bytes: &[u8]) -> Numbers {
    dispatch!(element, T => T::numbers(bytes))
}

impl Numbers {
    fn complex(self) -> Vec<Complex<f64>> {
        match self {
            Self::Whole(values) => values
                .iter()
                .map(|value| Complex::new(*value as f64, 0.0))
                .collect(),
            Self::Complex(values) => values,
        }
    }
}

/// An element that can be compared.
trait Comparable: Element {
    fn numbers(bytes: &[u8]) -> Numbers;
}

macro_rules! comparable {
    ($kind:ident: $($type:ty, $of:expr);* $(;)?) => {$(
        impl Comparable for $type {
            fn numbers(bytes: &[u8]) -> Numbers {
                let elements = bytes.chunks_exact(size_of::<Self>());
                let values = elements.map(bytemuck::pod_read_unaligned::<Self>);
                Numbers::$kind(values.map($of).collect())
            }
        }
    )*};
}

comparable! { Whole:
    i8, i128::from; i16, i128::from; i32, i128::from; i64, i128::from;
    u8, i128::from; u16, i128::from; u32, i128::from; u64, i128::from;
}

comparable! { Complex:
    f16, |value: f16| Complex::new(value.to_f64(), 0.0);
    f32, |value: f32| Complex::new(value.into(), 0.0);
    f64, |value: f64| Complex::new(value, 0.0);
    Complex<f32>, |value: Complex<f32>| Complex::new(value.re.into(), value.im.into());
    Complex<f64>, |value: Complex<f64>| value;
}

impl Comparable for bool {
    fn numbers(bytes: &[u8]) -> Numbers {
        Numbers::Whole(bytes.iter().map(|byte| (*byte != 0).into()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<A: Element, B: Element>(a: &[A], b: &[B], tolerance: Tolerance) -> Differences {
        let mut found = Differences::default();
        let (left, right) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
        let place = |at| at;
        compare(
            (A::TYPE, left),
            (B::TYPE, right),
            &tolerance,
            place,
            &mut found,
        );
        assert_eq!(Differences::of_words(&found.words()), found);
        found
    }

    #[test]
    fn numbers_of_different_types() {
        let exact = Tolerance::default();
        assert_eq!(found(&[1u8, 2], &[1.0f64, 2.0], exact).differing, 0);
        let one = found(&[1i64, 2, 5], &[1.0f32, 2.5, 4.0], exact);
        assert_eq!((one.elements, one.differing, one.beyond), (3, 2, 2));
        assert_eq!(
            one.absolute,
            Some(Peak {
                size: 1.0,
                place: 2
            })
        );
        assert_eq!(one.first.unwrap().place, 1);
        // Exact beyond 53 bits.
        let large = found(&[u64::MAX], &[i64::MAX], exact);
        assert_eq!(large.absolute.unwrap().size, 9223372036854775808.0);
        assert_eq!(found(&[u64::MAX], &[u64::MAX - 1], exact).differing, 1);
        let complex = found(&[Complex::new(3.0f32, 4.0)], &[0u8], exact);
        assert_eq!(complex.absolute.unwrap().size, 5.0);
        assert_eq!(complex.relative.unwrap().size, 1.0);
    }

    #[test]
    fn tolerances_and_nans() {
        let near = Tolerance {
            absolute: 0.1,
            relative: 0.01,
            nan_differs: false,
        };
        let some = found(&[1.0, 100.0, 10.0], &[1.05, 100.9, 10.5], near);
        assert_eq!((some.differing, some.beyond), (3, 1));
        let nan = f64::NAN;
        let one = found(&[nan, nan, 1.0], &[nan, 1.0, nan], near);
        assert_eq!((one.differing, one.one_nan, one.absolute), (2, 2, None));
        let strict = Tolerance {
            nan_differs: true,
            ..near
        };
        assert_eq!(found(&[nan], &[nan], strict).beyond, 1);
        assert_eq!(found(&[f64::INFINITY], &[f64::INFINITY], strict).beyond, 0);
        let endless = found(&[f64::INFINITY], &[1.0], near);
        assert_eq!(endless.relative.unwrap().size, f64::INFINITY);
        assert_eq!(endless.beyond, 1);
        assert_eq!(found(&[0.0], &[-0.0], strict).differing, 0);
    }
}
