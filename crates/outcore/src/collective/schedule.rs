//! [`Schedule`]: who wants what of a window, and where it stands in messages.
//!
//! A message holds the bytes that a group of ranks wants of the window, in the
//! order of the file. All messages stand end to end in one *mail*, in the order
//! of the groups.

use std::ops::Range;

use outcore_geometry::{Pass, Runs};

use super::coverage::wanted;
use super::domains::Piece;
use super::parties::Group;
use super::request::in_message;
use super::two_phase::TwoPhase;

/// Who wants what of a window.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The group at the other end of each message, and its bytes of the mail.
    pub(super) messages: Vec<(usize, Range<usize>)>,
    pub(super) places: Vec<Place>,
    parts: Vec<Part>,
    stretches: Vec<Range<u64>>,
}

/// A piece of the window: its stretches that hold wanted bytes, and who wants
/// some of it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) piece: Piece,
    stretches: Range<usize>,
    parts: Range<usize>,
}

/// What a group wants of a piece: which group, and where its bytes begin in the
/// mail.
#[derive(Debug)]
struct Part {
    group: usize,
    at: u64,
}

impl Schedule {
    /// Turns to window `k` of the own domain.
    pub(super) fn enter(&mut self, plan: &TwoPhase, k: u64) {
        self.messages.clear();
        self.places.clear();
        self.parts.clear();
        self.stretches.clear();
        let groups = plan.touching();
        let mut bytes = vec![0; groups.len()];
        for piece in plan.own_pieces(k) {
            let first = (self.parts.len(), self.stretches.len());
            for (number, group) in groups.iter().enumerate() {
                let share = group.request.share(piece.start, piece.end);
                if !share.is_empty() {
                    self.parts.push(Part {
                        group: number,
                        at: bytes[number],
                    });
                    bytes[number] += share.end - share.start;
                }
            }
            let takers = &self.parts[first.0..];
            let takers = takers.iter().map(|part| &groups[part.group].request);
            match plan.is_whole() {
                true => self.stretches.push(piece.start..piece.end),
                false => wanted(piece, takers, plan.gap(), &mut self.stretches),
            }
            self.places.push(Place {
                piece,
                stretches: first.1..self.stretches.len(),
                parts: first.0..self.parts.len(),
            });
        }
        // The messages end to end.
        let mut end = 0;
        for (number, bytes) in bytes.iter_mut().enumerate() {
            let start = end;
            end += *bytes;
            if *bytes > 0 {
                self.messages.push((number, start as usize..end as usize));
            }
            *bytes = start;
        }
        for part in &mut self.parts {
            part.at += bytes[part.group];
        }
    }

    /// The bytes of the image, and of the mail.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let image = self.places.last().map(|last| last.piece);
        let image = image.map_or(0, |last| last.at + last.end - last.start);
        let mail = self.messages.last().map_or(0, |(_, range)| range.end);
        (image as usize, mail)
    }

    /// The stretches of a piece that hold wanted bytes.
    pub(super) fn stretches(&self, place: &Place) -> &[Range<u64>] {
        &self.stretches[place.stretches.clone()]
    }

    /// Who wants bytes of a piece, in the order of the groups: their runs, and
    /// where these bytes begin in the mail.
    pub(super) fn takers<'a>(
        &'a self,
        plan: &'a TwoPhase,
        place: &Place,
    ) -> impl Iterator<Item = (&'a Runs, u64)> {
        let parts = self.parts[place.parts.clone()].iter();
        parts.map(|part| (&plan.touching()[part.group].request.runs, part.at))
    }

    /// The same groups, each with the passes of the piece between the file and
    /// the buffers of its ranks.
    pub(super) fn to_buffers<'a>(
        &'a self,
        plan: &'a TwoPhase,
        place: &Place,
    ) -> impl Iterator<Item = (&'a Group, impl Iterator<Item = Pass>)> {
        let (start, end) = (place.piece.start, place.piece.end);
        let parts = self.parts[place.parts.clone()].iter();
        let groups = parts.map(|part| &plan.touching()[part.group]);
        groups.map(move |group| (group, group.request.runs.window(start, end)))
    }

    /// All passes of a piece between the file and the mail, in the order of the
    /// groups.
    pub(super) fn passes<'a>(
        &'a self,
        plan: &'a TwoPhase,
        place: &Place,
    ) -> impl Iterator<Item = Pass> {
        let piece = place.piece;
        self.takers(plan, place).flat_map(move |(runs, mut at)| {
            runs.window(piece.start, piece.end).map(move |pass| {
                let pass = in_message(&pass, at);
                at += pass.count * pass.first.len;
                pass
            })
        })
    }
}
