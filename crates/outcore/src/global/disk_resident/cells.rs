//! [`Cells`]: a piece of a part in boxes of equal shape, those at the upper edges
//! smaller: what caches keep, and what is known to be written or not.

use outcore_geometry::{AxisSection, Section};

use super::spread::{boxed, product, strip};

/// About the bytes of a cell where nobody says how large it is to be.
const CELL: u64 = 512 << 10;

/// Along the last axis cells are not made shorter than this many bytes: long
/// stretches cost less.
const ROW: u64 = 4 << 10;

/// A piece of a part in cells.
#[derive(Debug, Clone)]
pub(crate) struct Cells {
    shape: Vec<u64>,
    cell: Vec<u64>,
    counts: Vec<u64>,
    size: u64,
}

/// What a section takes of one cell.
#[derive(Debug)]
pub(crate) struct InCell {
    /// The number of the cell in its piece.
    pub(crate) number: u64,
    /// The cell, as a box of the piece.
    pub(crate) cell: Section,
    /// What the section takes of it, seen from its first element.
    pub(crate) inside: Section,
    /// Where that belongs in the buffer of the section.
    pub(crate) positions: Section,
}

impl InCell {
    /// Whether the section takes all of the cell.
    pub(crate) fn is_whole(&self) -> bool {
        self.inside.count() == self.cell.count()
    }
}

impl Cells {
    /// Cells of a piece: of the shape `cell`, or of some that is good for
    /// elements of `size` bytes.
    pub(crate) fn new(shape: &[u64], cell: Option<&[u64]>, size: u64) -> Self {
        let limited = |cell: &[u64]| {
            let axes = cell.iter().zip(shape);
            axes.map(|(cell, extent)| (*cell).min(*extent).max(1))
                .collect()
        };
        let cell: Vec<u64> = cell.map_or_else(|| chosen(shape, size), limited);
        let counts = shape.iter().zip(&cell).map(|(n, m)| n.div_ceil(*m));
        Self {
            counts: counts.collect(),
            shape: shape.to_vec(),
            cell,
            size,
        }
    }

    /// The extents of the piece.
    pub(crate) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many cells there are.
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().product()
    }

    /// The bytes of the largest cell.
    pub(crate) fn bytes(&self) -> u64 {
        self.cell.iter().product::<u64>() * self.size
    }

    /// The box of a cell.
    pub(crate) fn cell(&self, number: u64) -> Section {
        let mut rest = number;
        let mut axes = vec![AxisSection::span(0, 0); self.shape.len()];
        for axis in (0..self.shape.len()).rev() {
            let at = rest % self.counts[axis] * self.cell[axis];
            rest /= self.counts[axis];
            axes[axis] = AxisSection::span(at, (at + self.cell[axis]).min(self.shape[axis]));
        }
        boxed(axes.into_iter())
    }

    /// Calls `each` with what a section takes of each cell, until it fails.
    pub(crate) fn each<E>(
        &self,
        section: &Section,
        mut each: impl FnMut(InCell) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut axes = Vec::with_capacity(self.shape.len());
        for (axis, taken) in section.axes().iter().enumerate() {
            let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
                return Ok(());
            };
            let cell = self.cell[axis];
            let mut strips = Vec::new();
            for at in first / cell..=last / cell {
                let (start, end) = (at * cell, (at * cell + cell).min(self.shape[axis]));
                let (from, to) = (taken.count_below(start), taken.count_below(end));
                if from < to {
                    let inside = strip(taken, from..to, start);
                    strips.push((at, AxisSection::span(start, end), inside, from..to));
                }
            }
            axes.push(strips);
        }
        let mut outcome = Ok(());
        product(&axes, |strips| {
            if outcome.is_err() {
                return;
            }
            let counts = strips.iter().zip(&self.counts);
            outcome = each(InCell {
                number: counts.fold(0, |number, (strip, count)| number * count + strip.0),
                cell: boxed(strips.iter().map(|strip| strip.1.clone())),
                inside: boxed(strips.iter().map(|strip| strip.2.clone())),
                positions: boxed(
                    strips
                        .iter()
                        .map(|strip| AxisSection::span(strip.3.start, strip.3.end)),
                ),
            });
        });
        outcome
    }
}

/// A cell of about [`CELL`] bytes, as nearly a cube as long rows allow.
fn chosen(shape: &[u64], size: u64) -> Vec<u64> {
    let mut cell: Vec<u64> = shape.iter().map(|extent| (*extent).max(1)).collect();
    let last = cell.len().saturating_sub(1);
    loop {
        let bytes = cell
            .iter()
            .fold(size, |bytes, extent| bytes.saturating_mul(*extent));
        if bytes <= CELL {
            return cell;
        }
        let splits = |axis: &usize| {
            let least = if *axis == last { ROW / size } else { 1 };
            cell[*axis] > least
        };
        let Some(axis) = (0..cell.len())
            .filter(splits)
            .max_by_key(|axis| cell[*axis])
        else {
            return cell;
        };
        cell[axis] = cell[axis].div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_of_a_good_size() {
        assert_eq!(chosen(&[4096, 4096], 8), [128, 512]);
        assert_eq!(chosen(&[100, 20], 8), [100, 20]);
        assert_eq!(chosen(&[1 << 30], 1), [1 << 19]);
        assert_eq!(chosen(&[0, 7], 8), [1, 7]);
        assert_eq!(Cells::new(&[10, 10], Some(&[4, 100]), 2).bytes(), 80);
    }

    #[test]
    fn a_section_is_cut_at_the_cells() {
        let cells = Cells::new(&[10, 9], Some(&[4, 4]), 1);
        assert_eq!(cells.count(), 9);
        let section = Section::parse("1:10:3, [0,3,8]", &[10, 9]).unwrap();
        let mut seen = 0;
        cells
            .each(&section, |part| {
                assert_eq!(cells.cell(part.number), part.cell);
                assert_eq!(part.inside.shape(), part.positions.shape());
                assert_eq!(
                    part.cell.select(&part.inside),
                    section.select(&part.positions)
                );
                seen += part.inside.count();
                Ok::<(), ()>(())
            })
            .unwrap();
        assert_eq!(seen, section.count());
    }
}
