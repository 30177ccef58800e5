//! What a rank asks of the holder of a part, as the bytes of a request header.
//!
//! All numbers are little-endian: what is to be done (1 byte), the part (4 bytes),
//! the factor of an accumulation (16 bytes), then the items, each a piece (8 bytes) and its section.
//! A section has one byte for the number of its axes, and for each axis a byte
//! and either lower bound, upper bound and stride, or a length and a list. The data
//! of all items stand one after the other in the request or the response.

use outcore_geometry::{AxisSection, Section};

use super::spread::Item;
use crate::error::{Error, Result};

/// What is to be done with the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// They are sent.
    Get,
    /// They are replaced.
    Put,
    /// The factor times the data is added to them.
    Accumulate,
    /// They will be asked for soon.
    Prefetch,
    /// Everything written is brought to stable storage.
    Sync,
}

const ACTIONS: [Action; 5] = [
    Action::Get,
    Action::Put,
    Action::Accumulate,
    Action::Prefetch,
    Action::Sync,
];

/// The largest element, a complex number of two f64.
pub(crate) const FACTOR: usize = 16;

/// What one request asks for.
#[derive(Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) action: Action,
    pub(crate) part: usize,
    pub(crate) factor: [u8; FACTOR],
    pub(crate) items: Vec<(u64, Section)>,
}

impl Asked {
    /// What is asked of the items of a part.
    pub(crate) fn new(action: Action, part: usize, factor: &[u8], items: &[Item]) -> Self {
        let mut whole = [0; FACTOR];
        whole[..factor.len()].copy_from_slice(factor);
        let items = items.iter().map(|item| (item.piece, item.local.clone()));
        Self {
            action,
            part,
            factor: whole,
            items: items.collect(),
        }
    }
}

/// Writes a request header.
pub(crate) fn encode<'a>(
    action: Action,
    part: usize,
    factor: &[u8],
    items: impl Iterator<Item = &'a Item>,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.push(action as u8);
    bytes.extend_from_slice(&(part as u32).to_le_bytes());
    bytes.extend_from_slice(factor);
    bytes.resize(5 + FACTOR, 0);
    for item in items {
        put(&mut bytes, item.piece);
        bytes.push(item.local.axes().len() as u8);
        for axis in item.local.axes() {
            match axis.stride() {
                Some(stride) => {
                    let (lower, upper) = axis.bounds();
                    bytes.push(0);
                    for number in [lower, upper, stride] {
                        put(&mut bytes, number);
                    }
                }
                None => {
                    bytes.push(1);
                    put(&mut bytes, axis.count());
                    (0..axis.count()).for_each(|at| put(&mut bytes, axis.index(at)));
                }
            }
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

/// Reads a request header.
pub(crate) fn decode(bytes: &[u8]) -> Result<Asked> {
    let mut rest = Rest(bytes);
    let action = rest.byte()?;
    let action = *ACTIONS.get(usize::from(action)).ok_or_else(damaged)?;
    let mut part = [0; 4];
    part.copy_from_slice(rest.take(4)?);
    let mut factor = [0; FACTOR];
    factor.copy_from_slice(rest.take(FACTOR)?);
    let mut items = Vec::new();
    while !rest.0.is_empty() {
        let piece = rest.number()?;
        let mut axes = Vec::new();
        for _ in 0..rest.byte()? {
            axes.push(match rest.byte()? {
                0 => {
                    let [lower, upper, stride] = [rest.number()?, rest.number()?, rest.number()?];
                    AxisSection::range(lower, upper, stride)
                }
                _ => {
                    let count = rest.number()?.min(rest.0.len() as u64 + 1) as usize;
                    let indices: Result<Vec<u64>> = (0..count).map(|_| rest.number()).collect();
                    AxisSection::list(indices?)
                }
            });
        }
        let axes: Result<Vec<_>, _> = axes.into_iter().collect();
        let section = axes.and_then(Section::new);
        items.push((piece, section.map_err(Error::geometry("a request"))?));
    }
    Ok(Asked {
        action,
        part: u32::from_le_bytes(part) as usize,
        factor,
        items,
    })
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }
}

fn damaged() -> Error {
    Error::Invalid("a request for part of a disk-resident array cannot be read".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_read_as_they_were_written() {
        let shape = [10, 20, 30];
        let items: Vec<Item> = ["1:5:2, :, [3,4,9]", "7, 8, 9", "2:2, ::3, :"]
            .iter()
            .map(|text| Item {
                part: 0,
                piece: text.len() as u64,
                local: Section::parse(text, &shape).unwrap(),
                positions: Section::empty(3),
            })
            .collect();
        for action in ACTIONS {
            let read = decode(&encode(action, 7, &2.5f64.to_le_bytes(), items.iter())).unwrap();
            assert_eq!((read.action, read.part), (action, 7));
            assert_eq!(read.factor[..8], 2.5f64.to_le_bytes());
            let expected: Vec<_> = items.iter().map(|i| (i.piece, i.local.clone())).collect();
            assert_eq!(read.items, expected);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(0u8..6, 0..120)) {
            let _ = decode(&bytes);
        }
    }
}
