//! [`Distribution`]: which rank owns which element of an array.
//!
//! After Thakur 1995, section 3.2. Each axis is distributed by itself over one
//! axis of a grid of ranks. An axis is cut into blocks of `m` indices, which
//! are dealt to its ranks in turn, as cards are: CYCLIC(m). The other kinds
//! are cases of it: CYCLIC is CYCLIC(1); BLOCK(m) is CYCLIC(m) with at most one
//! block per rank, so with `P` ranks and extent `N` it needs `m * P >= N`;
//! BLOCK is BLOCK(N / P rounded up); a collapsed axis (`*`) is not cut at all
//! and lies whole on the one rank that the grid has there.
//!
//! With indices from 0, and one round of dealing being `m * P` indices long:
//! index `g` is in block `g / m`, which rank `(g / m) mod P` owns, as local
//! index `(g / (m P)) m + g mod m`; back, `g = (l / m) m P + p m + l mod m`.
//! (Table 3.1 of the thesis counts from 1, and prints the second of these with
//! `g` where `g - 1` is needed.) Local indices ascend with global ones.
//!
//! Invariants: extents and their product are below 2^63; every grid extent is
//! at least 1; every element has exactly one owner. Ranks are numbered
//! row-major over the grid: the last grid axis varies fastest.

mod axis;

use std::fmt;

use crate::axis::AxisSection;
use crate::error::{Error, Result};
use crate::section::Section;
use crate::shape::{checked_product, element_count, shape_text};
use axis::read_kind;

pub(crate) use axis::progression;
pub use axis::{AxisDistribution, DistributedAxis};

/// Every way to take one of each list, the last list varying fastest.
pub(crate) fn product<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    if lists.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let mut rows = vec![Vec::with_capacity(lists.len())];
    for list in lists {
        let extended = |row: &Vec<T>| {
            let row = row.clone();
            list.iter()
                .map(move |item| row.iter().cloned().chain([item.clone()]).collect())
        };
        rows = rows.iter().flat_map(extended).collect();
    }
    rows
}

/// The product of axes that are part of an array.
pub(crate) fn part_of_array(axes: Vec<AxisSection>) -> Section {
    Section::new(axes).expect("a part has at most as many elements as the array")
}

/// Part of a section that one rank owns: see [`Distribution::owned_parts`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnedPart {
    /// Where the part stands in the whole array.
    pub global: Section,
    /// Where it stands in the rank's local array. Element by element, in the
    /// same order and shape as `global`.
    pub local: Section,
}

/// An array distributed over a grid of ranks.
///
/// ```
/// use outcore_geometry::Distribution;
/// let distribution = Distribution::parse("block,cyclic", &[10, 10], 6, None)?;
/// assert_eq!(distribution.grid(), [3, 2]);
/// assert_eq!(distribution.owner(&[9, 4]), Some(4));
/// assert_eq!(distribution.to_local(&[9, 4]), Some(vec![1, 2]));
/// assert_eq!(distribution.local_sections(4)[0].to_string(), "8:10, 0:9:2");
/// # Ok::<(), outcore_geometry::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Distribution {
    shape: Vec<u64>,
    grid: Vec<u64>,
    axes: Vec<DistributedAxis>,
    /// The grid's; more only if no axis is distributed.
    ranks: u64,
}

impl Distribution {
    /// Distributes an array of `shape` on a grid that has one extent per axis
    /// of the array, which is 1 for collapsed axes.
    pub fn new(shape: &[u64], kinds: &[AxisDistribution], grid: &[u64]) -> Result<Self> {
        check_axes("the distribution", shape.len(), kinds.len())?;
        check_axes(
            "the grid (one extent per axis of the array, 1 for collapsed axes)",
            shape.len(),
            grid.len(),
        )?;
        element_count(shape)?;
        let mut axes = Vec::with_capacity(shape.len());
        for (axis, kind) in kinds.iter().enumerate() {
            let distributed = DistributedAxis::new(*kind, shape[axis], grid[axis])
                .map_err(|problem| Error::invalid(format!("axis {axis}: {problem}")))?;
            axes.push(distributed);
        }
        let ranks = checked_product(grid.iter().copied()).ok_or_else(|| {
            Error::Overflow(format!(
                "the number of ranks of a grid of {}",
                shape_text(grid)
            ))
        })?;
        Ok(Self {
            shape: shape.into(),
            grid: grid.into(),
            axes,
            ranks,
        })
    }

    /// Reads one [`AxisDistribution`] per axis, as in `block,*` (parentheses
    /// around them are allowed), for `ranks` ranks.
    ///
    /// A grid must have exactly `ranks` ranks. Without one, the most nearly
    /// square is chosen that fits every `block(m)` and, where possible, gives
    /// no axis more ranks than blocks; the larger extents come first. If
    /// every axis is collapsed, rank 0 owns the array.
    pub fn parse(text: &str, shape: &[u64], ranks: u64, grid: Option<&[u64]>) -> Result<Self> {
        let kinds = read_kinds(text)?;
        check_axes(&format!("distribution '{text}'"), shape.len(), kinds.len())?;
        if ranks == 0 {
            return Err(Error::invalid(
                "a distribution needs at least 1 rank, not 0",
            ));
        }
        let all_collapsed = kinds
            .iter()
            .all(|kind| *kind == AxisDistribution::Collapsed);
        let mut distribution = match grid {
            Some(grid) => Self::new(shape, &kinds, grid)?,
            None if all_collapsed => Self::new(shape, &kinds, &vec![1; shape.len()])?,
            None => Self::new(shape, &kinds, &near_square_grid(shape, &kinds, ranks))?,
        };
        if all_collapsed {
            distribution.ranks = ranks;
        }
        if distribution.ranks != ranks {
            return Err(Error::invalid(format!(
                "a grid of {} has {} ranks, but there are {ranks}",
                shape_text(&distribution.grid),
                distribution.ranks
            )));
        }
        Ok(distribution)
    }

    /// The shape of the whole array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The axes, each with its own arithmetic.
    pub fn axes(&self) -> &[DistributedAxis] {
        &self.axes
    }

    /// How many ranks there are along each axis of the array.
    pub fn grid(&self) -> &[u64] {
        &self.grid
    }

    /// How many ranks there are. Those beyond the grid own nothing.
    pub fn ranks(&self) -> u64 {
        self.ranks
    }

    /// Where `rank` stands in the grid; `None` beyond it.
    pub fn coordinates(&self, rank: u64) -> Option<Vec<u64>> {
        let mut rest = rank;
        let mut coordinates = vec![0; self.grid.len()];
        for (coordinate, extent) in coordinates.iter_mut().zip(&self.grid).rev() {
            *coordinate = rest % extent;
            rest /= extent;
        }
        (rest == 0).then_some(coordinates)
    }

    /// The rank at `coordinates`, which must lie in the grid.
    pub(crate) fn rank_at(&self, coordinates: impl Iterator<Item = u64>) -> u64 {
        self.grid
            .iter()
            .zip(coordinates)
            .fold(0, |rank, (extent, at)| rank * extent + at)
    }

    fn contains(&self, index: &[u64]) -> bool {
        index.len() == self.shape.len() && index.iter().zip(&self.shape).all(|(i, n)| i < n)
    }

    /// The rank that owns the element at `index`; `None` outside the array.
    pub fn owner(&self, index: &[u64]) -> Option<u64> {
        let coordinates = self.axes.iter().zip(index).map(|(axis, i)| axis.owner(*i));
        self.contains(index).then(|| self.rank_at(coordinates))
    }

    /// Where the element at `index` stands in the local array of its owner;
    /// `None` outside the array.
    pub fn to_local(&self, index: &[u64]) -> Option<Vec<u64>> {
        let local = self
            .axes
            .iter()
            .zip(index)
            .map(|(axis, i)| axis.to_local(*i));
        self.contains(index).then(|| local.collect())
    }

    /// Where the element at `local` of the local array of `rank` stands in the
    /// whole array; `None` outside the local array.
    pub fn to_global(&self, rank: u64, local: &[u64]) -> Option<Vec<u64>> {
        let coordinates = self.coordinates(rank)?;
        if local.len() != self.axes.len() {
            return None;
        }
        let axes = self.axes.iter().zip(coordinates).zip(local);
        axes.map(|((axis, at), l)| (*l < axis.local_count(at)).then(|| axis.to_global(at, *l)))
            .collect()
    }

    /// The shape of the local array of `rank`: all zeros beyond the grid.
    pub fn local_shape(&self, rank: u64) -> Vec<u64> {
        match self.coordinates(rank) {
            None => vec![0; self.axes.len()],
            Some(at) => self
                .axes
                .iter()
                .zip(at)
                .map(|(axis, at)| axis.local_count(at))
                .collect(),
        }
    }

    /// How many elements `rank` owns.
    pub fn local_count(&self, rank: u64) -> u64 {
        if self.coordinates(rank).is_none() {
            return 0; // With no axes, the shape alone would not tell.
        }
        checked_product(self.local_shape(rank).into_iter())
            .expect("a local array has at most as many elements as the whole")
    }

    /// What `rank` owns, as disjoint sections in ascending order of their
    /// first element. BLOCK and CYCLIC give one; CYCLIC(m) gives, along its
    /// axis, one per block or one per place in a block, whichever is less: in
    /// all, about the square root of the number of elements at most.
    pub fn local_sections(&self, rank: u64) -> Vec<Section> {
        let Some(coordinates) = self.coordinates(rank) else {
            return Vec::new();
        };
        let axes = self.axes.iter().zip(coordinates);
        let lists: Vec<_> = axes.map(|(axis, at)| axis.sections(at)).collect();
        product(&lists).into_iter().map(part_of_array).collect()
    }

    /// The part of `section` that `rank` owns, cut into disjoint sections of
    /// the whole array and of the rank's local array, in ascending order of
    /// their first element. Nobody owns what lies outside the array. Fails if
    /// `section` has another number of axes.
    pub fn owned_parts(&self, rank: u64, section: &Section) -> Result<Vec<OwnedPart>> {
        check_axes(
            &format!("section [{section}]"),
            self.axes.len(),
            section.axes().len(),
        )?;
        let Some(coordinates) = self.coordinates(rank) else {
            return Ok(Vec::new());
        };
        let axes = self.axes.iter().zip(coordinates).zip(section.axes());
        let lists: Vec<_> = axes
            .map(|((axis, at), taken)| axis.owned_parts(at, taken))
            .collect();
        let part = |axes: Vec<[AxisSection; 2]>| {
            let (global, local) = axes
                .into_iter()
                .map(|[global, local]| (global, local))
                .unzip();
            OwnedPart {
                global: part_of_array(global),
                local: part_of_array(local),
            }
        };
        Ok(product(&lists).into_iter().map(part).collect())
    }
}

/// The kinds as [`Distribution::parse`] reads them: `block,*`.
impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, axis) in self.axes.iter().enumerate() {
            write!(f, "{}{}", if position == 0 { "" } else { "," }, axis.kind())?;
        }
        Ok(())
    }
}

/// Reads `block,*` or `(BLOCK, *)`; a blank text has no axes.
fn read_kinds(text: &str) -> Result<Vec<AxisDistribution>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let trimmed = text.trim();
    let inner = trimmed
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    let before = text.chars().take_while(|c| c.is_whitespace()).count();
    let mut position = before + inner.is_some() as usize;
    let mut kinds = Vec::new();
    for part in inner.unwrap_or(trimmed).split(',') {
        kinds.push(read_kind(part, text, position)?);
        position += part.chars().count() + 1;
    }
    Ok(kinds)
}

pub(crate) fn check_axes(what: &str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::AxisCount {
        what: what.into(),
        expected,
        found,
    })
}

/// A grid of `ranks` ranks in all, 1 along collapsed axes. The sum of the
/// extents is least where they are nearly equal; it is taken over divisors of
/// `ranks`, from the last axis to the first, and axes with too few ranks for
/// their BLOCK(m), or more ranks than blocks, weigh more than any sum.
fn near_square_grid(shape: &[u64], kinds: &[AxisDistribution], ranks: u64) -> Vec<u64> {
    let small = (1..)
        .take_while(|d| *d <= ranks / d)
        .filter(|d| ranks.is_multiple_of(*d));
    let mut divisors: Vec<u64> = small.flat_map(|d| [d, ranks / d]).collect();
    divisors.sort_unstable();
    divisors.dedup();
    // For each divisor: what it costs to give so many ranks to the axes seen
    // so far, and the grid that does.
    type Best = Option<([u64; 3], Vec<u64>)>;
    let mut best: Vec<Best> = divisors
        .iter()
        .map(|ranks| (*ranks == 1).then(Default::default))
        .collect();
    for (extent, kind) in shape.iter().zip(kinds).rev() {
        let give = |share: u64, rest: u64| {
            let before = divisors.binary_search(&rest).ok()?;
            let ([short, idle, sum], grid) = best[before].as_ref()?;
            let blocks = extent.div_ceil(kind.size().unwrap_or(1).max(1));
            let is_short = matches!(kind, AxisDistribution::BlockSize(_)) && share < blocks;
            let cost = [
                short + is_short as u64,
                idle + (share > blocks) as u64,
                sum.saturating_add(share),
            ];
            Some((cost, [&[share], grid.as_slice()].concat()))
        };
        let cheapest = |total: &u64| {
            let shares = divisors
                .iter()
                .rev()
                .filter(|share| total.is_multiple_of(**share));
            let shares =
                shares.filter(|share| **share == 1 || *kind != AxisDistribution::Collapsed);
            shares
                .filter_map(|share| give(*share, total / share))
                .min_by_key(|(cost, _)| *cost)
        };
        best = divisors.iter().map(cheapest).collect();
    }
    let grid = best.pop().flatten().map(|(_, grid)| grid);
    grid.unwrap_or_else(|| vec![1; shape.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_round_trip_as_text() {
        let distribution =
            Distribution::parse(" (BLOCK, * , cyclic(2))", &[4, 4, 9], 6, None).unwrap();
        assert_eq!(distribution.to_string(), "block,*,cyclic(2)");
        let error = Distribution::parse("block, blok", &[4, 4], 4, None).unwrap_err();
        assert!(
            matches!(error, Error::Text { position: 7, .. }),
            "{error:?}"
        );
        let error = Distribution::parse(" (*,x)", &[4, 4], 4, None).unwrap_err();
        assert!(
            matches!(error, Error::Text { position: 4, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn grids_are_nearly_square_and_fit() {
        let grid = |text: &str, shape: &[u64], ranks| {
            Distribution::parse(text, shape, ranks, None)
                .unwrap()
                .grid()
                .to_vec()
        };
        assert_eq!(grid("block,block", &[100, 100], 12), [4, 3]);
        assert_eq!(grid("block,cyclic", &[100, 100], 7), [7, 1]);
        assert_eq!(grid("cyclic,*,block,block", &[100; 4], 24), [4, 1, 3, 2]);
        assert_eq!(grid("*,block", &[100, 100], 6), [1, 6]);
        assert_eq!(grid("block,block", &[1, 100], 16), [1, 16]);
        assert_eq!(grid("cyclic(50),cyclic", &[100, 100], 16), [2, 8]);
        assert_eq!(grid("block,block(10)", &[100, 100], 20), [2, 10]);
        assert_eq!(grid("cyclic", &[0], 3), [3]);
    }

    #[test]
    fn bad_distributions_are_refused() {
        use AxisDistribution::*;
        let refused = |shape: &[u64], kinds: &[AxisDistribution], grid: &[u64], words: &str| {
            let message = Distribution::new(shape, kinds, grid)
                .unwrap_err()
                .to_string();
            assert!(message.contains(words), "{message}");
        };
        refused(
            &[4, 4],
            &[Block, CyclicSize(0)],
            &[2, 2],
            "axis 1: cyclic(0)",
        );
        refused(&[4], &[BlockSize(0)], &[4], "size 0");
        refused(
            &[13],
            &[BlockSize(3)],
            &[4],
            "holds 12 indices, but the extent is 13",
        );
        refused(&[4, 4], &[Block, Collapsed], &[2, 2], "exactly 1 rank");
        refused(&[4, 4], &[Block, Block], &[4], "the grid");
        refused(&[4, 4], &[Block], &[4, 1], "the distribution has 1 axes");
        refused(&[4], &[Block], &[0], "at least 1 rank");
        refused(
            &[4, 4],
            &[Cyclic; 2],
            &[1 << 40, 1 << 40],
            "number of ranks",
        );
        refused(
            &[1 << 40, 1 << 40],
            &[Cyclic; 2],
            &[1, 1],
            "elements of shape",
        );
        refused(&[u64::MAX, 0], &[Cyclic; 2], &[1, 1], "extent");
        for (ranks, grid) in [(5, Some([2, 2])), (0, None)] {
            let grid = grid.as_ref().map(|grid| grid.as_slice());
            assert!(Distribution::parse("block,block", &[4, 4], ranks, grid).is_err());
        }
        assert!(Distribution::parse("block", &[4, 4], 4, None).is_err());
        assert!(Distribution::parse("block(2),*", &[9, 4], 4, None).is_err());
    }

    #[test]
    fn no_axes_is_one_element_on_rank_0() {
        let scalar = Distribution::parse("", &[], 3, None).unwrap();
        assert_eq!((scalar.ranks(), scalar.owner(&[])), (3, Some(0)));
        assert_eq!(scalar.to_global(0, &[]), Some(vec![]));
        assert_eq!([0, 1, 2].map(|rank| scalar.local_count(rank)), [1, 0, 0]);
        assert_eq!(
            [0, 1, 2].map(|rank| scalar.local_sections(rank).len()),
            [1, 0, 0]
        );
    }

    #[test]
    fn whatever_lies_outside_has_no_owner() {
        let distribution = Distribution::parse("block,*", &[5, 2], 4, None).unwrap();
        assert_eq!(distribution.local_shape(3), [0, 2]); // blocks of 2, 2, 1 and 0
        assert!(distribution.local_sections(3).is_empty());
        assert_eq!(distribution.local_shape(4), [0, 0]);
        assert_eq!(distribution.coordinates(4), None);
        assert_eq!(distribution.owner(&[5, 0]), None);
        assert_eq!(distribution.to_local(&[0]), None);
        assert_eq!(distribution.to_global(2, &[1, 0]), None);
        assert_eq!(distribution.to_global(2, &[0]), None);
    }
}
