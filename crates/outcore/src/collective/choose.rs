//! One decision for all ranks: every rank for itself, or two phases.
//!
//! The mathematics. Whatever may differ from rank to rank (what is in the page
//! cache, what storage is known to cost) is told to all, and all compute with the
//! same numbers. `N` ranks have `c` cores, at most one each.
//!
//! - Data that are in the page cache and can be mapped are shared memory
//!   already: nothing is gained by an exchange.
//! - Every rank for itself: a rank takes `w` seconds if all is in the page cache,
//!   and `d` more for what is not. Together they take `max(w, sum w / c)`, and
//!   for the device `max(d, sum d * s)`, with `s` the bytes from which they want
//!   something, divided by the sum of what each has before it: a page comes from
//!   the device once.
//! - Two phases: what all want together is read or written once, with the gaps
//!   that are worth it; what is written with holes is read before. That is found
//!   out for a few windows, and taken to be so in all. Everything is copied
//!   between windows and buffers, and once more where memory is not shared; and
//!   the ranks come to terms.

use outcore_transport::Comm;

use super::coverage::wanted;
use super::domains::Piece;
use super::request::Request;
use super::way::CollectiveWay;
use super::winners::won;
use crate::array::Array;
use crate::error::Result;
use crate::strategy::profile::Cost;
use crate::strategy::{Direction, Strategy};

/// With so much in the page cache, all is taken to be there.
const ALL_CACHED: f64 = 0.98;

/// So many windows of so many bytes are looked at.
const SAMPLED: u64 = 8;
const WINDOW: u64 = 1 << 20;

/// The seconds that two ranks take to come to terms, and of one message.
const MEETING: f64 = 5e-6;
const MESSAGE: f64 = 2e-6;

/// What one rank knows, as it is told to the others.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Facts {
    /// The share of its data that is in the page cache.
    cached: f64,
    /// Whether they can be mapped and so moved: 1 or 0.
    mappable: f64,
    /// The seconds it takes alone if all is in the page cache,
    warm: f64,
    /// and for what is not.
    cold: f64,
    /// The cores of its machine.
    cores: f64,
    /// The gap that is worth moving.
    gap: f64,
    /// A read from the page cache, from the device, a write, a copy of a run.
    cached_read: Cost,
    cold_read: Cost,
    write: Cost,
    copy: Cost,
}

type Told = [f64; 14];

impl Facts {
    fn of(array: &Array, direction: Direction, own: &Request, bounds: (u64, u64)) -> Self {
        let profile = array.profile();
        let extent = own.end - own.start;
        let cached = match extent {
            0 => Some(1.0),
            extent => {
                let offset = array.data_offset() + own.start;
                array.store().cached(offset, extent)
            }
        };
        let cached = cached.unwrap_or(0.0);
        let warm = array.seconds(&own.runs, direction, 1.0);
        // A write through a mapping leaves the order of bytes as it is.
        let mappable =
            array.is_mappable() && (direction == Direction::Read || array.swap().is_none());
        let cold = array.seconds(&own.runs, direction, cached) - warm;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            cached,
            mappable: f64::from(u8::from(mappable)),
            warm,
            cold: cold.max(0.0),
            cores: cores as f64,
            gap: array.gap(bounds, direction) as f64,
            cached_read: profile.cached_read,
            cold_read: Cost {
                each: profile.cold_read.each / profile.parallel,
                ..profile.cold_read
            },
            write: profile.write,
            copy: profile.copy,
        }
    }

    fn told(&self) -> Told {
        let [a, b, c, d] = [self.cached_read, self.cold_read, self.write, self.copy];
        [
            self.cached,
            self.mappable,
            self.warm,
            self.cold,
            self.cores,
            self.gap,
            a.each,
            a.byte,
            b.each,
            b.byte,
            c.each,
            c.byte,
            d.each,
            d.byte,
        ]
    }

    fn of_told(told: Told) -> Self {
        let cost = |at: usize| Cost {
            each: told[at],
            byte: told[at + 1],
        };
        Self {
            cached: told[0],
            mappable: told[1],
            warm: told[2],
            cold: told[3],
            cores: told[4],
            gap: told[5],
            cached_read: cost(6),
            cold_read: cost(8),
            write: cost(10),
            copy: cost(12),
        }
    }
}

/// Collective: the way in which these requests, one of each rank, are expected
/// to be moved fastest.
pub(super) fn choose(
    comm: &Comm,
    array: &Array,
    direction: Direction,
    requests: &[Request],
    bounds: (u64, u64),
) -> Result<CollectiveWay> {
    let own = Facts::of(array, direction, &requests[comm.rank()], bounds);
    let all = comm.all_gather(&[own.told()])?;
    let all: Vec<Facts> = all.into_iter().map(Facts::of_told).collect();
    Ok(decide(
        &all,
        direction,
        requests,
        comm.transport().shares_memory(),
    ))
}

fn decide(
    facts: &[Facts],
    direction: Direction,
    requests: &[Request],
    shared: bool,
) -> CollectiveWay {
    let alone = CollectiveWay::Independent(Strategy::Auto);
    let held = |facts: &Facts| facts.cached >= ALL_CACHED && facts.mappable > 0.0;
    if facts.len() == 1 || facts.iter().all(held) {
        return alone;
    }
    match independent(facts, direction, requests) <= two_phase(facts, direction, requests, shared) {
        true => alone,
        false => CollectiveWay::TwoPhase,
    }
}

/// How many ranks compute at a time.
fn abreast(facts: &[Facts]) -> f64 {
    facts[0].cores.clamp(1.0, facts.len() as f64)
}

/// The seconds with every rank for itself.
fn independent(facts: &[Facts], direction: Direction, requests: &[Request]) -> f64 {
    let largest = |list: &[f64]| list.iter().copied().fold(0.0, f64::max);
    let (mut warm, mut cold) = (Vec::new(), Vec::new());
    for (rank, facts) in facts.iter().enumerate() {
        let written = match direction {
            Direction::Read => Some(1.0),
            Direction::Write => share_won(requests, rank),
        };
        // Not possible: see `won`.
        let Some(share) = written else {
            return f64::INFINITY;
        };
        warm.push(facts.warm * share);
        cold.push(facts.cold * share);
    }
    let common = common(requests);
    let computing = largest(&warm).max(warm.iter().sum::<f64>() / abreast(facts));
    computing + largest(&cold).max(cold.iter().sum::<f64>() * common)
}

/// How much of its section a rank has to write.
fn share_won(requests: &[Request], rank: usize) -> Option<f64> {
    let parts = won(requests, rank)?;
    let count: u64 = parts.iter().map(|part| part.count()).sum();
    Some(count as f64 / requests[rank].section.count().max(1) as f64)
}

/// The bytes that lie between the ends of some request, divided by the sum of
/// those between the ends of each.
fn common(requests: &[Request]) -> f64 {
    let mut extents: Vec<(u64, u64)> = requests.iter().map(|r| (r.start, r.end)).collect();
    extents.sort_unstable();
    let (mut union, mut sum, mut reached) = (0, 0, 0);
    for (start, end) in extents {
        union += end.saturating_sub(start.max(reached));
        sum += end - start;
        reached = reached.max(end);
    }
    match sum {
        0 => 1.0,
        sum => union as f64 / sum as f64,
    }
}

/// The seconds with two phases. What storage costs is what the first rank says.
fn two_phase(facts: &[Facts], direction: Direction, requests: &[Request], shared: bool) -> f64 {
    let first = &facts[0];
    let (moved, read_before) = accesses(direction, requests, first.gap as u64);
    let cached = facts.iter().map(|facts| facts.cached).sum::<f64>() / facts.len() as f64;
    let missing = |accesses: Accesses| (1.0 - cached) * accesses.cost(first.cold_read);
    let (computing, device) = match direction {
        Direction::Read => (moved.cost(first.cached_read), missing(moved)),
        Direction::Write => (
            moved.cost(first.write) + read_before.cost(first.cached_read),
            missing(read_before),
        ),
    };
    let (mut runs, mut bytes) = (0, 0);
    for request in requests {
        let (more, wanted) = request.runs.totals();
        runs += more;
        bytes += wanted;
    }
    let ranks = facts.len() as f64;
    let copies = first.copy.of(runs, bytes);
    let exchange = match shared {
        true => 0.0,
        false => first.copy.of(0, 2 * bytes) + MESSAGE * ranks * ranks,
    };
    let terms = 2.0 * MEETING * ranks.log2();
    (computing + copies + exchange) / abreast(facts) + device + terms
}

/// Accesses to a store, estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Accesses {
    count: f64,
    bytes: f64,
}

impl Accesses {
    fn add(&mut self, bytes: u64, weight: f64) {
        self.count += weight;
        self.bytes += weight * bytes as f64;
    }

    fn cost(self, cost: Cost) -> f64 {
        cost.each * self.count + cost.byte * self.bytes
    }
}

/// What two phases ask of the store in all; of a write also what is read before.
fn accesses(direction: Direction, requests: &[Request], gap: u64) -> (Accesses, Accesses) {
    let (start, end) = bounds(requests);
    let windows = (end - start).div_ceil(WINDOW);
    let step = windows.div_ceil(SAMPLED).max(1);
    let weight = windows as f64 / windows.div_ceil(step).max(1) as f64;
    let (mut moved, mut read_before) = (Accesses::default(), Accesses::default());
    let mut stretches = Vec::new();
    for window in (0..windows).step_by(step as usize) {
        let from = start + window * WINDOW;
        let piece = Piece {
            start: from,
            end: end.min(from + WINDOW),
            at: 0,
        };
        stretches.clear();
        wanted(piece, requests.iter(), gap, &mut stretches);
        for stretch in &stretches {
            let len = stretch.end - stretch.start;
            moved.add(len, weight);
            let share = |request: &Request| {
                let share = request.share(stretch.start, stretch.end);
                share.end - share.start
            };
            if direction == Direction::Write && requests.iter().map(share).sum::<u64>() < len {
                read_before.add(len, weight);
            }
        }
    }
    (moved, read_before)
}

/// From the first to the last byte that anybody asks for.
fn bounds(requests: &[Request]) -> (u64, u64) {
    let filled = || {
        requests
            .iter()
            .filter(|request| request.start < request.end)
    };
    let start = filled().map(|request| request.start).min();
    let end = filled().map(|request| request.end).max();
    (start.unwrap_or(0), end.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::profile::StorageProfile;
    use outcore_geometry::{Layout, Order, Pattern};

    const RANKS: u64 = 16;

    fn requests(pattern: &str) -> Vec<Request> {
        let layout = Layout::new(&[4096, 4096], 4, &Order::Column, None).unwrap();
        let pattern: Pattern = pattern.parse().unwrap();
        let sections = (0..RANKS).map(|rank| pattern.section(layout.shape(), rank, RANKS));
        let requests = sections.map(|section| Request::new(&layout, &section.unwrap()).unwrap());
        requests.collect()
    }

    fn facts(cached: f64, mappable: bool, (warm, cold): (f64, f64)) -> Facts {
        let profile = StorageProfile::default();
        Facts {
            cached,
            mappable: f64::from(u8::from(mappable)),
            warm,
            cold,
            cores: 2.0,
            gap: 6000.0,
            cached_read: profile.cached_read,
            cold_read: profile.cold_read,
            write: profile.write,
            copy: profile.copy,
        }
    }

    #[test]
    fn facts_are_told_as_they_are() {
        let facts = facts(0.5, true, (1.0, 2.0));
        assert_eq!(Facts::of_told(facts.told()), facts);
    }

    #[test]
    fn the_expected_winners() {
        use Direction::{Read, Write};
        let alone = CollectiveWay::Independent(Strategy::Auto);
        let way = |pattern: &str, direction, facts: Facts| {
            decide(&[facts; 16], direction, &requests(pattern), true)
        };
        let held = facts(1.0, true, (3e-3, 0.0));
        for pattern in ["p::16, :", ":, :", "256*p:256*p+256, ::3"] {
            assert_eq!(way(pattern, Read, held), alone);
            assert_eq!(way(pattern, Write, held), alone);
        }
        // Single elements all over a file that cannot be mapped: everybody
        // would read and write all of it.
        let whole = facts(0.0, false, (20e-3, 25e-3));
        for direction in [Read, Write] {
            assert_eq!(way("p::16, :", direction, whole), CollectiveWay::TwoPhase);
        }
        // Blocks of whole columns: an exchange gains nothing.
        let block = facts(0.0, false, (0.5e-3, 1.5e-3));
        assert_eq!(way(":, 256*p:256*p+256", Read, block), alone);
        // Parts that are not regular cannot be told apart.
        let lists = facts(0.0, false, (1e-9, 1e-9));
        assert_eq!(way("[1,5,6,9], :", Write, lists), alone);
        let mut other = requests("[1,5,6,9], :");
        other[15] = requests("[1,6,9], :").swap_remove(15);
        let way = decide(&[lists; 16], Write, &other, true);
        assert_eq!(way, CollectiveWay::TwoPhase);
    }

    #[test]
    fn what_all_want_together_is_counted_once() {
        let pattern = "p::16, 0:1024";
        let (moved, _) = accesses(Direction::Read, &requests(pattern), 0);
        assert_eq!((moved.count, moved.bytes), (16.0, (16 << 20) as f64));
        let (moved, before) = accesses(Direction::Write, &requests(pattern), 0);
        assert_eq!((moved.count, before.count), (16.0, 0.0));
        let (moved, before) = accesses(Direction::Write, &requests("2*p::32, 0:1024"), 6000);
        assert!(moved.count > 0.0 && before == moved, "{moved:?} {before:?}");
        assert_eq!(common(&requests(":, :")), 1.0 / 16.0);
        assert_eq!(common(&requests(":, 256*p:256*p+256")), 1.0);
    }
}
