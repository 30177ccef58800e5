//! [`ThrottledStore`]: an adapter that makes a store as slow as a device with
//! a given latency, bandwidth and number of disks.
//!
//! A request issued at time `t` is cut by the striping into one access a disk
//! (its stripes on one disk lie together there). Each waits in its disk's
//! queue until the disk is free, so it starts at `max(t, free)`, and takes
//! `latency + bytes / bandwidth`; the request ends with its last access. All
//! requests of a batch are issued at the same time, and the call ends with the
//! last of them. Lengths and syncs cost nothing.
//!
//! Time is real, and calls sleep until their requests would have ended; or it
//! is virtual, and calls return at once while a clock counts what they would
//! have taken, which makes tests exact and fast. In virtual time every caller
//! (a rank, say) needs a clock of its own: each [`for_caller`] handle has one.
//! A call begins at the time of its handle and sets it to the end of the
//! call, while the queues of the disks are shared by all handles. Requests
//! queue in the order in which they arrive in reality, so ranks that run freely
//! side by side give times that vary with their scheduling; the total service
//! time of the disks does not. Threads that share one handle issue at the time
//! they find and leave the latest end. Where ranks meet, as in a barrier, the
//! test sets them to the latest time with [`wait_until`].
//!
//! [`for_caller`]: ThrottledStore::for_caller
//! [`wait_until`]: ThrottledStore::wait_until

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::store::{ReadRequest, Store, WriteRequest};
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

    /// How long one access of `bytes` bytes takes, in nanoseconds.
    fn service(&self, bytes: u64) -> u64 {
        let transfer = (bytes as f64 / self.bandwidth * 1e9).round() as u64;
        nanoseconds(self.latency).saturating_add(transfer)
    }
}

/// Which time a device lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// The clock on the wall: calls sleep.
    Real,
    /// A clock that only this device knows: calls return at once.
    Virtual,
}

/// What all handles share. Times are nanoseconds since the device was made.
#[derive(Debug)]
struct Device {
    model: DeviceModel,
    time: Time,
    made: Instant,
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
    fn queues(&self) -> MutexGuard<'_, Vec<Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts requests of `(offset, len)`, issued at `issued`, into the queues;
    /// returns when the last of them ends.
    fn enqueue(&self, issued: u64, requests: impl Iterator<Item = (u64, usize)>) -> u64 {
        let mut queues = self.queues();
        let mut end = issued;
        for (offset, len) in requests.filter(|&(_, len)| len > 0) {
            match self.model.queues {
                Queues::Striped(striping) => {
                    for (disk, queue) in queues.iter_mut().enumerate() {
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
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A store behind a slow device, as one caller sees it.
#[derive(Debug)]
pub struct ThrottledStore<S> {
    inner: S,
    device: Arc<Device>,
    /// The caller's virtual time in nanoseconds.
    now: AtomicU64,
}

impl<S: Store> ThrottledStore<S> {
    /// Puts `inner` behind a device.
    pub fn new(inner: S, model: DeviceModel, time: Time) -> Result<Self> {
        let refused = |reason| {
            Err(Error::Settings {
                store: "throttled store",
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
        let device = Arc::new(Device {
            model,
            time,
            made: Instant::now(),
            queues,
        });
        Ok(ThrottledStore {
            inner,
            device,
            now: AtomicU64::new(0),
        })
    }

    /// The same store on the same device for another caller, whose time begins
    /// where this one's is.
    pub fn for_caller(&self) -> Self
    where
        S: Clone,
    {
        let now = AtomicU64::new(self.now.load(Ordering::Relaxed));
        ThrottledStore {
            inner: self.inner.clone(),
            device: Arc::clone(&self.device),
            now,
        }
    }

    /// The store beneath.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The caller's time since the device was made.
    pub fn elapsed(&self) -> Duration {
        match self.device.time {
            Time::Real => self.device.made.elapsed(),
            Time::Virtual => Duration::from_nanos(self.now.load(Ordering::Relaxed)),
        }
    }

    /// Lets time pass for the caller, as a computation would.
    pub fn spend(&self, time: Duration) {
        self.wait_until(self.elapsed().saturating_add(time));
    }

    /// Waits until [`elapsed`](Self::elapsed) is at least `time`.
    pub fn wait_until(&self, time: Duration) {
        match self.device.time {
            Time::Real => thread::sleep(time.saturating_sub(self.device.made.elapsed())),
            Time::Virtual => {
                self.now.fetch_max(nanoseconds(time), Ordering::Relaxed);
            }
        }
    }

    /// When the last queue has finished everything asked of it so far.
    pub fn busy_until(&self) -> Duration {
        let queues = self.device.queues();
        Duration::from_nanos(queues.iter().map(|queue| queue.free_at).max().unwrap_or(0))
    }

    /// How long each queue (each disk, of striped ones) has worked in all.
    pub fn queue_times(&self) -> Vec<Duration> {
        self.device
            .queues()
            .iter()
            .map(|queue| Duration::from_nanos(queue.busy))
            .collect()
    }

    /// Waits for requests that were issued at `issued`.
    fn charge(&self, issued: Duration, requests: impl Iterator<Item = (u64, usize)>) {
        let end = self.device.enqueue(nanoseconds(issued), requests);
        self.wait_until(Duration::from_nanos(end));
    }
}

impl<S: Store> Store for ThrottledStore<S> {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let issued = self.elapsed();
        let count = self.inner.read_some_at(offset, buffer)?;
        self.charge(issued, [(offset, count)].into_iter());
        Ok(count)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        let issued = self.elapsed();
        let count = self.inner.write_some_at(offset, data)?;
        self.charge(issued, [(offset, count)].into_iter());
        Ok(count)
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let issued = self.elapsed();
        self.inner.read_at(offset, buffer)?;
        self.charge(issued, [(offset, buffer.len())].into_iter());
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let issued = self.elapsed();
        self.inner.write_at(offset, data)?;
        self.charge(issued, [(offset, data.len())].into_iter());
        Ok(())
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        let issued = self.elapsed();
        self.inner.read_batch(requests)?;
        self.charge(issued, requests.iter().map(|r| (r.offset, r.buffer.len())));
        Ok(())
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        let issued = self.elapsed();
        self.inner.write_batch(requests)?;
        self.charge(issued, requests.iter().map(|r| (r.offset, r.data.len())));
        Ok(())
    }
}
