//! [`ThrottledStore`]: an adapter that makes a store as slow as a device with
//! a given latency, bandwidth and number of disks (see [`DeviceModel`]).
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
//! The store cannot be mapped, since accesses to a mapping would take no time.
//!
//! [`for_caller`]: ThrottledStore::for_caller
//! [`wait_until`]: ThrottledStore::wait_until

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::device::{Device, DeviceModel, nanoseconds};
use crate::error::Result;
use crate::forward::forward;
use crate::store::{ReadRequest, Store, WriteRequest};
use crate::striping::Striping;

/// Which time a device lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// The clock on the wall: calls sleep.
    Real,
    /// A clock that only this device knows: calls return at once.
    Virtual,
}

/// A caller's clock.
#[derive(Debug)]
enum Clock {
    /// Real time since the device was made.
    Real(Instant),
    /// Virtual nanoseconds.
    Virtual(AtomicU64),
}

/// A store behind a slow device, as one caller sees it.
#[derive(Debug)]
pub struct ThrottledStore<S> {
    inner: Arc<S>,
    device: Arc<Device>,
    clock: Clock,
}

impl<S: Store> ThrottledStore<S> {
    /// Puts `inner` behind a device.
    pub fn new(inner: S, model: DeviceModel, time: Time) -> Result<Self> {
        let device = Arc::new(Device::new(model)?);
        let clock = match time {
            Time::Real => Clock::Real(Instant::now()),
            Time::Virtual => Clock::Virtual(AtomicU64::new(0)),
        };
        Ok(ThrottledStore {
            inner: Arc::new(inner),
            device,
            clock,
        })
    }

    /// The same store on the same device for another caller, whose time begins
    /// where this one's is.
    pub fn for_caller(&self) -> Self {
        let clock = match &self.clock {
            Clock::Real(made) => Clock::Real(*made),
            Clock::Virtual(now) => Clock::Virtual(AtomicU64::new(now.load(Ordering::Relaxed))),
        };
        ThrottledStore {
            inner: Arc::clone(&self.inner),
            device: Arc::clone(&self.device),
            clock,
        }
    }

    /// The store beneath.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The caller's time since the device was made.
    pub fn elapsed(&self) -> Duration {
        match &self.clock {
            Clock::Real(made) => made.elapsed(),
            Clock::Virtual(now) => Duration::from_nanos(now.load(Ordering::Relaxed)),
        }
    }

    /// Lets time pass for the caller, as a computation would.
    pub fn spend(&self, time: Duration) {
        self.wait_until(self.elapsed().saturating_add(time));
    }

    /// Waits until [`elapsed`](Self::elapsed) is at least `time`.
    pub fn wait_until(&self, time: Duration) {
        match &self.clock {
            Clock::Real(made) => thread::sleep(time.saturating_sub(made.elapsed())),
            Clock::Virtual(now) => {
                now.fetch_max(nanoseconds(time), Ordering::Relaxed);
            }
        }
    }

    /// When the last queue has finished everything asked of it so far.
    pub fn busy_until(&self) -> Duration {
        self.device.busy_until()
    }

    /// How long each queue (each disk, of striped ones) has worked in all.
    pub fn queue_times(&self) -> Vec<Duration> {
        self.device.queue_times()
    }

    /// Waits for requests that were issued at `issued`.
    fn charge(&self, issued: Duration, requests: impl Iterator<Item = (u64, usize)>) {
        let end = self.device.enqueue(nanoseconds(issued), requests);
        self.wait_until(Duration::from_nanos(end));
    }
}

impl<S: Store + 'static> Store for ThrottledStore<S> {
    forward!(inner: name len set_len sync lock lock_shared announce_writing);

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

    /// Nothing: whatever lies in memory beneath, the device is asked for it.
    fn cached(&self, offset: u64, len: u64) -> Option<f64> {
        (len > 0 && offset < self.len().ok()?).then_some(0.0)
    }

    /// That of the device.
    fn striping(&self) -> Option<Striping> {
        self.device.striping()
    }

    fn background(&self) -> Option<Arc<dyn Store>> {
        self.time()?;
        Some(Arc::new(self.for_caller()))
    }

    fn time(&self) -> Option<Duration> {
        match self.clock {
            Clock::Real(_) => None,
            Clock::Virtual(_) => Some(self.elapsed()),
        }
    }

    fn wait_until(&self, time: Duration) {
        if self.time().is_some() {
            ThrottledStore::wait_until(self, time);
        }
    }
}
