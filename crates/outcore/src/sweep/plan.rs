//! [`SweepPlan`]: what a sweep shall do, and the memory that it needs.
//!
//! The need of a sweep with read-ahead of `a` tiles is that of `a + 1` tiles
//! with their halos, and with reuse a strip as wide as the halo; where tiles do
//! not stand in one piece in the file, a tile more for the part that is read,
//! and the buffer of sieving; and what chunks take that can be had only whole. The thickness of slabs follows from it: as thick
//! as the budget allows, but not much thicker than what makes reads efficient,
//! since thin slabs stay in the processor's cache, and the reading of the first
//! one can be hidden by nothing.

use std::sync::{Arc, mpsc};

use outcore_geometry::{Pieces, Section};

use super::ahead::{Extent, Sweep};
use super::flight::Flights;
use super::order::{Step, Steps, SweepOrder};
use super::reader::Reader;
use super::tile::{Freed, Home};
use crate::array::Array;
use crate::budget::MemoryBudget;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::strategy::Direction;

/// A slab has at least about so many bytes, if nobody says and they fit.
const GOOD: u64 = 4 << 20;

/// ... and as many as the storage moves in so many times its latency.
const LATENCIES: f64 = 32.0;

/// If so much is in the page cache, reading has nothing to wait for.
const CACHED: f64 = 0.95;

/// What a sweep shall do. Made by [`Sweep::of`], filled in, and started.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget, Sweep};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("grid.oc");
/// # let name = name.to_str().unwrap();
/// let array = Array::create(name, &ArrayDescriptor::new(&[100, 64], ElementType::U8))?;
/// let plan = Sweep::<u8>::of(&array).halo(&[(1, 1), (0, 0)]).ahead(2);
/// // Three slabs of 10 + 2 rows, and the two rows that are kept.
/// assert_eq!(plan.need(10), (3 * 12 + 2) * 64);
/// let sweep = plan.budget(&MemoryBudget::of(1 << 20)).thickness(Some(10)).start::<u8>()?;
/// assert_eq!(sweep.tiles_left(), 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a plan does nothing before it is started"]
pub struct SweepPlan {
    array: Array,
    region: Section,
    order: SweepOrder,
    halo: Vec<(u64, u64)>,
    /// By the cache if not said.
    ahead: Option<usize>,
    reuse: bool,
    thickness: Option<u64>,
    budget: Option<MemoryBudget>,
    /// Clones of a plan wait for each other's tiles where memory is short.
    flights: Flights,
}

impl Array {
    /// Goes through the whole array, with `halo` elements more on both sides
    /// of each tile along each axis (none along all, if empty): the next tile
    /// is read in the background while this one is computed on, and what two
    /// tiles share is read once. [`Sweep::of`] has more choices.
    pub fn sweep<T: Element>(
        &self,
        order: SweepOrder,
        halo: &[u64],
        budget: &MemoryBudget,
    ) -> Result<Sweep<T>> {
        let halo: Vec<(u64, u64)> = halo.iter().map(|width| (*width, *width)).collect();
        let plan = SweepPlan::new(self).order(order).halo(&halo);
        plan.budget(budget).start()
    }
}

impl SweepPlan {
    pub(crate) fn new(array: &Array) -> Self {
        Self {
            array: array.clone(),
            region: array.whole(),
            order: SweepOrder::Slabs,
            halo: Vec::new(),
            ahead: None,
            reuse: true,
            thickness: None,
            budget: None,
            flights: Flights::default(),
        }
    }

    /// Only over `region` (the whole array, if not said); halos may reach out
    /// of it. It must have no strides along axes with a halo.
    pub fn over(self, region: Section) -> Self {
        Self { region, ..self }
    }

    /// In which order (slabs along the slowest axis, if not said).
    pub fn order(self, order: SweepOrder) -> Self {
        Self { order, ..self }
    }

    /// How many elements more below and above the core, for each axis.
    pub fn halo(self, halo: &[(u64, u64)]) -> Self {
        let halo = halo.to_vec();
        Self { halo, ..self }
    }

    /// How many tiles are read in advance by a thread; with 0 the caller's
    /// thread reads. If not said, 1, unless the data are in the page cache.
    pub fn ahead(self, ahead: usize) -> Self {
        let ahead = Some(ahead);
        Self { ahead, ..self }
    }

    /// Whether what two tiles share is kept (if not said, it is). Without, a
    /// sweep that writes to its own array would read new values in the halo.
    pub fn reuse(self, reuse: bool) -> Self {
        Self { reuse, ..self }
    }

    /// How thick the core of a slab is; by the budget if `None`.
    pub fn thickness(self, thickness: Option<u64>) -> Self {
        Self { thickness, ..self }
    }

    /// The memory for all buffers (that of [`MemoryBudget::machine`], if not
    /// said).
    pub fn budget(self, budget: &MemoryBudget) -> Self {
        let budget = Some(budget.clone());
        Self { budget, ..self }
    }

    /// The bytes that the sweep needs with slabs of the given thickness.
    pub fn need(&self, thickness: u64) -> u64 {
        if self.region.axes().len() != self.array.shape().len() {
            return 0; // Such a plan is refused when it is started.
        }
        let lengths = self.lengths(thickness);
        let size = self.array.layout().element_size();
        let tile = product(&self.extents(&lengths)).saturating_mul(size);
        let (strip, rest) = self.kept(&lengths);
        let buffers = self.buffers(&lengths) as u64;
        tile.saturating_mul(buffers)
            .saturating_add(strip.saturating_add(rest).saturating_mul(size))
            .saturating_add(self.sieve(&lengths, tile))
            .saturating_add(self.array.decoded_bytes())
    }

    /// Begins to read.
    pub fn start<T: Element>(mut self) -> Result<Sweep<T>> {
        // 1. What was asked for must make sense.
        self.array.check_access(T::TYPE, Direction::Read)?;
        self.check()?;
        // 2. The slabs must fit the budget.
        let budget = self.budget.clone().unwrap_or_else(MemoryBudget::machine);
        let thickness = self
            .thickness
            .unwrap_or_else(|| self.fitting(budget.free()));
        let lengths = self.lengths(thickness);
        let need = self.need(thickness);
        let memory = loop {
            let landed = self.flights.landed();
            match budget.reserve(need, "the sweep") {
                Ok(memory) => break Arc::new(memory),
                Err(error) if !self.flights.wait_for_more(landed) => return Err(error),
                Err(_) => {}
            }
        };
        // 3. Buffers, and a reader beside the caller or in its place.
        let (freed, waiting) = mpsc::channel();
        let home = Home {
            freed,
            store: Arc::clone(self.array.store()),
            slowest_first: self.array.layout().slowest_first().into(),
            held: Arc::default(),
            memory: Arc::clone(&memory),
            flights: self.flights.clone(),
        };
        let elements = product(&self.extents(&lengths)) as usize;
        for _ in 0..self.buffers(&lengths) {
            let values = bytemuck::allocation::try_zeroed_vec(elements).map_err(|()| {
                let problem = "the budget of the sweep is more memory than there is";
                Error::Invalid(problem.into())
            })?;
            // The receiver is in this function.
            let _ = home.freed.send(Freed::Buffer(values, home.store.time()));
        }
        let simulated = self.array.store().time().is_some();
        let ahead = match self.ahead {
            Some(ahead) => ahead > 0,
            None => self
                .array
                .cached(&self.region)?
                .is_none_or(|share| share < CACHED),
        };
        let extent = Extent {
            tiles: self.tiles(&lengths),
            thickness: self.axis().map(|axis| lengths[axis]),
            buffers: self.buffers(&lengths),
            thread: ahead && !simulated,
            in_advance: ahead && simulated,
        };
        let beside = if ahead {
            self.array.in_background()
        } else {
            self.array.clone()
        };
        let tile = (elements as u64).saturating_mul(self.array.layout().element_size());
        let tuned = beside.staged(self.sieve(&lengths, tile).max(1), &budget);
        let reader = Reader::new(tuned, self.steps(&lengths), self.reuse, memory);
        Sweep::start(reader, home, waiting, extent)
    }

    /// Refuses what makes no sense, and fills in what was left out.
    fn check(&mut self) -> Result<()> {
        let axes = self.array.shape().len();
        let name = self.array.name();
        let refused =
            |problem: String| Err(Error::Invalid(format!("cannot sweep {name}: {problem}")));
        if let Err(source) = self.region.check_within(self.array.shape()) {
            return Err(Error::geometry(name)(source));
        }
        if self.halo.is_empty() {
            self.halo = vec![(0, 0); axes];
        }
        if self.halo.len() != axes {
            let given = self.halo.len();
            return refused(format!("it has {axes} axes, but the halo {given}"));
        }
        for (axis, (taken, halo)) in self.region.axes().iter().zip(&self.halo).enumerate() {
            if *halo != (0, 0) && taken.count() > 1 && taken.stride() != Some(1) {
                let region = &self.region;
                return refused(format!(
                    "along axis {axis} the region [{region}] has strides, which leave no room for a halo"
                ));
            }
        }
        match &self.order {
            SweepOrder::Along(axis) if *axis >= axes => {
                return refused(format!("it has {axes} axes, so there is no axis {axis}"));
            }
            SweepOrder::Tiles(shape) if shape.len() != axes || shape.contains(&0) => {
                let shape = outcore_geometry::shape_text(shape);
                return refused(format!(
                    "tiles of {shape} do not fit its {axes} axes; each needs an extent of at least 1"
                ));
            }
            _ => {}
        }
        if self.thickness == Some(0) {
            return refused("slabs of thickness 0 would never end; 1 is the least".into());
        }
        Ok(())
    }

    /// The axis along which slabs follow one another.
    fn axis(&self) -> Option<usize> {
        match self.order {
            SweepOrder::Slabs => self.array.layout().slowest_first().first().copied(),
            SweepOrder::Along(axis) => Some(axis),
            SweepOrder::Tiles(_) => None,
        }
    }

    /// The lengths of a core.
    fn lengths(&self, thickness: u64) -> Vec<u64> {
        let mut lengths = self.region.shape();
        if let SweepOrder::Tiles(shape) = &self.order {
            let pairs = lengths.iter_mut().zip(shape);
            pairs.for_each(|(length, asked)| *length = (*length).min(*asked));
        }
        if let Some(length) = self.axis().and_then(|axis| lengths.get_mut(axis)) {
            *length = (*length).min(thickness.max(1));
        }
        lengths
    }

    /// The lengths of a core with its halo, at most those of the array.
    fn extents(&self, lengths: &[u64]) -> Vec<u64> {
        let sizes = lengths.iter().zip(self.array.shape()).enumerate();
        let extents = sizes.map(|(axis, (length, whole))| {
            let halo = self.halo_of(axis);
            length.saturating_add(halo).min(*whole)
        });
        extents.collect()
    }

    /// The width of the halo along `axis`, both sides together.
    fn halo_of(&self, axis: usize) -> u64 {
        let halo = self.halo.get(axis);
        halo.map_or(0, |(below, above)| below.saturating_add(*above))
    }

    /// The most elements of the strip that is kept, and of a rest that does
    /// not stand in one piece.
    fn kept(&self, lengths: &[u64]) -> (u64, u64) {
        let extents = self.extents(lengths);
        let (mut strip, mut rest) = (0, 0);
        for (axis, count) in self.region.shape().into_iter().enumerate() {
            let halo = self.halo_of(axis).min(extents[axis]);
            if !self.reuse || halo == 0 || lengths[axis] >= count {
                continue;
            }
            let with = |length: u64| {
                let mut extents = extents.clone();
                extents[axis] = length;
                product(&extents)
            };
            strip = strip.max(with(halo));
            let slowest_first = self.array.layout().slowest_first();
            let mut slower = slowest_first.iter().take_while(|other| **other != axis);
            if slower.any(|other| extents[*other] > 1) {
                rest = rest.max(with(lengths[axis]));
            }
        }
        (strip, rest)
    }

    /// The buffer that sieving may use: none where a tile is in one piece.
    fn sieve(&self, lengths: &[u64], tile: u64) -> u64 {
        // The first tile may lack a halo that the others have.
        let mut first = self.steps(lengths).take(2);
        let in_pieces = |step: Step| {
            let runs = self.array.layout().runs(&step.section);
            runs.is_ok_and(|runs| runs.totals().0 > 1)
        };
        match first.any(in_pieces) {
            true => self.array.tuning().buffer().min(tile),
            false => 0,
        }
    }

    /// A buffer for the caller and for each tile in advance.
    fn buffers(&self, lengths: &[u64]) -> usize {
        let tiles = usize::try_from(self.tiles(lengths)).unwrap_or(usize::MAX);
        self.most_buffers().min(tiles)
    }

    fn most_buffers(&self) -> usize {
        self.ahead.unwrap_or(1).saturating_add(1)
    }

    fn tiles(&self, lengths: &[u64]) -> u64 {
        let pairs = self.region.shape().into_iter().zip(lengths);
        let counts: Vec<u64> = pairs
            .map(|(count, length)| count.div_ceil((*length).max(1)))
            .collect();
        product(&counts)
    }

    fn steps(&self, lengths: &[u64]) -> Steps {
        let layout = self.array.layout();
        let mut halo = self.halo.clone();
        halo.resize(layout.shape().len(), (0, 0));
        Steps {
            cores: Pieces::of_shape(&self.region, layout.slowest_first(), lengths),
            halo,
            shape: layout.shape().to_vec(),
        }
    }

    /// The thickness of slabs: at least 1, within `free` bytes if possible, and
    /// all slabs alike if possible.
    fn fitting(&self, free: u64) -> u64 {
        let Some(axis) = self.axis() else { return 1 };
        let count = self.region.axes()[axis].count().max(1);
        let one = self.need(2).saturating_sub(self.need(1)).max(1);
        let cold = self.array.profile().cold_read;
        let good = GOOD.max((LATENCIES * cold.each / cold.byte) as u64);
        let good = good.saturating_mul(self.most_buffers() as u64) / one;
        let good = good.max(self.halo_of(axis).saturating_mul(8)).max(1);
        let (mut fits, mut fails) = (1, good.min(count).saturating_add(1));
        if self.need(count) <= free && count <= good {
            fits = count;
            fails = count + 1;
        }
        while fits + 1 < fails {
            let middle = fits + (fails - fits) / 2;
            if self.need(middle) <= free {
                fits = middle;
            } else {
                fails = middle;
            }
        }
        count.div_ceil(count.div_ceil(fits))
    }
}

fn product(lengths: &[u64]) -> u64 {
    lengths
        .iter()
        .fold(1, |product, length| product.saturating_mul(*length))
}
