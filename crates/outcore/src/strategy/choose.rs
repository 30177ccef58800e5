//! The cost model: what each strategy would take for a section, and which one
//! is expected to be fastest.
//!
//! The mathematics. Let a request cost `e` seconds each time and `b` a byte. A
//! gap is worth moving if its bytes cost less than a request: gaps of up to
//! `e / b` bytes. With that gap the section's footprint gives the number of
//! stretches and their bytes, without walking the runs. So, for `r` runs of `u`
//! useful bytes in all, `a` stretches of `m` bytes, `p` pages touched:
//!
//! - fetching what is not in the page cache: one request's time until the first
//!   answer, then `a e + m b`, with `e` that of requests that wait together;
//! - direct: a request for each run to the page cache, `r e + u b`, and one to the
//!   device for what is not there; a write that changes parts of pages fetches
//!   them before;
//! - sieving: fetching, `a e + m b` from the page cache, and copying `r` runs of
//!   `u` bytes; for writing, an access with gaps costs a read and a write;
//! - mapped: fetching, copying `r` runs of `u` bytes, and page faults: for
//!   reading where pages are new to the mapping, for writing where the system
//!   has to learn that pages change.
//!
//! On a device whose model is known, requests are rehearsed instead; see
//! [`rehearse`](super::rehearse).

use outcore_geometry::Runs;

use super::fetch::Fetch;
use super::profile::StorageProfile;
use super::rehearse::Rehearsal;
use super::sieving::Sieve;
use super::slices::Slices;
use super::{Chunked, Direction, Method, Strategy, Tuning};

const PAGE: u64 = 4096;

/// A read fault maps the pages around that are in the page cache.
const FAULT_AROUND: u64 = 64 << 10;

/// How likely a cached page to be written is clean. It is not known; but most
/// that is written was written shortly before, and where it was not, the
/// mapping loses little compared with what it gains otherwise.
const CLEAN: f64 = 0.25;

/// Runs of this length are not worth a mapping.
const LONG: u64 = 64 << 10;

/// Nor are runs of this length that are only copied out of the page cache.
const LONG_CACHED: u64 = 128 << 20;

/// Pages that are written in part are fetched if runs are shorter than this:
/// longer ones have so few that they may be read when they are met.
pub(crate) const FEW_EDGES: u64 = 256 << 10;

/// With so much in the page cache nothing is fetched ahead.
pub(crate) const ALL_CACHED: f64 = 0.98;

/// A system that reads ahead at least so much needs no help in long stretches.
const STREAM: u64 = 1 << 20;

/// What one strategy is expected to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The strategy.
    pub strategy: Strategy,
    /// Seconds.
    pub seconds: f64,
    /// Requests to the store.
    pub requests: u64,
    /// Bytes moved, gaps included.
    pub bytes: u64,
    /// Whether bytes move that were not asked for.
    pub has_gaps: bool,
    pub(crate) way: Way,
}

/// How a section is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) method: Method,
    /// What is asked for in advance.
    pub(crate) fetch: Option<Fetch>,
}

impl From<Chunked> for Way {
    fn from(chunked: Chunked) -> Self {
        Self {
            method: Method::Chunked(chunked),
            fetch: None,
        }
    }
}

/// What a section is to be moved by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation<'a> {
    pub(crate) profile: &'a StorageProfile,
    pub(crate) tuning: &'a Tuning,
    pub(crate) direction: Direction,
    /// The share of the data that is in the page cache.
    pub(crate) cached: f64,
    /// Whether the store can be mapped.
    pub(crate) mappable: bool,
    /// Whether all who write lock, so that sieved writes undo nothing.
    pub(crate) guarded: bool,
    /// The whole slices, if sieving is to move those.
    pub(crate) slices: Option<Slices>,
    /// Where the array's data begin in the store.
    pub(crate) start: u64,
}

/// What the model needs to know of a section.
struct Counts<'a> {
    runs: &'a Runs,
    count: u64,
    useful: u64,
}

impl Situation<'_> {
    /// What each strategy that is possible would take, the fastest first.
    pub(crate) fn estimates(&self, runs: &Runs) -> Vec<Estimate> {
        let (count, useful) = runs.totals();
        let counts = Counts {
            runs,
            count,
            useful,
        };
        let mut all = vec![self.direct(&counts), self.sieving(&counts)];
        // Long runs gain nothing by it, and page faults cost more than calls.
        let long = match self.direction {
            Direction::Read if self.cached >= ALL_CACHED => LONG_CACHED,
            _ => LONG,
        };
        if self.mappable && useful / count.max(1) < long {
            all.push(self.mapped(&counts));
        }
        all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        all
    }

    /// The way that the tuning asks for, or the fastest one.
    pub(crate) fn way(&self, runs: &Runs) -> Way {
        let (count, useful) = runs.totals();
        let counts = Counts {
            runs,
            count,
            useful,
        };
        match self.tuning.strategy {
            Strategy::Direct => self.direct(&counts).way,
            Strategy::Sieving => self.sieving(&counts).way,
            Strategy::Mapped => self.mapped(&counts).way,
            Strategy::Auto | Strategy::Chunked => self.best(runs).way,
        }
    }

    fn best(&self, runs: &Runs) -> Estimate {
        let mut estimates = self.estimates(runs).into_iter();
        let safe = estimates.find(|estimate| self.is_safe(estimate));
        safe.expect("direct is always possible and safe")
    }

    /// Whether a strategy leaves alone what was not asked for. Sieving writes
    /// back what it found between the runs; it locks out those who lock. Where
    /// direct writers do not, it is used for writing only on demand, or if there
    /// is nothing between.
    pub(crate) fn is_safe(&self, estimate: &Estimate) -> bool {
        self.direction == Direction::Read
            || self.guarded
            || estimate.strategy != Strategy::Sieving
            || !estimate.has_gaps
    }

    /// The largest gap that is worth moving.
    pub(crate) fn gap(&self) -> u64 {
        self.sieve().gap
    }

    /// The gap that costs as much as a request, within the buffer.
    fn sieve(&self) -> Sieve {
        let profile = self.profile;
        let cold = 1.0 - self.cached;
        let (request, byte) = self.waiting();
        let (each, byte) = match self.direction {
            Direction::Read => (
                profile.cached_read.each + cold * request,
                profile.cached_read.byte + cold * byte,
            ),
            // A gap is read and written; without it there is one write more.
            Direction::Write => (
                profile.write.each,
                profile.cached_read.byte + profile.write.byte,
            ),
        };
        let buffer = self.tuning.buffer().max(1);
        let gap = self.tuning.gap.unwrap_or((each / byte) as u64).min(buffer);
        // Large enough for the bandwidth, small enough for many at a time.
        let abreast = if self.cached < 0.5 {
            profile.parallel as u64
        } else {
            1
        };
        let largest = (buffer / abreast.max(1)).max(buffer.min(256 << 10));
        Sieve {
            gap,
            largest,
            buffer,
            slices: self.slices,
        }
    }

    /// The seconds of a request to the device among many that wait together, and
    /// of a byte.
    fn waiting(&self) -> (f64, f64) {
        let cold = self.profile.cold_read;
        (cold.each / self.profile.parallel, cold.byte)
    }

    /// What is fetched ahead of copies, if anything is missing.
    fn fetch(&self) -> Option<Fetch> {
        let (request, byte) = self.waiting();
        let missing = self.cached < ALL_CACHED && self.profile.device.is_none();
        missing.then_some(Fetch {
            gap: (request / byte) as u64,
            stretch: u64::MAX,
        })
    }

    /// As `fetch`, for those who touch pages one after the other, so that the
    /// system reads on by itself. It begins with more than is needed, which
    /// pays in long stretches alone.
    fn fetch_streaming(&self, runs: &Runs) -> Option<Fetch> {
        let fetch = self.fetch()?;
        let stretches = runs.footprint(fetch.gap);
        let ahead = self.profile.read_ahead;
        let long = ahead >= STREAM && stretches.bytes / stretches.accesses.max(1) > 3 * ahead;
        let stretch = if long { ahead } else { u64::MAX };
        Some(Fetch { stretch, ..fetch })
    }

    /// The seconds until the data of `fetch` are in the page cache.
    fn fetching(&self, fetch: Option<Fetch>, runs: &Runs) -> f64 {
        let Some(fetch) = fetch else {
            return 0.0;
        };
        let stretches = runs.footprint(fetch.gap);
        let (request, byte) = self.waiting();
        let asked = stretches
            .bytes
            .min(stretches.accesses.saturating_mul(fetch.stretch));
        let read_on = (stretches.bytes - asked) as f64 * self.profile.ahead;
        let pages = asked.max(stretches.accesses.saturating_mul(PAGE));
        let first = self.profile.cold_read.each;
        let all = first + stretches.accesses as f64 * request + pages as f64 * byte + read_on;
        (1.0 - self.cached) * all
    }

    /// A rehearsal on the device, if its model is known.
    fn rehearsal<'a>(&'a self, runs: &'a Runs) -> Option<Rehearsal<'a>> {
        let device = self.profile.device.as_ref()?;
        Some(Rehearsal {
            device,
            start: self.start,
            direction: self.direction,
            runs,
        })
    }

    fn direct(&self, counts: &Counts<'_>) -> Estimate {
        let Counts {
            runs,
            count,
            useful,
        } = *counts;
        let (seconds, fetch) = match self.direction {
            Direction::Read => {
                let (request, byte) = self.waiting();
                let pages = useful.max(count.saturating_mul(PAGE));
                let first = self.profile.cold_read.each;
                let device = first + count as f64 * request + pages as f64 * byte;
                let cached = self.profile.cached_read.of(count, useful);
                // Otherwise the system would read ahead of the runs, too.
                let one_by_one = (2 * PAGE..STREAM).contains(&(useful / count.max(1)));
                let fetch = self.fetch().filter(|_| one_by_one);
                (cached + (1.0 - self.cached) * device, fetch)
            }
            Direction::Write => {
                let parts = useful / count.max(1) < FEW_EDGES && has_edges(runs);
                let fetch = self.fetch().filter(|_| parts);
                let fetching = self.fetching(fetch, runs);
                (fetching + self.profile.write.of(count, useful), fetch)
            }
        };
        let rehearsed = self.rehearsal(runs).map(|rehearsal| rehearsal.direct());
        Estimate {
            strategy: Strategy::Direct,
            seconds: rehearsed.unwrap_or(seconds),
            requests: count,
            bytes: useful,
            has_gaps: false,
            way: Way {
                method: Method::Direct,
                fetch,
            },
        }
    }

    fn sieving(&self, counts: &Counts<'_>) -> Estimate {
        let Counts {
            runs,
            count,
            useful,
        } = *counts;
        let rehearsed = self
            .rehearsal(runs)
            .map(|rehearsal| rehearsal.best_sieve(self.sieve(), self.tuning.gap));
        let sieve = rehearsed.map_or_else(|| self.sieve(), |(sieve, _)| sieve);
        let (accesses, bytes) = match sieve.slices {
            Some(slices) => (slices.accesses(), slices.end - slices.start),
            None => {
                let footprint = runs.footprint(sieve.gap);
                let cut = footprint.bytes / sieve.largest;
                (footprint.accesses + cut, footprint.bytes)
            }
        };
        let has_gaps = bytes > useful;
        let reads = has_gaps || has_edges(runs);
        let fetch = match self.direction {
            Direction::Read => self.fetch_streaming(runs),
            Direction::Write => self.fetch().filter(|_| reads),
        };
        // Runs that are accesses by themselves go straight to their place.
        let copied = match !has_gaps && accesses == count {
            true => 0.0,
            false => self.profile.copy.of(count, useful),
        };
        let read = self.profile.cached_read.of(accesses, bytes);
        let write = self.profile.write.of(accesses, bytes);
        let (moved, requests) = match (self.direction, has_gaps) {
            (Direction::Read, _) => (read, accesses),
            (Direction::Write, false) => (write, accesses),
            (Direction::Write, true) => (read + write, 2 * accesses),
        };
        Estimate {
            strategy: Strategy::Sieving,
            seconds: match rehearsed {
                Some((_, seconds)) => seconds + copied,
                None => self.fetching(fetch, runs) + moved + copied,
            },
            requests,
            bytes,
            has_gaps,
            way: Way {
                method: Method::Sieving(sieve),
                fetch,
            },
        }
    }

    fn mapped(&self, counts: &Counts<'_>) -> Estimate {
        let Counts {
            runs,
            count,
            useful,
        } = *counts;
        // Runs less than a page apart share pages, or have neighbouring ones.
        let touched = |unit: u64| {
            let near = runs.footprint(unit);
            near.bytes.div_ceil(unit).max(near.accesses) as f64
        };
        let cold = 1.0 - self.cached;
        let clean = cold + self.cached * CLEAN;
        let faults = match self.direction {
            Direction::Read => touched(FAULT_AROUND) * cold * self.profile.fault,
            Direction::Write => touched(PAGE) * clean * self.profile.first_write,
        };
        let fetch = self.fetch_streaming(runs);
        let copied = self.profile.mapped.of(count, useful) + faults;
        Estimate {
            strategy: Strategy::Mapped,
            seconds: self.fetching(fetch, runs) + copied,
            requests: 0,
            bytes: useful,
            has_gaps: false,
            way: Way {
                method: Method::Mapped(self.sieve()),
                fetch,
            },
        }
    }
}

/// Whether runs cover pages in part, judged by the first of them.
fn has_edges(runs: &Runs) -> bool {
    runs.passes().next().is_some_and(|pass| {
        let step = if pass.count > 1 { pass.file_step } else { 0 };
        [pass.first.file_offset, pass.first.len, step]
            .iter()
            .any(|number| number % PAGE != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcore_geometry::{Layout, Order, Section};

    fn best(section: &str, direction: Direction, cached: f64, mappable: bool) -> Strategy {
        with(section, direction, cached, mappable, |situation, runs| {
            situation.estimates(runs)[0].strategy
        })
    }

    fn chosen(section: &str, direction: Direction, cached: f64, mappable: bool) -> Strategy {
        with(section, direction, cached, mappable, |situation, runs| {
            situation.way(runs).method.strategy()
        })
    }

    fn with(
        section: &str,
        direction: Direction,
        cached: f64,
        mappable: bool,
        ask: impl Fn(&Situation<'_>, &Runs) -> Strategy,
    ) -> Strategy {
        let layout = Layout::new(&[4096, 4096], 4, &Order::Row, None).unwrap();
        let section = Section::parse(section, layout.shape()).unwrap();
        let situation = Situation {
            profile: &StorageProfile::default(),
            tuning: &Tuning::default(),
            direction,
            cached,
            mappable,
            guarded: false,
            slices: None,
            start: 0,
        };
        ask(&situation, &layout.runs(&section).unwrap())
    }

    #[test]
    fn what_is_missing_is_fetched() {
        let way = |cached, direction| {
            let layout = Layout::new(&[4096, 4096], 4, &Order::Row, None).unwrap();
            let section = Section::parse("::16, ::16", layout.shape()).unwrap();
            let situation = Situation {
                profile: &StorageProfile::default(),
                tuning: &Tuning::default(),
                direction,
                cached,
                mappable: true,
                guarded: true,
                slices: None,
                start: 0,
            };
            situation.way(&layout.runs(&section).unwrap())
        };
        for direction in [Direction::Read, Direction::Write] {
            assert_eq!(way(1.0, direction).fetch, None);
            assert!(way(0.0, direction).fetch.is_some());
        }
        // Where all who write lock, a write may sieve.
        let method = way(0.0, Direction::Write).method;
        assert_eq!(method.strategy(), Strategy::Sieving);
    }

    /// Far away a request costs as much as half a mebibyte.
    #[test]
    fn far_away_more_is_read_along() {
        let layout = Layout::new(&[4096, 65536], 1, &Order::Row, None).unwrap();
        let requests = |text: &str| {
            let section = Section::parse(text, layout.shape()).unwrap();
            let situation = Situation {
                profile: &StorageProfile::far_away(),
                tuning: &Tuning::default(),
                direction: Direction::Read,
                cached: 0.0,
                mappable: false,
                guarded: false,
                slices: None,
                start: 0,
            };
            let best = situation.estimates(&layout.runs(&section).unwrap())[0];
            (best.strategy, best.requests)
        };
        // Rows at every 256 KiB are read with what is between, those at every MiB alone.
        let (strategy, near) = requests("::4, :");
        assert_eq!(strategy, Strategy::Sieving);
        assert!(near < 1100, "{near} requests");
        assert_eq!(requests("::16, :").1, 256);
    }

    #[test]
    fn the_expected_winners() {
        use Direction::{Read, Write};
        // Long runs: nothing beats one request each.
        assert_eq!(best("::4, :", Read, 0.0, false), Strategy::Direct);
        assert_eq!(best("::4, :", Write, 1.0, false), Strategy::Direct);
        // Single elements are copied from the page cache; without a mapping
        // they are sieved.
        assert_eq!(best("::16, ::16", Read, 1.0, true), Strategy::Mapped);
        assert_eq!(best("::16, ::16", Read, 1.0, false), Strategy::Sieving);
        assert_eq!(best("::16, ::16", Read, 0.0, false), Strategy::Sieving);
        // Far apart and cold, page faults cost more than calls.
        assert_eq!(best("::3, 100:164:2", Read, 0.0, true), Strategy::Sieving);
        assert_eq!(best("::4, ::4", Write, 1.0, false), Strategy::Sieving);
        // ... but only if all who write lock, as it writes back what is between.
        assert_eq!(chosen("::4, ::4", Write, 1.0, false), Strategy::Direct);
        assert_eq!(chosen("::4, ::4", Write, 1.0, true), Strategy::Mapped);
        // A few far apart: not worth the bytes between.
        assert_eq!(best("::512, 7", Read, 0.0, false), Strategy::Direct);
    }
}
