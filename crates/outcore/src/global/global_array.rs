//! [`GlobalArray`]: an array in the memory of all ranks that any rank reads,
//! writes and adds to at any time.
//!
//! After Global Arrays (Nieplocha, Harrison and Littlefield), over which the
//! disk-resident arrays of the paper are built. The parts lie in memory that the
//! ranks of a node share: there a section is copied straight from or into the
//! part of its owner, with nobody's help. Owners on other nodes are asked through
//! a procedure call.
//!
//! Invariants: calls for sections and elements are not collective and wait for
//! nobody, but for a lock while others accumulate. They are complete when they
//! return, also at the owner. Accumulating, read-increment and compare-and-swap
//! are atomic for each element against one another, not against puts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use outcore_geometry::{AxisSection, Distribution, OwnedPart, Section, shape_text};
use outcore_transport::{Comm, Op, Shared};

use super::agreement::same_on_all;
use super::arithmetic::Arithmetic;
use super::distant::{Distant, Task, swap};
use super::part::{Part, PartLayout, too_large};
use super::patience::Limits;
use super::places::{Places, Share, dense, each_nest};
use super::procedure_call::Procedures;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::redistribute::check_ranks;

/// How errors name such an array.
const NAME: &str = "a global array";

/// An array in the memory of all ranks of a group, which any of them reads,
/// writes and adds to without the others.
///
/// ```
/// use outcore::{Comm, Distribution, GlobalArray, Section};
/// outcore::run(4, |comm: &Comm| {
///     let distribution = Distribution::parse("block,block", &[64, 64], 4, None).expect("it fits");
///     let array = GlobalArray::<f64>::new(comm, None, distribution)?;
///     // Everybody adds to the same elements, which several ranks own.
///     let middle = Section::parse("30:34, 30:34", &[64, 64]).expect("inside");
///     array.accumulate(&middle, &[1.0; 16], 0.5)?;
///     array.sync(comm)?;
///     assert_eq!(array.get_one(&[33, 30])?, 2.0);
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), outcore::Error>(())
/// ```
///
/// A handle: clones stand for the same array, whose memory is given back when all
/// ranks have dropped theirs. A rank that others reach through procedures only
/// answers them as long as it has a handle: [`GlobalArray::close`] waits for all.
pub struct GlobalArray<T> {
    inner: Arc<Inner<T>>,
    /// How to ask for what is out of reach, if anything is.
    distant: Option<Arc<Distant>>,
}

impl<T> Clone for GlobalArray<T> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            distant: self.distant.clone(),
        }
    }
}

/// What the data server of this rank knows of the array as well.
pub(super) struct Inner<T> {
    distribution: Distribution,
    places: Places,
    /// Of each rank.
    parts: Vec<Part<T>>,
    rank: usize,
    /// Of waiting for locks.
    limits: Limits,
    /// Keeps the memory.
    _shared: Shared,
}

/// The part of a section that one rank owns: see [`GlobalArray::locate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The owner.
    pub rank: usize,
    /// Whether this rank reaches it without asking.
    pub in_reach: bool,
    /// Where the elements stand in the whole array and in the owner's part.
    pub part: OwnedPart,
}

impl<T: Element> GlobalArray<T> {
    /// Collective: an array of zeros. There must be at least as many ranks as the
    /// distribution has, which must be the same on all; ranks beyond own nothing.
    ///
    /// Ranks of different nodes need `procedures` of the same group. Their patience
    /// ([`crate::ServerOptions`]) holds for locks, too, which accumulations take.
    pub fn new(
        comm: &Comm,
        procedures: Option<&Procedures>,
        distribution: Distribution,
    ) -> Result<Self> {
        Self::with_reach(comm, procedures, distribution, |_| true)
    }

    /// Collective: the same array, as if every rank were on a node of its own:
    /// each asks the others for what they own. For tests and measurements.
    pub fn apart(comm: &Comm, procedures: &Procedures, distribution: Distribution) -> Result<Self> {
        let own = comm.rank();
        Self::with_reach(comm, Some(procedures), distribution, |rank| rank == own)
    }

    fn with_reach(
        comm: &Comm,
        procedures: Option<&Procedures>,
        distribution: Distribution,
        reach: impl Fn(usize) -> bool,
    ) -> Result<Self> {
        // 1. All ranks mean the same array.
        let differ = "the ranks give a global array different distributions or element types";
        same_on_all(comm, (&distribution, T::TYPE), differ)?;
        Procedures::check_group(procedures, comm)?;
        check_ranks(comm, distribution.ranks())?;
        // 2. Memory for the parts.
        let layout = |rank: usize| {
            let count = distribution.local_count(rank as u64);
            PartLayout::new(count, size_of::<T>()).ok_or_else(|| too_large(count))
        };
        let layouts = (0..comm.size()).map(layout).collect::<Result<Vec<_>>>()?;
        let shared = comm.share(layouts[comm.rank()].total())?;
        // 3. Where this rank reaches them.
        let part = |(rank, layout): (usize, &PartLayout)| match shared.of(rank) {
            Some((start, len)) if reach(rank) && len >= layout.total() => {
                // SAFETY: as many bytes as the layout says, zeroed and aligned
                // by the promise of `share`, kept by the array.
                unsafe { Part::new(start, *layout) }
            }
            _ => Part::OUT_OF_REACH,
        };
        let parts: Vec<_> = layouts.iter().enumerate().map(part).collect();
        let all = parts.iter().all(Part::is_in_reach);
        let places = Places::new(&distribution)?;
        let inner = Arc::new(Inner {
            distribution,
            places,
            parts,
            rank: comm.rank(),
            limits: Limits {
                comm: comm.clone(),
                longest: procedures.and_then(Procedures::patience),
            },
            _shared: shared,
        });
        // 4. How it asks for the others.
        let distant = match (comm.all_reduce_one(u8::from(all), Op::Min)?, procedures) {
            (1, _) => None,
            (_, Some(procedures)) => {
                Some(Distant::new(comm, procedures, Arc::downgrade(&inner))?.into())
            }
            (_, None) => {
                return Err(Error::Invalid(
                    "some ranks are on other nodes: their parts of a global array are reached \
                     through procedures, which were not given"
                        .into(),
                ));
            }
        };
        // Nobody asks before everybody can answer.
        comm.barrier()?;
        Ok(Self { inner, distant })
    }

    /// How the array is distributed.
    pub fn distribution(&self) -> &Distribution {
        &self.inner.distribution
    }

    /// The shape of the whole array.
    pub fn shape(&self) -> &[u64] {
        self.inner.distribution.shape()
    }

    /// All of the array.
    pub fn whole(&self) -> Section {
        Section::whole(self.shape()).expect("distributed arrays have fewer than 2^63 elements")
    }

    /// The section that `text` names.
    pub fn section(&self, text: &str) -> Result<Section> {
        Section::parse(text, self.shape()).map_err(Error::geometry(NAME))
    }

    /// The rank that owns an element; `None` outside the array.
    pub fn owner(&self, index: &[u64]) -> Option<usize> {
        let (rank, _) = self.inner.places.element(index)?;
        Some(rank)
    }

    /// Whether this rank gets at the part of `rank` without asking its server.
    pub fn reaches(&self, rank: usize) -> bool {
        self.inner.parts.get(rank).is_some_and(Part::is_in_reach)
    }

    /// Who has what of `section`, ascending by rank.
    pub fn locate(&self, section: &Section) -> Result<Vec<Located>> {
        self.inner.check_within(section)?;
        let mut located = Vec::new();
        let mut ranks: Vec<usize> = self
            .inner
            .places
            .shares(section)
            .iter()
            .map(|share| share.rank)
            .collect();
        ranks.sort_unstable();
        for rank in ranks {
            let parts = self.inner.distribution.owned_parts(rank as u64, section);
            for part in parts.map_err(Error::geometry(NAME))? {
                located.push(Located {
                    rank,
                    in_reach: self.reaches(rank),
                    part,
                });
            }
        }
        Ok(located)
    }

    /// The shape of this rank's part.
    pub fn local_shape(&self) -> Vec<u64> {
        self.inner
            .distribution
            .local_shape(self.inner.rank() as u64)
    }

    /// This rank's part: dense, the last axis fastest.
    ///
    /// # Safety
    ///
    /// No rank writes elements of this part while the slice is used: as between
    /// two calls of [`GlobalArray::sync`] in which everybody writes its own.
    pub unsafe fn local(&self) -> &[T] {
        let (start, count) = self.own();
        // SAFETY: the memory is this rank's part, kept by the array, of values
        // (zeros at first); nobody writes it, as the caller promises.
        unsafe { std::slice::from_raw_parts(start, count) }
    }

    /// This rank's part, to be changed.
    ///
    /// # Safety
    ///
    /// No rank reads or writes elements of this part while the slice is used,
    /// this one included.
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory is shared; the caller has it alone"
    )]
    pub unsafe fn local_mut(&self) -> &mut [T] {
        let (start, count) = self.own();
        // SAFETY: as for `local`, and nobody else uses it.
        unsafe { std::slice::from_raw_parts_mut(start, count) }
    }

    pub(super) fn rank(&self) -> usize {
        self.inner.rank()
    }

    /// Whether the two are the same array.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Where this rank's part begins, and how many elements it has.
    pub(super) fn own(&self) -> (*mut T, usize) {
        let rank = self.inner.rank();
        let count = self.inner.distribution.local_count(rank as u64);
        (self.inner.parts[rank].elements(), count as usize)
    }

    /// Reads `section` into `values`, dense, the last axis fastest.
    #[inline]
    pub fn get(&self, section: &Section, values: &mut [T]) -> Result<()> {
        self.check_length(section, values.len())?;
        let buffer = values.as_mut_ptr();
        if let Some((rank, nest)) = self.inner.places.single(section) {
            let part = &self.inner.parts[rank];
            if part.is_in_reach() {
                // SAFETY: the places lie in the part, by the arithmetic of its
                // distribution; the buffer has as many elements as the section.
                unsafe { part.read(&nest, buffer) };
                return Ok(());
            }
        }
        // SAFETY: as above.
        self.spread(section, |share, steps| unsafe {
            match self.near(share.rank) {
                Ok(part) => each_nest(&share.axes, steps, |nest| {
                    part.read(nest, buffer);
                    Ok(())
                }),
                Err(distant) => distant.get(section, share, buffer),
            }
        })
    }

    /// The elements of `section`, dense, the last axis fastest.
    pub fn read(&self, section: &Section) -> Result<Vec<T>> {
        let count = usize::try_from(section.count()).map_err(|_| too_large(section.count()))?;
        let mut values = vec![T::zeroed(); count];
        self.get(section, &mut values)?;
        Ok(values)
    }

    /// Writes `values` to `section`.
    #[inline]
    pub fn put(&self, section: &Section, values: &[T]) -> Result<()> {
        self.check_length(section, values.len())?;
        let buffer = values.as_ptr();
        if let Some((rank, nest)) = self.inner.places.single(section) {
            let part = &self.inner.parts[rank];
            if part.is_in_reach() {
                // SAFETY: as for `get`.
                unsafe { part.write(&nest, buffer) };
                return Ok(());
            }
        }
        // SAFETY: as for `get`.
        self.spread(section, |share, steps| unsafe {
            match self.near(share.rank) {
                Ok(part) => each_nest(&share.axes, steps, |nest| {
                    part.write(nest, buffer);
                    Ok(())
                }),
                Err(distant) => distant.put(section, share, (Task::Put, T::zeroed(), buffer)),
            }
        })
    }

    /// One element.
    #[inline]
    pub fn get_one(&self, index: &[u64]) -> Result<T> {
        let (rank, place) = self.inner.element(index)?;
        match self.near(rank) {
            // SAFETY: the element lies in the part.
            Ok(part) => Ok(unsafe { std::ptr::read_volatile(part.elements().add(place)) }),
            Err(_) => Ok(self.read(&one(index))?[0]),
        }
    }

    /// Writes one element.
    #[inline]
    pub fn put_one(&self, index: &[u64], value: T) -> Result<()> {
        let (rank, place) = self.inner.element(index)?;
        match self.near(rank) {
            // SAFETY: the element lies in the part.
            Ok(part) => unsafe { std::ptr::write_volatile(part.elements().add(place), value) },
            Err(_) => self.put(&one(index), &[value])?,
        }
        Ok(())
    }

    /// Puts `new` in the place of `expected`, bit for bit; nothing is changed if
    /// another value stands there. Returns what stood there. Atomic, as
    /// [`GlobalArray::accumulate`] is.
    #[inline]
    pub fn compare_and_swap(&self, index: &[u64], expected: T, new: T) -> Result<T> {
        let (rank, place) = self.inner.element(index)?;
        match self.near(rank) {
            // SAFETY: the element lies in the part.
            Ok(part) => unsafe { part.update(place, &self.inner.limits, swap(expected, new)) },
            Err(distant) => distant.update(rank, index, (Task::CompareAndSwap, expected, new)),
        }
    }

    /// Returns when everything that this rank has written can be seen by all.
    /// That is so when a call returns: what comes after is ordered as well.
    pub fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    /// Collective: returns when every rank has called it. What any rank wrote
    /// before is seen by all afterwards.
    pub fn sync(&self, comm: &Comm) -> Result<()> {
        self.fence();
        comm.barrier()?;
        self.fence();
        Ok(())
    }

    /// Collective: drops this handle when no rank needs the array any more.
    pub fn close(self, comm: &Comm) -> Result<()> {
        self.sync(comm)
    }

    /// The part of a rank, if it is in reach, or how to ask for it.
    #[inline(always)]
    fn near(&self, rank: usize) -> Result<&Part<T>, &Distant> {
        let part = &self.inner.parts[rank];
        match (part.is_in_reach(), &self.distant) {
            (false, Some(distant)) => Err(distant),
            // By `new` there is somebody to ask if anything is out of reach.
            _ => Ok(part),
        }
    }

    /// Does something to what each rank has of `section`, with the steps of its
    /// part and of a buffer for the section.
    #[cold]
    fn spread(
        &self,
        section: &Section,
        mut each: impl FnMut(&Share, (&[usize], &[usize])) -> Result<()>,
    ) -> Result<()> {
        self.inner.check_within(section)?;
        let buffer = dense(&section.shape());
        for share in self.inner.places.shares(section) {
            each(&share, (self.inner.places.steps(share.rank), &buffer))?;
        }
        Ok(())
    }

    #[inline(always)]
    fn check_length(&self, section: &Section, found: usize) -> Result<()> {
        match section.count() == found as u64 {
            true => Ok(()),
            false => Err(wrong_length(section, found)),
        }
    }
}

impl<T: Arithmetic> GlobalArray<T> {
    /// Adds `scale` times `values` to `section`. Each element is added to
    /// atomically: no sum of several ranks is lost.
    #[inline]
    pub fn accumulate(&self, section: &Section, values: &[T], scale: T) -> Result<()> {
        self.check_length(section, values.len())?;
        let (buffer, limits) = ((values.as_ptr(), scale), &self.inner.limits);
        if let Some((rank, nest)) = self.inner.places.single(section) {
            let part = &self.inner.parts[rank];
            if part.is_in_reach() {
                // SAFETY: as for `get`.
                return unsafe { part.accumulate(&nest, buffer, limits) };
            }
        }
        // SAFETY: as for `get`.
        self.spread(section, |share, steps| unsafe {
            match self.near(share.rank) {
                Ok(part) => each_nest(&share.axes, steps, |nest| {
                    part.accumulate(nest, buffer, limits)
                }),
                Err(distant) => distant.put(section, share, (Task::Accumulate, scale, buffer.0)),
            }
        })
    }

    /// Adds `by` to an element and returns what it was before. Atomic, as
    /// [`GlobalArray::accumulate`] is.
    #[inline]
    pub fn read_increment(&self, index: &[u64], by: T) -> Result<T> {
        let (rank, place) = self.inner.element(index)?;
        match self.near(rank) {
            // SAFETY: the element lies in the part.
            Ok(part) => unsafe {
                part.update(place, &self.inner.limits, |value| Some(value.plus(by)))
            },
            Err(distant) => distant.update(rank, index, (Task::Increment, by, T::zeroed())),
        }
    }
}

impl<T: Element> Inner<T> {
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    pub(super) fn own_part(&self) -> &Part<T> {
        &self.parts[self.rank]
    }

    pub(super) fn check_within(&self, section: &Section) -> Result<()> {
        section
            .check_within(self.distribution.shape())
            .map_err(Error::geometry(NAME))
    }

    /// The owner of an element and its place there.
    #[inline(always)]
    fn element(&self, index: &[u64]) -> Result<(usize, usize)> {
        match self.places.element(index) {
            Some(found) => Ok(found),
            None => Err(outside(index, self.distribution.shape())),
        }
    }
}

#[cold]
fn outside(index: &[u64], shape: &[u64]) -> Error {
    Error::Invalid(format!(
        "there is no element {index:?} in a global array of {}",
        shape_text(shape)
    ))
}

#[cold]
fn wrong_length(section: &Section, found: usize) -> Error {
    Error::BufferLength {
        array: NAME.into(),
        section: section.to_string(),
        expected: section.count(),
        found: found as u64,
    }
}

/// The section of one element of an array.
fn one(index: &[u64]) -> Section {
    let axes = index.iter().map(|at| AxisSection::span(*at, at + 1));
    Section::new(axes.collect()).expect("one element")
}

impl<T> fmt::Debug for GlobalArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distribution = &self.inner.distribution;
        let shape = shape_text(distribution.shape());
        write!(f, "GlobalArray({shape}, {distribution})")
    }
}
