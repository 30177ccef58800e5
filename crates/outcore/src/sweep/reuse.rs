//! Reuse: what two consecutive tiles share is moved in memory and not read
//! again (Thakur 1995, section 5.5.3).
//!
//! The mathematics. Sections are boxes, and their overlap is a box. If it is as
//! long as the second section along all axes but one, and begins with it along
//! that one, what is left of the second is one box, too. In a dense buffer with
//! that axis slowest (among those that have more than one index) the overlap is
//! the beginning and the rest the end, so both are moved in one piece.

use outcore_geometry::{AxisSection, Layout, Order, Section};

use crate::element::Element;

/// How a section follows from the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reuse {
    /// What both have.
    pub(crate) overlap: Section,
    /// What is left to be read; maybe nothing.
    pub(crate) rest: Section,
    /// Whether the overlap is the beginning of a dense buffer of the section.
    pub(crate) in_front: bool,
}

/// How `next` follows from `last`; `None` if nothing can be reused.
pub(crate) fn between(last: &Section, next: &Section, slowest_first: &[usize]) -> Option<Reuse> {
    let mut differing = None;
    let mut shared = Vec::with_capacity(next.axes().len());
    for (axis, (before, after)) in last.axes().iter().zip(next.axes()).enumerate() {
        if before == after {
            shared.push(after.clone());
            continue;
        }
        if after.stride() != Some(1) || before.stride() != Some(1) {
            return None;
        }
        let ((from, to), (lower, upper)) = (before.bounds(), after.bounds());
        let (start, end) = (from.max(lower), to.min(upper));
        if start >= end || start != lower {
            return None;
        }
        if end != upper && differing.replace((axis, end)).is_some() {
            return None;
        }
        shared.push(AxisSection::span(start, end));
    }
    let inside = "a part of a section has at most its elements";
    let overlap = Section::new(shared).expect(inside);
    let (rest, in_front) = match differing {
        None => (Section::empty(next.axes().len()), true),
        Some((axis, end)) => {
            let from = overlap.axes()[axis].count();
            let rest = next.slice(axis, from, next.axes()[axis].count());
            debug_assert_eq!(rest.axes()[axis].first(), Some(end));
            let slower = slowest_first.iter().take_while(|other| **other != axis);
            let first = slower.map(|axis| next.axes()[*axis].count());
            (rest, first.max().unwrap_or(1) == 1)
        }
    };
    Some(Reuse {
        overlap,
        rest,
        in_front,
    })
}

/// Boxes inside a dense buffer of a section.
pub(crate) struct Inside<'a> {
    section: &'a Section,
    layout: Layout,
}

impl<'a> Inside<'a> {
    /// The places in a buffer of `section`, with the axes in the given order.
    pub(crate) fn new(section: &'a Section, slowest_first: &[usize]) -> Self {
        let order = Order::from_slowest_first(slowest_first);
        let layout = Layout::new(&section.shape(), 1, &order, None);
        let layout = layout.expect("the elements of a buffer can be counted");
        Self { section, layout }
    }

    /// Where the elements of `part` stand: positions along each axis.
    pub(crate) fn positions(&self, part: &Section) -> Section {
        let axes = part.axes().iter().zip(self.section.axes());
        let axes = axes.map(|(part, whole)| {
            let first = part.first().and_then(|index| whole.position(index));
            let first = first.unwrap_or(0);
            AxisSection::span(first, first + part.count())
        });
        Section::new(axes.collect()).expect("a part of a section has at most its elements")
    }

    /// The elements of `part`, if they stand in one piece.
    pub(crate) fn range(&self, part: &Section) -> Option<std::ops::Range<usize>> {
        let mut runs = self.runs(part);
        let first = runs.next();
        match (first, runs.next()) {
            (None, _) => Some(0..0),
            (Some((at, _, len)), None) => Some(at..at + len),
            _ => None,
        }
    }

    /// Copies `part` out of the buffer of the section.
    pub(crate) fn take<T: Element>(&self, part: &Section, from: &[T], to: &mut [T]) {
        for (inside, dense, len) in self.runs(part) {
            to[dense..dense + len].copy_from_slice(&from[inside..inside + len]);
        }
    }

    /// Copies `part` into the buffer of the section.
    pub(crate) fn put<T: Element>(&self, part: &Section, from: &[T], to: &mut [T]) {
        for (inside, dense, len) in self.runs(part) {
            to[inside..inside + len].copy_from_slice(&from[dense..dense + len]);
        }
    }

    /// Stretches of `part`: where in the section's buffer, where in a dense
    /// buffer of its own, and how long.
    fn runs(&self, part: &Section) -> impl Iterator<Item = (usize, usize, usize)> {
        let runs = self.layout.runs(&self.positions(part));
        let runs = runs.expect("the part lies inside the section");
        runs.map(|run| {
            (
                run.file_offset as usize,
                run.buffer_offset as usize,
                run.len as usize,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(text: &str) -> Section {
        Section::parse(text, &[20, 20, 20]).unwrap()
    }

    #[test]
    fn one_box_is_left() {
        let found = between(&section("0:5, 3:9, :"), &section("3:9, 3:9, :"), &[0, 1, 2]).unwrap();
        assert_eq!(found.overlap, section("3:5, 3:9, :"));
        assert_eq!(found.rest, section("5:9, 3:9, :"));
        assert!(found.in_front);
        // In the other order of the axes both lie in many pieces.
        let found = between(&section("0:5, 3:9, :"), &section("3:9, 3:9, :"), &[2, 1, 0]);
        assert!(!found.unwrap().in_front);
        // At the end of the array everything is there already.
        let found = between(&section("0:5, :, :"), &section("3:5, :, :"), &[0, 1, 2]).unwrap();
        assert!(found.rest.is_empty());
    }

    #[test]
    fn nothing_is_reused_where_more_is_left() {
        for (last, next) in [
            ("0:5, 0:5, :", "3:9, 3:9, :"),
            ("0:5, 0:5, :", "5:9, 0:5, :"),
            ("5:9, 0:5, :", "0:6, 0:5, :"),
            ("0:5:2, :, :", "4:9:2, :, :"),
        ] {
            let found = between(&section(last), &section(next), &[0, 1, 2]);
            assert_eq!(found, None, "{last} then {next}");
        }
    }

    #[test]
    fn boxes_are_taken_and_put() {
        let whole = Section::parse("2:4, 5:8", &[9, 9]).unwrap();
        let part = Section::parse("2:4, 6:8", &[9, 9]).unwrap();
        let inside = Inside::new(&whole, &[0, 1]);
        let mut dense = [0; 4];
        inside.take(&part, &[1, 2, 3, 4, 5, 6], &mut dense);
        assert_eq!(dense, [2, 3, 5, 6]);
        let mut back = [0; 6];
        inside.put(&part, &dense, &mut back);
        assert_eq!(back, [0, 2, 3, 0, 5, 6]);
        assert_eq!(inside.range(&part), None);
        let row = Section::parse("3, 5:8", &[9, 9]).unwrap();
        assert_eq!(inside.range(&row), Some(3..6));
    }
}
