//! [`Schedule`]: who wants which elements, and who reads and writes them for
//! all. A value that is kept and used again, for every array of the same shape
//! and layout and for every time step, as long as the indices stay the same.

use std::ops::Range;
use std::sync::{Mutex, OnceLock};

use outcore_transport::Comm;

use super::call::Irregular;
use super::combine::{Combine, Number};
use super::indices::Indices;
use super::inspector::Inspector;
use super::lists::{Count, Lists};
use super::messages::MailLists;
use super::packed::Shadow;
use super::places::Places;
use super::window::Filled;
use super::windows::{Domains, Windows};
use crate::array::Array;
use crate::budget::Reservation;
use crate::collective::Moved;
use crate::element::Element;
use crate::error::{Error, Result};

/// Which elements of an array each rank wants, and which rank reads and writes
/// them for all.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, Schedule};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("mesh.oc");
/// # let name = name.to_str().unwrap();
/// outcore::run(2, |comm| {
///     // Points of a mesh: their numbers, in the order in which the rank has them.
///     let points: &[u32] = [&[0, 4, 5, 2, 1][..], &[7, 8, 6, 9, 3]][comm.rank()];
///     let pressure: Vec<f64> = points.iter().map(|point| 10.0 * f64::from(*point)).collect();
///     let array = Array::create_all(comm, name, &ArrayDescriptor::new(&[10], ElementType::F64))?;
///
///     let schedule = Schedule::new(comm, &array, points)?; // once
///     schedule.write(comm, &array, &pressure)?; // for every variable and time step
///     assert_eq!(array.read::<f64>(&array.section("4:8")?)?, [40.0, 50.0, 60.0, 70.0]);
///
///     let mut again = vec![0.0; points.len()];
///     schedule.read(comm, &array, &mut again)?;
///     assert_eq!(again, pressure);
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Schedule {
    pub(super) places: Places,
    pub(super) windows: Windows,
    pub(super) domains: Domains,
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// What this rank wants of each window.
    pub(super) count: Count,
    /// This rank's lists.
    pub(super) memory: Vec<u64>,
    /// What each rank wants of the windows of this one.
    pub(super) incoming: Vec<Incoming>,
    /// Whether all elements of each window of this rank are written.
    pub(super) filled: Vec<Filled>,
    /// The lists of the others, where these cannot be read in place.
    pub(super) mail: OnceLock<Vec<MailLists>>,
    pub(super) shadow: Mutex<Shadow>,
    pub(super) _reserved: Option<Reservation>,
}

/// What one rank wants of the windows of another one.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// The elements of that rank in all, and its entries.
    pub(super) elements: u64,
    pub(super) entries: usize,
    pub(super) runs: bool,
    /// Entries and elements of each window, counted in the lists of that rank.
    pub(super) wanted: Vec<Wanted>,
}

/// What one rank wants of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Wanted {
    pub(super) first_entry: u64,
    pub(super) last_entry: u64,
    pub(super) first_element: u64,
    pub(super) last_element: u64,
}

impl Wanted {
    pub(super) fn entries(&self) -> Range<usize> {
        self.first_entry as usize..self.last_entry as usize
    }

    pub(super) fn elements(&self) -> u64 {
        self.last_element - self.first_element
    }
}

impl Schedule {
    /// Collective: a schedule for these elements of `array`, and of every array
    /// of the same shape and layout. Indices number the elements with the last
    /// axis fastest, whatever the layout. Arrays may have further axes behind
    /// those of `array`: then an element is a record of several components.
    pub fn new<'a>(comm: &Comm, array: &Array, indices: impl Into<Indices<'a>>) -> Result<Self> {
        Inspector::default().schedule(comm, array, indices)
    }

    /// Collective: the same for row-major arrays of this shape, none of which need
    /// exist.
    pub fn of_shape<'a>(
        comm: &Comm,
        shape: &[u64],
        indices: impl Into<Indices<'a>>,
    ) -> Result<Self> {
        Inspector::default().of_shape(comm, shape, indices)
    }

    /// The shape of the arrays that it is for, without the axes of records.
    pub fn shape(&self) -> &[u64] {
        self.places.shape()
    }

    /// How many elements this rank wants.
    pub fn count(&self) -> usize {
        self.count.elements as usize
    }

    /// The bytes that it takes on this rank: lists and tables.
    pub fn memory(&self) -> usize {
        let tables = self.count.element_starts.len() + self.count.entry_starts().len();
        let wanted: usize = self.incoming.iter().map(|it| it.wanted.len()).sum();
        let mail = self
            .mail
            .get()
            .map_or(0, |mail| mail.iter().map(MailLists::bytes).sum());
        8 * (self.memory.len() + tables) + size_of::<Wanted>() * wanted + mail
    }

    /// Whether consecutive indices are kept as runs on this rank.
    pub fn has_runs(&self) -> bool {
        self.count.runs
    }

    /// The elements that this rank reads and writes for all: where they begin and
    /// end in the order of the file, window after window.
    pub fn domain(&self) -> Vec<Range<u64>> {
        let windows = self.domains.windows(self.rank);
        let mut all: Vec<Range<u64>> = Vec::new();
        for window in windows.map(|window| self.windows.range(window)) {
            match all.last_mut() {
                Some(last) if last.end == window.start => last.end = window.end,
                _ => all.push(window),
            }
        }
        all
    }

    /// Ways to carry it out, other than those that are chosen.
    pub fn call(&self) -> Irregular<'_> {
        Irregular::new(self)
    }

    /// Collective: reads the elements of every rank from `array` into `values`, in
    /// the order of the rank's indices. All ranks succeed, or all return the same
    /// error.
    pub fn read<T: Element>(&self, comm: &Comm, array: &Array, values: &mut [T]) -> Result<Moved> {
        self.call().read(comm, array, values)
    }

    /// Collective: writes the elements of every rank. Of several values for one
    /// element that of the highest rank is written, and of one rank's the last.
    pub fn write<T: Element>(&self, comm: &Comm, array: &Array, values: &[T]) -> Result<Moved> {
        self.call().write(comm, array, values)
    }

    /// Collective: combines the elements in `array` with the values of all ranks,
    /// one after the other.
    pub fn accumulate<T: Number>(
        &self,
        comm: &Comm,
        array: &Array,
        values: &[T],
        combine: Combine,
    ) -> Result<Moved> {
        self.call().accumulate(comm, array, values, combine)
    }

    /// Fails unless the group is the one that it was made in.
    pub(super) fn check_group(&self, comm: &Comm) -> Result<()> {
        if (comm.rank(), comm.size()) == (self.rank, self.ranks) {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "a schedule of rank {} of {} is used by rank {} of {}",
            self.rank,
            self.ranks,
            comm.rank(),
            comm.size()
        )))
    }

    /// The bytes that stand together on average on all ranks, if records have so
    /// many.
    pub(super) fn bytes_each(&self, record: u64) -> u64 {
        let elements: u64 = self.incoming.iter().map(|rank| rank.elements).sum();
        let entries: u64 = self.incoming.iter().map(|rank| rank.entries as u64).sum();
        elements * record / entries.max(1)
    }

    /// This rank's lists.
    pub(super) fn lists(&self) -> Lists<'_> {
        Lists::new(self.list_bytes(), self.count.entries(), self.count.runs)
            .expect("the memory was made for these lists")
    }

    pub(super) fn list_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.memory)
    }

    /// What this rank wants of a window.
    pub(super) fn wanted(&self, window: u64) -> Wanted {
        let window = window as usize;
        let (entries, elements) = (self.count.entry_starts(), &self.count.element_starts);
        Wanted {
            first_entry: entries[window],
            last_entry: entries[window + 1],
            first_element: elements[window],
            last_element: elements[window + 1],
        }
    }

    /// The places from the first to the last window of this rank.
    pub(super) fn extent(&self) -> Range<u64> {
        let count = self.domains.count(self.rank);
        match count {
            0 => 0..0,
            _ => {
                let first = self.windows.range(self.domains.window(self.rank, 0));
                let last = self
                    .windows
                    .range(self.domains.window(self.rank, count - 1));
                first.start..last.end
            }
        }
    }
}
