//! [`Spread`]: which part of a disk-resident array holds which element.
//!
//! A part is a list of *pieces*, dense boxes of elements that are kept one after
//! the other. By a [`Distribution`] a part is one piece, the local array of its
//! rank; in [`Blocks`] every block is a piece of the part that it was given to.
//! A section falls into items: what one piece has of it, where that stands in the
//! piece, and where it belongs in the buffer of the section. Both are in the same
//! order, since local indices ascend with global ones.

use std::ops::Range;

use outcore_geometry::{AxisSection, DistributedAxis, Distribution, Section, element_count};

use crate::error::{Error, Result};

/// Which part of an array holds which element.
#[derive(Debug, Clone, PartialEq)]
pub enum Spread {
    /// Part `k` holds what the distribution gives to rank `k`.
    Distribution(Distribution),
    /// Blocks of the user's choice.
    Blocks(Blocks),
}

impl From<Distribution> for Spread {
    fn from(distribution: Distribution) -> Self {
        Self::Distribution(distribution)
    }
}

impl From<Blocks> for Spread {
    fn from(blocks: Blocks) -> Self {
        Self::Blocks(blocks)
    }
}

/// An array whose axes are cut into segments; each block, a product of segments,
/// is held by a part of the user's choice, or by none: such blocks are zeros that
/// cannot be written.
///
/// ```
/// use outcore::Blocks;
/// // Segments of 3, 4 and 3 rows, and of 5 and 5 columns; nothing above the diagonal.
/// let lengths = [vec![3, 4, 3], vec![5, 5]];
/// let blocks = Blocks::new(&lengths, 2, |block| {
///     (block[1] <= block[0]).then(|| (block[0] + block[1]) as usize % 2)
/// })?;
/// assert_eq!(blocks.shape(), [10, 10]);
/// assert_eq!(blocks.part_of(&[4, 9]), Some(0));
/// assert_eq!(blocks.part_of(&[0, 9]), None);
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Blocks {
    shape: Vec<u64>,
    /// Along each axis where segments begin, and the end.
    cuts: Vec<Vec<u64>>,
    parts: usize,
    /// Of each block, the last axis fastest: the part and the number of the piece there.
    places: Vec<Option<(u32, u32)>>,
    /// The blocks of each part.
    pieces: Vec<Vec<u32>>,
}

impl Blocks {
    /// Cuts each axis into segments of the given lengths, and gives each block,
    /// named by its segments, to one of `parts` parts or to none.
    pub fn new(
        lengths: &[Vec<u64>],
        parts: usize,
        mut part_of: impl FnMut(&[u64]) -> Option<usize>,
    ) -> Result<Self> {
        let mut index = vec![0; lengths.len()];
        let counts: Vec<u64> = lengths.iter().map(|axis| axis.len() as u64).collect();
        let all = element_count(&counts).map_err(Error::geometry("the blocks"))?;
        if all > u64::from(u32::MAX) {
            return Err(Error::Invalid(format!(
                "{all} blocks are more than {}",
                u32::MAX
            )));
        }
        let mut owners = Vec::with_capacity(all as usize);
        for _ in 0..all {
            owners.push(part_of(&index));
            for axis in (0..index.len()).rev() {
                index[axis] = (index[axis] + 1) % counts[axis];
                if index[axis] > 0 {
                    break;
                }
            }
        }
        Self::given(lengths, parts, &owners)
    }

    /// The same with the part of each block in a list, the last axis fastest.
    pub(crate) fn given(
        lengths: &[Vec<u64>],
        parts: usize,
        owners: &[Option<usize>],
    ) -> Result<Self> {
        if lengths.iter().flatten().any(|length| *length == 0) {
            return Err(Error::Invalid("a segment must not be empty".into()));
        }
        let mut cuts = Vec::with_capacity(lengths.len());
        for axis in lengths {
            let mut ends = vec![0u64];
            for length in axis {
                let end = ends.last().and_then(|end| end.checked_add(*length));
                ends.push(end.ok_or_else(|| {
                    Error::Invalid("the segments of an axis are too long".into())
                })?);
            }
            cuts.push(ends);
        }
        let shape: Vec<u64> = cuts
            .iter()
            .filter_map(|ends| ends.last().copied())
            .collect();
        element_count(&shape).map_err(Error::geometry("the blocks"))?;
        let blocks: u64 = lengths.iter().map(|axis| axis.len() as u64).product();
        if owners.len() as u64 != blocks {
            return Err(Error::Invalid(format!(
                "{} of {blocks} blocks have a part",
                owners.len()
            )));
        }
        let mut pieces = vec![Vec::new(); parts];
        let mut places = Vec::with_capacity(owners.len());
        for (block, owner) in owners.iter().enumerate() {
            let place = match owner {
                None => None,
                Some(part) if *part < parts => {
                    pieces[*part].push(block as u32);
                    Some((*part as u32, pieces[*part].len() as u32 - 1))
                }
                Some(part) => {
                    return Err(Error::Invalid(format!(
                        "block {block} is given to part {part}, but there are {parts} parts"
                    )));
                }
            };
            places.push(place);
        }
        Ok(Self {
            shape,
            cuts,
            parts,
            places,
            pieces,
        })
    }

    /// The shape of the whole array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The part that holds the element at `index`; `None` if nobody does.
    pub fn part_of(&self, index: &[u64]) -> Option<usize> {
        if index.len() != self.shape.len() || index.iter().zip(&self.shape).any(|(i, n)| i >= n) {
            return None;
        }
        let segments = self.cuts.iter().zip(index);
        let block = segments.fold(0, |block, (cuts, at)| {
            block * (cuts.len() - 1) + segment(cuts, *at)
        });
        self.places[block].map(|(part, _)| part as usize)
    }

    /// Where a block stands, as a box of the whole array.
    pub(crate) fn block(&self, mut block: usize) -> Section {
        let mut axes = Vec::with_capacity(self.cuts.len());
        for cuts in self.cuts.iter().rev() {
            let at = block % (cuts.len() - 1);
            block /= cuts.len() - 1;
            axes.push(AxisSection::span(cuts[at], cuts[at + 1]));
        }
        axes.reverse();
        Section::new(axes).expect("a block has at most as many elements as the array")
    }

    pub(crate) fn lengths(&self) -> Vec<Vec<u64>> {
        let axis = |cuts: &Vec<u64>| cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        self.cuts.iter().map(axis).collect()
    }

    pub(crate) fn owners(&self) -> Vec<Option<usize>> {
        let part = |place: &Option<(u32, u32)>| place.map(|(part, _)| part as usize);
        self.places.iter().map(part).collect()
    }

    fn items(&self, section: &Section, items: &mut Vec<Item>) {
        let mut axes = Vec::with_capacity(self.cuts.len());
        for (taken, cuts) in section.axes().iter().zip(&self.cuts) {
            let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
                return;
            };
            let mut strips = Vec::new();
            for at in segment(cuts, first)..=segment(cuts, last) {
                let (from, to) = (taken.count_below(cuts[at]), taken.count_below(cuts[at + 1]));
                if from < to {
                    let local = strip(taken, from..to, cuts[at]);
                    strips.push((at, local, AxisSection::span(from, to)));
                }
            }
            axes.push(strips);
        }
        product(&axes, |strips| {
            let block = strips
                .iter()
                .zip(&self.cuts)
                .fold(0, |block, (strip, cuts)| block * (cuts.len() - 1) + strip.0);
            let local = boxed(strips.iter().map(|strip| strip.1.clone()));
            let positions = boxed(strips.iter().map(|strip| strip.2.clone()));
            items.push(match self.places[block] {
                Some((part, piece)) => Item {
                    part: part as usize,
                    piece: u64::from(piece),
                    local,
                    positions,
                },
                None => Item {
                    part: NOBODY,
                    piece: 0,
                    local,
                    positions,
                },
            });
        });
    }
}

/// The part of elements that no part holds.
pub(crate) const NOBODY: usize = usize::MAX;

/// What one piece of a part has of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) part: usize,
    pub(crate) piece: u64,
    /// Where it stands in the piece.
    pub(crate) local: Section,
    /// Where it belongs in the buffer of the whole section.
    pub(crate) positions: Section,
}

impl Spread {
    /// The shape of the whole array.
    pub fn shape(&self) -> &[u64] {
        match self {
            Self::Distribution(distribution) => distribution.shape(),
            Self::Blocks(blocks) => blocks.shape(),
        }
    }

    /// How many parts there are.
    pub fn parts(&self) -> usize {
        match self {
            Self::Distribution(distribution) => distribution.ranks() as usize,
            Self::Blocks(blocks) => blocks.parts,
        }
    }

    /// The part that holds the element at `index`; `None` if nobody does.
    pub fn part_of(&self, index: &[u64]) -> Option<usize> {
        match self {
            Self::Distribution(distribution) => distribution.owner(index).map(|rank| rank as usize),
            Self::Blocks(blocks) => blocks.part_of(index),
        }
    }

    /// The shapes of the pieces of a part.
    pub(crate) fn pieces(&self, part: usize) -> Vec<Vec<u64>> {
        match self {
            Self::Distribution(distribution) => vec![distribution.local_shape(part as u64)],
            Self::Blocks(blocks) => {
                let pieces = blocks.pieces[part].iter();
                pieces
                    .map(|block| blocks.block(*block as usize).shape())
                    .collect()
            }
        }
    }

    /// Where a box of a piece stands in the whole array.
    pub(crate) fn globally(&self, part: usize, piece: usize, local: &Section) -> Section {
        match self {
            Self::Distribution(distribution) => {
                let at = distribution.coordinates(part as u64).unwrap_or_default();
                let axes = distribution.axes().iter().zip(at).zip(local.axes());
                boxed(axes.map(|((axis, at), taken)| {
                    let (lower, upper) = taken.bounds();
                    axis.globals(at, lower, upper)
                }))
            }
            Self::Blocks(blocks) => blocks
                .block(blocks.pieces[part][piece] as usize)
                .select(local),
        }
    }

    /// What the pieces have of a section that lies in the array. Several pieces
    /// of one part come one after the other.
    pub(crate) fn items(&self, section: &Section) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        match self {
            Self::Blocks(blocks) => {
                blocks.items(section, &mut items);
                items.sort_by_key(|item| item.part);
            }
            Self::Distribution(distribution) => distributed(distribution, section, &mut items)?,
        }
        Ok(items)
    }
}

fn distributed(
    distribution: &Distribution,
    section: &Section,
    items: &mut Vec<Item>,
) -> Result<()> {
    if section.is_empty() {
        return Ok(());
    }
    let axes = distribution.axes().iter().zip(section.axes());
    let coordinates: Vec<Vec<u64>> = axes.map(|(axis, taken)| touched(axis, taken)).collect();
    let mut failure = None;
    product(&coordinates, |at| {
        let grid = distribution.grid().iter().zip(at);
        let rank = grid.fold(0, |rank, (extent, at)| rank * extent + *at);
        let parts = distribution.owned_parts(rank, section);
        match parts {
            Err(error) => failure = Some(error),
            Ok(parts) => items.extend(parts.into_iter().map(|part| Item {
                part: rank as usize,
                piece: 0,
                positions: positions(section, &part.global),
                local: part.local,
            })),
        }
    });
    match failure {
        Some(error) => Err(Error::geometry("a disk-resident array")(error)),
        None => Ok(()),
    }
}

/// The places along one axis of the grid that may own something of `taken`.
fn touched(axis: &DistributedAxis, taken: &AxisSection) -> Vec<u64> {
    let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
        return Vec::new();
    };
    let (first, last) = (first / axis.block(), last / axis.block());
    if last - first >= axis.ranks() - 1 {
        return (0..axis.ranks()).collect();
    }
    let mut all: Vec<u64> = (first..=last).map(|block| block % axis.ranks()).collect();
    all.sort_unstable();
    all
}

/// Where `taken`, which is part of `section`, stands in it.
fn positions(section: &Section, taken: &Section) -> Section {
    let axes = section.axes().iter().zip(taken.axes());
    boxed(axes.map(|(whole, taken)| {
        let position = |index| whole.position(index).unwrap_or_default();
        let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
            return AxisSection::span(0, 0);
        };
        let (start, end, count) = (position(first), position(last), taken.count());
        match whole.stride() {
            Some(_) if taken.stride().is_some() => {
                let step = (end - start) / (count - 1).max(1);
                AxisSection::range(start, end + 1, step.max(1)).expect("the step is not 0")
            }
            _ => {
                let all = (0..count).map(|at| position(taken.index(at)));
                AxisSection::list(all.collect::<Vec<_>>()).expect("positions ascend")
            }
        }
    }))
}

/// The segment that has `index`, which lies in one of them.
fn segment(cuts: &[u64], index: u64) -> usize {
    cuts.partition_point(|cut| *cut <= index) - 1
}

/// The indices at some positions (at least one), seen from `start` on, which is at
/// or before the first of them. The bound is that of the last index.
pub(crate) fn strip(taken: &AxisSection, positions: Range<u64>, start: u64) -> AxisSection {
    let at = |position: u64| taken.index(position) - start;
    let (first, last) = (at(positions.start), at(positions.end - 1));
    match taken.stride() {
        Some(_) if first == last => AxisSection::span(first, first + 1),
        Some(stride) => AxisSection::range(first, last + 1, stride).expect("it has a stride"),
        None => AxisSection::list(positions.map(at).collect::<Vec<_>>()).expect("they ascend"),
    }
}

/// The product of axes that are part of an array.
pub(crate) fn boxed(axes: impl Iterator<Item = AxisSection>) -> Section {
    Section::new(axes.collect()).expect("a part has at most as many elements as the array")
}

/// Calls `each` with every way to take one of each list, the last fastest.
pub(crate) fn product<T>(lists: &[Vec<T>], mut each: impl FnMut(&[&T])) {
    if lists.iter().any(Vec::is_empty) {
        return;
    }
    let mut at = vec![0; lists.len()];
    let mut row: Vec<&T> = lists.iter().map(|list| &list[0]).collect();
    loop {
        each(&row);
        let mut axis = lists.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            at[axis] += 1;
            if at[axis] < lists[axis].len() {
                row[axis] = &lists[axis][at[axis]];
                break;
            }
            at[axis] = 0;
            row[axis] = &lists[axis][0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element of a section is in one item, at the right place of both.
    fn check(spread: &Spread, section: &Section) {
        let all: Vec<Vec<u64>> = indices(section);
        let mut seen = vec![false; all.len()];
        for item in spread.items(section).unwrap() {
            let shape = section.shape();
            let (local, positions) = (indices(&item.local), indices(&item.positions));
            assert_eq!(local.len(), positions.len());
            for (local, position) in local.iter().zip(&positions) {
                let place = position
                    .iter()
                    .zip(&shape)
                    .fold(0, |place, (at, n)| place * n + at);
                let global = &all[place as usize];
                assert!(!std::mem::replace(&mut seen[place as usize], true));
                match item.part {
                    NOBODY => assert_eq!(spread.part_of(global), None),
                    part => {
                        assert_eq!(spread.part_of(global), Some(part));
                        let point = local.iter().map(|at| AxisSection::span(*at, at + 1));
                        let back = spread.globally(part, item.piece as usize, &boxed(point));
                        assert_eq!(&indices(&back)[0], global);
                    }
                }
            }
        }
        assert!(seen.into_iter().all(|seen| seen));
    }

    fn indices(section: &Section) -> Vec<Vec<u64>> {
        let axes = section.axes().iter();
        let lists: Vec<Vec<u64>> = axes
            .map(|axis| (0..axis.count()).map(|at| axis.index(at)).collect())
            .collect();
        let mut all = Vec::new();
        product(&lists, |row| all.push(row.iter().map(|at| **at).collect()));
        all
    }

    #[test]
    fn items_cover_sections_once() {
        let shape = [13, 11];
        let sections = [":, :", "3:12:2, 1:11:3", "5, :", "::7, [0,2,3,9]", "4:4, :"];
        for text in ["block,*", "cyclic(2),block", "cyclic,cyclic(3)", "*,*"] {
            let distribution = Distribution::parse(text, &shape, 4, None).unwrap();
            for section in sections {
                let section = Section::parse(section, &shape).unwrap();
                check(&distribution.clone().into(), &section);
            }
        }
        let lengths = [vec![4, 1, 8], vec![6, 5]];
        let blocks = Blocks::new(&lengths, 3, |at| {
            (at != [1, 1]).then(|| (at[0] + 2 * at[1]) as usize % 3)
        });
        let blocks = Spread::from(blocks.unwrap());
        for section in sections {
            check(&blocks, &Section::parse(section, &shape).unwrap());
        }
    }

    #[test]
    fn bad_blocks_are_refused() {
        assert!(Blocks::new(&[vec![3, 0]], 1, |_| Some(0)).is_err());
        assert!(Blocks::new(&[vec![3, 2]], 1, |_| Some(1)).is_err());
        assert!(Blocks::new(&[vec![u64::MAX, 2]], 1, |_| Some(0)).is_err());
        assert!(Blocks::given(&[vec![3, 2]], 1, &[Some(0)]).is_err());
    }
}
