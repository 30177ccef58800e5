//! [`Nest`]: the nested loop over the runs of a section in one box of a file.
//!
//! The mathematics. Inside one box of the file (the whole array, or one tile)
//! the elements of a section are the points of a grid: along each axis, taken
//! from the slowest to the fastest, positions have a step in the file and a
//! step in the buffer. The fastest axes fold into the length of one run while
//! both steps equal that length; two neighbouring axes fold into one where
//! the slower steps exactly over the faster. What is left are the
//! [`Dimension`]s of a nested loop, each turn of which is one run.

use crate::axis::{AxisSection, Indices};
use crate::run::{Footprint, Run};

/// Stretches of a list are not looked at further than this.
const LONGEST: usize = 1 << 14;

/// One axis of the loop over raw runs.
#[derive(Debug, Clone)]
pub(crate) struct Dimension {
    pub(crate) count: u64,
    pub(crate) file_step: u64,
    pub(crate) buffer_step: u64,
    /// An axis given by a list, and which of its positions comes first here:
    /// steps in the file are `file_step` times the difference of two indices.
    pub(crate) list: Option<(AxisSection, u64)>,
}

impl Dimension {
    /// The distance in the file from position `from` to position `to >= from`.
    pub(crate) fn file_distance(&self, from: u64, to: u64) -> u64 {
        match &self.list {
            None => (to - from) * self.file_step,
            Some((list, first)) => {
                (list.index(first + to) - list.index(first + from)) * self.file_step
            }
        }
    }

    /// The last position that lies at most `distance` bytes of the file behind
    /// the first.
    fn position(&self, distance: u64) -> u64 {
        let steps = distance / self.file_step;
        let position = match &self.list {
            None => steps,
            Some((list, first)) => {
                let limit = list.index(*first).saturating_add(steps).saturating_add(1);
                list.count_below(limit) - first - 1
            }
        };
        position.min(self.count - 1)
    }

    /// How many positions of a list, from `at` on, follow each other at equal
    /// steps in the file, and that step. Two that are no neighbours are no
    /// stretch: the second may begin one. Long ones are cut, since whoever enters
    /// a list in the middle may want little of it.
    pub(crate) fn stretch(&self, at: u64) -> (u64, u64) {
        let left = self.count - at;
        if left < 2 {
            return (1, 0);
        }
        let step = self.file_distance(at, at + 1);
        let others = (at + 1..self.count - 1)
            .take(LONGEST)
            .take_while(|next| self.file_distance(*next, next + 1) == step);
        match 2 + others.count() as u64 {
            2 if step != self.file_step => (1, 0),
            stretch => (stretch, step),
        }
    }
}

/// The loop over the raw runs of one box: its dimensions from the slowest to
/// the fastest, and the position in each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nest {
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) positions: Vec<u64>,
    pub(crate) first: Option<Run>,
}

impl Nest {
    /// Sets up the loop. `axes` come from the fastest to the slowest, each
    /// with its first position at `first`.
    pub(crate) fn fill(&mut self, mut first: Run, axes: impl Iterator<Item = Dimension>) {
        self.dimensions.clear();
        for axis in axes {
            let uniform = axis.list.is_none();
            if axis.count == 1 {
                continue;
            }
            match self.dimensions.last_mut() {
                None if uniform && axis.file_step == first.len && axis.buffer_step == first.len => {
                    first.len *= axis.count;
                }
                Some(faster)
                    if uniform
                        && faster.list.is_none()
                        && axis.file_step == faster.count * faster.file_step
                        && axis.buffer_step == faster.count * faster.buffer_step =>
                {
                    faster.count *= axis.count;
                }
                _ => self.dimensions.push(axis),
            }
        }
        self.dimensions.reverse();
        self.positions.clear();
        self.positions.resize(self.dimensions.len(), 0);
        self.first = Some(first);
    }

    /// Raw runs, how many times one touches the next, and the last one.
    pub(crate) fn totals(&self) -> (u64, u64, Option<Run>) {
        let Some(first) = self.first else {
            return (0, 0, None);
        };
        let raw: u64 = self
            .dimensions
            .iter()
            .map(|dimension| dimension.count)
            .product();
        let mut touching = 0;
        // From the first to the last raw run of the faster dimensions.
        let (mut file_span, mut buffer_span) = (0, 0);
        let mut outer = raw;
        for dimension in self.dimensions.iter().rev() {
            outer /= dimension.count;
            let steps = dimension.count - 1;
            if dimension.buffer_step == buffer_span + first.len {
                let wanted = file_span + first.len;
                let hits = match &dimension.list {
                    None => steps * u64::from(dimension.file_step == wanted),
                    Some(_) => (0..steps)
                        .filter(|at| dimension.file_distance(*at, at + 1) == wanted)
                        .count() as u64,
                };
                touching += outer * hits;
            }
            file_span += dimension.file_distance(0, steps);
            buffer_span += steps * dimension.buffer_step;
        }
        let last = Run {
            file_offset: first.file_offset + file_span,
            buffer_offset: first.buffer_offset + buffer_span,
            len: first.len,
        };
        (raw, touching, Some(last))
    }

    /// How many bytes of the runs stand before `offset` in the file. Tells
    /// `place`, for each dimension, the position of the last raw run that begins
    /// at or before `offset`, if there is one.
    ///
    /// Raw runs ascend in the file, so these positions are the digits of the
    /// distance from the first one, from the slowest dimension to the fastest.
    pub(crate) fn seek(&self, offset: u64, mut place: impl FnMut(usize, u64)) -> u64 {
        let Some((first, mut distance)) = self
            .first
            .and_then(|first| Some((first, offset.checked_sub(first.file_offset)?)))
        else {
            return 0;
        };
        let counts = self.dimensions.iter().map(|dimension| dimension.count);
        let mut each = first.len * counts.product::<u64>();
        let mut below = 0;
        for (at, dimension) in self.dimensions.iter().enumerate() {
            each /= dimension.count;
            let position = dimension.position(distance);
            below += position * each;
            distance -= dimension.file_distance(0, position);
            place(at, position);
        }
        below + distance.min(first.len)
    }

    /// What the runs take from the file if gaps of up to `gap` bytes are read
    /// as well: from the fastest dimension to the slowest, copies of what the
    /// faster ones take, joined where they come near.
    pub(crate) fn footprint(&self, gap: u64) -> Footprint {
        let Some(first) = self.first else {
            return Footprint::default();
        };
        let (mut accesses, mut bytes, mut extent) = (1, first.len, first.len);
        for dimension in self.dimensions.iter().rev() {
            let steps = dimension.count - 1;
            let (joined, gaps) = match &dimension.list {
                None => {
                    let between = dimension.file_step - extent;
                    let joined = steps * u64::from(between <= gap);
                    (joined, joined * between)
                }
                Some(_) => (0..steps)
                    .map(|at| dimension.file_distance(at, at + 1) - extent)
                    .filter(|between| *between <= gap)
                    .fold((0, 0), |(joined, gaps), between| {
                        (joined + 1, gaps + between)
                    }),
            };
            accesses = dimension.count * accesses - joined;
            bytes = dimension.count * bytes + gaps;
            extent += dimension.file_distance(0, steps);
        }
        Footprint {
            accesses,
            bytes,
            start: first.file_offset,
            end: first.file_offset + extent,
        }
    }
}

/// The dimension of the positions `from..to` of an axis whose index steps
/// over `bytes` in the file.
pub(crate) fn dimension(
    (axis, from, to): (&AxisSection, u64, u64),
    bytes: u64,
    buffer_step: u64,
) -> Dimension {
    let count = to - from;
    let (file_step, list) = match &axis.0 {
        Indices::Range { stride, .. } if count > 1 => (bytes * stride, None),
        Indices::Range { .. } => (bytes, None),
        Indices::List(_) => (bytes, Some((axis.clone(), from))),
    };
    Dimension {
        count,
        file_step,
        buffer_step,
        list,
    }
}
