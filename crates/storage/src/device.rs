//! [`DeviceModel`]: what a storage device costs, and the queues that simulate
//! one.
//!
//! A request issued at time `t` is cut by the striping into one access a disk
//! (its stripes on one disk lie together there). Each waits in its disk's
//! queue until the disk is free, so it starts at `max(t, free)`, and takes
//! `latency + bytes / bandwidth`; the request ends with its last access. All
//! requests of a batch are issued at the same time, and the call ends with the
//! last of them. Lengths and syncs cost nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::striping::Striping;

/// What a device costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceModel {
    /// The time before the first byte of every access.
    pub latency: Duration,
    /// Bytes a second of one queue; may be infinite.
    pub bandwidth: f64,
    /// What serves the requests.
    pub queues: Queues,
}

/// How requests find what serves them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queues {
    /// Disks, each with the bytes that the striping puts there.
    Striped(Striping),
    /// So many streams, each able to serve any request: a request takes the
    /// one that is free first.
    Streams(usize),
}

impl DeviceModel {
    /// A parallel file system of 1995: 64 disks of 20 ms and 2 MB/s, stripes
    /// of 4 KiB.
    pub fn disk1995() -> Self {
        let queues = Queues::Striped(Striping::fixed(64, 4096));
        DeviceModel {
            latency: Duration::from_millis(20),
            bandwidth: 2e6,
            queues,
        }
    }

    /// A parallel file system of today: 8 servers of 0.5 ms and 1 GB/s,
    /// stripes of 1 MiB.
    pub fn pfs() -> Self {
        let queues = Queues::Striped(Striping::fixed(8, 1 << 20));
        DeviceModel {
            latency: Duration::from_micros(500),
            bandwidth: 1e9,
            queues,
        }
    }

    /// An object store: 64 streams of 20 ms and 80 MB/s.
    pub fn object() -> Self {
        let queues = Queues::Streams(64);
        DeviceModel {
            latency: Duration::from_millis(20),
            bandwidth: 80e6,
            queues,
        }
    }

    /// How long a device with nothing else to do would take for batches of
    /// requests, given as offsets and lengths, each batch issued when the one
    /// before has ended.
    pub fn time_of<B: IntoIterator<Item = (u64, usize)>>(
        self,
        batches: impl IntoIterator<Item = B>,
    ) -> Result<Duration> {
        let times = self.time_of_callers([batches])?;
        Ok(times.into_iter().sum())
    }

    /// The same for several callers who begin at the same time: whose clock is
    /// earliest issues its next batch (of equal ones the first caller). When
    /// each has ended.
    pub fn time_of_callers<B: IntoIterator<Item = (u64, usize)>>(
        self,
        callers: impl IntoIterator<Item = impl IntoIterator<Item = B>>,
    ) -> Result<Vec<Duration>> {
        let device = Device::new(self)?;
        let mut callers: Vec<_> = callers.into_iter().map(IntoIterator::into_iter).collect();
        let mut times = vec![Duration::ZERO; callers.len()];
        let mut turns: BinaryHeap<_> = (0..callers.len()).map(|at| Reverse((0, at))).collect();
        while let Some(Reverse((now, at))) = turns.pop() {
            match callers[at].next() {
                Some(batch) => {
                    let end = device.enqueue(now, batch.into_iter());
                    turns.push(Reverse((end, at)));
                }
                None => times[at] = Duration::from_nanos(now),
            }
        }
        Ok(times)
    }

    /// How long one access of `bytes` bytes takes, in nanoseconds.
    fn service(&self, bytes: u64) -> u64 {
        let transfer = (bytes as f64 / self.bandwidth * 1e9).round() as u64;
        nanoseconds(self.latency).saturating_add(transfer)
    }
}

/// The queues of a device. Times are nanoseconds since it was made.
#[derive(Debug)]
pub struct Device {
    model: DeviceModel,
    queues: Mutex<Vec<Queue>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Queue {
    free_at: u64,
    busy: u64,
}

impl Queue {
    /// Appends an access that takes `service`; returns when it ends.
    fn push(&mut self, issued: u64, service: u64) -> u64 {
        self.free_at = self.free_at.max(issued).saturating_add(service);
        self.busy = self.busy.saturating_add(service);
        self.free_at
    }
}

impl Device {
    /// A device with nothing to do; fails if the model describes none.
    pub fn new(model: DeviceModel) -> Result<Self> {
        let refused = |reason| {
            Err(Error::Settings {
                store: "device",
                reason,
            })
        };
        if model.bandwidth.is_nan() || model.bandwidth <= 0.0 {
            return refused(format!("{} bytes/s is no bandwidth", model.bandwidth));
        }
        let count = match model.queues {
            Queues::Striped(striping) => striping.disks(),
            Queues::Streams(0) => return refused("there must be at least one stream".to_owned()),
            Queues::Streams(streams) => streams,
        };
        let queues = Mutex::new(vec![Queue::default(); count]);
        Ok(Device { model, queues })
    }

    fn queues(&self) -> MutexGuard<'_, Vec<Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts requests of `(offset, len)`, issued at `issued`, into the queues;
    /// returns when the last of them ends. Who calls earlier is served earlier,
    /// whatever the time of issue.
    pub fn enqueue(&self, issued: u64, requests: impl Iterator<Item = (u64, usize)>) -> u64 {
        let mut queues = self.queues();
        let mut end = issued;
        for (offset, len) in requests.filter(|&(_, len)| len > 0) {
            match self.model.queues {
                Queues::Striped(striping) => {
                    for (disk, queue) in disks_of(&striping, offset, len, &mut queues) {
                        let bytes = striping.share(disk, offset.saturating_add(len as u64))
                            - striping.share(disk, offset);
                        if bytes > 0 {
                            end = end.max(queue.push(issued, self.model.service(bytes)));
                        }
                    }
                }
                Queues::Streams(_) => {
                    let first = queues.iter_mut().min_by_key(|queue| queue.free_at);
                    let queue = first.expect("a device is made with at least one queue");
                    end = end.max(queue.push(issued, self.model.service(len as u64)));
                }
            }
        }
        end
    }

    /// How bytes lie on the disks, if each has bytes of its own.
    pub(crate) fn striping(&self) -> Option<Striping> {
        match self.model.queues {
            Queues::Striped(striping) => Some(striping),
            Queues::Streams(_) => None,
        }
    }

    /// When the last queue has finished everything asked of it so far.
    pub fn busy_until(&self) -> Duration {
        let queues = self.queues();
        Duration::from_nanos(queues.iter().map(|queue| queue.free_at).max().unwrap_or(0))
    }

    /// How long each queue has worked in all.
    pub fn queue_times(&self) -> Vec<Duration> {
        self.queues()
            .iter()
            .map(|queue| Duration::from_nanos(queue.busy))
            .collect()
    }
}

/// The queues of the disks that a request touches.
fn disks_of<'a>(
    striping: &Striping,
    offset: u64,
    len: usize,
    queues: &'a mut [Queue],
) -> impl Iterator<Item = (usize, &'a mut Queue)> {
    // One that stays within a stripe, as most short ones do, has one disk.
    let (first, last) = (
        offset / striping.unit(),
        offset.saturating_add(len as u64 - 1) / striping.unit(),
    );
    let range = match first == last {
        true => striping.disk_of(offset)..striping.disk_of(offset) + 1,
        false => 0..striping.disks(),
    };
    let skipped = range.start;
    let touched = queues[range].iter_mut().enumerate();
    touched.map(move |(at, queue)| (at + skipped, queue))
}

/// A time as the nanoseconds that [`Device`] counts in.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
