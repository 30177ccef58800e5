//! [`Request`]: what one rank asks for, and the message that tells others.
//!
//! The mathematics. Bytes are counted from the beginning of the array's data.
//! Where wanted bytes have the same order in file and buffer (every layout
//! without tiles), those between two offsets of the file are one stretch of
//! the buffer: [`Request::share`]. So any rank knows how many bytes another
//! one wants of any range, and which, without being told.

use std::ops::Range;

use outcore_geometry::{AxisSection, Layout, Pass, Runs, Section};

use crate::error::{Error, Result};

/// The word that stands before an axis that is a progression,
const PROGRESSION: u64 = 0;

/// and before one that is a list.
const LIST: u64 = 1;

/// One rank's section.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) section: Section,
    pub(crate) runs: Runs,
    /// The first wanted byte,
    pub(crate) start: u64,
    /// and the end of the last.
    pub(crate) end: u64,
}

impl Request {
    pub(crate) fn new(layout: &Layout, section: &Section) -> outcore_geometry::Result<Self> {
        let runs = layout.runs(section)?;
        let extent = runs.footprint(0);
        Ok(Self {
            section: section.clone(),
            runs,
            start: extent.start,
            end: extent.end,
        })
    }

    /// The section as a message: the number of axes, and of each axis
    /// `0 lower upper stride` or `1 count index index ...`.
    pub(crate) fn words(&self) -> Vec<u64> {
        let axes = self.section.axes();
        let mut words = vec![axes.len() as u64];
        for axis in axes {
            match axis.stride() {
                Some(stride) => {
                    let (lower, upper) = axis.bounds();
                    words.extend([PROGRESSION, lower, upper, stride]);
                }
                None => {
                    words.extend([LIST, axis.count()]);
                    words.extend((0..axis.count()).map(|at| axis.index(at)));
                }
            }
        }
        words
    }

    /// What such a message asks for, which is checked as a caller's section is.
    pub(crate) fn of_words(layout: &Layout, words: &[u64]) -> Result<Self> {
        let section = section_of(words)
            .ok_or_else(|| Error::Invalid("a message of another rank is no section".into()))?;
        Self::new(layout, &section).map_err(Error::geometry("a section of another rank"))
    }

    /// Which of the wanted bytes, counted in the order of the file, stand
    /// between two offsets.
    pub(crate) fn share(&self, start: u64, end: u64) -> Range<u64> {
        self.runs.bytes_below(start)..self.runs.bytes_below(end)
    }
}

/// From the first to the last byte that any of these asks for; 0 and 0 if none
/// asks for anything.
pub(super) fn bounds_of(requests: &[Request]) -> (u64, u64) {
    let filled = requests
        .iter()
        .filter(|request| request.start < request.end);
    let start = filled.clone().map(|request| request.start).min();
    let end = filled.map(|request| request.end).max();
    (start.unwrap_or(0), end.unwrap_or(0))
}

fn section_of(words: &[u64]) -> Option<Section> {
    let (axes, mut rest) = words.split_first()?;
    let mut taken = Vec::new();
    for _ in 0..*axes {
        let axis = match rest {
            [PROGRESSION, lower, upper, stride, later @ ..] => {
                rest = later;
                AxisSection::range(*lower, *upper, *stride)
            }
            [LIST, count, later @ ..] => {
                let (list, later) = later.split_at_checked(usize::try_from(*count).ok()?)?;
                rest = later;
                AxisSection::list(list)
            }
            _ => return None,
        };
        taken.push(axis.ok()?);
    }
    Section::new(taken).ok().filter(|_| rest.is_empty())
}

/// A pass between the file and a message, which holds the wanted bytes in the
/// order of the file and those of this pass from `at` on.
pub(crate) fn in_message(pass: &Pass, at: u64) -> Pass {
    let mut pass = *pass;
    pass.first.buffer_offset = at;
    pass.buffer_step = pass.first.len;
    pass
}

/// The same pass between such a message and the buffer: the message stands in
/// the place of the file.
pub(crate) fn from_message(pass: &Pass, at: u64) -> Pass {
    let mut pass = *pass;
    pass.first.file_offset = at;
    pass.file_step = pass.first.len;
    pass
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcore_geometry::Order;

    #[test]
    fn sections_are_told_and_bad_messages_refused() {
        let layout = Layout::new(&[10, 20, 7], 4, &Order::Row, None).unwrap();
        let axes = vec![
            AxisSection::range(1, 9, 3).unwrap(),
            AxisSection::list(vec![0, 5, 6, 19]).unwrap(),
            AxisSection::span(2, 2),
        ];
        let request = Request::new(&layout, &Section::new(axes).unwrap()).unwrap();
        let words = request.words();
        let told = Request::of_words(&layout, &words).unwrap();
        assert_eq!(told.section, request.section);
        for bad in [
            vec![],
            vec![1],
            vec![u64::MAX, 0, 0, 1, 1],
            vec![1, 0, 0, 1, 0],
            vec![1, 1, u64::MAX, 3],
            vec![1, 1, 2, 3, 3],
            vec![1, 2, 0, 0, 1],
            vec![1, 0, 0, 1, 1],
            vec![3, 0, 0, 11, 1, 0, 0, 1, 1, 0, 0, 1, 1],
            [words.clone(), vec![0]].concat(),
        ] {
            assert!(Request::of_words(&layout, &bad).is_err(), "{bad:?}");
        }
    }
}
