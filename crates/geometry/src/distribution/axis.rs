//! [`AxisDistribution`], one axis' kind of distribution, and its arithmetic:
//! [`DistributedAxis`].
//!
//! All kinds are one, CYCLIC(m), with the formulas that the parent module
//! states (Thakur 1995, section 3.2). What a rank owns of an axis is its
//! blocks, `m P` apart; or, seen the other way, for each of the `m` places in
//! a block the progression of stride `m P` through that place. Whichever are
//! fewer describe it: never more than about the square root of what it owns.
//!
//! Invariants: `extent < 2^63`, `ranks >= 1`, `1 <= block <= max(extent, 1)`.

use std::fmt;
use std::str::FromStr;

use crate::axis::AxisSection;
use crate::error::{Error, Result};

/// How one axis of an array is distributed over the ranks of one grid axis.
///
/// As text `block`, `block(m)`, `cyclic`, `cyclic(m)` or `*`, in any case.
///
/// ```
/// use outcore_geometry::AxisDistribution;
/// assert_eq!("CYCLIC(4)".parse(), Ok(AxisDistribution::CyclicSize(4)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AxisDistribution {
    /// One block per rank, all of them as large as the first: BLOCK.
    Block,
    /// One block of this many indices per rank: BLOCK(m).
    BlockSize(u64),
    /// Single indices dealt to the ranks in turn: CYCLIC.
    Cyclic,
    /// Blocks of this many indices dealt to the ranks in turn: CYCLIC(m).
    CyclicSize(u64),
    /// Not distributed: the whole axis on every rank that has part of it.
    Collapsed,
}

impl AxisDistribution {
    /// The block size asked for, where one is.
    pub(super) fn size(self) -> Option<u64> {
        match self {
            Self::BlockSize(size) | Self::CyclicSize(size) => Some(size),
            Self::Cyclic => Some(1),
            Self::Block | Self::Collapsed => None,
        }
    }
}

impl fmt::Display for AxisDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block => write!(f, "block"),
            Self::BlockSize(size) => write!(f, "block({size})"),
            Self::Cyclic => write!(f, "cyclic"),
            Self::CyclicSize(size) => write!(f, "cyclic({size})"),
            Self::Collapsed => write!(f, "*"),
        }
    }
}

impl FromStr for AxisDistribution {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        read_kind(text, text, 0)
    }
}

/// Reads `part`, which begins at character `position` of `text`.
pub(super) fn read_kind(part: &str, text: &str, position: usize) -> Result<AxisDistribution> {
    let error = |problem: String| Error::Text {
        what: "distribution",
        text: text.into(),
        position: position + part.chars().take_while(|c| c.is_whitespace()).count(),
        problem,
    };
    let word = part.trim().to_ascii_lowercase();
    let (name, size) = match word.split_once('(') {
        Some((name, rest)) => (name.trim_end(), Some(rest)),
        None => (word.as_str(), None),
    };
    let size = match size {
        None => None,
        Some(rest) => {
            let digits = rest.strip_suffix(')').map(str::trim).unwrap_or_default();
            let size = digits.parse().map_err(|_| {
                error(format!(
                    "'{}' needs a whole number in parentheses, as in block(8)",
                    part.trim()
                ))
            })?;
            Some(size)
        }
    };
    match (name, size) {
        ("block", None) => Ok(AxisDistribution::Block),
        ("block", Some(size)) => Ok(AxisDistribution::BlockSize(size)),
        ("cyclic", None) => Ok(AxisDistribution::Cyclic),
        ("cyclic", Some(size)) => Ok(AxisDistribution::CyclicSize(size)),
        ("*", None) => Ok(AxisDistribution::Collapsed),
        _ => Err(error(format!(
            "'{}' is none of block, block(m), cyclic, cyclic(m) and *",
            part.trim()
        ))),
    }
}

/// One axis of an array, distributed over the ranks of one grid axis.
///
/// The ranks meant here are coordinates along that grid axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DistributedAxis {
    kind: AxisDistribution,
    extent: u64,
    ranks: u64,
    /// At most `extent`, except that it is at least 1.
    block: u64,
    /// `block * ranks`, or `u64::MAX`, which exceeds every extent as well.
    pub(crate) period: u64,
}

impl DistributedAxis {
    /// Distributes an axis of `extent` indices over `ranks` ranks.
    pub fn new(kind: AxisDistribution, extent: u64, ranks: u64) -> Result<Self> {
        if extent > i64::MAX as u64 {
            return Err(Error::Overflow(format!("an extent of {extent}")));
        }
        if ranks == 0 {
            return Err(Error::invalid(
                "a grid needs at least 1 rank along every axis, not 0",
            ));
        }
        if kind.size() == Some(0) {
            return Err(Error::invalid(format!(
                "{kind} has blocks of size 0: the least is 1"
            )));
        }
        match kind {
            AxisDistribution::BlockSize(size) if size.saturating_mul(ranks) < extent => {
                return Err(Error::invalid(format!(
                    "{kind} on {ranks} ranks holds {} indices, but the extent is {extent}: blocks \
                     of {} at least are needed",
                    size * ranks,
                    extent.div_ceil(ranks)
                )));
            }
            AxisDistribution::Collapsed if ranks != 1 => {
                return Err(Error::invalid(format!(
                    "a collapsed axis (*) needs exactly 1 rank along it, not {ranks}"
                )));
            }
            _ => {}
        }
        // A single rank has one block, however it is called.
        let block = if ranks == 1 { None } else { kind.size() };
        let block = block.unwrap_or(extent.div_ceil(ranks)).min(extent).max(1);
        Ok(Self {
            kind,
            extent,
            ranks,
            block,
            period: block.saturating_mul(ranks),
        })
    }

    /// An axis that is not distributed; `extent` must be below 2^63.
    pub(crate) fn collapsed(extent: u64) -> Self {
        Self {
            kind: AxisDistribution::Collapsed,
            extent,
            ranks: 1,
            block: extent.max(1),
            period: extent.max(1),
        }
    }

    /// The kind of distribution, as given.
    pub fn kind(&self) -> AxisDistribution {
        self.kind
    }

    /// How many indices the axis has.
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// How many ranks share the axis.
    pub fn ranks(&self) -> u64 {
        self.ranks
    }

    /// The size of the blocks that are dealt to the ranks. At most the extent,
    /// and the extent if there is one rank, but at least 1.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// How many ranks own at least one index: the first so many.
    pub fn used_ranks(&self) -> u64 {
        self.extent.div_ceil(self.block).min(self.ranks)
    }

    /// The rank that owns `index`, which must be below the extent.
    pub fn owner(&self, index: u64) -> u64 {
        debug_assert!(index < self.extent);
        index / self.block % self.ranks
    }

    /// The local index of `index`, on the rank that owns it.
    pub fn to_local(&self, index: u64) -> u64 {
        debug_assert!(index < self.extent);
        index / self.period * self.block + index % self.block
    }

    /// The index that is `local` on `rank`, which must own more than `local`.
    pub fn to_global(&self, rank: u64, local: u64) -> u64 {
        debug_assert!(local < self.local_count(rank));
        local / self.block * self.period + rank * self.block + local % self.block
    }

    /// The indices that are `lower..upper` on `rank`, which must own as many:
    /// evenly spaced if they are, or else a list.
    pub fn globals(&self, rank: u64, lower: u64, upper: u64) -> AxisSection {
        if lower >= upper {
            return AxisSection::span(0, 0);
        }
        let place = |local| self.to_global(rank, local);
        let (first, last) = (place(lower), place(upper - 1));
        if last - first == upper - 1 - lower {
            return AxisSection::span(first, last + 1);
        }
        if self.block == 1 {
            return progression(first, last, upper - lower);
        }
        let all: Vec<u64> = (lower..upper).map(place).collect();
        AxisSection::list(all).expect("indices ascend with local ones")
    }

    /// How many indices `rank` owns.
    pub fn local_count(&self, rank: u64) -> u64 {
        self.count_below(rank, self.extent)
    }

    /// How many indices below `limit` `rank` owns.
    pub fn count_below(&self, rank: u64, limit: u64) -> u64 {
        if rank >= self.ranks {
            return 0;
        }
        let limit = limit.min(self.extent);
        let started = (limit % self.period).saturating_sub(rank.saturating_mul(self.block));
        limit / self.period * self.block + started.min(self.block)
    }

    /// What `rank` owns, as disjoint progressions ordered by their first
    /// index: one per block, or one per place in a block, whichever is less.
    pub fn sections(&self, rank: u64) -> Vec<AxisSection> {
        self.sections_within(rank, 0, self.extent)
    }

    /// What `rank` owns from `lower` up to, but not including, `upper`; ordered
    /// only if `lower` is 0.
    pub(crate) fn sections_within(&self, rank: u64, lower: u64, upper: u64) -> Vec<AxisSection> {
        let upper = upper.min(self.extent);
        let start = rank.saturating_mul(self.block);
        if rank >= self.ranks || start >= upper || lower >= upper {
            return Vec::new();
        }
        // The rank's blocks, counted from 0, that reach into the bounds.
        let first = match lower.checked_sub(start + self.block) {
            None => 0,
            Some(beyond) => beyond / self.period + 1,
        };
        let end = (upper - start).div_ceil(self.period);
        let block_start = |block: u64| start + block * self.period;
        if end.saturating_sub(first) <= self.block {
            let span = |block| {
                let begin = block_start(block);
                AxisSection::span(begin.max(lower), (begin + self.block).min(upper))
            };
            return (first..end).map(span).collect();
        }
        let mut sections = Vec::new();
        for place in 0..self.block {
            let in_first = block_start(first) + place;
            let begin = if in_first < lower {
                in_first + self.period
            } else {
                in_first
            };
            if begin < upper {
                let more = (upper - 1 - begin) / self.period;
                sections.push(progression(begin, begin + more * self.period, more + 1));
            }
        }
        sections
    }

    /// The indices of `taken` that `rank` owns, and their local indices: the
    /// one has as many as the other, in the same order.
    pub(super) fn owned_parts(&self, rank: u64, taken: &AxisSection) -> Vec<[AxisSection; 2]> {
        if taken.stride().is_none() {
            let indices = (0..taken.count()).map(|position| taken.index(position));
            let owned: Vec<u64> = indices
                .filter(|i| *i < self.extent && self.owner(*i) == rank)
                .collect();
            let local: Vec<u64> = owned.iter().map(|index| self.to_local(*index)).collect();
            let list = |indices| AxisSection::list(indices).expect("local indices ascend too");
            return if owned.is_empty() {
                vec![]
            } else {
                vec![[list(owned), list(local)]]
            };
        }
        let (lower, upper) = taken.bounds();
        let sections = self.sections_within(rank, lower, upper).into_iter();
        let part = |section: AxisSection| {
            // Inside one block, or at one place of every block, equal steps
            // are equal steps among the local indices too.
            let both = section.intersect(taken);
            let (first, last, count) = (both.first()?, both.last()?, both.count());
            let local = progression(self.to_local(first), self.to_local(last), count);
            Some([progression(first, last, count), local])
        };
        let mut parts: Vec<_> = sections.filter_map(part).collect();
        parts.sort_by_key(|[global, _]| global.first());
        parts
    }
}

/// The `count >= 1` evenly spaced indices from `first` to `last`.
pub(crate) fn progression(first: u64, last: u64, count: u64) -> AxisSection {
    let stride = if count > 1 {
        (last - first) / (count - 1)
    } else {
        1
    };
    AxisSection::range(first, last + 1, stride).expect("distinct indices are at least 1 apart")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_round_trip_as_text() {
        for text in ["block", "block(3)", "cyclic", "cyclic(12)", "*"] {
            assert_eq!(text.parse::<AxisDistribution>().unwrap().to_string(), text);
            assert_eq!(
                text.to_uppercase()
                    .parse::<AxisDistribution>()
                    .unwrap()
                    .to_string(),
                text
            );
        }
        assert_eq!(
            " Cyclic ( 4 ) ".parse(),
            Ok(AxisDistribution::CyclicSize(4))
        );
        for text in [
            "",
            "blok",
            "block(",
            "block()",
            "block(-1)",
            "cyclic(2",
            "*(3)",
            "block 3",
            "block(3)x",
            "cyclic(99999999999999999999)",
        ] {
            assert!(text.parse::<AxisDistribution>().is_err(), "{text}");
        }
    }

    #[test]
    fn huge_extents_do_not_overflow() {
        let extent = 1u64 << 62;
        for (kind, ranks) in [
            (AxisDistribution::Block, 3),
            (AxisDistribution::BlockSize(u64::MAX), 3),
            (AxisDistribution::BlockSize(1 << 63), 4),
            (AxisDistribution::Cyclic, 1 << 40),
            (AxisDistribution::Cyclic, u64::MAX),
            (AxisDistribution::CyclicSize(7 << 58), 5),
            (AxisDistribution::CyclicSize(extent - 1), u64::MAX),
        ] {
            let axis = DistributedAxis::new(kind, extent, ranks).unwrap();
            for index in [0, 1, extent / 3, extent / 2, extent - 2, extent - 1] {
                let (rank, local) = (axis.owner(index), axis.to_local(index));
                assert_eq!(axis.to_global(rank, local), index, "{kind}");
                assert_eq!(axis.count_below(rank, index), local, "{kind}");
                assert!(
                    axis.sections(rank)
                        .iter()
                        .any(|s| s.position(index).is_some()),
                    "{kind}"
                );
            }
            assert_eq!(axis.local_count(ranks), 0);
            let last = axis.local_count(ranks - 1);
            assert_eq!(last == 0, axis.used_ranks() < ranks);
        }
    }

    #[test]
    fn sections_within_bounds_hold_just_what_lies_there() {
        for (block, ranks, rank) in [(1, 3, 1), (2, 3, 0), (2, 3, 2), (3, 2, 1), (7, 2, 0)] {
            let axis =
                DistributedAxis::new(AxisDistribution::CyclicSize(block), 40, ranks).unwrap();
            for (lower, upper) in (0..42).flat_map(|lower| (0..44).map(move |upper| (lower, upper)))
            {
                let sections = axis.sections_within(rank, lower, upper);
                assert!(sections.iter().all(|section| !section.is_empty()));
                let indices =
                    |s: &AxisSection| (0..s.count()).map(|at| s.index(at)).collect::<Vec<_>>();
                let mut found: Vec<u64> = sections.iter().flat_map(indices).collect();
                found.sort_unstable();
                let owned = (lower..upper.min(40)).filter(|index| axis.owner(*index) == rank);
                assert_eq!(
                    found,
                    owned.collect::<Vec<_>>(),
                    "{axis:?} {rank} {lower}:{upper}"
                );
            }
        }
    }
}
