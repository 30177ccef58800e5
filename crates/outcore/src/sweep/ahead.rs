//! [`Sweep`]: an iterator over tiles that are read ahead in the background
//! (Thakur 1995, section 5.5.2).
//!
//! With `ahead` tiles in advance there are `ahead + 1` buffers: one with the
//! caller, the others being filled or waiting. If reading and computing a tile
//! take `r` and `c`, then `S` tiles take `r + (S - 1) max(r, c) + c` instead of
//! `S (r + c)`.
//!
//! A thread reads, or the caller itself: without read-ahead, of data that are
//! in the page cache (where there is nothing to wait for, and a copy by another
//! processor is slower), and in virtual time. There a read takes no time, but happens on a clock of its own: it
//! begins when its buffer was freed and the reader was done, and a tile that
//! is handed out lets the caller's clock pass until it was there. So time
//! overlaps as if a thread had read, and is the same in every run. (Where a
//! device serves other requests of the caller, too, their order is exact with
//! one tile of read-ahead; with more, reads are put into its queue early.)

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use super::plan::SweepPlan;
use super::reader::{Loaded, Reader};
use super::tile::{Freed, Home, Tile};
use crate::array::Array;
use crate::element::Element;
use crate::error::{Error, Result};

/// An iterator over the tiles of an array, each read once and ahead of time.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget, SweepOrder};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("grid.oc");
/// # let name = name.to_str().unwrap();
/// let array = Array::create(name, &ArrayDescriptor::new(&[1000, 100], ElementType::F32))?;
/// array.write(&array.whole(), &vec![0.5f32; 100_000])?;
/// let mut sum = 0.0;
/// for tile in array.sweep::<f32>(SweepOrder::Slabs, &[0, 0], &MemoryBudget::of(64 << 10))? {
///     sum += tile?.values().iter().sum::<f32>();
/// }
/// assert_eq!(sum, 50_000.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sweep<T: Element> {
    source: Source<T>,
    home: Home<T>,
    extent: Extent,
    /// How many tiles have not been handed out.
    left: u64,
}

/// How much a sweep does, with how many buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) tiles: u64,
    /// Of a slab's core; `None` for other tiles.
    pub(crate) thickness: Option<u64>,
    pub(crate) buffers: usize,
    /// Whether a thread reads.
    pub(crate) thread: bool,
    /// Whether the caller reads ahead itself, in virtual time.
    pub(crate) in_advance: bool,
}

enum Source<T> {
    /// Read by the caller.
    Caller(Box<Reader<T>>, Spare<T>),
    /// Read by a thread.
    Thread(Receiver<Result<Loaded<T>>>, JoinHandle<()>),
    Ended,
}

/// What a caller that reads itself has at hand.
struct Spare<T> {
    freed: Receiver<Freed<T>>,
    buffers: VecDeque<(Vec<T>, Option<Duration>)>,
    /// Read ahead in virtual time.
    loaded: VecDeque<Result<Loaded<T>>>,
    ahead: bool,
}

impl<T> Spare<T> {
    /// A buffer: in virtual time the one that is free for longest, else the
    /// last one used, which is in the processor's cache. Waits only if told to.
    fn buffer(&mut self, wait: bool) -> Option<(Vec<T>, Option<Duration>)> {
        let mut freed = self.freed.try_iter();
        while let Some(Freed::Buffer(values, at)) = freed.next() {
            self.buffers.push_back((values, at));
        }
        let found = match self.ahead {
            true => self.buffers.pop_front(),
            false => self.buffers.pop_back(),
        };
        if found.is_some() || !wait {
            return found;
        }
        match self.freed.recv() {
            Ok(Freed::Buffer(values, at)) => Some((values, at)),
            _ => None,
        }
    }
}

impl<T: Element> Sweep<T> {
    /// A plan to go through `array`, to be filled in.
    pub fn of(array: &Array) -> SweepPlan {
        SweepPlan::new(array)
    }

    pub(crate) fn start(
        mut reader: Reader<T>,
        home: Home<T>,
        freed: Receiver<Freed<T>>,
        extent: Extent,
    ) -> Result<Self> {
        let source = if extent.thread {
            let (filled, loaded) = mpsc::channel();
            let thread = super::in_background("reading ahead", move || {
                while reader.has_next() {
                    let Ok(Freed::Buffer(values, at)) = freed.recv() else {
                        return;
                    };
                    let outcome = reader.read(values, at);
                    let failed = outcome.is_err();
                    if filled.send(outcome).is_err() || failed {
                        return;
                    }
                }
            })?;
            Source::Thread(loaded, thread)
        } else {
            let spare = Spare {
                freed,
                buffers: VecDeque::new(),
                loaded: VecDeque::new(),
                ahead: extent.in_advance,
            };
            Source::Caller(Box::new(reader), spare)
        };
        Ok(Self {
            source,
            home,
            left: extent.tiles,
            extent,
        })
    }

    /// How many tiles are still to come.
    pub fn tiles_left(&self) -> u64 {
        self.left
    }

    /// The thickness of a slab's core; `None` for other tiles.
    pub fn thickness(&self) -> Option<u64> {
        self.extent.thickness
    }

    /// The memory that the sweep has reserved.
    pub fn memory(&self) -> u64 {
        self.home.memory.bytes()
    }

    fn load(&mut self) -> Result<Option<Loaded<T>>> {
        if self.left == 0 {
            return Ok(None);
        }
        if self.home.held.load(Ordering::Relaxed) >= self.extent.buffers {
            return Err(Error::Invalid(format!(
                "the sweep has {} buffers, and the caller holds all of them; drop a tile before \
                 asking for the next one, or read further ahead",
                self.extent.buffers
            )));
        }
        let ended = || Error::Invalid("the thread that reads ahead has ended early".into());
        match &mut self.source {
            Source::Ended => Ok(None),
            Source::Caller(reader, spare) => {
                // One, or ahead as many as have a buffer.
                while reader.has_next() && (spare.ahead || spare.loaded.is_empty()) {
                    let Some((values, at)) = spare.buffer(spare.loaded.is_empty()) else {
                        break;
                    };
                    spare.loaded.push_back(reader.read(values, at));
                }
                spare.loaded.pop_front().transpose()
            }
            Source::Thread(loaded, _) => loaded.recv().map_err(|_| ended())?.map(Some),
        }
    }

    /// Ends the thread, which may be in the middle of a read.
    fn end(&mut self) {
        if let Source::Thread(loaded, thread) = std::mem::replace(&mut self.source, Source::Ended) {
            drop(loaded);
            let _ = self.home.freed.send(Freed::Stop);
            let _ = thread.join();
        }
    }
}

impl<T: Element> Iterator for Sweep<T> {
    type Item = Result<Tile<T>>;

    fn next(&mut self) -> Option<Result<Tile<T>>> {
        match self.load() {
            Ok(Some(loaded)) => {
                self.left -= 1;
                if let Some(ready) = loaded.ready {
                    self.home.store.wait_until(ready);
                }
                let home = self.home.clone();
                Some(Ok(Tile::new(loaded.step, loaded.values, home)))
            }
            Ok(None) => {
                self.end();
                None
            }
            Err(error) => {
                self.left = 0;
                self.end();
                Some(Err(error))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).ok();
        (0, left)
    }
}

impl<T: Element> Drop for Sweep<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T: Element> std::fmt::Debug for Sweep<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sweep({} tiles left)", self.left)
    }
}
