//! [`WindowWork`]: one window of the file, and the elements of all ranks in it.
//!
//! The path of the data. Reading: the window stands in memory, as a mapping of
//! what is in the page cache if little of it is wanted, or as an image that was
//! read (whose pages a processor finds quicker), and each rank's elements are
//! copied from there to their places. Writing: the elements of all
//! ranks are put into an image, by ascending rank, so that the highest one's
//! value for an element stays; then the image is written. Where elements of the
//! window are not written by anybody, stretches of it are; only what stands
//! between elements of one stretch is read before. In a window that is larger
//! than the memory for its image, stretches are gone through one memory full
//! after the other.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use outcore_storage::{Mapping, Store};

use super::combine::CombinePoints;
use crate::array::Array;
use crate::bits::Bits;
use crate::collective::{Moved, timed};
use crate::element::swap_bytes;
use crate::error::Result;
use crate::execute::image::{self, Stretch};
use crate::execute::points::{self, Points, Sides, walk};
use crate::strategy::choose::ALL_CACHED;
use crate::strategy::{Direction, Strategy};

/// What is done with the elements.
#[derive(Debug, Clone, Copy)]
pub(super) enum Deed {
    /// They are read.
    Read,
    /// They take the place of what stands there.
    Store,
    /// They change what stands there.
    Combine(CombinePoints),
}

impl Deed {
    pub(super) fn direction(self) -> Direction {
        match self {
            Self::Read => Direction::Read,
            Self::Store | Self::Combine(_) => Direction::Write,
        }
    }
}

/// Where the records of a window stand.
#[derive(Debug, Clone)]
pub(super) enum Backing {
    /// In an array, from this byte of its data on.
    File(Box<Array>, u64),
    /// In memory of this rank, from this place on.
    Memory { start: *mut u8, first: u64 },
}

/// One array, or one component of its records, that is moved.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) backing: Backing,
    /// The bytes of a record in the file, and from one to the next in the values.
    pub(super) size: usize,
    pub(super) stride: usize,
    /// Which of the values it belongs to, and where in a record there.
    pub(super) variable: usize,
    pub(super) shift: usize,
    /// The file in memory, if its windows are read there.
    pub(super) mapping: Option<Arc<Mapping>>,
}

// SAFETY: the memory that it may point to is borrowed by the call that made it,
// which waits for whoever uses it.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

impl Part {
    /// What chunks take that can be had only whole.
    pub(super) fn decoded_bytes(&self) -> u64 {
        match &self.backing {
            Backing::File(array, _) => array.decoded_bytes(),
            Backing::Memory { .. } => 0,
        }
    }

    /// Decides whether windows of `places` are read in a mapping of the file.
    pub(super) fn map(&mut self, deed: Deed, places: Range<u64>) -> Result<()> {
        let Backing::File(array, first) = &self.backing else {
            return Ok(());
        };
        let may =
            deed.direction() == Direction::Read && array.swap().is_none() && array.is_mappable();
        let size = self.size as u64;
        let (offset, len) = (
            first + places.start * size,
            (places.end - places.start) * size,
        );
        let wanted = match array.tuning().strategy {
            _ if !may || places.is_empty() => false,
            Strategy::Mapped => true,
            Strategy::Auto => {
                let cached = array.store().cached(array.data_offset() + offset, len);
                cached.is_some_and(|share| share >= ALL_CACHED)
            }
            Strategy::Direct | Strategy::Sieving | Strategy::Chunked => false,
        };
        if wanted {
            self.mapping = array.store().map()?;
        }
        Ok(())
    }
}

/// Elements of one rank in a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment<'a> {
    pub(super) points: Points<'a>,
    pub(super) elements: u64,
    /// Where the values of each variable begin, or packets.
    pub(super) values: &'a [*mut u8],
    /// Records of packets before this one.
    pub(super) packed: usize,
}

impl Segment<'_> {
    fn sides(&self, part: &Part, image: *mut u8) -> Sides {
        let values = self.values[part.variable];
        Sides {
            image,
            values: values.wrapping_add(part.shift + self.packed * part.stride),
            size: part.size,
            stride: part.stride,
        }
    }
}

/// Whether all elements of a window are written: not known, yes, no.
#[derive(Debug, Default)]
pub(super) struct Filled(AtomicU8);

/// Memory for one window at a time, and what was done.
#[derive(Debug, Default)]
pub(super) struct WindowWork {
    image: Vec<u8>,
    bits: Bits,
    /// The most bytes of an image.
    pub(super) limit: u64,
    pub(super) moved: Moved,
}

impl WindowWork {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit: limit.max(1),
            ..Self::default()
        }
    }

    /// Does `deed` to the elements of `window`, which has these places.
    ///
    /// # Safety
    ///
    /// The segments must lie inside the window and inside the values, which may
    /// be read (or, for a read, written) and which nobody else touches.
    pub(super) unsafe fn visit(
        &mut self,
        part: &Part,
        (window, filled): (&Range<u64>, &Filled),
        segments: &[Segment<'_>],
        deed: Deed,
    ) -> Result<()> {
        if segments.is_empty() {
            return Ok(());
        }
        let bytes = (window.end - window.start) * part.size as u64;
        match &part.backing {
            Backing::Memory { start, first } => {
                let image = start.wrapping_add((window.start - first) as usize * part.size);
                // SAFETY: the caller's promise; the part of this rank is its own.
                unsafe { carry_out(part, image, segments, deed) };
                Ok(())
            }
            Backing::File(array, first) => {
                let file = File {
                    array,
                    offset: array.data_offset() + first + window.start * part.size as u64,
                    records: (window.end - window.start) as usize,
                    size: part.size,
                };
                // SAFETY: the caller's promise.
                unsafe {
                    if let Some(mapping) = &part.mapping
                        && (bytes > self.limit || file.is_sparse(segments))
                    {
                        return self.mapped(part, mapping, &file, segments);
                    }
                    if bytes > self.limit {
                        return self.scattered(part, &file, segments, deed);
                    }
                    match deed {
                        Deed::Read => self.read(part, &file, segments),
                        _ => self.write(part, &file, (segments, deed), filled),
                    }
                }
            }
        }
    }

    unsafe fn mapped(
        &mut self,
        part: &Part,
        mapping: &Mapping,
        file: &File<'_>,
        segments: &[Segment<'_>],
    ) -> Result<()> {
        let image = mapping.readable(file.offset, file.records * file.size)?;
        let store = &**file.array.store();
        timed(store, &mut self.moved.copy, || {
            // SAFETY: the caller's promise; the mapping has the whole window.
            unsafe { carry_out(part, image.cast_mut(), segments, Deed::Read) }
        });
        Ok(())
    }

    unsafe fn read(
        &mut self,
        part: &Part,
        file: &File<'_>,
        segments: &[Segment<'_>],
    ) -> Result<()> {
        let store = &**file.array.store();
        let stretches = match file.is_sparse(segments) {
            false => std::iter::once(0..file.records).collect(),
            true => {
                self.mark(file.records, segments);
                join(self.bits.runs(0..file.records), file.gap(Direction::Read)).0
            }
        };
        let Self { image, moved, .. } = self;
        image.resize(file.records * file.size, 0);
        let all = stretches.iter().map(|records| file.stretch(records));
        moved.count(all.clone());
        timed(store, &mut moved.io, || image::read(store, all, image))?;
        timed(store, &mut moved.copy, || {
            file.swap(&stretches, image);
            // SAFETY: the caller's promise; the image has the whole window.
            unsafe { carry_out(part, image.as_mut_ptr(), segments, Deed::Read) }
        });
        Ok(())
    }

    unsafe fn write(
        &mut self,
        part: &Part,
        file: &File<'_>,
        (segments, deed): (&[Segment<'_>], Deed),
        filled: &Filled,
    ) -> Result<()> {
        const FULL: u8 = 1;
        const HOLES: u8 = 2;
        let store = &**file.array.store();
        let all = 0..file.records;
        // 1. Which elements are written.
        let mut known = filled.0.load(Ordering::Relaxed);
        if known != FULL {
            self.mark(file.records, segments);
            let full = self.bits.find(0, file.records, false) == file.records;
            known = if full { FULL } else { HOLES };
            filled.0.store(known, Ordering::Relaxed);
        }
        let (stretches, holes) = match known {
            FULL => (vec![all], Vec::new()),
            _ => join(self.bits.runs(all), file.gap(Direction::Write)),
        };
        let reads = match deed {
            Deed::Combine(_) => stretches.clone(),
            _ => holes,
        };
        // 2. Read what is between, put the elements there, and write.
        let Self { image, moved, .. } = self;
        image.resize(file.records * file.size, 0);
        let (before, after) = (
            reads.iter().map(|records| file.stretch(records)),
            stretches.iter().map(|records| file.stretch(records)),
        );
        moved.count(before.clone().chain(after.clone()));
        let mut copying = std::time::Duration::ZERO;
        timed(store, &mut moved.io, || {
            image::change(store, before, after, image, |image| {
                timed(store, &mut copying, || {
                    file.swap(&reads, image);
                    // SAFETY: the caller's promise; the image has the whole window.
                    unsafe { carry_out(part, image.as_mut_ptr(), segments, deed) };
                    file.swap(&stretches, image);
                });
            })
        })?;
        moved.io = moved.io.saturating_sub(copying);
        moved.copy += copying;
        Ok(())
    }

    /// The same for a window of which no image fits the memory: the stretches
    /// that are wanted are put next to one another in the image, as many at a
    /// time as it has room for.
    unsafe fn scattered(
        &mut self,
        part: &Part,
        file: &File<'_>,
        segments: &[Segment<'_>],
        deed: Deed,
    ) -> Result<()> {
        let store = &**file.array.store();
        let mut wanted = Vec::new();
        for segment in segments {
            walk(&segment.points, segment.points.lengths, |at, _, len| {
                wanted.push(at..at + len)
            });
        }
        wanted.sort_unstable_by_key(|records| records.start);
        let exact = join(wanted.into_iter(), 0).0;
        let (stretches, holes) = join(exact.into_iter(), file.gap(deed.direction()));
        // 1. As many as there is room for; one that is too long is cut.
        let room = (self.limit as usize / file.size).max(1);
        let mut turns: Vec<Vec<Range<usize>>> = Vec::new();
        let mut free = 0;
        for mut stretch in stretches {
            while !stretch.is_empty() {
                if free == 0 {
                    turns.push(Vec::new());
                    free = room;
                }
                let piece = stretch.start..stretch.end.min(stretch.start + free);
                (stretch.start, free) = (piece.end, free - piece.len());
                turns.last_mut().expect("one was pushed").push(piece);
            }
        }
        // 2. One memory full after the other.
        let Self { image, moved, .. } = self;
        for pieces in &turns {
            let mut places = Vec::with_capacity(pieces.len());
            let mut end = 0;
            for piece in pieces {
                places.push(end);
                end += piece.len();
            }
            image.resize(end * file.size, 0);
            let stretch = |(records, place): (&Range<usize>, &usize)| Stretch {
                at: place * file.size,
                ..file.stretch(records)
            };
            let all = pieces.iter().zip(&places).map(stretch);
            let in_holes = |records: &&Range<usize>| {
                let next = holes.partition_point(|hole| hole.end <= records.start);
                holes.get(next).is_some_and(|hole| hole.start < records.end)
            };
            let reads: Vec<Stretch> = match deed {
                Deed::Store => {
                    let pairs = pieces.iter().zip(&places);
                    let pairs = pairs.filter(|(records, _)| in_holes(records));
                    pairs.map(stretch).collect()
                }
                _ => all.clone().collect(),
            };
            let put = |image: &mut [u8]| {
                for stretch in &reads {
                    file.swap_bytes(&mut image[stretch.at..stretch.at + stretch.len]);
                }
                for segment in segments {
                    let sides = segment.sides(part, image.as_mut_ptr());
                    // SAFETY: the caller's promise; see `carry_out_in`.
                    unsafe { carry_out_in(pieces, &places, &segment.points, sides, deed) };
                }
                if deed.direction() == Direction::Write {
                    file.swap_bytes(image);
                }
            };
            moved.count(reads.iter().copied());
            timed(store, &mut moved.io, || match deed {
                Deed::Read => {
                    image::read(store, reads.iter().copied(), image)?;
                    put(image);
                    Ok(())
                }
                _ => image::change(store, reads.iter().copied(), all.clone(), image, put),
            })?;
            if deed.direction() == Direction::Write {
                moved.count(all);
            }
        }
        Ok(())
    }

    /// Marks the elements of the window that somebody wants.
    fn mark(&mut self, records: usize, segments: &[Segment<'_>]) {
        let bits = &mut self.bits;
        bits.clear(records);
        for Segment { points, .. } in segments {
            match points.lengths {
                None => walk(points, None, |at, _, _| bits.set(at)),
                lengths => walk(points, lengths, |at, _, len| bits.set_all(at..at + len)),
            }
        }
    }
}

/// Does `deed` between the image of a window and the values of all segments.
///
/// # Safety
///
/// As for [`WindowWork::visit`]; the image is that of the whole window.
unsafe fn carry_out(part: &Part, image: *mut u8, segments: &[Segment<'_>], deed: Deed) {
    for segment in segments {
        let sides = segment.sides(part, image);
        // SAFETY: passed on to the caller.
        unsafe { apply(&segment.points, sides, deed) };
    }
}

/// # Safety
///
/// As for [`points::gather`] and [`points::scatter`].
unsafe fn apply(points: &Points<'_>, sides: Sides, deed: Deed) {
    // SAFETY: passed on to the caller.
    unsafe {
        match deed {
            Deed::Read => points::gather(points, sides),
            Deed::Store => points::scatter(points, sides),
            Deed::Combine(combine) => combine(points, sides),
        }
    }
}

/// Does `deed` to those records of a list that lie in `pieces` of the window,
/// which stand at `places` of the image. The pieces ascend.
///
/// # Safety
///
/// As for [`WindowWork::visit`]; the image has all of the pieces.
unsafe fn carry_out_in(
    pieces: &[Range<usize>],
    places: &[usize],
    list: &Points<'_>,
    sides: Sides,
    deed: Deed,
) {
    walk(list, list.lengths, |at, place, len| {
        let first = pieces.partition_point(|piece| piece.end <= at);
        for (piece, start) in pieces[first..].iter().zip(&places[first..]) {
            let (from, to) = (piece.start.max(at), piece.end.min(at + len));
            if from >= to {
                break;
            }
            let one = Points {
                entries: 1,
                image: points::At::Next,
                values: points::At::Next,
                lengths: Some(&[(to - from) as u32]),
            };
            let sides = Sides {
                image: sides
                    .image
                    .wrapping_add((start + from - piece.start) * sides.size),
                values: sides
                    .values
                    .wrapping_add((place + from - at) * sides.stride),
                ..sides
            };
            // SAFETY: the records lie in the piece, and so in the image.
            unsafe { apply(&one, sides, deed) };
        }
    });
}

/// A window of a file.
struct File<'a> {
    array: &'a Array,
    /// Where it begins in the store.
    offset: u64,
    records: usize,
    size: usize,
}

impl File<'_> {
    /// Whether so little of the window is wanted that reading all of it costs
    /// more, or it is asked for in another way.
    fn is_sparse(&self, segments: &[Segment<'_>]) -> bool {
        let elements: u64 = segments.iter().map(|segment| segment.elements).sum();
        match self.array.tuning().strategy {
            Strategy::Direct | Strategy::Mapped => true,
            Strategy::Auto | Strategy::Chunked | Strategy::Sieving => {
                elements.saturating_mul(4) < self.records as u64
            }
        }
    }

    fn stretch(&self, records: &Range<usize>) -> Stretch {
        Stretch {
            offset: self.offset + (records.start * self.size) as u64,
            at: records.start * self.size,
            len: records.len() * self.size,
        }
    }

    /// The most records between two that cost less than a request. Nothing is
    /// written back that others might write meanwhile.
    fn gap(&self, direction: Direction) -> usize {
        let array = self.array;
        if array.tuning().strategy == Strategy::Direct
            || direction == Direction::Write && !array.is_guarded()
        {
            return 0;
        }
        let start = self.offset - array.data_offset();
        let end = start + (self.records * self.size) as u64;
        (array.gap((start, end), direction) / self.size as u64) as usize
    }

    fn swap(&self, stretches: &[Range<usize>], image: &mut [u8]) {
        for Range { start, end } in stretches {
            self.swap_bytes(&mut image[start * self.size..end * self.size]);
        }
    }

    fn swap_bytes(&self, bytes: &mut [u8]) {
        if let Some(width) = self.array.swap() {
            swap_bytes(bytes, width);
        }
    }
}

/// Joins ranges, which ascend, where at most `gap` is between two. The second
/// result are those that have something between.
fn join(
    ranges: impl Iterator<Item = Range<usize>>,
    gap: usize,
) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let mut joined: Vec<Range<usize>> = Vec::new();
    let mut holes: Vec<Range<usize>> = Vec::new();
    let mut has_hole = false;
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => {
                has_hole |= range.start > last.end;
                last.end = last.end.max(range.end);
            }
            last => {
                holes.extend(last.filter(|_| has_hole).cloned());
                has_hole = false;
                joined.push(range);
            }
        }
    }
    holes.extend(joined.last().filter(|_| has_hole).cloned());
    (joined, holes)
}

/// The store that tells the time of a part's work.
pub(super) fn store_of(parts: &[Part]) -> Option<&dyn Store> {
    parts.iter().find_map(|part| match &part.backing {
        Backing::File(array, _) => Some(&**array.store()),
        Backing::Memory { .. } => None,
    })
}
