//! What all ranks together would take on a device whose model is known: the
//! requests of each, as it would issue them, are timed on the model itself.
//!
//! The mathematics. The device serves callers side by side: the one whose clock
//! is earliest issues its next batch, and waits for it. What ranks copy and send
//! is far below what such devices take, and not counted. Of a domain with very
//! many requests the first windows are rehearsed, and the rest taken to be like
//! them.

use std::ops::Range;

use outcore_storage::DeviceModel;

use super::coverage::wanted;
use super::domains::{Domains, Piece};
use super::request::Request;
use super::winners::won;
use crate::array::Array;
use crate::strategy::batch::BATCH;
use crate::strategy::rehearse::{Rehearsal, Requests};
use crate::strategy::{Direction, Strategy, Tuning};

/// So many requests are rehearsed of each way.
const MOST: u64 = 1 << 17;

/// The sections of all ranks on a device.
pub(super) struct JointRehearsal<'a> {
    pub(super) device: &'a DeviceModel,
    pub(super) array: &'a Array,
    pub(super) direction: Direction,
    pub(super) requests: &'a [Request],
}

impl JointRehearsal<'_> {
    fn most_each(&self, callers: usize) -> u64 {
        (MOST / callers.max(1) as u64).max(1)
    }

    /// The seconds with every rank for itself; infinite where it cannot be told
    /// what each has to write (see [`won`]).
    pub(super) fn independent(&self, strategy: Strategy) -> f64 {
        let array = self.array.tuned(Tuning {
            strategy,
            ..self.array.tuning()
        });
        let ranks = 0..self.requests.len();
        let callers: Option<Vec<_>> = ranks.map(|rank| self.alone(&array, rank)).collect();
        callers.map_or(f64::INFINITY, |callers| self.seconds(callers))
    }

    /// The batches of one rank for itself, and which share of its work they are.
    fn alone(&self, array: &Array, rank: usize) -> Option<(Vec<Requests>, f64)> {
        let own = &self.requests[rank];
        let parts = match self.direction {
            Direction::Read => vec![(own.section.clone(), own.runs.clone())],
            Direction::Write => {
                let parts = won(self.requests, rank)?.into_iter().map(|positions| {
                    let runs = array.layout().runs_at(&own.section, &positions).ok()?;
                    Some((own.section.select(&positions), runs))
                });
                parts.collect::<Option<Vec<_>>>()?
            }
        };
        let most = self.most_each(self.requests.len());
        let (mut batches, mut least) = (Vec::new(), 1.0);
        for (section, runs) in parts {
            let plan = array.plan_of(&section, runs.clone(), self.direction);
            let rehearsal = Rehearsal {
                device: self.device,
                start: array.data_offset(),
                direction: self.direction,
                runs: &runs,
            };
            let (more, share) = rehearsal.batches(plan.method, most);
            batches.extend(more);
            least = share.min(least);
        }
        Some((batches, least))
    }

    /// The seconds with two phases, with gaps of so many bytes moved along, and
    /// windows of so many.
    pub(super) fn two_phase(&self, domains: &Domains, gap: u64, window: u64) -> f64 {
        let callers = (0..domains.count()).map(|domain| self.windows(domains, domain, gap, window));
        self.seconds(callers.collect())
    }

    /// The batches of one aggregator, and which share of its domain they are.
    fn windows(
        &self,
        domains: &Domains,
        domain: usize,
        gap: u64,
        window: u64,
    ) -> (Vec<Requests>, f64) {
        let most = self.most_each(domains.count());
        let rounds = domains.length(domain).div_ceil(window);
        let (mut batches, mut requests, mut done) = (Vec::new(), 0, 0);
        while done < rounds && requests < most {
            // Pieces with holes are read and written one by one, the others
            // together.
            let mut together = Requests::new();
            for piece in domains.pieces(domain, done, window) {
                let (moved, holes) = self.stretches(piece, gap);
                requests += moved.len() as u64;
                match holes {
                    false => together.extend(moved),
                    true => (0..2).for_each(|_| issue(&mut batches, &moved)),
                }
            }
            issue(&mut batches, &together);
            done += 1;
        }
        let share = match rounds {
            0 => 1.0,
            rounds => done as f64 / rounds as f64,
        };
        (batches, share)
    }

    /// What is moved of a piece, and whether it is written with holes.
    fn stretches(&self, piece: Piece, gap: u64) -> (Requests, bool) {
        let mut stretches = Vec::new();
        wanted(piece, self.requests.iter(), gap, &mut stretches);
        let holes = |stretch: &Range<u64>| {
            let given = self.requests.iter().map(|request| {
                let share = request.share(stretch.start, stretch.end);
                share.end - share.start
            });
            given.sum::<u64>() < stretch.end - stretch.start
        };
        let holes = self.direction == Direction::Write && stretches.iter().any(holes);
        let start = self.array.data_offset();
        let moved = stretches.into_iter().map(|stretch| {
            let len = (stretch.end - stretch.start) as usize;
            (start + stretch.start, len)
        });
        (moved.collect(), holes)
    }

    /// When the last of all callers has ended, each stretched by its share.
    fn seconds(&self, callers: Vec<(Vec<Requests>, f64)>) -> f64 {
        let (batches, shares): (Vec<_>, Vec<_>) = callers.into_iter().unzip();
        let Ok(times) = self.device.time_of_callers(batches) else {
            return f64::INFINITY;
        };
        let times = times.iter().zip(shares);
        times
            .map(|(time, share)| time.as_secs_f64() / share)
            .fold(0.0, f64::max)
    }
}

/// Adds requests, as many at a time as a store is asked for.
fn issue(batches: &mut Vec<Requests>, requests: &[(u64, usize)]) {
    batches.extend(requests.chunks(BATCH).map(<[_]>::to_vec));
}
