//! [`Window`]: a part of a rank's domain in memory, with the messages that carry
//! its bytes from and to the ranks that want them.

use std::ops::Range;
use std::slice;

use outcore_storage::Store;
use outcore_transport::Loans;

use super::coverage::Cover;
use super::moved::{Moved, timed};
use super::schedule::{Place, Schedule};
use super::two_phase::TwoPhase;
use crate::array::Array;
use crate::element::swap_bytes;
use crate::error::Result;
use crate::execute::copy::{gather, gather_to, scatter};
use crate::execute::image::{self, Stretch};

/// A window, its image, and its mail.
#[derive(Debug)]
pub(super) struct Window {
    schedule: Schedule,
    image: Vec<u8>,
    mail: Vec<u8>,
    cover: Cover,
}

impl Window {
    /// A window without anything yet, of elements of so many bytes.
    pub(super) fn new(element: u64) -> Self {
        Self {
            schedule: Schedule::default(),
            image: Vec::new(),
            mail: Vec::new(),
            cover: Cover::new(element),
        }
    }

    /// Turns to window `k` of the own domain, and its mail.
    pub(super) fn enter(&mut self, plan: &TwoPhase, k: u64) {
        self.turn(plan, k);
        self.mail.resize(self.schedule.sizes().1, 0);
    }

    /// Turns to window `k` of the own domain, which has no mail.
    pub(super) fn turn(&mut self, plan: &TwoPhase, k: u64) {
        self.schedule.enter(plan, k);
        self.image.resize(self.schedule.sizes().0, 0);
    }

    /// The messages of a read, each with a rank that wants it.
    pub(super) fn messages<'a>(
        &'a self,
        plan: &'a TwoPhase,
    ) -> impl Iterator<Item = (usize, &'a [u8])> {
        self.schedule.messages.iter().flat_map(|(group, range)| {
            let ranks = plan.touching()[*group].ranks.iter();
            ranks.map(|rank| (*rank, &self.mail[range.clone()]))
        })
    }

    /// The messages of a write, each with the rank that it comes from.
    pub(super) fn messages_mut(
        &mut self,
        plan: &TwoPhase,
    ) -> impl Iterator<Item = (usize, &mut [u8])> {
        let mut rest = &mut self.mail[..];
        let messages = self.schedule.messages.iter();
        messages.filter_map(move |(group, range)| {
            let (message, later) = std::mem::take(&mut rest).split_at_mut(range.len());
            rest = later;
            Some((*plan.touching()[*group].ranks.last()?, message))
        })
    }

    /// Reads what is wanted of the window.
    pub(super) fn fill(&mut self, array: &Array, moved: &mut Moved) -> Result<()> {
        let Self {
            schedule, image, ..
        } = self;
        let store = &**array.store();
        let places = schedule.places.iter();
        let all = places.flat_map(|place| in_store(array, place, schedule.stretches(place)));
        moved.count(all.clone());
        timed(store, &mut moved.io, || image::read(store, all, image))
    }

    /// Puts what each group wants into its message.
    pub(super) fn pack(&mut self, plan: &TwoPhase) {
        for place in &self.schedule.places {
            let image = &self.image[place.piece.at as usize..];
            for pass in self.schedule.passes(plan, place) {
                gather(&pass, image, place.piece.start, &mut self.mail);
            }
        }
    }

    /// Puts what each group wants into the buffers that its ranks lend, each as
    /// long as the section.
    pub(super) fn give(&self, plan: &TwoPhase, loans: &Loans) {
        for place in &self.schedule.places {
            let image = &self.image[place.piece.at as usize..];
            for (group, passes) in self.schedule.to_buffers(plan, place) {
                let buffers = group.ranks.iter().filter_map(|rank| loans.writable(*rank));
                let buffers: Vec<_> = buffers.collect();
                for pass in passes {
                    for buffer in &buffers {
                        // SAFETY: lent to be written, and this element of the
                        // file is put there by this rank alone.
                        unsafe { gather_to(&pass, image, place.piece.start, *buffer) };
                    }
                }
            }
        }
    }

    /// Writes what the messages have brought, or what stands in the buffers that
    /// ranks lend. Where several ranks write one element, the highest wins; what
    /// nobody writes stays as it is.
    pub(super) fn flush(
        &mut self,
        plan: &TwoPhase,
        array: &Array,
        loans: Option<&Loans>,
        moved: &mut Moved,
    ) -> Result<()> {
        let Self {
            schedule,
            image,
            mail,
            cover,
        } = self;
        let store = &**array.store();
        if let (Some(width), None) = (array.swap(), loans) {
            timed(store, &mut moved.copy, || swap_bytes(mail, width));
        }
        let mut full = Vec::with_capacity(schedule.places.len());
        for place in &schedule.places {
            let put = |image: &mut [u8]| {
                let image = &mut image[place.piece.at as usize..];
                if let Some(loans) = loans {
                    take(schedule, plan, place, (array, loans), image);
                    return;
                }
                for pass in schedule.passes(plan, place) {
                    scatter(&pass, mail, image, place.piece.start);
                }
            };
            let is_full = || is_full(schedule, plan, place, cover);
            if timed(store, &mut moved.copy, is_full) {
                timed(store, &mut moved.copy, || put(image));
                full.push(place);
                continue;
            }
            let wanted = schedule.stretches(place);
            if array.is_guarded() {
                let all = in_store(array, place, wanted);
                moved.count(all.clone().chain(all.clone()));
                timed(store, &mut moved.io, || {
                    image::update(store, all, image, put)
                })?;
                continue;
            }
            timed(store, &mut moved.copy, || {
                put(image);
                cover.enter(place.piece);
                schedule
                    .passes(plan, place)
                    .for_each(|pass| cover.mark(&pass));
            });
            let written = wanted.iter().flat_map(|stretch| cover.written(stretch));
            let written = written.map(|range| stretch(array, place, &range));
            moved.count(written.clone());
            write(store, moved, written, image)?;
        }
        let all = full.into_iter();
        let all = all.flat_map(|place| in_store(array, place, schedule.stretches(place)));
        moved.count(all.clone());
        write(store, moved, all, image)
    }
}

/// Puts the data of a piece from the buffers that ranks lend into its image.
fn take(
    schedule: &Schedule,
    plan: &TwoPhase,
    place: &Place,
    (array, loans): (&Array, &Loans),
    image: &mut [u8],
) {
    let start = place.piece.start;
    for (group, passes) in schedule.to_buffers(plan, place) {
        let rank = group.ranks.last();
        let Some((first, len)) = rank.and_then(|rank| loans.readable(*rank)) else {
            continue;
        };
        // SAFETY: lent to be read; its owner waits.
        let data = unsafe { slice::from_raw_parts(first, len) };
        for pass in passes {
            scatter(&pass, data, image, start);
            if let Some(width) = array.swap() {
                for run in (0..pass.count).map(|at| pass.run(at)) {
                    let at = (run.file_offset - start) as usize;
                    swap_bytes(&mut image[at..at + run.len as usize], width);
                }
            }
        }
    }
}

fn write(
    store: &dyn Store,
    moved: &mut Moved,
    stretches: impl Iterator<Item = Stretch> + Clone,
    image: &[u8],
) -> Result<()> {
    timed(store, &mut moved.io, || {
        image::write(store, stretches, image)
    })
}

/// Whether the groups write all of the stretches of a piece. Where no two
/// overlap, the sum of what each writes tells.
pub(super) fn is_full(
    schedule: &Schedule,
    plan: &TwoPhase,
    place: &Place,
    cover: &mut Cover,
) -> bool {
    let mut stretches = schedule.stretches(place).iter();
    if plan.is_disjoint() {
        return stretches.all(|Range { start, end }| {
            let takers = schedule.takers(plan, place);
            let shares = takers.map(|(runs, _)| runs.bytes_below(*end) - runs.bytes_below(*start));
            shares.sum::<u64>() == end - start
        });
    }
    cover.enter(place.piece);
    schedule
        .passes(plan, place)
        .for_each(|pass| cover.mark(&pass));
    stretches.all(|stretch| cover.is_full(stretch))
}

/// Ranges of a piece in the store and in the image.
fn in_store<'a>(
    array: &'a Array,
    place: &'a Place,
    ranges: &'a [Range<u64>],
) -> impl Iterator<Item = Stretch> + Clone + 'a {
    ranges.iter().map(|range| stretch(array, place, range))
}

fn stretch(array: &Array, place: &Place, range: &Range<u64>) -> Stretch {
    Stretch {
        offset: array.data_offset() + range.start,
        at: (place.piece.at + range.start - place.piece.start) as usize,
        len: (range.end - range.start) as usize,
    }
}
