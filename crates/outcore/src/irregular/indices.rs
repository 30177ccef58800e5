//! [`Indices`]: which elements a rank wants, in its own order.

use crate::error::{Error, Result};

/// The elements that one rank wants, each given by its number in the array (the
/// last axis fastest, whatever the layout of the file), in any order and as
/// often as it likes.
#[derive(Debug, Clone, Copy)]
pub enum Indices<'a> {
    /// One number an element.
    U32(&'a [u32]),
    /// One number an element.
    U64(&'a [u64]),
    /// Runs of elements: the number of the first, and how many.
    Runs(&'a [(u64, u64)]),
    /// So many indices an element, one for each axis.
    Tuples(&'a [u64], usize),
}

impl<'a> From<&'a [u32]> for Indices<'a> {
    fn from(indices: &'a [u32]) -> Self {
        Self::U32(indices)
    }
}

impl<'a> From<&'a [u64]> for Indices<'a> {
    fn from(indices: &'a [u64]) -> Self {
        Self::U64(indices)
    }
}

impl<'a> From<&'a [(u64, u64)]> for Indices<'a> {
    fn from(runs: &'a [(u64, u64)]) -> Self {
        Self::Runs(runs)
    }
}

impl<'a, T> From<&'a Vec<T>> for Indices<'a>
where
    Indices<'a>: From<&'a [T]>,
{
    fn from(indices: &'a Vec<T>) -> Self {
        indices.as_slice().into()
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Indices<'a>
where
    Indices<'a>: From<&'a [T]>,
{
    fn from(indices: &'a [T; N]) -> Self {
        indices.as_slice().into()
    }
}

impl Indices<'_> {
    /// How many elements there are, each counted as often as it is wanted.
    pub fn count(&self) -> Result<u64> {
        match self {
            Self::U32(indices) => Ok(indices.len() as u64),
            Self::U64(indices) => Ok(indices.len() as u64),
            Self::Runs(runs) => {
                let sum = |sum: u64, run: &(u64, u64)| sum.checked_add(run.1);
                let count = runs.iter().try_fold(0, sum);
                count.ok_or_else(|| Error::Invalid("runs of more than 2^64 elements".into()))
            }
            Self::Tuples(indices, axes) => {
                if *axes == 0 || indices.len() % axes != 0 {
                    return Err(Error::Invalid(format!(
                        "{} indices are no tuples of {axes}",
                        indices.len()
                    )));
                }
                Ok((indices.len() / axes) as u64)
            }
        }
    }

    /// Calls `visit` with the first element, its number and the length of each
    /// run of an array of `shape`; single elements are runs of one. Ends at the
    /// first that is not in the array.
    #[inline]
    pub(super) fn each(&self, shape: &[u64], mut visit: impl FnMut(u64, u64, u64)) -> Result<()> {
        let elements: u64 = shape.iter().product();
        let outside = |at: u64, index: u64| {
            let of = match elements {
                0 => "an array that has none".to_string(),
                _ => format!("an array whose last is {}", elements - 1),
            };
            Error::Invalid(format!(
                "index number {at} asks for element {index} of {of}"
            ))
        };
        match *self {
            Self::U32(indices) => {
                for (at, index) in (0..).zip(indices) {
                    if u64::from(*index) >= elements {
                        return Err(outside(at, u64::from(*index)));
                    }
                    visit(at, u64::from(*index), 1);
                }
            }
            Self::U64(indices) => {
                for (at, index) in (0..).zip(indices) {
                    if *index >= elements {
                        return Err(outside(at, *index));
                    }
                    visit(at, *index, 1);
                }
            }
            Self::Runs(runs) => {
                let mut at = 0;
                for (number, (first, len)) in (0..).zip(runs) {
                    let end = first.checked_add(*len);
                    if *len > 0 && end.is_none_or(|end| end > elements) {
                        return Err(Error::Invalid(format!(
                            "run number {number} asks for {len} elements from {first} on, of an array of {elements}"
                        )));
                    }
                    if *len > 0 {
                        visit(at, *first, *len);
                    }
                    at += len;
                }
            }
            Self::Tuples(indices, axes) => {
                if axes != shape.len() {
                    return Err(Error::Invalid(format!(
                        "tuples of {axes} indices for an array of {} axes",
                        shape.len()
                    )));
                }
                for (at, tuple) in (0..).zip(indices.chunks_exact(axes)) {
                    let mut number = 0;
                    for (axis, (index, extent)) in tuple.iter().zip(shape).enumerate() {
                        if index >= extent {
                            return Err(Error::Invalid(format!(
                                "tuple number {at} has the index {index} along axis {axis}, which has {extent}"
                            )));
                        }
                        number = number * extent + index;
                    }
                    visit(at, number, 1);
                }
            }
        }
        Ok(())
    }
}
