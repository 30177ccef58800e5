//! Elements of arrays in the memory of all ranks: [`Schedule::gather`],
//! [`Schedule::scatter`] and [`Schedule::scatter_combined`], the executor of
//! PARTI (Thakur 1995, section 2.2). The windows of a rank are its own part.

use bytemuck::Pod;
use outcore_geometry::AlignedDistribution;
use outcore_transport::Comm;

use super::combine::{self, Combine, Number};
use super::indices::Indices;
use super::inspector::Inspector;
use super::places::Places;
use super::schedule::Schedule;
use super::variable::{Buffer, Bytes};
use super::window::{Backing, Deed, Part};
use crate::collective::Moved;
use crate::distributed::DistributedArray;
use crate::error::{Error, Result};

impl Schedule {
    /// Collective: a schedule for these elements of arrays in the memory of all
    /// ranks that are distributed like this.
    ///
    /// ```
    /// use outcore::{Combine, DistributedArray, Distribution, Error, Schedule};
    /// outcore::run(3, |comm| {
    ///     let distribution = Distribution::parse("cyclic", &[9], 3, None).expect("it fits");
    ///     let mut array = DistributedArray::<f64>::new(comm, distribution)?;
    ///     array.fill_with(|index| index[0] as f64);
    ///     // Everybody wants the neighbours of elements 3, 4 and 5.
    ///     let center = 3 + comm.rank() as u64;
    ///     let schedule = Schedule::of_parts(comm, array.distribution(), &[center - 1, center + 1])?;
    ///     let mut neighbours = [0.0; 2];
    ///     schedule.gather(comm, &array, &mut neighbours)?;
    ///     assert_eq!(neighbours, [center as f64 - 1.0, center as f64 + 1.0]);
    ///     schedule.scatter_combined(comm, &mut array, &[1.0, 1.0], Combine::Add)?;
    ///     let all = array.gather(comm, 0)?;
    ///     assert!(all.is_none_or(|all| all[2..7] == [3.0, 4.0, 6.0, 6.0, 7.0]));
    ///     Ok::<(), Error>(())
    /// })?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn of_parts<'a>(
        comm: &Comm,
        distribution: &AlignedDistribution,
        indices: impl Into<Indices<'a>>,
    ) -> Result<Self> {
        Inspector::default().of_parts(comm, distribution, indices)
    }

    /// Collective: gives every rank the elements that it wants, in the order of its
    /// indices.
    pub fn gather<T: Pod>(
        &self,
        comm: &Comm,
        array: &DistributedArray<T>,
        values: &mut [T],
    ) -> Result<()> {
        let start = array.local().as_ptr().cast_mut().cast();
        let bytes = Bytes::Write(bytemuck::cast_slice_mut(values));
        self.parts(comm, (array, start), bytes, Ok(Deed::Read))
            .map(drop)
    }

    /// Collective: puts the values of every rank in their places. Of several values
    /// for one element that of the highest rank stays, and of one rank's the last.
    pub fn scatter<T: Pod>(
        &self,
        comm: &Comm,
        array: &mut DistributedArray<T>,
        values: &[T],
    ) -> Result<()> {
        let start = array.local_mut().as_mut_ptr().cast();
        let bytes = Bytes::Read(bytemuck::cast_slice(values));
        self.parts(comm, (array, start), bytes, Ok(Deed::Store))
            .map(drop)
    }

    /// Collective: combines the elements with the values of all ranks, one after
    /// the other.
    pub fn scatter_combined<T: Pod + Number>(
        &self,
        comm: &Comm,
        array: &mut DistributedArray<T>,
        values: &[T],
        combine: Combine,
    ) -> Result<()> {
        let start = array.local_mut().as_mut_ptr().cast();
        let bytes = Bytes::Read(bytemuck::cast_slice(values));
        let deed = combine::of::<T>(combine).map(Deed::Combine);
        self.parts(comm, (array, start), bytes, deed).map(drop)
    }

    /// Does `deed` between `bytes` and the parts of `array`, of which this rank's
    /// begins at `start`.
    fn parts<T: Pod>(
        &self,
        comm: &Comm,
        (array, start): (&DistributedArray<T>, *mut u8),
        bytes: Bytes<'_>,
        deed: Result<Deed>,
    ) -> Result<Moved> {
        let size = size_of::<T>();
        let found = match &bytes {
            Bytes::Read(bytes) => bytes.len(),
            Bytes::Write(bytes) => bytes.len(),
        };
        let checked = deed.and_then(|deed| {
            self.check_group(comm)?;
            let distribution = array.distribution();
            if Places::of_parts(distribution).0 != self.places {
                return Err(Error::Invalid(
                    "the schedule is for arrays of another distribution".into(),
                ));
            }
            if !matches!(deed, Deed::Read) && has_copies(distribution) {
                return Err(Error::Invalid(
                    "the array is replicated: its copies would not stay the same".into(),
                ));
            }
            if self.count() * size != found {
                return Err(Error::Invalid(format!(
                    "{} values for {} indices",
                    found / size.max(1),
                    self.count()
                )));
            }
            Ok(deed)
        });
        let deed = comm.agree(checked)?;
        let part = Part {
            backing: Backing::Memory {
                start,
                first: self.extent().start,
            },
            size,
            stride: size,
            variable: 0,
            shift: 0,
            mapping: None,
        };
        let mut buffers = [Buffer {
            bytes,
            record: size,
        }];
        self.call().run(comm, &mut buffers, &[part], deed)
    }
}

/// Whether several ranks have an element.
fn has_copies(distribution: &AlignedDistribution) -> bool {
    let first = vec![0; distribution.shape().len()];
    distribution.owners(&first).len() > 1
}

/// Which elements of a distributed array a rank refers to, in numbers of its own:
/// those of its own part keep their place there, all others get one behind it,
/// each only once (PARTI's localised indices).
///
/// ```
/// use outcore::{Combine, DistributedArray, Distribution, Error, Localized};
/// outcore::run(2, |comm| {
///     let distribution = Distribution::parse("block", &[8], 2, None).expect("it fits");
///     let mut x = DistributedArray::<f64>::new(comm, distribution)?;
///     x.fill_with(|index| index[0] as f64);
///     // A ring of edges, of which each rank has those that begin in its part.
///     let first = 4 * comm.rank() as u64;
///     let ends: Vec<u64> = (first..first + 4).flat_map(|a| [a, (a + 1) % 8]).collect();
///
///     let nodes = Localized::new(comm, x.distribution(), &ends)?; // the inspector
///     assert_eq!(nodes.others(), 1); // one node of the other rank, wanted once
///     let values = nodes.gather(comm, &x)?; // the executor
///     let mut sums = vec![0.0; values.len()];
///     for edge in nodes.numbers().chunks(2) {
///         let (a, b) = (edge[0] as usize, edge[1] as usize);
///         sums[a] += values[b];
///         sums[b] += values[a];
///     }
///     x.fill(0.0);
///     nodes.scatter_combined(comm, &mut x, &sums, Combine::Add)?;
///     assert!(x.iter().all(|(index, sum)| {
///         let a = index[0];
///         *sum == ((a + 1) % 8 + (a + 7) % 8) as f64
///     }));
///     Ok::<(), Error>(())
/// })?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Localized {
    own: usize,
    numbers: Vec<u32>,
    schedule: Schedule,
}

impl Localized {
    /// Collective: numbers the elements that every rank refers to.
    pub fn new<'a>(
        comm: &Comm,
        distribution: &AlignedDistribution,
        indices: impl Into<Indices<'a>>,
    ) -> Result<Self> {
        let indices = indices.into();
        let (places, shift) = Places::of_parts(distribution);
        let rank = comm.rank() as u64;
        let own = match rank < distribution.ranks() {
            true => distribution.local_count(rank),
            false => 0,
        };
        let first = rank << shift;
        let mut others = Others::default();
        let mut numbers = Vec::new();
        let numbered = indices.each(places.shape(), |_, index, len| {
            for index in index..index + len {
                let place = places.of(index);
                numbers.push(match place.checked_sub(first).filter(|at| *at < own) {
                    Some(at) => at,
                    None => own + others.number(index),
                });
            }
        });
        let numbered = numbered.and_then(|()| {
            let short = numbers.iter().map(|number| u32::try_from(*number));
            short
                .collect::<std::result::Result<Vec<u32>, _>>()
                .map_err(|_| Error::Invalid("a rank refers to more than 2^32 elements".into()))
        });
        let numbers = comm.agree(numbered)?;
        Ok(Self {
            own: own as usize,
            numbers,
            schedule: Schedule::of_parts(comm, distribution, &others.order)?,
        })
    }

    /// The number of each reference: below the length of the own part a place
    /// there, else one of the others.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// How many elements of other ranks there are, each counted once.
    pub fn others(&self) -> usize {
        self.schedule.count()
    }

    /// Collective: the own part, and behind it the elements of other ranks: what
    /// the numbers refer to.
    pub fn gather<T: Pod>(&self, comm: &Comm, array: &DistributedArray<T>) -> Result<Vec<T>> {
        let mut values = Vec::with_capacity(self.own + self.others());
        values.extend_from_slice(array.local());
        values.resize(self.own + self.others(), T::zeroed());
        let others = values.get_mut(self.own..).unwrap_or_default();
        self.schedule.gather(comm, array, others)?;
        Ok(values)
    }

    /// Collective: combines the elements with `values`, which are numbered as those
    /// of [`Localized::gather`]: first with those of the own rank.
    pub fn scatter_combined<T: Pod + Number>(
        &self,
        comm: &Comm,
        array: &mut DistributedArray<T>,
        values: &[T],
        combine: Combine,
    ) -> Result<()> {
        let checked = match values.len() == self.own + self.others() {
            true => combine::of::<T>(combine).map(drop),
            false => Err(Error::Invalid(format!(
                "{} values for {} elements",
                values.len(),
                self.own + self.others()
            ))),
        };
        comm.agree(checked)?;
        let (own, others) = values.split_at(self.own);
        for (there, new) in array.local_mut().iter_mut().zip(own) {
            *there = T::combined(combine, *there, *new).unwrap_or(*there);
        }
        self.schedule.scatter_combined(comm, array, others, combine)
    }
}

/// A hash table that numbers what it sees for the first time.
#[derive(Debug, Default)]
struct Others {
    /// What was seen, in order.
    order: Vec<u64>,
    /// One more than a place in that order; a power of two of slots.
    slots: Vec<u32>,
}

impl Others {
    fn number(&mut self, index: u64) -> u64 {
        if 2 * (self.order.len() + 1) > self.slots.len() {
            self.grow();
        }
        let slot = self.find(index);
        if self.slots[slot] == 0 {
            self.order.push(index);
            self.slots[slot] = self.order.len() as u32;
        }
        u64::from(self.slots[slot]) - 1
    }

    /// The slot of an index, or the free one that it would have.
    fn find(&self, index: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[slot] != 0 && self.order[self.slots[slot] as usize - 1] != index {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        self.slots = vec![0; (4 * (self.order.len() + 4)).next_power_of_two()];
        for number in 0..self.order.len() {
            let slot = self.find(self.order[number]);
            self.slots[slot] = number as u32 + 1;
        }
    }
}
