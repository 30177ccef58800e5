//! [`Inspector`]: makes a [`Schedule`] of the indices of all ranks.
//!
//! 1. All tell how many indices they have, and that they mean the same array.
//! 2. Each counts how many of its elements are in each window of the file.
//! 3. The counts of all are summed up, and windows given to the ranks so that
//!    each has about as many wanted elements as the others.
//! 4. Each deals its indices out into lists, window by window.
//! 5. Each tells each of the others how many elements of every window of theirs
//!    it wants. The lists themselves stay where they are: threads read them
//!    there, processes send what others need of them when it is first needed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, OnceLock};

use bytemuck::cast_slice;
use outcore_geometry::{AlignedDistribution, Arrangement, Layout};
use outcore_transport::{Comm, Op};

use super::indices::Indices;
use super::lists::Count;
use super::packed::Shadow;
use super::places::Places;
use super::schedule::{Incoming, Schedule, Wanted};
use super::window::Filled;
use super::windows::{Domains, Windows};
use crate::array::Array;
use crate::budget::{MemoryBudget, Reservation};
use crate::error::{Error, Result};
use crate::fresh;

/// Makes schedules, in other ways than [`Schedule::new`] if so asked.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, Inspector};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("mesh.oc");
/// # let name = name.to_str().unwrap();
/// outcore::run(4, |comm| {
///     let array = Array::create_all(comm, name, &ArrayDescriptor::new(&[16], ElementType::F64))?;
///     let schedule = Inspector::default().window(2).cyclic().schedule(comm, &array, &[3u64; 0])?;
///     let first = 2 * comm.rank() as u64;
///     assert_eq!(schedule.domain(), [first..first + 2, first + 8..first + 10]);
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Inspector {
    window: Option<u64>,
    cyclic: bool,
    axes: Option<usize>,
    budget: Option<MemoryBudget>,
}

impl Inspector {
    /// Cuts the file into windows of so many elements, rounded up to a power of
    /// two, instead of ones that fit a processor's cache: the chunk of a rank in
    /// No et al. 1998.
    #[must_use]
    pub fn window(mut self, elements: u64) -> Self {
        self.window = Some(elements);
        self
    }

    /// Deals the windows out in turn (No et al. 1998, section 3.1.1), instead of
    /// giving each rank a stretch of the file in which equally many elements are
    /// wanted.
    #[must_use]
    pub fn cyclic(mut self) -> Self {
        self.cyclic = true;
        self
    }

    /// Only the first `axes` axes of arrays on disk are indexed: an element is a
    /// record of all that the other axes number.
    #[must_use]
    pub fn axes(mut self, axes: usize) -> Self {
        self.axes = Some(axes);
        self
    }

    /// Takes the memory of schedules from `budget`, as long as they live.
    #[must_use]
    pub fn budget(mut self, budget: &MemoryBudget) -> Self {
        self.budget = Some(budget.clone());
        self
    }

    /// The bytes that the lists of so many single indices take on a rank, at the
    /// most.
    pub fn memory(indices: u64) -> u64 {
        indices.saturating_mul(8)
    }

    /// Collective: see [`Schedule::new`].
    pub fn schedule<'a>(
        &self,
        comm: &Comm,
        array: &Array,
        indices: impl Into<Indices<'a>>,
    ) -> Result<Schedule> {
        let axes = self.axes.unwrap_or(array.shape().len());
        let (places, record) = match Places::of_layout(array.layout(), axes) {
            // Windows are counted in what stands together.
            Ok((places, records)) if records.apart => (Ok(places), 1),
            Ok((places, records)) => (Ok(places), records.components),
            Err(error) => (Err(error), 1),
        };
        let record = record * array.layout().element_size();
        self.make(comm, (places, record), None, &indices.into())
    }

    /// Collective: see [`Schedule::of_shape`].
    pub fn of_shape<'a>(
        &self,
        comm: &Comm,
        shape: &[u64],
        indices: impl Into<Indices<'a>>,
    ) -> Result<Schedule> {
        let layout = Layout::arranged(shape, 1, &Arrangement::default());
        let layout = layout.map_err(Error::geometry("a schedule"));
        let places = layout.and_then(|layout| Places::of_layout(&layout, shape.len()));
        let places = places.map(|(places, _)| places);
        self.make(comm, (places, 8), None, &indices.into())
    }

    /// Collective: a schedule for elements of arrays in the memory of all ranks,
    /// distributed like this; see [`Schedule::gather`].
    pub fn of_parts<'a>(
        &self,
        comm: &Comm,
        distribution: &AlignedDistribution,
        indices: impl Into<Indices<'a>>,
    ) -> Result<Schedule> {
        let (places, shift) = Places::of_parts(distribution);
        let checked = match distribution.ranks() <= comm.size() as u64 {
            true => Ok(places),
            false => Err(Error::Invalid(format!(
                "an array of {} ranks among {}",
                distribution.ranks(),
                comm.size()
            ))),
        };
        let parts = Some((distribution.ranks(), shift));
        self.make(comm, (checked, 8), parts, &indices.into())
    }

    fn make(
        &self,
        comm: &Comm,
        (places, record): (Result<Places>, u64),
        parts: Option<(u64, u32)>,
        indices: &Indices<'_>,
    ) -> Result<Schedule> {
        let ranks = comm.size();
        // 1. What all have to agree on.
        let own = places.and_then(|places| Ok((indices.count()?, places)));
        let mark = own
            .as_ref()
            .map_or(0, |(_, places)| self.mark(places, record));
        let count = own.as_ref().map_or(0, |(count, _)| *count);
        let told = [u64::from(own.is_ok()), mark, count];
        let all = comm.all_gather(&told)?;
        let mut others = all.chunks_exact(3);
        if !others.all(|other| other[..2] == all[..2] && other[0] == 1) {
            let own = own.and_then(|_| {
                let mut others = all.chunks_exact(3).zip(0..);
                match others.find(|(other, _)| other[0] == 1 && other[1] != mark) {
                    None => Ok(()),
                    Some((_, rank)) => Err(Error::Invalid(format!(
                        "rank {rank} makes a schedule of another array, or in another way"
                    ))),
                }
            });
            comm.agree(own)?;
            return Err(Error::Invalid("ranks disagree on a schedule".into()));
        }
        let (_, places) = own?;
        let wanted = all.chunks_exact(3).map(|rank| rank[2]).sum();
        // 2. Count.
        let windows = self.windows(&places, record, (ranks as u64, wanted), parts)?;
        let count = comm.agree(Count::new(indices, &places, windows))?;
        // 3. Who has which windows.
        let domains = self.domains(comm, windows, &count, parts)?;
        // 4. Lists.
        let bytes = count.bytes();
        let reserved = self.reserve(comm, bytes)?;
        let mut memory = fresh::zeroed::<u64>(bytes.div_ceil(8));
        count.fill(
            indices,
            &places,
            windows,
            bytemuck::cast_slice_mut(&mut memory),
        )?;
        // 5. Tell the others.
        Schedule::of_lists(comm, (places, windows, domains), count, memory, reserved)
    }

    /// A number in which schedules differ that are made for other arrays or in
    /// other ways.
    fn mark(&self, places: &Places, record: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{places:?}").hash(&mut hasher);
        (record, self.window, self.cyclic, self.budget.is_some()).hash(&mut hasher);
        hasher.finish()
    }

    fn windows(
        &self,
        places: &Places,
        record: u64,
        wanted: (u64, u64),
        parts: Option<(u64, u32)>,
    ) -> Result<Windows> {
        let mut windows = Windows::new(places.extent(), record, wanted, self.window)?;
        if let Some((_, shift)) = parts {
            // No window may have places of two ranks.
            windows.shift = windows.shift.min(shift);
        }
        Ok(windows)
    }

    fn domains(
        &self,
        comm: &Comm,
        windows: Windows,
        count: &Count,
        parts: Option<(u64, u32)>,
    ) -> Result<Domains> {
        let ranks = comm.size() as u64;
        if let Some((owners, shift)) = parts {
            let each = 1 << (shift - windows.shift);
            let bounds = (0..=ranks).map(|rank| rank.min(owners) * each);
            return Ok(Domains::Stretches(bounds.collect()));
        }
        if self.cyclic {
            let windows = windows.count();
            return Ok(Domains::Cyclic { ranks, windows });
        }
        let starts = &count.element_starts;
        let last = starts.len() - 1;
        let bin = 1 << windows.bin_shift();
        let weights = (0..last).step_by(bin);
        let weights: Vec<u64> = weights
            .map(|start| starts[last.min(start + bin)] - starts[start])
            .collect();
        let weights = match weights.is_empty() {
            true => weights,
            false => comm.all_reduce(&weights, Op::Sum)?,
        };
        Ok(Domains::balanced(&weights, windows, ranks))
    }

    fn reserve(&self, comm: &Comm, bytes: usize) -> Result<Option<Reservation>> {
        let Some(budget) = &self.budget else {
            return Ok(None);
        };
        let budget = budget.for_rank(comm);
        let reserved = budget.reserve(bytes as u64, "an index schedule");
        Ok(Some(comm.agree(reserved)?))
    }
}

impl Schedule {
    /// Collective: a schedule of lists that are there, after all have told each
    /// other what they want of whose windows.
    pub(super) fn of_lists(
        comm: &Comm,
        (places, windows, domains): (Places, Windows, Domains),
        count: Count,
        memory: Vec<u64>,
        reserved: Option<Reservation>,
    ) -> Result<Self> {
        let (rank, ranks) = (comm.rank(), comm.size());
        let own_windows = domains.count(rank) as usize;
        let mut schedule = Self {
            places,
            windows,
            domains,
            rank,
            ranks,
            count,
            memory,
            incoming: Vec::new(),
            filled: std::iter::repeat_with(Filled::default)
                .take(own_windows)
                .collect(),
            mail: OnceLock::new(),
            shadow: Mutex::new(Shadow::default()),
            _reserved: reserved,
        };
        let head = [
            schedule.count.elements,
            schedule.count.entries() as u64,
            u64::from(schedule.count.runs),
        ];
        let told = (0..ranks).map(|to| {
            let mut told = head.to_vec();
            for window in schedule.domains.windows(to) {
                told.extend_from_slice(cast_slice(&[schedule.wanted(window)]));
            }
            told
        });
        let told: Vec<Vec<u64>> = told.collect();
        let heard = comm.all_to_allv(&told)?;
        let incoming = heard.into_iter().map(|heard| Incoming {
            elements: heard[0],
            entries: heard[1] as usize,
            runs: heard[2] != 0,
            wanted: cast_slice::<u64, Wanted>(&heard[3..]).to_vec(),
        });
        schedule.incoming = incoming.collect();
        Ok(schedule)
    }
}
