//! [`Reader`]: fills the buffers of a sweep, one step after the other.
//!
//! Each element goes from the file straight into the tile's buffer, except
//! where the rest of a tile does not stand in one piece there; then it passes
//! a second buffer. The strip that the next tile shares is copied twice: out
//! of this tile before the caller gets it, and into the next one.

use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;

use outcore_geometry::Section;

use super::order::{Step, Steps};
use super::reuse::{self, Inside};
use crate::array::Array;
use crate::budget::Reservation;
use crate::element::Element;
use crate::error::Result;

/// Fills the buffers of a sweep.
pub(crate) struct Reader<T> {
    array: Array,
    steps: Peekable<Steps>,
    reuse: bool,
    slowest_first: Arc<[usize]>,
    /// The section that was read last; what the next one shares is in `strip`.
    last: Option<Section>,
    strip: Vec<T>,
    rest: Vec<T>,
    _memory: Arc<Reservation>,
}

/// A filled buffer.
pub(crate) struct Loaded<T> {
    pub(crate) step: Step,
    pub(crate) values: Vec<T>,
    /// The virtual time at which it was filled.
    pub(crate) ready: Option<Duration>,
}

impl<T: Element> Reader<T> {
    /// A reader of `steps` that counts its own buffers to `memory`.
    pub(crate) fn new(array: Array, steps: Steps, reuse: bool, memory: Arc<Reservation>) -> Self {
        let slowest_first = array.layout().slowest_first().into();
        Self {
            array,
            steps: steps.peekable(),
            reuse,
            slowest_first,
            last: None,
            strip: Vec::new(),
            rest: Vec::new(),
            _memory: memory,
        }
    }

    /// Whether there is another step.
    pub(crate) fn has_next(&mut self) -> bool {
        self.steps.peek().is_some()
    }

    /// Reads the next step into `values`, a buffer that is free since the
    /// virtual time `freed`. There must be a next one.
    pub(crate) fn read(
        &mut self,
        mut values: Vec<T>,
        freed: Option<Duration>,
    ) -> Result<Loaded<T>> {
        let step = self.steps.next().expect("the caller has asked has_next");
        if let Some(freed) = freed {
            self.array.store().wait_until(freed);
        }
        let count = step.section.count() as usize;
        self.fill(&step.section, &mut values[..count])?;
        if self.reuse {
            self.keep(&step.section, &values[..count]);
        }
        let ready = self.array.store().time();
        Ok(Loaded {
            step,
            values,
            ready,
        })
    }

    /// Fills `values` with `section`: what is kept from memory, the rest from
    /// the file.
    fn fill(&mut self, section: &Section, values: &mut [T]) -> Result<()> {
        let last = self.last.take();
        let reuse = last.and_then(|last| reuse::between(&last, section, &self.slowest_first));
        let Some(reuse) = reuse else {
            return self.array.read_into(section, values);
        };
        let kept = reuse.overlap.count() as usize;
        let strip = &self.strip[..kept];
        if reuse.in_front {
            let (front, back) = values.split_at_mut(kept);
            front.copy_from_slice(strip);
            if !back.is_empty() {
                self.array.read_into(&reuse.rest, back)?;
            }
            return Ok(());
        }
        let inside = Inside::new(section, &self.slowest_first);
        inside.put(&reuse.overlap, strip, values);
        let rest = enlarged(&mut self.rest, reuse.rest.count());
        self.array.read_into(&reuse.rest, rest)?;
        inside.put(&reuse.rest, rest, values);
        Ok(())
    }

    /// Keeps what the next step shares with `section`.
    fn keep(&mut self, section: &Section, values: &[T]) {
        let Some(next) = self.steps.peek() else {
            return;
        };
        if let Some(reuse) = reuse::between(section, &next.section, &self.slowest_first) {
            let strip = enlarged(&mut self.strip, reuse.overlap.count());
            Inside::new(section, &self.slowest_first).take(&reuse.overlap, values, strip);
            self.last = Some(section.clone());
        }
    }
}

/// The first `count` elements of a buffer that grows when it must.
fn enlarged<T: Element>(buffer: &mut Vec<T>, count: u64) -> &mut [T] {
    let count = count as usize;
    if buffer.len() < count {
        buffer.resize_with(count, T::zeroed);
    }
    &mut buffer[..count]
}
