//! [`AllToAllCost`]: what all-to-all costs on a transport, and which algorithm
//! is therefore chosen.
//!
//! The thesis' model, `T = sum over the steps of (alpha + bytes * beta)`, with
//! what a running transport shows: a step, in which a rank waits for others; a
//! message, which occupies its processor; a byte. Of the algorithms with one
//! message a step the general one takes the fewest steps, so it stands for them
//! all: between ranks of one machine they differ in nothing else. The choice
//! uses only what all ranks know, the number of ranks, the length of parts and
//! the costs, which must be the same on all ([`Comm::with_all_to_all_cost`]).

use super::algorithm::AllToAll;
use crate::comm::Comm;

/// What moving parts between ranks costs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AllToAllCost {
    /// A step: waiting for a message that its sender sends at the same time.
    pub step: f64,
    /// A message: what its sender and its receiver do for it.
    pub message: f64,
    /// A byte of a message.
    pub byte: f64,
    /// A meeting of ranks that share memory, for each doubling of their number.
    pub meeting: f64,
    /// A byte that goes through shared memory.
    pub shared_byte: f64,
}

impl Default for AllToAllCost {
    /// Ranks on one machine.
    fn default() -> Self {
        Self {
            step: 1e-6,
            message: 1e-6,
            byte: 0.16e-9,
            meeting: 0.5e-6,
            shared_byte: 0.12e-9,
        }
    }
}

impl AllToAllCost {
    /// The seconds that it expects `ranks` ranks to take with parts of `bytes`
    /// bytes; `None` for algorithms that `auto` does not consider.
    pub fn seconds(&self, algorithm: AllToAll, ranks: usize, bytes: usize) -> Option<f64> {
        let (others, bytes) = (ranks.saturating_sub(1) as f64, bytes as f64);
        let doublings = f64::from(ranks.next_power_of_two().trailing_zeros());
        let message = |bytes: f64| self.message + self.byte * bytes;
        Some(match algorithm {
            AllToAll::Shared => self.meeting * doublings + self.shared_byte * bytes * others,
            AllToAll::Messages => self.step + others * message(bytes),
            AllToAll::Gen => others * (self.step + message(bytes)),
            // Half of the parts a step, gathered before and spread after it.
            AllToAll::Bruck => {
                let bundle = bytes * ranks.div_ceil(2) as f64;
                doublings * (self.step + message(bundle) + 2.0 * self.shared_byte * bundle)
            }
            _ => return None,
        })
    }

    /// The fastest for `ranks` ranks with parts of `bytes` bytes; `shared` if
    /// they may share memory.
    pub fn best(&self, ranks: usize, bytes: usize, shared: bool) -> AllToAll {
        // Every other one takes a step at least; for few bytes, to look at them
        // would take a part of what the exchange does.
        let meeting = self.seconds(AllToAll::Shared, ranks, bytes);
        if shared && meeting.is_some_and(|seconds| seconds <= self.step) {
            return AllToAll::Shared;
        }
        let considered = [
            AllToAll::Shared,
            AllToAll::Messages,
            AllToAll::Bruck,
            AllToAll::Gen,
        ];
        let considered = considered.into_iter().skip(usize::from(!shared));
        // Of equals the first, which needs the fewest steps.
        let best = considered
            .filter_map(|algorithm| Some((self.seconds(algorithm, ranks, bytes)?, algorithm)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(AllToAll::Messages, |(_, algorithm)| algorithm)
    }
}

impl Comm {
    /// The algorithm for parts of that length; without a length for all, one that
    /// needs to know none. It may turn out to need memory that these ranks do not
    /// share: then it is to be chosen again without `shared`.
    pub(super) fn choose_all_to_all(&self, equal: Option<usize>, shared: bool) -> AllToAll {
        match (equal, shared) {
            (Some(bytes), _) => self.all_to_all_cost().best(self.size(), bytes, shared),
            (None, true) => AllToAll::Shared,
            (None, false) => AllToAll::Messages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_steps_for_small_parts_and_few_bytes_for_large_ones() {
        let cost = AllToAllCost::default();
        for ranks in [8, 16, 64, 1000] {
            assert_eq!(cost.best(ranks, 8, false), AllToAll::Bruck, "{ranks}");
            assert_eq!(cost.best(ranks, 1 << 20, false), AllToAll::Messages);
            assert_eq!(cost.best(ranks, 8, true), AllToAll::Shared);
        }
        // Two ranks have one message each, whatever the algorithm.
        assert_eq!(cost.best(2, 8, false), AllToAll::Messages);
        // Where a message is dear to wait for, and shared memory slow.
        let network = AllToAllCost {
            step: 50e-6,
            shared_byte: 1e-9,
            ..cost
        };
        assert_eq!(network.best(4, 1 << 20, true), AllToAll::Messages);
        assert_eq!(network.best(1, 100, true), AllToAll::Shared);
    }
}
