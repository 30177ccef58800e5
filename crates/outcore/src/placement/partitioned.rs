//! [`Partitions`]: a global array in partitions that fit the joint memory of
//! all ranks (Thakur 1995, section 5.3.2, the Partitioned In-Core Model).
//!
//! A partition is a slab of the array along the slowest axis of its file, as
//! thick as the memory of all ranks together allows. Each rank holds a share
//! of it, a BLOCK along one axis, with a halo of neighbouring elements if
//! asked for. While the ranks compute on a partition there is no input or
//! output; it is an in-core problem of its own, in which they may exchange
//! messages as they like.
//!
//! Memory: with `n` slices a rank, `e` elements in a slice of its share, halos
//! included, and `c` buffers of that size, a rank needs `n e c` elements, and
//! an eighth of its budget, at most 1 MiB, for moving them together with the
//! other ranks: a piece without its halo, and what a collective call takes, a
//! half each. The thickness is the largest for which the rank with
//! most of it has the room, in the smallest budget of all ranks: so the
//! partitions are the same on all of them.
//!
//! All ranks load before any stores, so halos hold the values from before the
//! partition was computed; elements of an earlier partition that was stored
//! into the same array are seen as they are now. To compute from old values
//! alone, store into another array.

use outcore_geometry::{AxisSection, Layout, Pieces, Section, shape_text};
use outcore_transport::{Comm, Op};

use crate::array::Array;
use crate::budget::{MemoryBudget, Reservation};
use crate::collective::least_memory;
use crate::element::{ByteOrder, Element};
use crate::error::{Error, Result};
use crate::placement::parts::fitting;
use crate::placement::staging::{PIECE, staged};
use crate::strategy::Direction;

/// Moving a share takes this part of a budget,
const STAGING_PART: u64 = 8;

/// and at most so much.
const MOST_STAGING: u64 = 2 * PIECE;

/// Partitions of a global array, each of which fits the joint memory of all
/// ranks.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget, Partitions};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("field.oc");
/// # let name = name.to_str().unwrap();
/// outcore::run(4, |comm| {
///     let array = Array::create_all(comm, name, &ArrayDescriptor::new(&[1000, 100], ElementType::F64))?;
///     // 800 kB of data, 256 KiB of memory: four partitions.
///     let budget = MemoryBudget::of(256 << 10);
///     for partition in Partitions::of(&array).start(comm, &budget)? {
///         let mut share = partition.load::<f64>(comm)?;
///         share.values_mut().iter_mut().for_each(|value| *value += 1.0);
///         partition.store(comm, &share, &array)?;
///     }
///     assert_eq!(array.read::<f64>(&array.section("::999, 0")?)?, [1.0, 1.0]);
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Partitions {
    array: Array,
    halo: Vec<(u64, u64)>,
    divided: Option<usize>,
    buffers: u64,
}

impl Partitions {
    /// Partitions of `array`, without halos, divided among the ranks along the
    /// slowest axis of the file, with room for one buffer.
    pub fn of(array: &Array) -> Self {
        Self {
            halo: vec![(0, 0); array.shape().len()],
            array: array.clone(),
            divided: None,
            buffers: 1,
        }
    }

    /// With so many neighbouring elements below and above each share along
    /// each axis, as far as the array has them.
    pub fn halo(mut self, halo: &[(u64, u64)]) -> Self {
        self.halo = halo.to_vec();
        self
    }

    /// With each partition divided among the ranks along `axis`.
    pub fn divided_along(mut self, axis: usize) -> Self {
        self.divided = Some(axis);
        self
    }

    /// With room for so many buffers of a share's size, for computations that
    /// need more than the one that is loaded.
    pub fn buffers(mut self, buffers: u64) -> Self {
        self.buffers = buffers.max(1);
        self
    }

    /// Collective: the partitions, in the order of the file. `budget` is that
    /// of the process; where processes have different ones, the smallest
    /// decides.
    pub fn start(
        &self,
        comm: &Comm,
        budget: &MemoryBudget,
    ) -> Result<impl Iterator<Item = Partition> + use<>> {
        let own = budget.for_rank(comm);
        let (ranks, rank) = (comm.size() as u64, comm.rank() as u64);
        comm.agree(self.check(ranks, &own))?;
        let limit = comm.all_reduce(&[own.limit()], Op::Min)?[0];
        let (thickness, staging) = self.thickness(ranks, limit)?;
        let along = self.along()?;
        let divided = self.divided.unwrap_or(along);
        let (this, extent) = (self.clone(), self.array.shape()[along]);
        let starts = (0..extent).step_by(usize::try_from(thickness).unwrap_or(usize::MAX));
        Ok(starts.map(move |start| {
            let section = this
                .array
                .whole()
                .slice(along, start, start.saturating_add(thickness));
            let (all, slices) = (section.axes()[divided].bounds(), section.shape()[divided]);
            let each = slices.div_ceil(ranks);
            let (lower, upper) = (
                (all.0 + rank * each).min(all.1),
                (all.0 + (rank + 1) * each).min(all.1),
            );
            let core = with_axis(&section, divided, AxisSection::span(lower, upper));
            Partition {
                array: this.array.clone(),
                loaded: this.with_halo(&core),
                section,
                core,
                budget: own.clone(),
                staging,
            }
        }))
    }

    /// The axis along which the array is cut: the slowest of the file.
    fn along(&self) -> Result<usize> {
        let slowest = self.array.layout().slowest_first().first().copied();
        slowest.ok_or_else(|| {
            Error::format(self.array.name(), "an array without axes has no partitions")
        })
    }

    /// Refuses what makes no sense, and budgets that are too small.
    fn check(&self, ranks: u64, budget: &MemoryBudget) -> Result<()> {
        let along = self.along()?;
        let shape = self.array.shape();
        let axes = shape.len();
        let divided = self.divided.unwrap_or(along);
        if self.halo.len() != axes || divided >= axes {
            return Err(Error::format(
                self.array.name(),
                format!(
                    "a halo for {} axes, divided along axis {divided}, does not fit shape {}",
                    self.halo.len(),
                    shape_text(shape)
                ),
            ));
        }
        let staging = self.least_staging(ranks);
        let least = self.need(ranks, along, 1).saturating_add(staging);
        budget.require(least, "the smallest partition")
    }

    /// What the buffers of one rank need if a partition gives it `count` slices
    /// along the axis that is cut.
    fn need(&self, ranks: u64, along: usize, count: u64) -> u64 {
        let shape = self.array.shape();
        let divided = self.divided.unwrap_or(along);
        let lengths = (0..shape.len()).map(|axis| {
            let rim = self.halo[axis].0.saturating_add(self.halo[axis].1);
            let core = match axis {
                axis if axis == along => count,
                axis if axis == divided => shape[axis].div_ceil(ranks),
                axis => shape[axis],
            };
            core.saturating_add(rim).min(shape[axis])
        });
        let elements = lengths.fold(1, u64::saturating_mul);
        elements
            .saturating_mul(self.array.layout().element_size())
            .saturating_mul(self.buffers)
            .saturating_add(self.array.decoded_bytes())
    }

    /// What moving a share takes at least, which is slow but works.
    fn least_staging(&self, ranks: u64) -> u64 {
        2 * least_memory(ranks, &self.array)
    }

    /// The slices of a partition of which every rank can hold its share within
    /// `limit`, which is enough for one; and what moving it may take.
    fn thickness(&self, ranks: u64, limit: u64) -> Result<(u64, u64)> {
        let along = self.along()?;
        let spare = limit.saturating_sub(self.need(ranks, along, 1));
        let staging = (limit / STAGING_PART).min(MOST_STAGING);
        let staging = staging.max(self.least_staging(ranks)).min(spare);
        let extent = self.array.shape()[along];
        let (mut fits, mut beyond) = (1, extent.max(1).saturating_add(1));
        while beyond - fits > 1 {
            let middle = fits + (beyond - fits) / 2;
            if self.need(ranks, along, middle) <= limit - staging {
                fits = middle;
            } else {
                beyond = middle;
            }
        }
        let ranks = match self.divided {
            Some(divided) if divided != along => 1,
            _ => ranks,
        };
        Ok((fits.saturating_mul(ranks), staging))
    }

    fn with_halo(&self, core: &Section) -> Section {
        if core.is_empty() {
            return core.clone();
        }
        let axes = core.axes().iter().zip(&self.halo).zip(self.array.shape());
        let axes = axes.map(|((axis, (below, above)), extent)| {
            let (lower, upper) = axis.bounds();
            AxisSection::span(
                lower.saturating_sub(*below),
                upper.saturating_add(*above).min(*extent),
            )
        });
        fitting(axes.collect())
    }
}

fn with_axis(section: &Section, number: usize, axis: AxisSection) -> Section {
    let mut axes = section.axes().to_vec();
    axes[number] = axis;
    fitting(axes)
}

/// One partition, as one rank sees it.
#[derive(Debug, Clone)]
pub struct Partition {
    array: Array,
    section: Section,
    core: Section,
    loaded: Section,
    budget: MemoryBudget,
    /// What moving the share may take.
    staging: u64,
}

impl Partition {
    /// The whole partition.
    pub fn section(&self) -> &Section {
        &self.section
    }

    /// This rank's share of it, without halo; empty for ranks for which
    /// nothing is left.
    pub fn core(&self) -> &Section {
        &self.core
    }

    /// Collective: each rank reads its share, halo included. All ranks have
    /// read when it returns.
    pub fn load<T: Element>(&self, comm: &Comm) -> Result<Share<T>> {
        let bytes = self.loaded.count() * self.array.layout().element_size();
        let held = self.budget.reserve(bytes, "the share of a partition");
        let memory = held.and_then(|held| Ok((held, self.staging()?)));
        let (held, _staging) = comm.agree(memory)?;
        let values = staged(&self.array, self.staging / 2).read_all(comm, &self.loaded)?;
        Ok(Share {
            section: self.loaded.clone(),
            core: self.core.clone(),
            order: self.array.layout().slowest_first().to_vec(),
            values,
            _held: held,
        })
    }

    /// Collective: each rank writes its share, without the halo, into
    /// `target`, an array of the same shape.
    pub fn store<T: Element>(&self, comm: &Comm, share: &Share<T>, target: &Array) -> Result<()> {
        let _staging = comm.agree(self.staging())?;
        let target = staged(target, self.staging / 2);
        share.write(comm, &target, self.staging / 2)
    }

    fn staging(&self) -> Result<Reservation> {
        self.budget.reserve(self.staging, "moving a share")
    }
}

/// One rank's share of a partition, in memory.
#[derive(Debug)]
pub struct Share<T> {
    section: Section,
    core: Section,
    order: Vec<usize>,
    values: Vec<T>,
    _held: Reservation,
}

impl<T: Element> Share<T> {
    /// Where the values stand in the array, halo included.
    pub fn section(&self) -> &Section {
        &self.section
    }

    /// Where the values without the halo stand in the array.
    pub fn core(&self) -> &Section {
        &self.core
    }

    /// Where the values without the halo stand in the buffer, as a section of
    /// an array of the shape of [`Share::section`].
    pub fn core_within(&self) -> Section {
        let axes = self.core.axes().iter().zip(self.section.axes());
        let axes = axes.map(|(core, all)| {
            let ((lower, upper), start) = (core.bounds(), all.bounds().0);
            AxisSection::span(lower - start, upper - start)
        });
        fitting(axes.collect())
    }

    /// The values: dense, in the axis order of the file.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values, to be changed.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Collective: writes the core to `target`, in pieces of at most so many
    /// bytes if those of any rank must be copied before.
    fn write(&self, comm: &Comm, target: &Array, piece_bytes: u64) -> Result<()> {
        let size = size_of::<T>() as u64;
        let within = self.core_within();
        let pieces = self.check_target(target).and_then(|()| {
            let positions = Section::whole(&within.shape());
            let positions = positions.map_err(Error::geometry(target.name()))?;
            let reversed = target.descriptor().byte_order != ByteOrder::NATIVE;
            let copied = self.core != self.section || reversed;
            let pieces = Pieces::new(&positions, &self.order, piece_bytes / size);
            let order = outcore_geometry::Order::from_slowest_first(&self.order);
            let buffer = Layout::new(&self.section.shape(), size, &order, None);
            let buffer = buffer.map_err(Error::geometry(target.name()))?;
            Ok((pieces, buffer, u64::from(copied)))
        });
        let (pieces, buffer, copied) = comm.agree(pieces)?;
        // With an empty piece where others have more.
        let most = match comm.all_reduce(&[copied], Op::Max)?[0] {
            0 => return target.write_all(comm, &self.core, &self.values),
            _ => comm.all_reduce(&[pieces.clone().count() as u64], Op::Max)?[0],
        };
        let bytes: &[u8] = bytemuck::cast_slice(&self.values);
        let mut packed = Vec::new();
        let nothing = Section::empty(self.order.len());
        let pieces = pieces.map(Some).chain(std::iter::repeat(None));
        for (piece, _) in pieces.zip(0..most) {
            let piece = piece.unwrap_or_else(|| nothing.clone());
            packed.resize((piece.count() * size) as usize, 0);
            let runs = buffer.runs(&within.select(&piece));
            for run in runs.map_err(Error::geometry(target.name()))? {
                let (from, to) = (run.file_offset as usize, run.buffer_offset as usize);
                let len = run.len as usize;
                packed[to..to + len].copy_from_slice(&bytes[from..from + len]);
            }
            let calls = target.collective();
            calls.write_bytes(comm, &self.core.select(&piece), &packed)?;
        }
        Ok(())
    }

    /// Refuses an array into which the share cannot be stored.
    fn check_target(&self, target: &Array) -> Result<()> {
        if target.layout().slowest_first() != self.order {
            return Err(Error::format(
                target.name(),
                "a share can be stored into an array of the same axis order only",
            ));
        }
        target.check_access(T::TYPE, Direction::Write)
    }
}
