//! [`AxisExchange`]: which positions of one axis move between which ranks.
//!
//! Along an axis that is CYCLIC(x) on P ranks before and CYCLIC(y) on Q ranks
//! after, both owners of a position repeat with the period `lcm(x P, y Q)`: so
//! the exchange is that of one period, as often as it fits, and a rest (Thakur
//! 1995, section 3.5.3, without its table of every element). Within the period
//! one walks from block end to block end, whichever comes first. Where blocks
//! of one side are so long that the other side goes round several times, what
//! a rank gets of one of them is evenly spaced, and is one [`Strip`]: that is
//! KY_TO_Y and X_TO_KX (sections 3.5.1 and 3.5.2), and BLOCK to CYCLIC
//! (3.3, 3.4).
//!
//! Each pair of ranks exchanges its positions in ascending order, as if packed
//! end to end; both ranks know where each strip stands in that order. (The
//! thesis holds that the sequence of sources does not repeat where P is no
//! multiple of k, and prints the send rule of figure 3.5 off by one; here both
//! follow from the walk.)

use std::collections::HashMap;
use std::ops::Range;

use super::side::{AxisSide, gcd};

/// Evenly spaced pieces of adjacent elements that move between two ranks.
///
/// Piece `j` of round `r` stands at `source + j source_step + r
/// source_advance` of the local axis of the source, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strip {
    /// The coordinate of the rank that has the elements before.
    pub source_rank: u64,
    /// The coordinate of the rank that has them after.
    pub target_rank: u64,
    /// The elements of a piece.
    pub len: u64,
    /// The pieces of a round.
    pub count: u64,
    /// On the source.
    pub source: Place,
    /// On the target.
    pub target: Place,
    /// Among all that the source sends to the target.
    pub packed: Place,
}

/// Where the pieces of a [`Strip`] stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// The first.
    pub at: u64,
    /// From one piece to the next.
    pub step: u64,
    /// From one round to the next.
    pub advance: u64,
}

/// Which of the exchanges of an axis are looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Only from this rank.
    pub source: Option<u64>,
    /// Only to this rank.
    pub target: Option<u64>,
}

/// The exchanges along one axis, in ascending order of positions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AxisExchange {
    strips: Vec<Strip>,
    rounds: u64,
    period: u64,
    rest: Vec<Strip>,
    /// How many positions each pair exchanges.
    counts: HashMap<(u64, u64), u64>,
}

impl AxisExchange {
    /// What moves of the positions in `range`. No strip spans more than `cut`
    /// positions, so that whoever goes through the strips in order stays near
    /// on both sides.
    pub fn new(
        source: &AxisSide,
        target: &AxisSide,
        range: Range<u64>,
        keep: Keep,
        cut: u64,
    ) -> Self {
        let length = range.end.saturating_sub(range.start);
        let cut = match source.ranks() == 1 && target.ranks() == 1 {
            true => u64::MAX,
            false => cut.max(1),
        };
        let period = common_period(source, target).filter(|period| *period <= length);
        let rounds = period.map_or(0, |period| length / period);
        let period = period.unwrap_or(0);
        let mut walk = Walk {
            source,
            target,
            keep,
            cut,
            counts: HashMap::new(),
            strips: Vec::new(),
        };
        walk.go(range.start..range.start + if rounds > 0 { period } else { 0 });
        let mut strips = std::mem::take(&mut walk.strips);
        for strip in &mut strips {
            let pair = (strip.source_rank, strip.target_rank);
            strip.source.advance = source.advance(pair.0, period);
            strip.target.advance = target.advance(pair.1, period);
            strip.packed.advance = walk.counts[&pair];
        }
        walk.counts.values_mut().for_each(|count| *count *= rounds);
        walk.go(range.start + rounds * period..range.end);
        Self {
            strips,
            rounds,
            period,
            rest: walk.strips,
            counts: walk.counts,
        }
    }

    /// The strips of one period, in ascending order of their first position.
    pub fn strips(&self) -> &[Strip] {
        &self.strips
    }

    /// How often the period fits.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The positions of a period; 0 if it does not fit once.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// The strips after the last whole period.
    pub fn rest(&self) -> &[Strip] {
        &self.rest
    }

    /// How many positions move from one rank to another.
    pub fn count(&self, source: u64, target: u64) -> u64 {
        self.counts.get(&(source, target)).copied().unwrap_or(0)
    }

    /// The pairs of ranks between which something moves, ascending.
    pub fn pairs(&self) -> Vec<(u64, u64)> {
        let moving = self.counts.iter().filter(|(_, count)| **count > 0);
        let mut pairs: Vec<_> = moving.map(|(pair, _)| *pair).collect();
        pairs.sort_unstable();
        pairs
    }

    /// How many positions move in all.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// After how many positions both sides repeat; never if nothing is divided.
fn common_period(source: &AxisSide, target: &AxisSide) -> Option<u64> {
    if source.ranks() == 1 && target.ranks() == 1 {
        return None;
    }
    let (one, other) = (source.period()?, target.period()?);
    let divisor = gcd(u128::from(one), u128::from(other)) as u64;
    (one / divisor).checked_mul(other)
}

/// The walk from block end to block end.
struct Walk<'a> {
    source: &'a AxisSide,
    target: &'a AxisSide,
    keep: Keep,
    cut: u64,
    counts: HashMap<(u64, u64), u64>,
    strips: Vec<Strip>,
}

impl Walk<'_> {
    fn go(&mut self, range: Range<u64>) {
        self.strips.clear();
        let mut at = range.start;
        while at < range.end {
            // 1. Over what nobody asked for.
            if let Some(next) = self.skip(at) {
                at = next;
                continue;
            }
            // 2. No further than this.
            let cut = self.cut - (at - range.start) % self.cut;
            let limit = cut.min(range.end - at);
            let (before, after) = (self.source.remaining(at), self.target.remaining(at));
            // 3. As long as one side stays in its block while the other goes
            // round, or else up to the next end of a block.
            at += match self.around(at, before.min(limit), after.min(limit)) {
                0 => {
                    let length = before.min(after).min(limit);
                    self.run(at, length);
                    length
                }
                passed => passed,
            };
        }
    }

    /// Where to go on if what stands at `at` is not asked for.
    fn skip(&self, at: u64) -> Option<u64> {
        let sides = [
            (self.source, self.keep.source),
            (self.target, self.keep.target),
        ];
        let next = sides.into_iter().filter_map(|(side, rank)| {
            let rank = rank.filter(|rank| side.owner(at) != *rank)?;
            Some(side.skip_to(rank, at))
        });
        next.max()
    }

    /// Adds strips for the whole rounds of one side within a block of the
    /// other, and returns how many positions they take.
    fn around(&mut self, at: u64, before: u64, after: u64) -> u64 {
        if !(self.source.is_unit() && self.target.is_unit()) {
            return 0;
        }
        let (long, fine) = match before >= after {
            true => (before, self.target),
            false => (after, self.source),
        };
        let Some(period) = fine.period().filter(|_| fine.ranks() > 1) else {
            return 0;
        };
        let rounds = long / period;
        if rounds < 2 || !fine.begins_block(at) {
            return 0;
        }
        let (block, source_is_fine) = (fine.block(), before < after);
        for place in 0..fine.ranks() {
            let (step, fine_step) = (period, block);
            let steps = match source_is_fine {
                true => (fine_step, step),
                false => (step, fine_step),
            };
            self.strip(at + place * block, (block, rounds), steps);
        }
        rounds * period
    }

    /// Adds `length` positions of one block of both sides.
    fn run(&mut self, at: u64, length: u64) {
        match (self.source.step(), self.target.step()) {
            (1, 1) => self.strip(at, (length, 1), (length, length)),
            steps => self.strip(at, (1, length), steps),
        }
    }

    fn strip(&mut self, at: u64, (len, count): (u64, u64), steps: (u64, u64)) {
        let pair = (self.source.owner(at), self.target.owner(at));
        let asked = |asked: Option<u64>, rank| asked.is_none_or(|asked| asked == rank);
        if !asked(self.keep.source, pair.0) || !asked(self.keep.target, pair.1) {
            return;
        }
        let packed = self.counts.entry(pair).or_default();
        let place = |at, step| Place {
            at,
            step,
            advance: 0,
        };
        self.strips.push(Strip {
            source_rank: pair.0,
            target_rank: pair.1,
            len,
            count,
            source: place(self.source.local(at), steps.0),
            target: place(self.target.local(at), steps.1),
            packed: place(*packed, len),
        });
        *packed += len * count;
    }
}
