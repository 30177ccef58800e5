//! What all ranks together would take on a device whose model is known: the
//! requests of each, as it would issue them, are timed on the model itself.
//!
//! The mathematics. The device serves callers side by side: the one whose clock
//! is earliest issues its next batch, and waits for it. What ranks copy and send
//! is far below what such devices take, and not counted. Of a domain with very
//! many requests the first windows are rehearsed, and the rest taken to be like
//! them.

use outcore_storage::DeviceModel;

use super::coverage::wanted;
use super::domains::{Domains, Piece};
use super::request::Request;
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

    /// The seconds with every rank for itself.
    pub(super) fn independent(&self, strategy: Strategy) -> f64 {
        let array = self.array.tuned(Tuning {
            strategy,
            ..self.array.tuning()
        });
        let most = self.most_each(self.requests.len());
        let callers = self.requests.iter().map(|request| {
            let plan = array.plan_of(&request.section, request.runs.clone(), self.direction);
            let rehearsal = Rehearsal {
                device: self.device,
                start: array.data_offset(),
                direction: self.direction,
                runs: &request.runs,
            };
            rehearsal.batches(plan.method, most)
        });
        self.seconds(callers.collect())
    }

    /// The seconds with two phases, with gaps of so many bytes moved along, and
    /// windows of at most so many.
    pub(super) fn two_phase(&self, domains: &Domains, gap: u64, window: u64) -> f64 {
        let window = window.min(domains.longest()).max(1);
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
            let (mut before, mut moved) = (Requests::new(), Requests::new());
            for piece in domains.pieces(domain, done, window) {
                self.stretches(piece, gap, &mut before, &mut moved);
            }
            requests += (before.len() + moved.len()) as u64;
            for all in [before, moved] {
                batches.extend(all.chunks(BATCH).map(<[_]>::to_vec));
            }
            done += 1;
        }
        let share = match rounds {
            0 => 1.0,
            rounds => done as f64 / rounds as f64,
        };
        (batches, share)
    }

    /// Adds what is moved of a piece, and what of that is read before.
    fn stretches(&self, piece: Piece, gap: u64, before: &mut Requests, moved: &mut Requests) {
        let mut stretches = Vec::new();
        wanted(piece, self.requests.iter(), gap, &mut stretches);
        let start = self.array.data_offset();
        for stretch in stretches {
            let len = stretch.end - stretch.start;
            let request = (start + stretch.start, len as usize);
            let given = self.requests.iter().map(|request| {
                let share = request.share(stretch.start, stretch.end);
                share.end - share.start
            });
            if self.direction == Direction::Write && given.sum::<u64>() < len {
                before.push(request);
            }
            moved.push(request);
        }
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
