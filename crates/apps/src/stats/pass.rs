//! [`stats`]: a pass over a section by all ranks.

use outcore::{Array, Comm, ElementType, Error, Op, Result, Section, dispatch};

use super::histogram::{Bins, Histogram};
use super::number::{CHUNK, Number};
use super::summary::{Extreme, Summary};
use super::walk::{number, position};
use crate::part::Part;
use crate::resources::Resources;

/// The bytes of a piece: it stays in the processor's second cache.
const PIECE: u64 = 512 << 10;

/// The bytes of a piece of tiles or chunks, of which several are decoded at once.
const TILES: u64 = 8 << 20;

/// What needs the memory.
const PURPOSE: &str = "the pass over the data";

/// With less memory single elements would be read.
const LEAST: u64 = 64 << 10;

/// What is asked of a section.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question {
    /// The bins of a histogram, if there is to be one.
    pub bins: Option<Bins>,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Answer {
    /// What all elements come to.
    pub summary: Summary,
    /// How they are spread.
    pub histogram: Option<Histogram>,
    /// How many times every element was read.
    pub passes: u64,
}

/// Collective: the statistics of a section, the same on every rank. One pass; a
/// second one for a histogram whose range must be found.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget};
/// use outcore_apps::Resources;
/// use outcore_apps::stats::{Part, Question, stats};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("a.oc");
/// # let name = name.to_str().unwrap();
/// let array = Array::create(name, &ArrayDescriptor::new(&[3, 4], ElementType::F32))?;
/// array.write(&array.section("1, 2")?, &[6.0f32])?;
/// outcore::run(2, |comm| {
///     let part = Part { array: &array, section: &array.whole() };
///     let resources = Resources::of(MemoryBudget::of(1 << 20));
///     let found = stats(comm, &part, &Question::default(), &resources)?.summary;
///     assert_eq!((found.count(), found.mean()), (12, 0.5));
///     assert_eq!(part.index(&found.most().unwrap()), [1, 2]);
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn stats(
    comm: &Comm,
    part: &Part<'_>,
    question: &Question,
    resources: &Resources<'_>,
) -> Result<Answer> {
    dispatch!(part.array.element_type(), T => stats_of::<T>(comm, part, question, resources))
}

fn stats_of<T: Number>(
    comm: &Comm,
    part: &Part<'_>,
    question: &Question,
    resources: &Resources<'_>,
) -> Result<Answer> {
    let bins = question.bins;
    let given = bins.and_then(|bins| Some((bins.count, bins.range?)));
    let mut histogram = given
        .map(|(count, range)| Histogram::new(count, range))
        .transpose()?;
    let reader = Reader::new::<T>(comm, part, bins.map_or(0, |bins| bins.count), resources)?;
    // 1. Everything but a histogram whose range is not known.
    let mut summary = Summary::of_none(T::ZERO);
    let outcome = match &mut histogram {
        None => reader.all::<T>(resources, &mut summary),
        Some(histogram) => reader.each::<T>(resources, |piece, values| {
            reader.summarise(piece, values, &mut summary);
            histogram.add(values);
        }),
    };
    comm.agree(outcome)?;
    let mut all = Summary::of_none(T::ZERO);
    for words in comm.all_gatherv(&summary.words())? {
        all.join(&Summary::of_words(&words));
    }
    // 2. The histogram between what was found.
    let mut passes = 1;
    if let (Some(bins), None) = (bins, &histogram) {
        let limit = |extreme: Option<Extreme>| extreme.map_or(0.0, |at| at.value.as_f64());
        let limits = (limit(all.least()), limit(all.most()));
        if !(limits.1 - limits.0).is_finite() {
            return Err(Error::Invalid(format!(
                "{} reaches from {} to {}, too far for a histogram of all of it; --range LOW,HIGH \
                 says between which numbers to count",
                part.array.name(),
                limits.0,
                limits.1
            )));
        }
        let mut found = Histogram::new(bins.count, limits)?;
        let outcome = reader.each::<T>(resources, |_, values| found.add(values));
        comm.agree(outcome)?;
        histogram = Some(found);
        passes = 2;
    }
    let histogram = match histogram {
        Some(own) => {
            let words = comm.all_reduce(&own.words(), Op::Sum)?;
            Some(own.with(&words))
        }
        None => None,
    };
    Ok(Answer {
        summary: all,
        histogram,
        passes,
    })
}

impl Part<'_> {
    /// The index in the array of an extreme of this section.
    pub fn index(&self, extreme: &Extreme) -> Vec<u64> {
        let order = self.array.layout().slowest_first();
        let at = match self.positions() {
            Ok(all) => position(&all, order, extreme.place),
            // Not reached: the section was gone through.
            Err(_) => vec![0; order.len()],
        };
        let axes = self.section.axes().iter().zip(at);
        axes.map(|(axis, position)| axis.index(position)).collect()
    }
}

/// What one rank reads, and in which pieces.
pub(super) struct Reader<'a> {
    part: &'a Part<'a>,
    shape: Vec<u64>,
    share: Section,
    array: Array,
    /// The most elements of a piece.
    most: u64,
}

impl<'a> Reader<'a> {
    /// Collective: within the memory of this rank, which has so many bins as well.
    pub(super) fn new<T: Number>(
        comm: &Comm,
        part: &'a Part<'a>,
        bins: usize,
        resources: &Resources<'_>,
    ) -> Result<Self> {
        let positions = comm.agree(part.positions())?;
        let share = part.share(&positions, comm.rank(), comm.size());
        let beside = Histogram::bytes(bins);
        let size = size_of::<T>() as u64;
        let tile = part.array.layout().tile();
        let beside = beside + part.array.decoded_bytes();
        let budget = resources.enough(comm, PURPOSE, |_| beside + LEAST)?;
        // The rest is for the piece and for what a strategy stages.
        let room = budget.limit() - beside;
        let bytes = match tile {
            Some(_) => TILES,
            None => PIECE,
        };
        Ok(Self {
            part,
            shape: positions.shape(),
            share,
            array: part.array.staged(room / 4, &budget),
            most: (bytes.min(room - room / 4) / size).max(1),
        })
    }

    /// Reads piece after piece.
    pub(super) fn each<T: Number>(
        &self,
        resources: &Resources<'_>,
        mut visit: impl FnMut(&Section, &[T]),
    ) -> Result<()> {
        let (array, section) = (&self.array, self.part.section);
        let mut values: Vec<T> = Vec::new();
        for piece in self.part.pieces(&self.share, self.most) {
            let count = usize::try_from(piece.count())
                .map_err(|_| Error::Invalid("a piece is larger than the memory".into()))?;
            values.resize(count, T::zeroed());
            array.read_into(&section.select(&piece), &mut values)?;
            visit(&piece, &values);
            resources.tell(size_of_val(&values[..]) as u64);
        }
        Ok(())
    }

    /// Reads piece after piece, from the page cache without copying where that can be.
    fn all<T: Number>(&self, resources: &Resources<'_>, summary: &mut Summary) -> Result<()> {
        let mut values: Vec<T> = Vec::new();
        for piece in self.part.pieces(&self.share, self.most) {
            let section = self.part.section.select(&piece);
            let bytes = piece.count() * size_of::<T>() as u64;
            let mut seen = false;
            // Whether bytes are values of bool must be looked at first.
            if T::TYPE != ElementType::Bool {
                self.array.in_place(&section, |start| {
                    let start = start.cast::<T>();
                    if start.is_aligned() {
                        // SAFETY: the elements of the section stand there.
                        unsafe { self.glance(&piece, start, summary) };
                        seen = true;
                    }
                })?;
            }
            if !seen {
                values.resize(piece.count() as usize, T::zeroed());
                self.array.read_into(&section, &mut values)?;
                self.summarise(&piece, &values, summary);
            }
            resources.tell(bytes);
        }
        Ok(())
    }

    /// Joins the chunks of a piece that stands in memory which others may change, so
    /// that it is not borrowed.
    ///
    /// # Safety
    ///
    /// The elements of the piece can be read from `values` on, which is aligned.
    unsafe fn glance<T: Number>(&self, piece: &Section, values: *const T, summary: &mut Summary) {
        let order = self.part.array.layout().slowest_first();
        let place = |at: usize| number(&self.shape, order, &position(piece, order, at as u64));
        let count = piece.count() as usize;
        for start in (0..count).step_by(CHUNK) {
            let len = CHUNK.min(count - start);
            // SAFETY: a part of the piece, as the caller says.
            let at = unsafe { values.add(start) };
            let copied = || {
                let mut copy: Vec<T> = Vec::with_capacity(len);
                // SAFETY: as above; all bytes are values of these types.
                unsafe {
                    std::ptr::copy_nonoverlapping(at, copy.as_mut_ptr(), len);
                    copy.set_len(len);
                }
                copy
            };
            // SAFETY: as above.
            let chunk = unsafe { T::glance(at, len) };
            summary.add(
                &chunk.unwrap_or_else(|| T::chunk(&copied())),
                || place(start),
                |value| {
                    let found = copied()
                        .iter()
                        .position(|candidate| candidate.value() == value);
                    place(start + found.unwrap_or(0))
                },
            );
        }
    }

    /// Joins the chunks of a piece.
    fn summarise<T: Number>(&self, piece: &Section, values: &[T], summary: &mut Summary) {
        let order = self.part.array.layout().slowest_first();
        let place = |at: usize| number(&self.shape, order, &position(piece, order, at as u64));
        for (at, chunk) in values.chunks(CHUNK).enumerate() {
            let start = at * CHUNK;
            summary.add(
                &T::chunk(chunk),
                || place(start),
                |value| {
                    let found = chunk
                        .iter()
                        .position(|candidate| candidate.value() == value);
                    place(start + found.unwrap_or(0))
                },
            );
        }
    }
}
