//! [`AxisSide`] and [`ArraySide`]: where the positions of what is moved stand
//! before, or after.
//!
//! What is moved is a section, whose *positions* `k` are counted from 0 along
//! each axis. Position `k` is index `i = first + step k` of the array, which
//! stands at `g = stride i + offset` of a template axis; that one is
//! CYCLIC(x) on P ranks. So the owner of a position repeats with period
//! `x P / gcd(stride step, x P)`, and within one period a rank's local index
//! always advances by the same amount. While `g` stays in one block the owner
//! is the same and the local index advances by `step`.

use crate::alignment::{AlignedDistribution, Line, TemplateAxis};
use crate::axis::AxisSection;
use crate::distribution::{DistributedAxis, Distribution, check_axes};
use crate::error::{Error, Result};
use crate::section::Section;

/// One axis of one side. The ranks meant here are coordinates along it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisSide {
    axis: DistributedAxis,
    line: Line,
    extent: u64,
    first: u64,
    step: u64,
    count: u64,
}

impl AxisSide {
    /// How many positions there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u64 {
        self.axis.ranks()
    }

    /// How far local indices are apart that belong to adjacent positions of
    /// one block.
    pub(super) fn step(&self) -> u64 {
        self.step
    }

    /// The size of the blocks, in template indices.
    pub(super) fn block(&self) -> u64 {
        self.axis.block()
    }

    fn index(&self, position: u64) -> u64 {
        self.first + position * self.step
    }

    fn image(&self, position: u64) -> u64 {
        self.line.image(self.index(position))
    }

    /// Template indices from one position to the next; negative if reversed.
    fn travel(&self) -> i128 {
        i128::from(self.line.stride) * i128::from(self.step)
    }

    /// Whether positions follow one another as template indices do.
    pub(super) fn is_unit(&self) -> bool {
        self.travel() == 1
    }

    /// The rank that owns a position.
    pub fn owner(&self, position: u64) -> u64 {
        self.axis.owner(self.image(position))
    }

    /// The local index of a position, on the rank that owns it.
    pub fn local(&self, position: u64) -> u64 {
        if self.line.stride == 1 && self.line.offset == 0 {
            return self.axis.to_local(self.index(position));
        }
        let rank = self.owner(position);
        self.line
            .count_below(&self.axis, rank, self.index(position))
    }

    /// How many positions from this one on stand in the same block.
    pub(super) fn remaining(&self, position: u64) -> u64 {
        let (at, block) = (self.image(position), self.axis.block());
        let (within, travel) = (i128::from(at % block), self.travel());
        let steps = match travel > 0 {
            true => (i128::from(block) - within + travel - 1) / travel,
            false => within / -travel + 1,
        };
        steps as u64
    }

    /// Whether a block begins at this position of a side that is unit.
    pub(super) fn begins_block(&self, position: u64) -> bool {
        self.image(position).is_multiple_of(self.axis.block())
    }

    /// The first position from `position` on that `rank` owns, or one before it
    /// that it does not own: never beyond the next block if the side is not unit.
    pub(super) fn skip_to(&self, rank: u64, position: u64) -> u64 {
        if !self.is_unit() {
            return position + self.remaining(position);
        }
        let (at, period) = (self.image(position), self.axis.period);
        let (within, start) = (at % period, rank.saturating_mul(self.axis.block()));
        let ahead = match start > within {
            true => start - within,
            false => period - within + start,
        };
        position.saturating_add(ahead)
    }

    /// After how many positions the owners repeat, if they ever do.
    pub fn period(&self) -> Option<u64> {
        if self.axis.ranks() == 1 {
            return Some(1);
        }
        let period = self.axis.period;
        (period <= self.axis.extent())
            .then(|| period / gcd(self.travel().unsigned_abs(), u128::from(period)) as u64)
    }

    /// How far the local index of `rank` advances with so many positions, a
    /// multiple of the period.
    pub(super) fn advance(&self, rank: u64, positions: u64) -> u64 {
        let indices = self.step * positions;
        match (self.axis.ranks(), self.line.stride) {
            (1, _) => indices,
            (_, 1) => indices / self.axis.period * self.axis.block(),
            _ => self.line.count_below(&self.axis, rank, indices),
        }
    }

    /// How many indices of the whole axis `rank` holds.
    pub fn local_count(&self, rank: u64) -> u64 {
        self.line.count_below(&self.axis, rank, self.extent)
    }
}

/// The greatest common divisor; the other one if one is 0.
pub(super) fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// One side of a redistribution: a section of an array, and how the array is
/// distributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArraySide {
    aligned: AlignedDistribution,
    axes: Vec<AxisSide>,
    /// A rank is the sum of these times its coordinates,
    weights: Vec<u64>,
    /// and of this,
    base: u64,
    /// and, for each copy of the array, of one of these.
    copies: Vec<u64>,
    /// All ranks are so much higher than the distribution says.
    shift: u64,
}

impl ArraySide {
    /// All of an array.
    pub fn whole(aligned: &AlignedDistribution) -> Self {
        let axes = aligned.shape().iter().map(|extent| (0, 1, *extent));
        Self::with(aligned, axes.collect())
    }

    /// A section of an array, without index lists.
    pub fn section(aligned: &AlignedDistribution, section: &Section) -> Result<Self> {
        let shape = aligned.shape();
        check_axes(
            &format!("section [{section}]"),
            shape.len(),
            section.axes().len(),
        )?;
        section.check_within(shape)?;
        let axis = |axis: &AxisSection| match (axis.first(), axis.stride()) {
            (None, _) => Ok((0, 1, 0)),
            (Some(first), Some(step)) => Ok((first, step, axis.count())),
            (Some(_), None) => Err(Error::invalid(format!(
                "section [{section}] has an index list: sections of distributed arrays are \
                 bounds and strides"
            ))),
        };
        let axes: Result<Vec<_>> = section.axes().iter().map(axis).collect();
        Ok(Self::with(aligned, axes?))
    }

    /// An array of `shape` that lies whole on one rank.
    pub fn on_rank(shape: &[u64], rank: u64) -> Result<Self> {
        let kinds = vec![crate::AxisDistribution::Collapsed; shape.len()];
        let distribution = Distribution::new(shape, &kinds, &vec![1; shape.len()])?;
        let mut side = Self::whole(&AlignedDistribution::from(distribution));
        side.base = rank;
        side.shift = rank;
        Ok(side)
    }

    /// Each axis with its first index, its step and the number of positions.
    fn with(aligned: &AlignedDistribution, sections: Vec<(u64, u64, u64)>) -> Self {
        let template = aligned.template();
        let mut weight_of = vec![1; template.grid().len()];
        for at in (1..weight_of.len()).rev() {
            weight_of[at - 1] = weight_of[at] * template.grid()[at];
        }
        let (mut base, mut copies) = (0, vec![0]);
        let targets = aligned.alignment().axes().iter().zip(template.axes());
        for ((target, axis), weight) in targets.zip(&weight_of) {
            match *target {
                TemplateAxis::Aligned { .. } => {}
                TemplateAxis::Fixed(index) => base += axis.owner(index) * weight,
                TemplateAxis::Replicated => {
                    let more = |copy: u64| (0..axis.used_ranks()).map(move |at| copy + at * weight);
                    copies = copies.into_iter().flat_map(more).collect();
                }
            }
        }
        let lines = aligned.alignment().lines().iter().zip(aligned.shape());
        let (mut axes, mut weights) = (Vec::new(), Vec::new());
        for ((line, extent), (first, step, count)) in lines.zip(sections) {
            let (axis, line, weight) = match line {
                Some(line) => {
                    let on = line.template_axis;
                    (template.axes()[on].clone(), *line, weight_of[on])
                }
                None => (DistributedAxis::collapsed(*extent), Line::identity(), 0),
            };
            weights.push(weight);
            axes.push(AxisSide {
                axis,
                line,
                extent: *extent,
                first,
                step,
                count,
            });
        }
        Self {
            aligned: aligned.clone(),
            axes,
            weights,
            base,
            copies,
            shift: 0,
        }
    }

    /// How the array is distributed.
    pub fn aligned(&self) -> &AlignedDistribution {
        &self.aligned
    }

    /// The axes.
    pub fn axes(&self) -> &[AxisSide] {
        &self.axes
    }

    /// How many positions there are along each axis.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(AxisSide::count).collect()
    }

    /// How many ranks are needed.
    pub fn ranks(&self) -> u64 {
        self.shift + self.aligned.ranks()
    }

    /// The ranks of the copies of what the coordinates own, relative to
    /// [`ArraySide::rank_at`].
    pub fn copies(&self) -> &[u64] {
        &self.copies
    }

    /// The rank at these coordinates that holds the first copy.
    pub fn rank_at(&self, coordinates: &[u64]) -> u64 {
        let weighted = coordinates.iter().zip(&self.weights);
        self.base + weighted.map(|(at, weight)| at * weight).sum::<u64>()
    }

    /// Whether `rank` holds the first copy of something.
    pub fn is_first(&self, rank: u64) -> bool {
        let at = self.coordinates(rank);
        at.is_some_and(|at| self.rank_at(&at) == rank)
    }

    /// By how much the rank grows with the coordinate of each axis.
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Where `rank` stands along each axis; `None` if it holds nothing.
    pub fn coordinates(&self, rank: u64) -> Option<Vec<u64>> {
        let at = self.aligned.candidate(rank.checked_sub(self.shift)?)?;
        let lines = self.aligned.alignment().lines().iter();
        Some(
            lines
                .map(|line| line.map_or(0, |line| at[line.template_axis]))
                .collect(),
        )
    }

    /// The shape of the local array of `rank`.
    pub fn local_shape(&self, rank: u64) -> Vec<u64> {
        match rank.checked_sub(self.shift) {
            Some(rank) => self.aligned.local_shape(rank),
            None => vec![0; self.axes.len()],
        }
    }

    /// How many elements `rank` holds.
    pub fn local_count(&self, rank: u64) -> u64 {
        let rank = rank.checked_sub(self.shift);
        rank.map_or(0, |rank| self.aligned.local_count(rank))
    }
}
