//! [`Array`]: an array on disk, of which sections are read and written.
//!
//! The path of one read, down once and up once:
//!
//! 1. the section is checked against the shape (here),
//! 2. [`Layout::runs`] turns it into runs,
//! 3. a strategy makes a [`Plan`] of them, without any I/O,
//! 4. [`execute`] hands the plan's accesses to the store, which fills the
//!    caller's buffer.
//!
//! A write is the same plan executed the other way.

use std::sync::Arc;

use outcore_geometry::{Layout, Order, Runs, Section, shape_text};
use outcore_storage::{Access, Store, fills_or_fails};
use outcore_transport::Comm;

use crate::budget::MemoryBudget;
use crate::descriptor::{ArrayDescriptor, check_permutation, permuted};
use crate::draft::{Draft, SharedDraft};
use crate::element::{ByteOrder, Element, ElementType};
use crate::error::{Error, Result};
use crate::execute::{Transfer, execute};
use crate::format::{self, Location, Opened};
use crate::fresh;
use crate::interrupt;
use crate::plan::Plan;
use crate::strategy::choose::{Estimate, Situation, Way};
use crate::strategy::profile::StorageProfile;
use crate::strategy::slices::Slices;
use crate::strategy::{Chunked, Direction, Method, Strategy, Tuning};

/// Gaps up to this many bytes are fetched as well: less than the system would read
/// ahead anyway.
const FETCH_GAP: u64 = 64 << 10;

/// A store that answers more than this many requests at a time is far away.
const MANY: usize = 16;

/// The memory for chunks that are waited for together, if nobody says how much.
const MANY_CHUNKS: u64 = 16 << 20;

/// An array on disk.
///
/// Buffers that hold a section are dense and in the array's own axis order:
/// row-major for a row-major (or tiled) array, column-major for a
/// column-major one; [`Array::layout`] tells which. Many threads may read and
/// write one array at the same time; what they write should not overlap.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("grid.oc");
/// # let name = name.to_str().unwrap();
/// let array = Array::create(name, &ArrayDescriptor::new(&[1000, 1000], ElementType::F32))?;
/// let rows = array.section("::100, 500:504")?;
/// array.write(&rows, &vec![1.5f32; 40])?;
/// assert_eq!(array.read::<f32>(&array.section("300, 499:502")?)?, [0.0, 1.5, 1.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Array {
    name: String,
    descriptor: ArrayDescriptor,
    layout: Layout,
    store: Arc<dyn Store>,
    start: u64,
    format: &'static str,
    writable: bool,
    tuning: Tuning,
    profile: StorageProfile,
    mappable: bool,
    guarded: bool,
}

impl Array {
    /// Makes an array of zeros (sparse, so at once even for terabytes) and
    /// opens it for reading and writing. Elements of Zarr, and of HDF5 with filters, are
    /// the fill value instead if the descriptor has one, as is in Zarr 2 a `_FillValue`
    /// among its attributes. The ending of `name` says in which format: `.oc` for
    /// outcore's own, `.npy` for NumPy's, or a `raw:` description.
    pub fn create(name: &str, descriptor: &ArrayDescriptor) -> Result<Self> {
        Self::draft(name, descriptor, false)?.commit()
    }

    /// Begins an array that gets its name only when it is complete; with
    /// `replace`, in place of what has the name now.
    pub fn draft(name: &str, descriptor: &ArrayDescriptor, replace: bool) -> Result<Draft> {
        Draft::begin(name, descriptor, replace)
    }

    /// Opens an array for reading: an outcore directory, a `.npy` file, or a
    /// file described as `raw:data.bin?shape=4096x4096&type=f32&layout=column`.
    /// With the feature `remote`, all but the first may be at an address, as in
    /// `s3://bucket/climate.zarr/t`.
    pub fn open(name: &str) -> Result<Self> {
        Self::open_at(&Location::of_existing(name)?, Access::ReadOnly)
    }

    /// Opens an array for reading and writing.
    pub fn open_writable(name: &str) -> Result<Self> {
        Self::open_at(&Location::of_existing(name)?, Access::ReadWrite)
    }

    /// Collective: rank 0 makes the array, then every rank opens it. All
    /// ranks succeed, or all return the same error.
    pub fn create_all(comm: &Comm, name: &str, descriptor: &ArrayDescriptor) -> Result<Self> {
        Self::draft_all(comm, name, descriptor, false)?.commit(comm)
    }

    /// Collective: begins an array that all ranks fill, and that gets its name
    /// only when it is complete; with `replace`, in place of what has the name
    /// now.
    pub fn draft_all(
        comm: &Comm,
        name: &str,
        descriptor: &ArrayDescriptor,
        replace: bool,
    ) -> Result<SharedDraft> {
        SharedDraft::begin(comm, name, descriptor, replace)
    }

    /// Collective: every rank opens the array. All ranks succeed, or all
    /// return the same error.
    pub fn open_all(comm: &Comm, name: &str) -> Result<Self> {
        Ok(comm.agree(Self::open(name))?)
    }

    pub(crate) fn open_at(location: &Location, access: Access) -> Result<Self> {
        let opened = format::open(location, access)?;
        let mut array = Self::assemble(location.to_string(), opened, access == Access::ReadWrite)?;
        array.format = location.format();
        array.profile = StorageProfile::kept(location.path())
            .unwrap_or_else(|| StorageProfile::assumed(location.path()));
        Ok(array)
    }

    /// An array whose data are in any store, from its beginning.
    pub fn in_store(
        name: &str,
        descriptor: &ArrayDescriptor,
        store: Arc<dyn Store>,
    ) -> Result<Self> {
        let opened = Opened {
            descriptor: descriptor.clone(),
            store,
            start: 0,
        };
        Self::assemble(name.into(), opened, true)
    }

    fn assemble(name: String, opened: Opened, writable: bool) -> Result<Self> {
        let layout = opened.descriptor.check(&name)?;
        let mappable = opened.store.map()?.is_some();
        let guarded = opened.store.lock_shared(0, 0)?.is_some();
        let Opened {
            descriptor,
            store,
            start,
        } = opened;
        Ok(Self {
            name,
            descriptor,
            layout,
            store,
            start,
            format: "store",
            writable,
            tuning: Tuning::default(),
            profile: StorageProfile::default(),
            mappable,
            guarded,
        })
    }

    /// The text that names the array, with which it can be opened again.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything that describes the array.
    pub fn descriptor(&self) -> &ArrayDescriptor {
        &self.descriptor
    }

    /// The extent of each axis.
    pub fn shape(&self) -> &[u64] {
        self.layout.shape()
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.descriptor.element_type
    }

    /// Where each element stands in the file.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The format: `native`, `npy` or `raw`; `store` if it is none of them.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// Where the data begin in the store, in bytes.
    pub fn data_offset(&self) -> u64 {
        self.start
    }

    /// The same array seen with axes of extent 1 added or left out, so that
    /// it has the given shape. Axes with longer tiles cannot be left out: their padding
    /// is in the file.
    pub fn with_unit_axes(&self, shape: &[u64]) -> Result<Self> {
        if shape == self.shape() {
            return Ok(self.clone());
        }
        let longer =
            |shape: &[u64]| -> Vec<u64> { shape.iter().copied().filter(|n| *n != 1).collect() };
        if longer(shape) != longer(self.shape()) {
            return Err(Error::format(
                &self.name,
                format!(
                    "shape {} does not fit {}",
                    shape_text(self.shape()),
                    shape_text(shape)
                ),
            ));
        }
        let shown = self.shown_axes(shape).ok_or_else(|| {
            Error::format(
                &self.name,
                format!(
                    "its shape {} cannot be taken as {}, because an axis that would be left out \
                     is stored in longer tiles; convert it to a layout without tiles first",
                    shape_text(self.shape()),
                    shape_text(shape)
                ),
            )
        })?;
        let mut same = self.clone();
        same.descriptor.shape = shape.to_vec();
        // A placement is for the axes as they are in the file.
        same.descriptor.local = None;
        same.descriptor.arrangement.tile = self.layout.tile().map(|tile| {
            let extent = |shown: &Option<usize>| shown.map_or(1, |axis| tile[axis]);
            shown.iter().map(extent).collect()
        });
        if matches!(same.descriptor.arrangement.order, Order::Axes(_)) {
            // Axes of one index may stand anywhere.
            let place_of = |axis: &usize| shown.iter().position(|shown| *shown == Some(*axis));
            let moved = self.layout.slowest_first().iter().filter_map(place_of);
            let short = (0..shape.len()).filter(|axis| shown[*axis].is_none());
            let order: Vec<usize> = moved.chain(short).collect();
            same.descriptor.arrangement.order = Order::from_slowest_first(&order);
        }
        same.layout = same.descriptor.check(&self.name)?;
        Ok(same)
    }

    /// For each axis of a view of `shape` the axis that it shows, `None` where it has one
    /// index and shows none; `None` unless all are shown that are longer or have longer tiles.
    fn shown_axes(&self, shape: &[u64]) -> Option<Vec<Option<usize>>> {
        let is_long = |axis: &usize| {
            self.shape()[*axis] != 1 || self.layout.tile().is_some_and(|tile| tile[*axis] != 1)
        };
        let mut left = (0..self.shape().len()).filter(is_long).peekable();
        let mut shown = Vec::new();
        for extent in shape {
            let axis = left.next_if(|axis| self.shape()[*axis] == *extent);
            if axis.is_none() && *extent != 1 {
                return None;
            }
            shown.push(axis);
        }
        left.next().is_none().then_some(shown)
    }

    /// The same array seen with its axes in another order: axis `k` of the view
    /// is axis `axes[k]` of the array. No byte moves.
    ///
    /// ```
    /// use outcore::{Array, ArrayDescriptor, ElementType};
    /// # let directory = tempfile::tempdir()?;
    /// # let name = directory.path().join("grid.oc");
    /// # let name = name.to_str().unwrap();
    /// let array = Array::create(name, &ArrayDescriptor::new(&[30, 20], ElementType::F32))?;
    /// let turned = array.permuted(&[1, 0])?;
    /// array.write(&array.section("7, 3")?, &[1.5f32])?;
    /// assert_eq!(turned.read::<f32>(&turned.section("3, 7")?)?, [1.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn permuted(&self, axes: &[usize]) -> Result<Self> {
        check_permutation(axes, self.shape().len())?;
        let place_of = |axis: &usize| axes.iter().position(|old| old == axis);
        let order = self.layout.slowest_first().iter().filter_map(place_of);
        let mut same = self.clone();
        let descriptor = &mut same.descriptor;
        descriptor.arrangement.order = Order::from_slowest_first(&order.collect::<Vec<_>>());
        descriptor.arrangement.tile = self.layout.tile().map(|tile| permuted(tile, axes));
        descriptor.shape = permuted(self.shape(), axes);
        // A placement is for the axes as they are in the file.
        descriptor.local = None;
        same.layout = same.descriptor.check(&self.name)?;
        Ok(same)
    }

    /// Elements that stand one after the other in this array of one axis, from
    /// element `start` on, as an array of `shape` of their own.
    pub(crate) fn block_at(&self, start: u64, shape: &[u64]) -> Result<Self> {
        let mut descriptor = ArrayDescriptor::new(shape, self.element_type());
        descriptor.byte_order = self.descriptor.byte_order;
        let layout = descriptor.check(&self.name)?;
        Ok(Self {
            name: self.name.clone(),
            descriptor,
            layout,
            store: Arc::clone(&self.store),
            start: self.start + start * self.layout.element_size(),
            ..*self
        })
    }

    /// Says that a section will be read soon, so that the store begins to bring it
    /// into memory, without waiting.
    pub(crate) fn fetch(&self, section: &Section) -> Result<()> {
        let mut wanted: Option<(u64, u64)> = None;
        for run in self.runs(section)? {
            let (start, end) = (
                self.start + run.file_offset,
                self.start + run.file_offset + run.len,
            );
            match &mut wanted {
                Some((_, reached)) if start <= *reached + FETCH_GAP => *reached = end,
                _ => {
                    if let Some((start, end)) = wanted.replace((start, end)) {
                        self.store.fetch(start, end - start);
                    }
                }
            }
        }
        if let Some((start, end)) = wanted {
            self.store.fetch(start, end - start);
        }
        Ok(())
    }

    /// The store that holds the bytes.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Reads a section's text, in either notation, for this array.
    pub fn section(&self, text: &str) -> Result<Section> {
        Section::parse(text, self.shape()).map_err(Error::geometry(&self.name))
    }

    /// The whole array as a section.
    pub fn whole(&self) -> Section {
        Section::whole(self.shape()).expect("the layout has checked the shape")
    }

    /// The same array, with sections moved as `tuning` says.
    pub fn tuned(&self, tuning: Tuning) -> Self {
        Self {
            tuning,
            ..self.clone()
        }
    }

    /// The same array, whose calls stage at most `most` bytes of `budget`. If nobody has
    /// said how much that is, chunks from far away are waited for together all the same.
    pub fn staged(&self, most: u64, budget: &MemoryBudget) -> Self {
        let chunks = self.store.as_chunks();
        let is_far = chunks.is_some_and(|store| store.chunks().parallel() > MANY);
        match self.tuning.buffer {
            None if is_far && !budget.is_given() => self.clone(),
            _ => self.tuned(self.tuning.within(most)),
        }
    }

    /// The same array, on a storage that costs what `profile` says.
    pub fn with_profile(&self, profile: StorageProfile) -> Self {
        Self {
            profile,
            ..self.clone()
        }
    }

    pub(crate) fn profile(&self) -> &StorageProfile {
        &self.profile
    }

    /// How sections are moved.
    pub fn tuning(&self) -> Tuning {
        self.tuning
    }

    /// The same array for work beside the caller's: in virtual time it has a
    /// clock of its own.
    pub(crate) fn in_background(&self) -> Self {
        let mut same = self.clone();
        if let Some(store) = self.store.background() {
            same.store = store;
        }
        same
    }

    /// Fails unless elements of the type `asked` can be moved this way.
    pub(crate) fn check_access(&self, asked: ElementType, direction: Direction) -> Result<()> {
        if direction == Direction::Write && !self.writable {
            return Err(self.read_only());
        }
        self.check_type(asked)
    }

    fn read_only(&self) -> Error {
        Error::ReadOnly {
            array: self.name.clone(),
        }
    }

    /// What moving `section` would do, without doing it.
    pub fn plan(&self, section: &Section, direction: Direction) -> Result<Plan> {
        Ok(self.plan_of(section, self.runs(section)?, direction))
    }

    /// The same with the section's runs, which may lead to any buffer.
    pub(crate) fn plan_of(&self, section: &Section, runs: Runs, direction: Direction) -> Plan {
        let way = match self.chunked() {
            Some(chunked) => chunked.into(),
            None => self.situation(section, &runs, direction).way(&runs),
        };
        self.planned(runs, way)
    }

    /// The same with such a share of the data in the page cache.
    pub(crate) fn plan_cached(&self, runs: &Runs, direction: Direction, cached: f64) -> Plan {
        let way = match self.chunked() {
            Some(chunked) => chunked.into(),
            None => self.situation_of(direction, cached, None).way(runs),
        };
        self.planned(runs.clone(), way)
    }

    /// What moving sections takes beside the caller's buffers and
    /// [`Tuning::buffer()`]: a chunk that can be had only whole, as it is stored and decoded,
    /// and what says where chunks are.
    pub fn decoded_bytes(&self) -> u64 {
        self.store.as_chunks().map_or(0, |store| {
            let chunks = store.chunks();
            let decoded = self.whole_chunk().saturating_mul(chunks.forms());
            decoded.saturating_add(chunks.index_bytes())
        })
    }

    /// The bytes of a chunk, if it can be had only whole, and else 0.
    pub fn whole_chunk(&self) -> u64 {
        match self.store.as_chunks().map(|store| store.chunks()) {
            Some(chunks) if self.writable || !chunks.has_parts() => chunks.chunk_bytes() as u64,
            _ => 0,
        }
    }

    /// How the chunks of the store are moved, if the tiles are its chunks.
    fn chunked(&self) -> Option<Chunked> {
        let chunks = self.store.as_chunks()?.chunks();
        let size = chunks.chunk_bytes() as u64;
        // Answers from far away are waited for together.
        let room = self.tuning.buffer().max(2 * size);
        let room = match self.tuning.buffer {
            None if chunks.parallel() > MANY => room.max(MANY_CHUNKS),
            _ => room,
        };
        self.layout.tile().map(|_| Chunked { size, room })
    }

    fn planned(&self, runs: Runs, Way { method, fetch }: Way) -> Plan {
        Plan {
            runs,
            start: self.start,
            swap: self.swap(),
            method,
            fetch,
        }
    }

    /// What moving these runs is expected to take with each strategy that may be
    /// used, with such a share of them in the page cache.
    pub(crate) fn seconds_of(
        &self,
        runs: &Runs,
        direction: Direction,
        cached: f64,
    ) -> Vec<(Strategy, f64)> {
        let situation = self.situation_of(direction, cached, None);
        let all = situation.estimates(runs).into_iter();
        let safe = all.filter(|estimate| situation.is_safe(estimate));
        safe.map(|estimate| (estimate.strategy, estimate.seconds))
            .collect()
    }

    /// Whether the store can be mapped.
    pub(crate) fn is_mappable(&self) -> bool {
        self.mappable
    }

    /// The width of the numbers whose bytes must be reversed between file and
    /// memory.
    pub(crate) fn swap(&self) -> Option<usize> {
        let width = self.element_type().swap_width();
        (self.descriptor.byte_order != ByteOrder::NATIVE && width > 1).then_some(width)
    }

    /// Whether all who write lock, so that bytes may be read and written back.
    pub(crate) fn is_guarded(&self) -> bool {
        self.guarded
    }

    /// The largest gap between wanted bytes that costs less to move along than
    /// a request, between two offsets of the data.
    pub(crate) fn gap(&self, (start, end): (u64, u64), direction: Direction) -> u64 {
        if let (Some(device), None) = (&self.profile.device, self.tuning.gap) {
            let request = device.latency.as_secs_f64() * device.bandwidth;
            return (request as u64).min(self.tuning.buffer());
        }
        let cached = self.store.cached(self.start + start, end - start);
        self.situation_of(direction, cached.unwrap_or(0.0), None)
            .gap()
    }

    /// What each strategy would take to move `section`, the fastest first.
    pub fn estimates(&self, section: &Section, direction: Direction) -> Result<Vec<Estimate>> {
        let runs = self.runs(section)?;
        Ok(self.situation(section, &runs, direction).estimates(&runs))
    }

    /// About what share of the section's extent is in the page cache; `None`
    /// if the store does not know.
    pub fn cached(&self, section: &Section) -> Result<Option<f64>> {
        Ok(self.share_cached(&self.runs(section)?))
    }

    fn runs(&self, section: &Section) -> Result<Runs> {
        self.layout
            .runs(section)
            .map_err(Error::geometry(&self.name))
    }

    fn situation(&self, section: &Section, runs: &Runs, direction: Direction) -> Situation<'_> {
        let whole_slices = self.tuning.whole_slices
            && self.tuning.strategy == Strategy::Sieving
            && !section.is_empty();
        let slices =
            whole_slices.then(|| Slices::of(&self.layout, section, self.tuning.buffer().max(1)));
        let situation = |cached| self.situation_of(direction, cached, slices);
        if self.profile.device.is_some() {
            return situation(0.0);
        }
        // Asking costs some microseconds: only if it makes a difference.
        let (warm, cold) = (situation(1.0), situation(0.0));
        if warm.way(runs) == cold.way(runs) {
            return warm;
        }
        situation(self.share_cached(runs).unwrap_or(0.0))
    }

    /// The share of what these runs reach over that is in the page cache.
    pub(crate) fn share_cached(&self, runs: &Runs) -> Option<f64> {
        let extent = runs.footprint(0);
        let start = self.start + extent.start;
        self.store.cached(start, extent.end - extent.start)
    }

    fn situation_of(
        &self,
        direction: Direction,
        cached: f64,
        slices: Option<Slices>,
    ) -> Situation<'_> {
        Situation {
            profile: &self.profile,
            tuning: &self.tuning,
            direction,
            cached,
            mappable: self.mappable,
            guarded: self.guarded,
            slices,
            start: self.start,
        }
    }

    /// The error of a section that does not fit the memory.
    pub(crate) fn too_large(&self, section: &Section) -> Error {
        let bytes = section.count() * self.layout.element_size();
        Error::Invalid(format!(
            "section [{section}] of {} needs {bytes} bytes of memory, more than there are",
            self.name
        ))
    }

    /// Reads a section.
    pub fn read<T: Element>(&self, section: &Section) -> Result<Vec<T>> {
        // Checked first: the text of a section can ask for any amount of memory.
        self.runs(section)?;
        let too_large = || self.too_large(section);
        let count = usize::try_from(section.count()).map_err(|_| too_large())?;
        self.check_type(T::TYPE)?;
        if !fills_or_fails(&*self.store) {
            let mut values = fresh::zeros::<T>(count).ok_or_else(too_large)?;
            self.read_into(section, &mut values)?;
            return Ok(values);
        }
        let mut values = fresh::with_room::<T>(count).ok_or_else(too_large)?;
        let room = &mut values.spare_capacity_mut()[..count];
        let size = size_of_val(room);
        // SAFETY: the vector has room for these bytes. The store does not look at
        // them, and a read that succeeds has written all of them.
        let bytes = unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), size) };
        self.read_bytes(section, bytes)?;
        self.check_values::<T>(section, bytes)?;
        // SAFETY: all bytes are written, and were found to be values.
        unsafe { values.set_len(count) };
        Ok(values)
    }

    /// Lets `look` see where the bytes of a section stand in the page cache, in the
    /// order of a buffer, if reading would only copy them from there: one stretch of a
    /// file that is mapped, in this machine's byte order. False, with nothing seen, if
    /// not; then they must be read.
    ///
    /// The pointer is valid during the call. Others may change the bytes meanwhile, so
    /// no reference may be made of it.
    pub fn in_place(&self, section: &Section, look: impl FnOnce(*const u8)) -> Result<bool> {
        let plan = self.plan(section, Direction::Read)?;
        let extent = plan.runs.footprint(0);
        let len = extent.end - extent.start;
        let whole = plan.swap.is_none() && len > 0 && plan.runs.totals().1 == len;
        let one_run = self.layout.tile().is_none() && whole;
        if !one_run || !matches!(plan.method, Method::Mapped(_)) {
            return Ok(false);
        }
        interrupt::check()?;
        let Some(mapping) = self.store.map()? else {
            return Ok(false);
        };
        look(mapping.readable(plan.start + extent.start, len as usize)?);
        Ok(true)
    }

    /// Reads a section into a buffer of exactly its size.
    pub fn read_into<T: Element>(&self, section: &Section, values: &mut [T]) -> Result<()> {
        self.check_type(T::TYPE)?;
        let bytes = T::bytes_mut(values);
        let outcome = self.read_bytes(section, bytes);
        // Whatever came of it, the buffer must hold values.
        self.check_values::<T>(section, bytes)?;
        outcome
    }

    pub(crate) fn check_values<T: Element>(
        &self,
        section: &Section,
        bytes: &mut [u8],
    ) -> Result<()> {
        match T::accept(bytes) {
            true => Ok(()),
            false => Err(Error::format(
                &self.name,
                format!("section [{section}] holds bytes other than 0 and 1, which are no bool"),
            )),
        }
    }

    /// Writes a section.
    pub fn write<T: Element>(&self, section: &Section, values: &[T]) -> Result<()> {
        self.check_type(T::TYPE)?;
        self.write_bytes(section, bytemuck::cast_slice(values))
    }

    /// Reads a section as bytes, in this machine's byte order.
    pub fn read_bytes(&self, section: &Section, bytes: &mut [u8]) -> Result<()> {
        let plan = self.plan(section, Direction::Read)?;
        self.check_length(section, bytes.len())?;
        execute(&plan, &*self.store, Transfer::Read(bytes))
    }

    /// Writes a section from bytes in this machine's byte order.
    pub fn write_bytes(&self, section: &Section, bytes: &[u8]) -> Result<()> {
        if !self.writable {
            return Err(self.read_only());
        }
        let plan = self.plan(section, Direction::Write)?;
        self.check_length(section, bytes.len())?;
        execute(&plan, &*self.store, Transfer::Write(bytes))
    }

    /// Returns when everything written is on stable storage.
    pub fn sync(&self) -> Result<()> {
        Ok(self.store.sync()?)
    }

    fn check_type(&self, asked: ElementType) -> Result<()> {
        let stored = self.element_type();
        if stored == asked {
            return Ok(());
        }
        Err(Error::WrongType {
            array: self.name.clone(),
            stored,
            asked,
        })
    }

    pub(crate) fn check_length(&self, section: &Section, bytes: usize) -> Result<()> {
        let size = self.layout.element_size();
        if bytes as u64 == section.count() * size {
            return Ok(());
        }
        Err(Error::BufferLength {
            array: self.name.clone(),
            section: section.to_string(),
            expected: section.count(),
            found: bytes as u64 / size,
        })
    }
}
