//! [`WriteBehind`]: sections written in the background while the caller goes
//! on computing.
//!
//! With a depth of `d`, up to `d` sections are in flight and the caller fills
//! one more buffer, so there are `d + 1`; they are made when first needed and
//! used again in the order in which they were given. The thread writes in that
//! order, too. After a failure it writes no more, and the error reaches the
//! caller with the next call, at the latest with `finish`. In virtual time the
//! caller writes itself, on a clock of its own, which comes to the same. With
//! a depth of 0 nothing is in flight: the caller writes at once.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use outcore_geometry::Section;

use super::tile::Tile;
use crate::array::Array;
use crate::budget::{MemoryBudget, Reservation};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::strategy::Direction;

/// The most that a sieved write stages besides the buffers; at most a sixteenth
/// of the budget, too.
const STAGING: u64 = 512 << 10;

/// Writes sections of an array in the background.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget, SweepOrder, WriteBehind};
/// # let directory = tempfile::tempdir()?;
/// # let name = |file| directory.path().join(file).to_str().unwrap().to_string();
/// let descriptor = ArrayDescriptor::new(&[500, 100], ElementType::F32);
/// let (from, to) = (Array::create(&name("a.oc"), &descriptor)?, Array::create(&name("b.oc"), &descriptor)?);
/// let budget = MemoryBudget::of(256 << 10);
/// let mut writer = WriteBehind::<f32>::start(&to, 1, &budget.share(2))?;
/// for tile in from.sweep::<f32>(SweepOrder::Slabs, &[], &budget.share(2))? {
///     let tile = tile?;
///     let mut result = writer.buffer(tile.values().len())?;
///     result.iter_mut().zip(tile.values()).for_each(|(to, from)| *to = from + 1.0);
///     writer.write(tile.core(), result)?;
/// }
/// writer.finish()?;
/// assert!(to.read::<f32>(&to.whole())?.iter().all(|value| *value == 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WriteBehind<T: Element> {
    array: Array,
    writer: Writer<T>,
    /// Buffers that the caller did not want after all.
    unused: Receiver<Buffer<T>>,
    home: Sender<Buffer<T>>,
    budget: MemoryBudget,
    depth: usize,
    in_flight: usize,
    free: VecDeque<Buffer<T>>,
    made: usize,
    failed: bool,
    /// What chunks of the array take that can be had only whole.
    _decoded: Reservation,
}

/// Who writes.
#[derive(Debug)]
enum Writer<T: Element> {
    /// A thread, which takes jobs and reports. Only it can report, so that its
    /// end is noticed.
    Thread(Sender<Job<T>>, Receiver<Done<T>>, JoinHandle<()>),
    /// The caller, in virtual time; with what came of it.
    Caller(Box<Jobs>, VecDeque<Done<T>>),
    Ended,
}

#[derive(Debug)]
struct Buffer<T> {
    values: Vec<T>,
    _memory: Reservation,
}

/// A buffer to be filled and handed to [`WriteBehind::write`]. What it holds
/// at first is what was written with it before.
#[derive(Debug)]
pub struct WriteBuffer<T> {
    /// There until it is given back.
    buffer: Option<Buffer<T>>,
    len: usize,
    home: Sender<Buffer<T>>,
}

#[derive(Debug)]
enum Job<T: Element> {
    Values(Section, Buffer<T>, usize, Option<Duration>),
    Core(Tile<T>, Option<Duration>),
}

/// What came of a write, its buffer, and the virtual time of its end.
type Done<T> = (Result<()>, Option<Buffer<T>>, Option<Duration>);

impl<T: Element> WriteBehind<T> {
    /// Starts a thread that writes to `array`, with up to `depth` sections in
    /// flight; with 0, the caller's thread writes.
    pub fn start(array: &Array, depth: usize, budget: &MemoryBudget) -> Result<Self> {
        array.check_access(T::TYPE, Direction::Write)?;
        let (home, unused) = mpsc::channel();
        let beside = match depth {
            0 => array.clone(),
            _ => array.in_background(),
        };
        let staging = STAGING.min(budget.limit() / 16).max(4096);
        let decoded = budget.reserve(array.decoded_bytes(), "writing behind")?;
        let mut jobs = Jobs {
            array: beside.staged(staging, budget),
            failed: false,
        };
        let writer = if depth == 0 || array.store().time().is_some() {
            Writer::Caller(Box::new(jobs), VecDeque::new())
        } else {
            let (give, work) = mpsc::channel();
            let (report, done) = mpsc::channel();
            let thread = super::in_background("writing behind", move || {
                for job in work {
                    // The caller may be gone; what it gave is written all the same.
                    let _ = report.send(jobs.write(job));
                }
            })?;
            Writer::Thread(give, done, thread)
        };
        Ok(Self {
            array: array.clone(),
            writer,
            unused,
            home,
            budget: budget.clone(),
            depth,
            in_flight: 0,
            free: VecDeque::new(),
            made: 0,
            failed: false,
            _decoded: decoded,
        })
    }

    /// The bytes that writing sections of `elements` elements of `array` needs.
    pub fn need(array: &Array, depth: usize, elements: u64) -> u64 {
        let buffers = depth as u64 + 1;
        elements
            .saturating_mul(size_of::<T>() as u64)
            .saturating_mul(buffers)
            .saturating_add(array.decoded_bytes())
    }

    /// A buffer of `len` elements; waits for one that is being written if all
    /// of them are.
    pub fn buffer(&mut self, len: usize) -> Result<WriteBuffer<T>> {
        let mut buffer = loop {
            if self.made <= self.depth {
                self.made += 1;
                break None;
            }
            self.free.extend(self.unused.try_iter());
            if let Some(buffer) = self.free.pop_front() {
                break Some(buffer);
            }
            if self.in_flight == 0 {
                return Err(Error::Invalid(format!(
                    "the writer has {} buffers, and the caller holds all of them; write or drop \
                     one before asking for the next",
                    self.made
                )));
            }
            self.collect()?;
        };
        if buffer
            .as_ref()
            .is_none_or(|buffer| buffer.values.len() < len)
        {
            // The old one is given back to the budget first.
            drop(buffer.take());
            let made = self.allocate(len);
            self.made -= usize::from(made.is_err());
            buffer = Some(made?);
        }
        Ok(WriteBuffer {
            buffer,
            len,
            home: self.home.clone(),
        })
    }

    fn allocate(&self, len: usize) -> Result<Buffer<T>> {
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        let memory = self.budget.reserve(bytes, "writing behind")?;
        let values = bytemuck::allocation::try_zeroed_vec(len).map_err(|()| {
            Error::Invalid("the budget of the writer is more memory than there is".into())
        })?;
        Ok(Buffer {
            values,
            _memory: memory,
        })
    }

    /// Hands `values` over, to be written to `section`. Returns at once unless
    /// as many are in flight as may be.
    pub fn write(&mut self, section: &Section, mut values: WriteBuffer<T>) -> Result<()> {
        self.array
            .check_length(section, values.len * size_of::<T>())?;
        self.array.plan(section, Direction::Write)?;
        self.make_room()?;
        let at = self.array.store().time();
        let buffer = values.buffer.take().expect("a buffer is given away once");
        self.send(Job::Values(section.clone(), buffer, values.len, at))
    }

    /// Hands a tile over, whose core is written back to where it came from (or
    /// to the same place of an array of the same shape). Its buffer then goes
    /// back to its sweep.
    pub fn write_core(&mut self, mut tile: Tile<T>) -> Result<()> {
        if tile.core_range().is_none() {
            let mut values = self.buffer(tile.core().count() as usize)?;
            tile.copy_core(&mut values);
            return self.write(tile.core(), values);
        }
        self.array.plan(tile.core(), Direction::Write)?;
        self.make_room()?;
        tile.release();
        let at = self.array.store().time();
        self.send(Job::Core(tile, at))
    }

    /// Waits until everything is written; reports the first error.
    pub fn finish(mut self) -> Result<()> {
        if self.failed {
            return Err(failed_before());
        }
        while self.in_flight > 0 {
            self.collect()?;
        }
        Ok(())
    }

    fn make_room(&mut self) -> Result<()> {
        if self.failed {
            return Err(failed_before());
        }
        while self.in_flight >= self.depth.max(1) {
            self.collect()?;
        }
        Ok(())
    }

    fn send(&mut self, job: Job<T>) -> Result<()> {
        match &mut self.writer {
            Writer::Thread(jobs, ..) => jobs.send(job).map_err(|_| ended())?,
            Writer::Caller(jobs, done) => done.push_back(jobs.write(job)),
            Writer::Ended => return Err(ended()),
        }
        self.in_flight += 1;
        match self.depth {
            0 => self.collect(),
            _ => Ok(()),
        }
    }

    /// Waits for the oldest write.
    fn collect(&mut self) -> Result<()> {
        let done = match &mut self.writer {
            Writer::Thread(_, done, _) => done.recv().ok(),
            Writer::Caller(_, done) => done.pop_front(),
            Writer::Ended => None,
        };
        let (outcome, buffer, at) = done.ok_or_else(ended)?;
        self.in_flight -= 1;
        self.free.extend(buffer);
        if let Some(at) = at {
            self.array.store().wait_until(at);
        }
        self.failed |= outcome.is_err();
        outcome
    }
}

fn ended() -> Error {
    Error::Invalid("the thread that writes behind has ended early".into())
}

fn failed_before() -> Error {
    Error::Invalid("an earlier write in the background failed, so nothing more is written".into())
}

/// Writes one job after the other; after a failure it only gives back.
#[derive(Debug)]
struct Jobs {
    array: Array,
    failed: bool,
}

impl Jobs {
    fn write<T: Element>(&mut self, job: Job<T>) -> Done<T> {
        let (array, store) = (&self.array, self.array.store());
        let write = |section: &Section, values: &[T], at: Option<Duration>| {
            at.into_iter().for_each(|at| store.wait_until(at));
            match self.failed {
                true => Ok(()),
                false => array.write(section, values),
            }
        };
        let (outcome, buffer) = match job {
            Job::Values(section, buffer, len, at) => {
                let outcome = write(&section, &buffer.values[..len], at);
                (outcome, Some(buffer))
            }
            Job::Core(tile, at) => {
                let range = tile.core_range().unwrap_or_default();
                let outcome = write(tile.core(), &tile.values()[range], at);
                tile.free_at(store.time());
                (outcome, None)
            }
        };
        self.failed |= outcome.is_err();
        (outcome, buffer, self.array.store().time())
    }
}

impl<T: Element> Drop for WriteBehind<T> {
    fn drop(&mut self) {
        if let Writer::Thread(jobs, _, thread) = std::mem::replace(&mut self.writer, Writer::Ended)
        {
            drop(jobs);
            let _ = thread.join();
        }
    }
}

impl<T> Drop for WriteBuffer<T> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            // The writer may be gone; then the buffer is dropped.
            let _ = self.home.send(buffer);
        }
    }
}

impl<T> Deref for WriteBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let buffer = self.buffer.as_ref().expect("there until it is given back");
        &buffer.values[..self.len]
    }
}

impl<T> DerefMut for WriteBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let buffer = self.buffer.as_mut().expect("there until it is given back");
        &mut buffer.values[..self.len]
    }
}
