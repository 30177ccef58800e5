//! [`Window`]: a part of a rank's domain in memory, and the messages that carry
//! its bytes from and to the ranks that want them.
//!
//! A message to or from a rank holds the bytes that the rank wants of the
//! window, in the order of the file. All messages stand end to end in one
//! *mail*, in the order of the ranks.

use std::ops::Range;

use super::coverage::{Cover, wanted};
use super::domains::Piece;
use super::plan::TwoPhase;
use super::request::in_message;
use crate::array::Array;
use crate::element::swap_bytes;
use crate::error::Result;
use crate::execute::copy::{gather, scatter};
use crate::execute::image::{self, Stretch};

/// A window, its image, and its mail.
#[derive(Debug)]
pub(super) struct Window {
    image: Vec<u8>,
    mail: Vec<u8>,
    /// The rank at the other end of each message, and the message.
    messages: Vec<(usize, Range<usize>)>,
    places: Vec<Place>,
    parts: Vec<Part>,
    stretches: Vec<Range<u64>>,
    cover: Cover,
}

/// A piece of the window: its stretches that hold wanted bytes, and who wants
/// some of it.
#[derive(Debug)]
struct Place {
    piece: Piece,
    stretches: Range<usize>,
    parts: Range<usize>,
}

/// What a request wants of a piece: which request, and where its bytes begin
/// in the mail.
#[derive(Debug)]
struct Part {
    request: usize,
    at: u64,
}

impl Window {
    /// A window without anything yet.
    pub(super) fn new(element: u64) -> Self {
        Self {
            image: Vec::new(),
            mail: Vec::new(),
            messages: Vec::new(),
            places: Vec::new(),
            parts: Vec::new(),
            stretches: Vec::new(),
            cover: Cover::new(element),
        }
    }

    /// Turns to window `k` of the own domain: who wants what of it.
    pub(super) fn enter(&mut self, plan: &TwoPhase, k: u64) {
        self.messages.clear();
        self.places.clear();
        self.parts.clear();
        self.stretches.clear();
        let requests = plan.touching();
        let mut bytes = vec![0; requests.len()];
        for piece in plan.own_pieces(k) {
            let first = (self.parts.len(), self.stretches.len());
            for (number, (_, request)) in requests.iter().enumerate() {
                let share = request.share(piece.start, piece.end);
                if !share.is_empty() {
                    self.parts.push(Part {
                        request: number,
                        at: bytes[number],
                    });
                    bytes[number] += share.end - share.start;
                }
            }
            let takers = &self.parts[first.0..];
            let takers = takers.iter().map(|part| &requests[part.request].1);
            wanted(piece, takers, plan.gap(), &mut self.stretches);
            self.places.push(Place {
                piece,
                stretches: first.1..self.stretches.len(),
                parts: first.0..self.parts.len(),
            });
        }
        // The messages end to end.
        let mut end = 0;
        for ((rank, _), bytes) in requests.iter().zip(&mut bytes) {
            let start = end;
            end += *bytes;
            if *bytes > 0 {
                self.messages.push((*rank, start as usize..end as usize));
            }
            *bytes = start;
        }
        for part in &mut self.parts {
            part.at += bytes[part.request];
        }
        self.mail.resize(end as usize, 0);
        let image = self.places.last();
        let image = image.map_or(0, |last| last.piece.at + last.piece.end - last.piece.start);
        self.image.resize(image as usize, 0);
    }

    /// The rank at the other end of each message, and the message.
    pub(super) fn messages(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let messages = self.messages.iter();
        messages.map(|(rank, range)| (*rank, &self.mail[range.clone()]))
    }

    /// The same, to receive into.
    pub(super) fn messages_mut(&mut self) -> impl Iterator<Item = (usize, &mut [u8])> {
        let mut rest = &mut self.mail[..];
        self.messages.iter().map(move |(rank, range)| {
            let (message, later) = std::mem::take(&mut rest).split_at_mut(range.len());
            rest = later;
            (*rank, message)
        })
    }

    /// Reads what is wanted of the window.
    pub(super) fn fill(&mut self, array: &Array) -> Result<()> {
        let places = self.places.iter();
        let all = places.flat_map(|place| place.stretches(array, &self.stretches));
        image::read(&**array.store(), all, &mut self.image)
    }

    /// Puts what each rank wants into its message.
    pub(super) fn pack(&mut self, plan: &TwoPhase) {
        let Self { image, mail, .. } = self;
        for place in &self.places {
            let (piece, image) = (place.piece, &image[place.piece.at as usize..]);
            for part in &self.parts[place.parts.clone()] {
                let mut at = part.at;
                for pass in plan.touching()[part.request]
                    .1
                    .runs
                    .window(piece.start, piece.end)
                {
                    gather(&in_message(&pass, at), image, piece.start, mail);
                    at += pass.count * pass.first.len;
                }
            }
        }
    }

    /// Writes what the messages have brought. Where several ranks write one
    /// element, the highest wins; what nobody writes stays as it is.
    pub(super) fn flush(&mut self, plan: &TwoPhase, array: &Array) -> Result<()> {
        let Self {
            image,
            mail,
            places,
            parts,
            stretches,
            cover,
            ..
        } = self;
        if let Some(width) = array.swap() {
            swap_bytes(mail, width);
        }
        let store = &**array.store();
        let mut full: Vec<&Place> = Vec::with_capacity(places.len());
        for place in &*places {
            let piece = place.piece;
            let parts = &parts[place.parts.clone()];
            cover.enter(piece);
            for part in parts {
                let runs = &plan.touching()[part.request].1.runs;
                runs.window(piece.start, piece.end)
                    .for_each(|pass| cover.mark(&pass));
            }
            let put = |image: &mut [u8]| {
                for part in parts {
                    let runs = &plan.touching()[part.request].1.runs;
                    let mut at = part.at;
                    for pass in runs.window(piece.start, piece.end) {
                        let image = &mut image[piece.at as usize..];
                        scatter(&in_message(&pass, at), mail, image, piece.start);
                        at += pass.count * pass.first.len;
                    }
                }
            };
            let wanted = &stretches[place.stretches.clone()];
            if wanted.iter().all(|stretch| cover.is_full(stretch)) {
                put(image);
                full.push(place);
            } else if array.is_guarded() {
                let extent = extent(array, wanted);
                let moved = place.stretches(array, stretches);
                image::update(store, extent, moved, image, put)?;
            } else {
                put(image);
                let written = wanted.iter().flat_map(|stretch| cover.written(stretch));
                let written = written.map(|range| place.stretch(array, &range));
                image::write(store, extent(array, wanted), written, image)?;
            }
        }
        let (Some(first), Some(last)) = (full.first(), full.last()) else {
            return Ok(());
        };
        let extent = extent(array, &stretches[first.stretches.start..last.stretches.end]);
        let all = full.iter();
        let all = all.flat_map(|place| place.stretches(array, stretches));
        image::write(store, extent, all, image)
    }
}

impl Place {
    /// A range of the piece in the store and in the image.
    fn stretch(&self, array: &Array, range: &Range<u64>) -> Stretch {
        Stretch {
            offset: array.data_offset() + range.start,
            at: (self.piece.at + range.start - self.piece.start) as usize,
            len: (range.end - range.start) as usize,
        }
    }

    fn stretches<'a>(
        &'a self,
        array: &'a Array,
        all: &'a [Range<u64>],
    ) -> impl Iterator<Item = Stretch> + Clone + 'a {
        let own = all[self.stretches.clone()].iter();
        own.map(|range| self.stretch(array, range))
    }
}

/// From the beginning of the first of some stretches to the end of the last, in
/// the store.
fn extent(array: &Array, stretches: &[Range<u64>]) -> (u64, u64) {
    let (first, last) = (stretches.first(), stretches.last());
    let offset = |at: Option<u64>| array.data_offset() + at.unwrap_or(0);
    (
        offset(first.map(|range| range.start)),
        offset(last.map(|range| range.end)),
    )
}
