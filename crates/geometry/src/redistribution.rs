//! [`Redistribution`]: which elements each pair of ranks exchanges when an
//! array, or a section of it, changes its distribution.
//!
//! Thakur 1995, chapter 3. The exchange of an array is the product of those of
//! its axes ([`AxisExchange`]): a rank's coordinates say which strips of each
//! axis are its own, and the elements of a pair are all combinations of them,
//! the last axis varying fastest. That holds for any number of axes, for
//! shapes of the grid that change ((X,*) to (*,Y), to (Y,Z) and back), for
//! different numbers of ranks, for sections (`A(l1:h1:s1) = B(l2:h2:s2)`) and
//! for arrays that are aligned with templates: only the two [`ArraySide`]s
//! differ.
//!
//! The cost of an exchange is that of the runs of one period of each axis.

mod exchange;
mod side;

use std::fmt;
use std::ops::Range;

use crate::distribution::product;
use crate::error::{Error, Result};
use crate::shape::shape_text;
pub use exchange::{AxisExchange, Keep, Place, Strip};
pub use side::{ArraySide, AxisSide};

/// The move of a section from one distribution to another.
///
/// ```
/// use outcore_geometry::{AlignedDistribution, Distribution, Redistribution};
/// let distribution = |text| Distribution::parse(text, &[24], 2, None).map(AlignedDistribution::from);
/// let (from, to) = (distribution("cyclic(4)")?, distribution("cyclic(2)")?);
/// let redistribution = Redistribution::between(&from, &to)?;
/// // Every other block of 2 goes to either rank: in each of 3 rounds.
/// assert_eq!(redistribution.sent(0), [(0, 6), (1, 6)]);
/// let sends = redistribution.sends(0, 1 << 12).expect("rank 0 owns something");
/// assert_eq!((sends[0].rounds(), sends[0].strips().len()), (3, 2));
/// # Ok::<(), outcore_geometry::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redistribution {
    source: ArraySide,
    target: ArraySide,
}

impl Redistribution {
    /// From one side to the other, which must have the same shape.
    pub fn new(source: ArraySide, target: ArraySide) -> Result<Self> {
        if source.shape() != target.shape() {
            return Err(Error::invalid(format!(
                "what moves has shape {}, but where it goes has shape {}",
                shape_text(&source.shape()),
                shape_text(&target.shape())
            )));
        }
        Ok(Self { source, target })
    }

    /// Of a whole array.
    pub fn between(
        from: &crate::AlignedDistribution,
        to: &crate::AlignedDistribution,
    ) -> Result<Self> {
        Self::new(ArraySide::whole(from), ArraySide::whole(to))
    }

    /// How it stands before.
    pub fn source(&self) -> &ArraySide {
        &self.source
    }

    /// How it stands after.
    pub fn target(&self) -> &ArraySide {
        &self.target
    }

    /// The same way back.
    pub fn back(&self) -> Self {
        Self {
            source: self.target.clone(),
            target: self.source.clone(),
        }
    }

    /// What `rank` has for others, axis by axis; `None` if it holds nothing.
    /// (Of an array with copies only [the first](ArraySide::is_first) sends.)
    pub fn sends(&self, rank: u64, cut: u64) -> Option<Vec<AxisExchange>> {
        let at = self.source.coordinates(rank)?;
        let keep = |at: &u64| Keep {
            source: Some(*at),
            target: None,
        };
        Some(self.exchanges(at.iter().map(keep), cut))
    }

    /// What `rank` receives, axis by axis; `None` if it holds nothing.
    pub fn receives(&self, rank: u64, cut: u64) -> Option<Vec<AxisExchange>> {
        let at = self.target.coordinates(rank)?;
        let keep = |at: &u64| Keep {
            source: None,
            target: Some(*at),
        };
        Some(self.exchanges(at.iter().map(keep), cut))
    }

    fn exchanges(&self, keeps: impl Iterator<Item = Keep>, cut: u64) -> Vec<AxisExchange> {
        let axes = self.source.axes().iter().zip(self.target.axes());
        let exchange = |((source, target), keep): ((&AxisSide, &AxisSide), Keep)| {
            AxisExchange::new(source, target, 0..source.count(), keep, cut)
        };
        axes.zip(keeps).map(exchange).collect()
    }

    /// Everything that moves in share `part` of `parts` of the positions,
    /// between any ranks. The shares are ranges of positions along one axis:
    /// that is near on both sides, however finely either is distributed.
    pub fn share(&self, part: u64, parts: u64, cut: u64) -> Vec<AxisExchange> {
        let shape = self.source.shape();
        let divided = divided_axis(&shape, parts);
        let axes = self.source.axes().iter().zip(self.target.axes());
        let exchange = |(axis, (source, target)): (usize, (&AxisSide, &AxisSide))| {
            let range = match Some(axis) == divided {
                true => share_of(shape[axis], part, parts),
                false => 0..shape[axis],
            };
            AxisExchange::new(source, target, range, Keep::default(), cut)
        };
        // Without axes there is one element, which the first share has.
        axes.enumerate().map(exchange).collect()
    }

    /// To whom `rank` sends how many elements, ascending by rank. (To each copy
    /// of an array that has several.)
    pub fn sent(&self, rank: u64) -> Vec<(u64, u64)> {
        if !self.source.is_first(rank) {
            return Vec::new();
        }
        let partners = |axis: AxisExchange| -> Vec<(u64, u64)> {
            let pairs = axis.pairs().into_iter();
            pairs.map(|(own, to)| (to, axis.count(own, to))).collect()
        };
        let axes = self.sends(rank, u64::MAX).into_iter().flatten();
        let lists: Vec<_> = axes.map(partners).collect();
        let mut sent = Vec::new();
        for partner in product(&lists) {
            let (to, counts): (Vec<u64>, Vec<u64>) = partner.into_iter().unzip();
            let first = self.target.rank_at(&to);
            let copies = self.target.copies().iter();
            sent.extend(copies.map(|copy| (first + copy, counts.iter().product())));
        }
        sent.sort_unstable();
        sent
    }
}

/// The slowest axis that has enough positions for all shares, or else the
/// longest one.
fn divided_axis(shape: &[u64], parts: u64) -> Option<usize> {
    let enough = shape.iter().position(|extent| *extent >= 16 * parts);
    enough.or_else(|| (0..shape.len()).max_by_key(|axis| (shape[*axis], usize::MAX - axis)))
}

/// Share `part` of `extent` positions, as even as it can be.
fn share_of(extent: u64, part: u64, parts: u64) -> Range<u64> {
    let end = |part: u64| (u128::from(extent) * u128::from(part) / u128::from(parts)) as u64;
    end(part)..end(part + 1)
}

/// `cyclic(11) on 4 -> cyclic(3) on 4`.
impl fmt::Display for Redistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let template = |side: &ArraySide| {
            let template = side.aligned().template();
            format!("{template} on {}", shape_text(template.grid()))
        };
        let shape = shape_text(&self.source.shape());
        let (from, to) = (template(&self.source), template(&self.target));
        write!(f, "{shape}: {from} -> {to}")
    }
}
