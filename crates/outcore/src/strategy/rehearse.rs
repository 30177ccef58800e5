//! What a section would take on a device whose model is known: its requests are
//! rehearsed in virtual time.
//!
//! The mathematics. With striped disks it matters which of them a request meets:
//! runs that are a multiple of the stripes apart all wait for the same disk. No
//! count of requests tells that, but walking them does, in nanoseconds each,
//! where such devices take milliseconds. Of a section with very many requests
//! the first are rehearsed, and the rest taken to be like them.
//!
//! Sieving has two choices, the gap and the longest access; a few of each, a
//! factor apart, are rehearsed, and the best is taken.

use outcore_geometry::Runs;
use outcore_storage::DeviceModel;

use super::batch::{BATCH, Batch};
use super::sieving::{Accesses, Sieve};
use super::{Direction, Method};

/// So many requests are rehearsed at most.
const MOST: u64 = 1 << 17;

/// Requests that are issued together: where each begins, and its length.
pub(crate) type Requests = Vec<(u64, usize)>;

/// A section on a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rehearsal<'a> {
    pub(crate) device: &'a DeviceModel,
    /// Where the array's data begin in the store.
    pub(crate) start: u64,
    pub(crate) direction: Direction,
    pub(crate) runs: &'a Runs,
}

impl Rehearsal<'_> {
    /// The seconds with one request for each run.
    pub(super) fn direct(&self) -> f64 {
        let (count, _) = self.runs.totals();
        self.seconds(self.runs_in_batches(MOST)) * (count as f64 / MOST as f64).max(1.0)
    }

    /// The batches of requests with which a method moves the section, at most
    /// so many requests in all, and the share of the section that they are.
    pub(crate) fn batches(&self, method: Method, most: u64) -> (Vec<Requests>, f64) {
        match method {
            Method::Sieving(sieve) => {
                let mut end = 0;
                let batches = self.accesses_in_batches(sieve, most, &mut end).collect();
                (batches, self.share(end))
            }
            // Nothing can be mapped.
            Method::Direct | Method::Mapped(_) | Method::Chunked(_) => {
                let (count, _) = self.runs.totals();
                let share = (most as f64 / count.max(1) as f64).min(1.0);
                (self.runs_in_batches(most).collect(), share)
            }
        }
    }

    fn runs_in_batches(&self, most: u64) -> impl Iterator<Item = Requests> {
        let mut runs = self.runs.clone().take(most as usize).peekable();
        let start = self.start;
        std::iter::from_fn(move || {
            runs.peek()?;
            let batch = runs.by_ref().take(BATCH);
            let requests = batch.map(|run| (start + run.file_offset, run.len as usize));
            Some(requests.collect())
        })
    }

    /// The seconds with the accesses of a sieve.
    fn sieved(&self, sieve: Sieve) -> f64 {
        let mut end = 0;
        let seconds = self.seconds(self.accesses_in_batches(sieve, MOST, &mut end));
        seconds / self.share(end)
    }

    /// The share of the section that lies before an offset.
    fn share(&self, end: u64) -> f64 {
        let extent = self.runs.footprint(0);
        let share = (end.max(extent.start + 1) - extent.start) as f64;
        (share / (extent.end - extent.start).max(1) as f64).min(1.0)
    }

    /// The batches of the accesses of a sieve; `end` is where the last one ends.
    fn accesses_in_batches(
        &self,
        sieve: Sieve,
        most: u64,
        end: &mut u64,
    ) -> impl Iterator<Item = Requests> {
        let mut accesses = Accesses::new(self.runs, sieve);
        let mut batch = Batch::default();
        let mut requests = 0;
        // A write with gaps is a batch of reads and then one of writes.
        let mut written: Option<Requests> = None;
        std::iter::from_fn(move || {
            if let Some(writes) = written.take() {
                return Some(writes);
            }
            if requests >= most || !batch.fill(&mut accesses, sieve.buffer) {
                return None;
            }
            requests += batch.accesses.len() as u64;
            *end = batch.extent().1;
            let all = batch.accesses.iter();
            let moved = all.map(|access| {
                let request = (self.start + access.offset, access.len as usize);
                (request, access.useful < access.len)
            });
            let moved: Vec<((u64, usize), bool)> = moved.collect();
            let every = moved.iter().map(|(request, _)| *request).collect();
            if self.direction == Direction::Read {
                return Some(every);
            }
            written = Some(every);
            let gaps = moved.iter().filter(|(_, gaps)| *gaps);
            Some(gaps.map(|(request, _)| *request).collect())
        })
    }

    /// The best sieve within a buffer, with the gap if it is given, and its
    /// seconds.
    pub(super) fn best_sieve(&self, most: Sieve, gap: Option<u64>) -> (Sieve, f64) {
        let buffer = most.buffer;
        let gaps: Vec<u64> = match gap {
            Some(gap) => vec![gap],
            None => {
                let mut gaps: Vec<u64> = (0..8).map(|step| buffer >> (2 * step)).collect();
                // Those that make no difference are tried once.
                gaps.dedup_by_key(|gap| self.runs.footprint(*gap).accesses);
                gaps
            }
        };
        let lengths = match most.slices {
            Some(_) => vec![buffer],
            None => [1, 8, 64]
                .map(|parts| (buffer / parts).max(buffer.min(4096)))
                .to_vec(),
        };
        let mut best = (most, f64::INFINITY);
        for gap in gaps {
            for largest in lengths.iter().copied() {
                let sieve = Sieve {
                    gap,
                    largest,
                    ..most
                };
                let seconds = self.sieved(sieve);
                if seconds < best.1 {
                    best = (sieve, seconds);
                }
            }
        }
        best
    }

    fn seconds(&self, batches: impl Iterator<Item = Requests>) -> f64 {
        let time = self.device.time_of(batches);
        // A model that describes no device costs nothing to be avoided.
        time.map_or(f64::INFINITY, |time| time.as_secs_f64())
    }
}
