//! Which bytes of a piece of the file somebody wants: as stretches worth a
//! request each, and exactly, element by element.

use std::ops::Range;

use outcore_geometry::Pass;

use super::domains::Piece;
use super::request::Request;
use crate::bits::Bits;

/// At most so many stretches are listed; with more, larger gaps are moved along.
pub(super) const MOST: usize = 4096;

/// The stretches of a piece that hold wanted bytes, with gaps of up to `gap`
/// bytes moved along: in ascending order, added to `into`.
pub(super) fn wanted<'a>(
    piece: Piece,
    requests: impl Iterator<Item = &'a Request>,
    gap: u64,
    into: &mut Vec<Range<u64>>,
) {
    let mut list = Stretches {
        first: into.len(),
        list: into,
        gap,
    };
    for request in requests {
        let share = request.share(piece.start, piece.end);
        if share.end - share.start == piece.end - piece.start {
            list.list.truncate(list.first);
            list.list.push(piece.start..piece.end);
            return;
        }
        if share.is_empty() {
            continue;
        }
        for pass in request.runs.window(piece.start, piece.end) {
            let gap = pass.file_step.saturating_sub(pass.first.len);
            if pass.count == 1 || gap <= list.gap {
                let start = pass.first.file_offset;
                list.add(start, start + pass.file_extent());
                continue;
            }
            for run in (0..pass.count).map(|at| pass.run(at)) {
                list.add(run.file_offset, run.file_offset + run.len);
            }
        }
    }
    list.settle();
}

/// Stretches from `first` on.
struct Stretches<'a> {
    list: &'a mut Vec<Range<u64>>,
    first: usize,
    gap: u64,
}

impl Stretches<'_> {
    fn add(&mut self, start: u64, end: u64) {
        if let Some(last) = self.list[self.first..].last_mut()
            && (last.start..=last.end.saturating_add(self.gap)).contains(&start)
        {
            last.end = last.end.max(end);
            return;
        }
        if self.list.len() - self.first >= 2 * MOST {
            self.settle();
        }
        self.list.push(start..end);
    }

    /// Puts them in order and joins those that are near enough.
    fn settle(&mut self) {
        self.list[self.first..].sort_unstable_by_key(|stretch| stretch.start);
        loop {
            let mut kept = self.first;
            for at in self.first..self.list.len() {
                let next = self.list[at].clone();
                match self.list[self.first..kept].last_mut() {
                    Some(last) if next.start <= last.end.saturating_add(self.gap) => {
                        last.end = last.end.max(next.end);
                    }
                    _ => {
                        self.list[kept] = next;
                        kept += 1;
                    }
                }
            }
            self.list.truncate(kept);
            if kept - self.first <= MOST {
                return;
            }
            self.gap = self.gap.saturating_mul(2).saturating_add(1);
        }
    }
}

/// The elements of a piece that somebody writes: one bit each.
#[derive(Debug)]
pub(super) struct Cover {
    bits: Bits,
    start: u64,
    element: u64,
}

impl Cover {
    /// Of elements of so many bytes.
    pub(super) fn new(element: u64) -> Self {
        Self {
            bits: Bits::default(),
            start: 0,
            element,
        }
    }

    /// Begins with nothing of `piece`.
    pub(super) fn enter(&mut self, piece: Piece) {
        self.start = piece.start;
        let elements = (piece.end - piece.start).div_ceil(self.element);
        self.bits.clear(elements as usize);
    }

    /// Somebody writes the runs of `pass`.
    pub(super) fn mark(&mut self, pass: &Pass) {
        for run in (0..pass.count).map(|at| pass.run(at)) {
            let elements = self.elements(run.file_offset..run.file_offset + run.len);
            self.bits.set_all(elements);
        }
    }

    fn elements(&self, bytes: Range<u64>) -> Range<usize> {
        let element = |offset: u64| ((offset - self.start) / self.element) as usize;
        element(bytes.start)..element(bytes.end)
    }

    /// The maximal stretches that somebody writes between two offsets.
    pub(super) fn written(&self, stretch: &Range<u64>) -> impl Iterator<Item = Range<u64>> + Clone {
        let offset = |element: usize| self.start + element as u64 * self.element;
        let runs = self.bits.runs(self.elements(stretch.clone()));
        runs.map(move |run| offset(run.start)..offset(run.end))
    }

    /// Whether all that lies between two offsets is written.
    pub(super) fn is_full(&self, stretch: &Range<u64>) -> bool {
        let Range { start, end } = self.elements(stretch.clone());
        self.bits.find(start, end, false) == end
    }
}
