//! [`Groups`] of ranks that take turns in reading and writing, and
//! [`PipelineModel`], which tells how many of them are best (No et al. 1998,
//! section 3.2).
//!
//! The mathematics. `P` ranks move chunks of `b` bytes each; in a step the `S =
//! P / G` ranks of one of `G` groups have to do with the file. A message costs
//! `e` seconds and `c` a byte, and `r` is what a byte costs to pack or to put into
//! its place. In the exchange of a step a rank of the group receives from all, and
//! everybody sends to the group: `x(S) = max(P e + b c, S (e + b c / P))`. Before,
//! everybody packs for the group, and after, the group puts all into its place
//! (reading, the other way round), so a step takes the ranks `t(S) = S b r / P +
//! x(S) + b r`. Input or output of the group takes `d(S)`, which is what the device
//! takes for `S` requests of `b` bytes at the same time.
//!
//! - One group: nothing overlaps; each of `C` chunks takes `t(P) + d(P)`.
//! - More: the file of a group is beside the step of the next ones, so
//!   `t(S) + (C G - 1) max(t(S), d(S)) + d(S)`.
//!
//! On a device whose model is known the steps are gone through instead: each takes
//! `t(S)`, begins when the one before has ended and the group is done with its last
//! chunk, and ends with requests to the device, which wait in its queues.
//!
//! More groups hide more, but in each step a rank of the group takes `P` messages
//! and places a whole chunk, and a group smaller than the number of disks leaves
//! disks without work.

use std::ops::Range;

use outcore_storage::{Device, DeviceModel};
use outcore_transport::Comm;

use super::window::{Backing, Part};
use crate::collective::ExchangeCost;
use crate::error::Result;
use crate::strategy::Direction;
use crate::strategy::profile::Cost;

/// How many groups of ranks take turns in reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Groups {
    /// As many as [`PipelineModel`] finds best.
    #[default]
    Auto,
    /// So many; one is the plain collective form.
    Of(usize),
}

/// What it is assumed to cost to pack a byte, or to put it into its place: 8 ns for
/// an element of 8 bytes.
const REARRANGE: f64 = 1e-9;

/// The ranks of a group.
pub(super) fn members(ranks: usize, groups: usize, group: usize) -> Range<usize> {
    (group * ranks).div_ceil(groups)..((group + 1) * ranks).div_ceil(groups)
}

/// What an irregular call in messages is expected to take with any number of
/// groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PipelineModel {
    /// The ranks.
    pub ranks: usize,
    /// The bytes of a rank that are moved at a time.
    pub chunk: u64,
    /// How often.
    pub chunks: u64,
    /// What a message costs.
    pub message: Cost,
    /// The seconds that it takes to pack a byte, or to put it into its place.
    pub rearrange: f64,
    /// What the storage costs.
    pub storage: PipelineStorage,
}

/// What input and output of several ranks at the same time costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PipelineStorage {
    /// A device whose model is known.
    Device(DeviceModel),
    /// A request costs this; so many go on at the same time.
    Requests(Cost, f64),
}

impl PipelineModel {
    /// Collective: what the first rank knows, on all ranks.
    pub(super) fn of(
        comm: &Comm,
        parts: &[Part],
        direction: Direction,
        (chunk, chunks): (u64, u64),
    ) -> Result<Self> {
        let array = parts.iter().find_map(|part| match &part.backing {
            Backing::File(array, _) => Some(array),
            Backing::Memory { .. } => None,
        });
        let device = array.and_then(|array| array.profile().device);
        let (storage, abreast) = match (array, direction) {
            (None, _) => (
                Cost {
                    each: 0.0,
                    byte: 0.0,
                },
                1.0,
            ),
            (Some(array), Direction::Read) => (array.profile().cold_read, array.profile().parallel),
            (Some(array), Direction::Write) => (array.profile().write, 1.0),
        };
        let message = ExchangeCost::kept(comm).message;
        let mut told = [
            message.each,
            message.byte,
            storage.each,
            storage.byte,
            abreast,
        ];
        comm.broadcast(0, &mut told)?;
        let [each, byte, request, request_byte, abreast] = told;
        let cost = Cost {
            each: request,
            byte: request_byte,
        };
        Ok(Self {
            ranks: comm.size(),
            chunk,
            chunks,
            message: Cost { each, byte },
            rearrange: REARRANGE,
            storage: match device {
                Some(device) => PipelineStorage::Device(device),
                None => PipelineStorage::Requests(cost, abreast),
            },
        })
    }

    /// The number of groups that is expected to be best, and its seconds.
    pub fn best(&self) -> (usize, f64) {
        let all = (1..=self.ranks.max(1)).filter(|groups| self.is_distinct(*groups));
        let all = all.map(|groups| (groups, self.seconds(groups)));
        let best = all.min_by(|a, b| a.1.total_cmp(&b.1));
        best.unwrap_or((1, 0.0))
    }

    /// Whether no smaller number of groups has the same size of them.
    fn is_distinct(&self, groups: usize) -> bool {
        groups == 1 || self.ranks.div_ceil(groups) < self.ranks.div_ceil(groups - 1)
    }

    /// The seconds with so many groups.
    pub fn seconds(&self, groups: usize) -> f64 {
        let members = self.ranks.div_ceil(groups.max(1));
        let step = self.step(members);
        if let PipelineStorage::Device(device) = self.storage
            && let Ok(device) = Device::new(device)
        {
            return self.rehearsed(&device, groups.max(1), step);
        }
        let device = self.device(members);
        let chunks = self.chunks as f64;
        if groups <= 1 {
            return chunks * (step + device);
        }
        let steps = chunks * groups as f64;
        step + (steps - 1.0).max(0.0) * step.max(device) + device
    }

    /// The seconds on a device, step by step, of which each takes `step` besides.
    fn rehearsed(&self, device: &Device, groups: usize, step: f64) -> f64 {
        let nanoseconds = |seconds: f64| (seconds * 1e9).round() as u64;
        let apart = self.chunk.saturating_mul(self.chunks.max(1));
        let (mut clock, mut done) = (0u64, vec![0u64; groups]);
        for chunk in 0..self.chunks {
            for (group, done) in done.iter_mut().enumerate() {
                clock = clock.max(*done).saturating_add(nanoseconds(step));
                let offset = |rank: usize| rank as u64 * apart + chunk * self.chunk;
                let requests = members(self.ranks, groups, group)
                    .map(|rank| (offset(rank), self.chunk as usize));
                *done = device.enqueue(clock, requests);
            }
        }
        done.into_iter().fold(clock, u64::max) as f64 / 1e9
    }

    /// The seconds that a step of a group of so many ranks takes besides input and
    /// output.
    pub fn step(&self, members: usize) -> f64 {
        let chunk = self.chunk as f64 * self.rearrange;
        members as f64 * chunk / self.ranks as f64 + self.exchange(members) + chunk
    }

    /// The seconds of an exchange with a group of so many ranks.
    pub fn exchange(&self, members: usize) -> f64 {
        let (ranks, bytes) = (self.ranks as f64, self.chunk as f64);
        let Cost { each, byte } = self.message;
        let receive = ranks * each + bytes * byte;
        let send = members as f64 * (each + bytes / ranks * byte);
        receive.max(send)
    }

    /// The seconds of input or output of so many ranks.
    pub fn device(&self, members: usize) -> f64 {
        match self.storage {
            PipelineStorage::Requests(cost, abreast) => {
                let (count, members) = (abreast.clamp(1.0, members as f64), members as f64);
                members * cost.each / count + members * self.chunk as f64 * cost.byte
            }
            PipelineStorage::Device(device) => {
                let apart = self.chunk.saturating_mul(self.chunks.max(1));
                let requests =
                    (0..members as u64).map(|rank| [[(rank * apart, self.chunk as usize)]]);
                let ends = device.time_of_callers(requests).unwrap_or_default();
                ends.into_iter().max().map_or(0.0, |end| end.as_secs_f64())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_divide_the_ranks() {
        for ranks in 1..20 {
            for groups in 1..=ranks {
                let all = (0..groups).flat_map(|group| members(ranks, groups, group));
                assert!(all.eq(0..ranks));
                assert!((0..groups).all(|group| !members(ranks, groups, group).is_empty()));
            }
        }
    }
}
