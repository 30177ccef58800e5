//! [`Tile`]: one step of a sweep in memory.
//!
//! A tile owns its buffer while the caller works on it; dropping the tile
//! gives the buffer back to the sweep, with the (virtual) time at which that
//! was.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use outcore_geometry::Section;
use outcore_storage::Store;

use super::flight::{Flight, Flights};
use super::order::Step;
use super::reuse::Inside;
use crate::budget::Reservation;
use crate::element::Element;

/// One step of a sweep in memory: a core, and the halo around it as far as
/// the array reaches.
#[derive(Debug)]
pub struct Tile<T: Element> {
    step: Step,
    values: Vec<T>,
    home: Home<T>,
    freed_at: Option<Duration>,
    held: bool,
    /// Set when the tile is given to a writer. The last field: it lands when
    /// everything else of the tile is gone.
    flight: Option<Flight>,
}

/// Where a tile's buffer goes when it is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Home<T> {
    pub(crate) freed: Sender<Freed<T>>,
    /// The store whose clock is the caller's.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) slowest_first: Arc<[usize]>,
    /// How many tiles the caller has.
    pub(crate) held: Arc<AtomicUsize>,
    /// The memory of all buffers of the sweep.
    pub(crate) memory: Arc<Reservation>,
    /// The tiles that writers have.
    pub(crate) flights: Flights,
}

/// What a reader waits for.
#[derive(Debug)]
pub(crate) enum Freed<T> {
    /// A buffer, free since the given virtual time.
    Buffer(Vec<T>, Option<Duration>),
    /// Nobody wants tiles any more.
    Stop,
}

impl<T: Element> Tile<T> {
    pub(crate) fn new(step: Step, values: Vec<T>, home: Home<T>) -> Self {
        home.held.fetch_add(1, Ordering::Relaxed);
        Self {
            step,
            values,
            home,
            freed_at: None,
            held: true,
            flight: None,
        }
    }

    /// What this tile is for: its share of the swept region.
    pub fn core(&self) -> &Section {
        &self.step.core
    }

    /// What the tile holds: the core and its halo, inside the array.
    pub fn section(&self) -> &Section {
        &self.step.section
    }

    /// The elements of [`section`](Self::section), dense and in the file's
    /// axis order.
    pub fn values(&self) -> &[T] {
        &self.values[..self.step.section.count() as usize]
    }

    /// The same, to be changed in place.
    pub fn values_mut(&mut self) -> &mut [T] {
        let count = self.step.section.count() as usize;
        &mut self.values[..count]
    }

    /// Where the core stands in the tile: positions along each axis.
    pub fn core_within(&self) -> Section {
        self.inside().positions(&self.step.core)
    }

    /// Where the core stands in [`values`](Self::values), if it is in one
    /// piece there, as for slabs along the slowest axis.
    pub fn core_range(&self) -> Option<Range<usize>> {
        self.inside().range(&self.step.core)
    }

    /// Copies the core into a buffer of exactly its size.
    pub fn copy_core(&self, to: &mut [T]) {
        self.inside().take(&self.step.core, self.values(), to);
    }

    fn inside(&self) -> Inside<'_> {
        Inside::new(&self.step.section, &self.home.slowest_first)
    }

    /// The caller has given the tile away; its buffer comes back by itself.
    pub(crate) fn release(&mut self) {
        self.flight = Some(self.home.flights.depart());
        self.leave_caller();
    }

    fn leave_caller(&mut self) {
        if std::mem::take(&mut self.held) {
            self.home.held.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Gives the buffer back as of a virtual time that is not the caller's.
    pub(crate) fn free_at(mut self, time: Option<Duration>) {
        self.freed_at = time;
    }
}

impl<T: Element> Drop for Tile<T> {
    fn drop(&mut self) {
        let at = self.freed_at.or_else(|| self.home.store.time());
        let values = std::mem::take(&mut self.values);
        // The sweep may be over; then the buffer is dropped.
        let _ = self.home.freed.send(Freed::Buffer(values, at));
        self.leave_caller();
    }
}
