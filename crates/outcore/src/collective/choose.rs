//! One decision for all ranks: every rank for itself, or two phases, and with
//! which domains.
//!
//! The mathematics. Whatever may differ from rank to rank (what is in the page
//! cache, what storage is known to cost) is told to all, and all compute with the
//! same numbers. `N` ranks have `c` cores, at most one each.
//!
//! - Data that are in the page cache and can be mapped are shared memory
//!   already: nothing is gained by an exchange.
//! - Every rank for itself: a rank takes `w` seconds if all is in the page cache,
//!   and `d` more for what is not. Together they take `max(w, sum w / c)`, and
//!   for the device `max(d, sum d * s)`, with `s` the bytes of which somebody
//!   wants a part, divided by the sum of what each has of them: a page comes
//!   from the device once.
//! - Two phases: what all want together is read or written once, with the gaps
//!   that are worth it; what is written with holes is read before. That is found
//!   out for a few windows, and taken to be so in all; windows that are wanted as
//!   a whole are read ahead by the system where domains are long. Everything is
//!   copied between windows and buffers, and sent where memory is not shared. The
//!   rank whose domain has the share `l` of the wanted bytes does that share of
//!   the work; and the ranks come to terms.
//!
//! On a device whose model is known the first rank rehearses all ways.

use outcore_transport::Comm;

use super::coverage::wanted;
use super::domains::{Domains, Piece};
use super::exchange_cost::ExchangeCost;
use super::facts::{ALONE, Alone, Facts};
use super::kind::DomainKind;
use super::rehearse::JointRehearsal;
use super::request::Request;
use super::survey::Survey;
use super::two_phase::planned_window;
use super::way::CollectiveWay;
use super::weights::Weights;
use super::winners::won;
use crate::array::Array;
use crate::error::Result;
use crate::strategy::choose::ALL_CACHED;
use crate::strategy::profile::Cost;
use crate::strategy::{Direction, Strategy};

/// So many windows of so many bytes are looked at.
const SAMPLED: u64 = 8;
const WINDOW: u64 = 1 << 20;

/// Domains that differ by more than this factor are weighted.
const UNEVEN: f64 = 1.25;

/// What one way is expected to take for all ranks together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectiveEstimate {
    /// The way.
    pub way: CollectiveWay,
    /// The domains, of two phases.
    pub domains: Option<DomainKind>,
    /// Seconds.
    pub seconds: f64,
    /// Gaps that two phases should move along, if not what is usual.
    pub(super) gap: Option<u64>,
}

impl CollectiveEstimate {
    fn alone(strategy: Strategy, seconds: f64) -> Self {
        Self {
            way: CollectiveWay::Independent(strategy),
            domains: None,
            seconds,
            gap: None,
        }
    }

    fn two_phase(kind: DomainKind, gap: Option<u64>, seconds: f64) -> Self {
        Self {
            way: CollectiveWay::TwoPhase,
            domains: Some(kind),
            seconds,
            gap,
        }
    }
}

/// The sections of all ranks, and what each rank knows.
pub(super) struct Situation<'a> {
    array: &'a Array,
    direction: Direction,
    requests: &'a [Request],
    bounds: (u64, u64),
    /// The least memory of a rank.
    limit: u64,
    facts: Vec<Facts>,
    shared: bool,
}

impl<'a> Situation<'a> {
    /// Collective: tells what this rank knows. `survey` must know all requests.
    pub(super) fn new(
        comm: &Comm,
        array: &'a Array,
        direction: Direction,
        (requests, survey): (&'a [Request], &Survey),
    ) -> Result<Self> {
        let exchange = ExchangeCost::kept(comm);
        let own = &requests[comm.rank()];
        let own = Facts::of(array, direction, own, survey.bounds, exchange);
        let all = comm.all_gather(&[own.told()])?;
        Ok(Self {
            array,
            direction,
            requests,
            bounds: survey.bounds,
            limit: survey.limit,
            facts: all.into_iter().map(Facts::of_told).collect(),
            shared: comm.transport().shares_memory(),
        })
    }

    /// Collective: the way that is expected to be fastest, the same on all ranks.
    pub(super) fn choose(&self, comm: &Comm) -> Result<CollectiveEstimate> {
        let held = |facts: &Facts| facts.cached >= ALL_CACHED && facts.mappable > 0.0;
        if self.facts.len() == 1 || self.facts.iter().all(held) {
            return Ok(CollectiveEstimate::alone(Strategy::Auto, 0.0));
        }
        let best = self.estimates(comm)?.swap_remove(0);
        if let CollectiveWay::Independent(_) = best.way {
            // Each rank takes what is best for it.
            return Ok(CollectiveEstimate::alone(Strategy::Auto, best.seconds));
        }
        Ok(best)
    }

    /// Collective: what each way is expected to take, the fastest first.
    pub(super) fn estimates(&self, comm: &Comm) -> Result<Vec<CollectiveEstimate>> {
        let mut all = match &self.array.profile().device {
            Some(_) => self.rehearsed(comm)?,
            None => self.computed(),
        };
        all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(all)
    }

    fn computed(&self) -> Vec<CollectiveEstimate> {
        let mut all = Vec::new();
        let shares = self.shares_won();
        for (at, strategy) in ALONE.into_iter().enumerate() {
            let each = self.facts.iter().map(|facts| facts.alone[at]);
            let seconds = self.independent(each, shares.as_deref());
            if seconds.is_finite() {
                all.push(CollectiveEstimate::alone(strategy, seconds));
            }
        }
        let best = self.facts.iter().map(Facts::best_alone);
        let seconds = self.independent(best, shares.as_deref());
        if seconds.is_finite() {
            all.push(CollectiveEstimate::alone(Strategy::Auto, seconds));
        }
        let accesses = self.accesses(self.facts[0].gap as u64);
        let mut kinds = vec![DomainKind::Dynamic];
        let cores = self.abreast() as usize;
        if self.facts.len() > cores {
            kinds.push(DomainKind::Few(cores));
        }
        let mut uneven = false;
        for kind in kinds {
            let Ok(domains) = self.domains(kind) else {
                continue;
            };
            let largest = self.largest_share(&domains);
            uneven |= largest * domains.count() as f64 > UNEVEN;
            let seconds = self.two_phase(&domains, largest, &accesses);
            all.push(CollectiveEstimate::two_phase(kind, None, seconds));
        }
        if uneven && let Ok(domains) = self.domains(DomainKind::Weighted) {
            let largest = self.largest_share(&domains);
            let seconds = self.two_phase(&domains, largest, &accesses);
            let weighted = CollectiveEstimate::two_phase(DomainKind::Weighted, None, seconds);
            all.push(weighted);
        }
        all
    }

    fn domains(&self, kind: DomainKind) -> Result<Domains> {
        let weights = || Ok(Weights::of(self.bounds, self.requests));
        Domains::new(kind, self.array, self.bounds, self.facts.len(), weights)
    }

    /// Collective: the first rank rehearses, and tells.
    fn rehearsed(&self, comm: &Comm) -> Result<Vec<CollectiveEstimate>> {
        let mut kinds = vec![
            DomainKind::Dynamic,
            DomainKind::Static,
            DomainKind::Cyclic,
            DomainKind::Weighted,
        ];
        let few = [1, 2, 4, 8, 16, 32, 64, 128].into_iter();
        kinds.extend(
            few.filter(|few| *few < self.facts.len())
                .map(DomainKind::Few),
        );
        if Domains::check(DomainKind::Disks, self.array).is_ok() {
            kinds.push(DomainKind::Disks);
        }
        // Of each strategy and each kind the seconds, and of kinds the gap.
        let mut told = vec![[f64::INFINITY; 2]; 2 + kinds.len()];
        if let (0, Some(device)) = (comm.rank(), &self.array.profile().device) {
            let rehearsal = JointRehearsal {
                device,
                array: self.array,
                direction: self.direction,
                requests: self.requests,
            };
            told[0][0] = rehearsal.independent(Strategy::Direct);
            told[1][0] = rehearsal.independent(Strategy::Sieving);
            for (kind, told) in kinds.iter().zip(&mut told[2..]) {
                *told = self.rehearse_kind(&rehearsal, *kind);
            }
        }
        comm.broadcast(0, &mut told)?;
        let alone = [Strategy::Direct, Strategy::Sieving].into_iter().zip(&told);
        let alone = alone.map(|(strategy, told)| CollectiveEstimate::alone(strategy, told[0]));
        let kinds = kinds.into_iter().zip(&told[2..]);
        let kinds = kinds
            .map(|(kind, told)| CollectiveEstimate::two_phase(kind, Some(told[1] as u64), told[0]));
        Ok(alone.chain(kinds).collect())
    }

    /// The seconds of a kind with the best of a few gaps, and that gap.
    fn rehearse_kind(&self, rehearsal: &JointRehearsal<'_>, kind: DomainKind) -> [f64; 2] {
        let mut best = [f64::INFINITY, 0.0];
        let Ok(domains) = self.domains(kind) else {
            return best;
        };
        let (array, direction) = (self.array, self.direction);
        let window = planned_window(array, direction, &domains, self.requests, self.limit);
        let usual = self.array.gap(self.bounds, self.direction);
        for gap in [usual, usual / 8, usual.saturating_mul(8), 0] {
            let seconds = rehearsal.two_phase(&domains, gap, window);
            if seconds < best[0] {
                best = [seconds, gap as f64];
            }
        }
        best
    }

    /// How many ranks compute at a time.
    fn abreast(&self) -> f64 {
        self.facts[0].cores.clamp(1.0, self.facts.len() as f64)
    }

    /// The seconds with every rank for itself, each of which takes so long and
    /// has to write such a share of its section; infinite if that is not known.
    fn independent(&self, alone: impl Iterator<Item = Alone>, shares: Option<&[f64]>) -> f64 {
        let Some(shares) = shares else {
            return f64::INFINITY;
        };
        let largest = |list: &[f64]| list.iter().copied().fold(0.0, f64::max);
        let (warm, cold): (Vec<f64>, Vec<f64>) = alone
            .zip(shares)
            .map(|(alone, share)| (alone.warm * share, alone.cold * share))
            .unzip();
        let computing = largest(&warm).max(warm.iter().sum::<f64>() / self.abreast());
        let device = cold.iter().sum::<f64>();
        let device = match device > 0.0 {
            true => largest(&cold).max(device * self.common()),
            false => 0.0,
        };
        computing + device
    }

    /// How much of its section each rank has to write; `None` where that cannot
    /// be found out (see [`won`]).
    fn shares_won(&self) -> Option<Vec<f64>> {
        let ranks = 0..self.requests.len();
        if self.direction == Direction::Read {
            return Some(ranks.map(|_| 1.0).collect());
        }
        let share = |rank: usize| {
            let parts = won(self.requests, rank)?;
            let count: u64 = parts.iter().map(|part| part.count()).sum();
            Some(count as f64 / self.requests[rank].section.count().max(1) as f64)
        };
        ranks.map(share).collect()
    }

    /// The bytes that somebody moves, divided by the sum of what each does.
    fn common(&self) -> f64 {
        let gap = self.facts[0].gap as u64;
        let bytes = |stretches: &[std::ops::Range<u64>]| -> u64 {
            let all = stretches.iter();
            all.map(|stretch| stretch.end - stretch.start).sum()
        };
        let (mut union, mut sum) = (0, 0);
        let mut stretches = Vec::new();
        for piece in sampled(self.bounds).0 {
            stretches.clear();
            wanted(piece, self.requests.iter(), gap, &mut stretches);
            union += bytes(&stretches);
            for request in self.requests {
                stretches.clear();
                wanted(piece, std::iter::once(request), gap, &mut stretches);
                sum += bytes(&stretches);
            }
        }
        match sum {
            0 => 1.0,
            sum => union as f64 / sum as f64,
        }
    }

    /// The share of all wanted bytes in the domain that has most of them.
    fn largest_share(&self, domains: &Domains) -> f64 {
        if domains.are_scattered() {
            return 1.0 / domains.count() as f64;
        }
        let of_domain = |domain: usize| -> u64 {
            let piece = domains.pieces(domain, 0, u64::MAX).next();
            let shares = self.requests.iter().map(|request| {
                let share = piece.map(|piece| request.share(piece.start, piece.end));
                share.map_or(0, |share| share.end - share.start)
            });
            shares.sum()
        };
        let all: Vec<u64> = (0..domains.count()).map(of_domain).collect();
        let most = all.iter().copied().max().unwrap_or(0);
        most as f64 / all.iter().sum::<u64>().max(1) as f64
    }

    /// The seconds with two phases. What storage costs is what the first rank
    /// says.
    fn two_phase(&self, domains: &Domains, largest: f64, accesses: &Accesses) -> f64 {
        let first = &self.facts[0];
        let ranks = self.facts.len() as f64;
        let cached = self.facts.iter().map(|facts| facts.cached).sum::<f64>() / ranks;
        let streamed = first.read_ahead >= WINDOW as f64 / 8.0
            && domains.longest() as f64 >= 2.0 * first.read_ahead;
        let missing = |amount: Amount, whole: f64| {
            let whole = if streamed { whole } else { 0.0 };
            let asked = Amount {
                bytes: amount.bytes - whole,
                ..amount
            };
            (1.0 - cached) * (asked.cost(first.cold_read) + whole * first.ahead)
        };
        let (computing, device) = match self.direction {
            Direction::Read => (
                accesses.moved.cost(first.cached_read),
                missing(accesses.moved, accesses.whole),
            ),
            Direction::Write => (
                accesses.moved.cost(first.write) + accesses.read_before.cost(first.cached_read),
                missing(accesses.read_before, 0.0),
            ),
        };
        let (mut runs, mut bytes) = (0, 0);
        for request in self.requests {
            let (more, wanted) = request.runs.totals();
            runs += more;
            bytes += wanted;
        }
        let ExchangeCost {
            meeting, message, ..
        } = first.exchange;
        let exchange = match self.shared {
            true => 0.0,
            false => {
                let messages = self.facts.len() * domains.count();
                first.copy.of(0, 2 * bytes) + message.of(messages as u64, bytes)
            }
        };
        let work = computing + first.copy.of(runs, bytes) + exchange;
        let abreast = self.abreast();
        let terms = meeting * (2.0 * ranks.log2() + domains.count() as f64 / abreast);
        (work / abreast).max(work * largest) + device + terms
    }

    /// What two phases ask of the store in all.
    fn accesses(&self, gap: u64) -> Accesses {
        let mut accesses = Accesses::default();
        let mut stretches = Vec::new();
        let (pieces, weight) = sampled(self.bounds);
        for piece in pieces {
            stretches.clear();
            wanted(piece, self.requests.iter(), gap, &mut stretches);
            for stretch in &stretches {
                let len = stretch.end - stretch.start;
                accesses.moved.add(len, weight);
                if len + gap >= WINDOW {
                    accesses.whole += weight * len as f64;
                }
                let share = |request: &Request| {
                    let share = request.share(stretch.start, stretch.end);
                    share.end - share.start
                };
                if self.direction == Direction::Write
                    && self.requests.iter().map(share).sum::<u64>() < len
                {
                    accesses.read_before.add(len, weight);
                }
            }
        }
        accesses
    }
}

/// Accesses to a store, estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Accesses {
    moved: Amount,
    /// Of a write, what is read before.
    read_before: Amount,
    /// The bytes of windows of which everything is moved, but for a gap.
    whole: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Amount {
    count: f64,
    bytes: f64,
}

impl Amount {
    fn add(&mut self, bytes: u64, weight: f64) {
        self.count += weight;
        self.bytes += weight * bytes as f64;
    }

    fn cost(self, cost: Cost) -> f64 {
        cost.each * self.count + cost.byte * self.bytes
    }
}

/// A few windows between two offsets, and of how many each is one.
fn sampled((start, end): (u64, u64)) -> (impl Iterator<Item = Piece>, f64) {
    let windows = (end - start).div_ceil(WINDOW);
    let step = windows.div_ceil(SAMPLED).max(1);
    let weight = windows as f64 / windows.div_ceil(step).max(1) as f64;
    let pieces = (0..windows).step_by(step as usize).map(move |window| {
        let from = start + window * WINDOW;
        Piece {
            start: from,
            end: end.min(from + WINDOW),
            at: 0,
        }
    });
    (pieces, weight)
}

#[cfg(test)]
mod tests;
