//! The cost model: what each strategy would take for a section, and which one
//! is expected to be fastest.
//!
//! The mathematics. Let a read cost `e` seconds each time and `b` a byte. A
//! gap is worth reading if its bytes cost less than a request: gaps of up to
//! `e / b` bytes. With that gap the section's footprint gives the number of
//! accesses and the bytes they move, without walking the runs. So, for `r`
//! runs of `u` useful bytes in all, `a` accesses of `m` bytes:
//!
//! - direct: `r e + u b`,
//! - sieving: `a e + m b`, and copying `r` runs of `u` bytes; for writing, an
//!   access with gaps costs a read and a write,
//! - mapped: copying `r` runs of `u` bytes, and for what is not cached a
//!   request for each page touched; for writing, the page faults by which the
//!   system learns that pages have changed.

use outcore_geometry::{Footprint, Runs};

use super::profile::StorageProfile;
use super::sieving::Sieve;
use super::slices::Slices;
use super::{Direction, Method, Strategy, Tuning};

const PAGE: u64 = 4096;

/// How likely a page to be written is clean. It is not known; but most that
/// is written was written shortly before, and where it was not, the mapping
/// loses little compared with what it gains otherwise.
const CLEAN: f64 = 0.25;

/// Runs of this length are not worth a mapping.
const LONG: u64 = 64 << 10;

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
    pub(crate) method: Method,
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
    /// The whole slices, if sieving is to move those.
    pub(crate) slices: Option<Slices>,
}

impl Situation<'_> {
    /// What each strategy that is possible would take, the fastest first.
    pub(crate) fn estimates(&self, runs: &Runs) -> Vec<Estimate> {
        let (count, useful) = runs.totals();
        let mut all = vec![
            self.direct(count, useful),
            self.sieving(runs, count, useful),
        ];
        // Long runs gain nothing by it, and page faults cost more than calls.
        if self.mappable && useful / count.max(1) < LONG {
            all.push(self.mapped(runs, count, useful));
        }
        all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        all
    }

    /// The method that the tuning asks for, or the fastest one.
    pub(crate) fn method(&self, runs: &Runs) -> Method {
        let sieve = self.sieve();
        match self.tuning.strategy {
            Strategy::Direct => Method::Direct,
            Strategy::Sieving => Method::Sieving(sieve),
            Strategy::Mapped => Method::Mapped(sieve),
            Strategy::Auto => {
                let estimates = self.estimates(runs);
                let safe = estimates.iter().find(|estimate| self.is_safe(estimate));
                safe.expect("direct is always possible and safe").method
            }
        }
    }

    /// Whether a strategy leaves alone what was not asked for. Sieving writes
    /// back what it found between the runs; it locks out others who sieve, but
    /// not those who write these bytes directly meanwhile. So it is used for
    /// writing only on demand, or where there is nothing between.
    fn is_safe(&self, estimate: &Estimate) -> bool {
        self.direction == Direction::Read
            || estimate.strategy != Strategy::Sieving
            || !estimate.has_gaps
    }

    /// The gap that costs as much as a request, within the buffer.
    fn sieve(&self) -> Sieve {
        let read = self.profile.read(self.cached);
        let (each, byte) = match self.direction {
            Direction::Read => (read.each, read.byte),
            // A gap is read and written; without it there is one write more.
            Direction::Write => (self.profile.write.each, read.byte + self.profile.write.byte),
        };
        let buffer = self.tuning.buffer.max(1);
        let gap = self.tuning.gap.unwrap_or((each / byte) as u64).min(buffer);
        // Large enough for the bandwidth, small enough for many at a time.
        let abreast = if self.cached < 0.5 {
            self.profile.parallel as u64
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

    /// The seconds of so many reads of so many bytes; a device moves whole
    /// pages.
    fn reading(&self, requests: u64, bytes: u64) -> f64 {
        let pages = bytes.max(requests.saturating_mul(PAGE));
        let moved = self.cached * bytes as f64 + (1.0 - self.cached) * pages as f64;
        self.profile.read(self.cached).of(requests, moved as u64)
    }

    fn direct(&self, runs: u64, useful: u64) -> Estimate {
        let seconds = match self.direction {
            Direction::Read => self.reading(runs, useful),
            Direction::Write => self.profile.write.of(runs, useful),
        };
        Estimate {
            strategy: Strategy::Direct,
            seconds,
            requests: runs,
            bytes: useful,
            has_gaps: false,
            method: Method::Direct,
        }
    }

    fn sieving(&self, runs: &Runs, count: u64, useful: u64) -> Estimate {
        let sieve = self.sieve();
        let (accesses, bytes) = match sieve.slices {
            Some(slices) => (slices.accesses(), slices.end - slices.start),
            None => {
                let Footprint {
                    accesses, bytes, ..
                } = runs.footprint(sieve.gap);
                (accesses + bytes / sieve.largest, bytes)
            }
        };
        let read = self.reading(accesses, bytes);
        // Runs that are accesses by themselves go straight to their place.
        let copied = if bytes == useful && accesses == count {
            0.0
        } else {
            self.profile.copy.of(count, useful)
        };
        let (seconds, requests) = match self.direction {
            Direction::Read => (read + copied, accesses),
            Direction::Write => {
                let write = self.profile.write.of(accesses, bytes) + copied;
                let gaps = bytes > useful;
                (
                    if gaps { read + write } else { write },
                    accesses * (1 + u64::from(gaps)),
                )
            }
        };
        Estimate {
            strategy: Strategy::Sieving,
            seconds,
            requests,
            bytes,
            has_gaps: bytes > useful,
            method: Method::Sieving(sieve),
        }
    }

    fn mapped(&self, runs: &Runs, count: u64, useful: u64) -> Estimate {
        // Runs less than a page apart share pages, or have neighbouring ones.
        let near = runs.footprint(PAGE);
        let pages = near.bytes.div_ceil(PAGE).max(near.accesses) as f64;
        let cold = self.profile.cold_read.each + self.profile.cold_read.byte * PAGE as f64;
        let page = match self.direction {
            Direction::Read => 0.0,
            Direction::Write => CLEAN * self.profile.first_write,
        };
        let seconds =
            self.profile.mapped.of(count, useful) + pages * ((1.0 - self.cached) * cold + page);
        Estimate {
            strategy: Strategy::Mapped,
            seconds,
            requests: 0,
            bytes: useful,
            has_gaps: false,
            method: Method::Mapped(self.sieve()),
        }
    }
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
            situation.method(runs).strategy()
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
            slices: None,
        };
        ask(&situation, &layout.runs(&section).unwrap())
    }

    #[test]
    fn the_expected_winners() {
        use Direction::{Read, Write};
        // Long runs: nothing beats one request each.
        assert_eq!(best("::4, :", Read, 0.0, false), Strategy::Direct);
        assert_eq!(best("::4, :", Write, 1.0, false), Strategy::Direct);
        // Single elements: cold they are sieved, cached they are mapped.
        assert_eq!(best("::16, ::16", Read, 0.0, true), Strategy::Sieving);
        assert_eq!(best("::16, ::16", Read, 1.0, true), Strategy::Mapped);
        assert_eq!(best("::16, ::16", Read, 1.0, false), Strategy::Sieving);
        assert_eq!(best("::4, ::4", Write, 1.0, false), Strategy::Sieving);
        // ... but only on demand, as it would write back what is between.
        assert_eq!(chosen("::4, ::4", Write, 1.0, false), Strategy::Direct);
        assert_eq!(chosen("::4, ::4", Write, 1.0, true), Strategy::Mapped);
        // A few far apart: not worth the bytes between.
        assert_eq!(best("::512, 7", Read, 0.0, false), Strategy::Direct);
    }
}
