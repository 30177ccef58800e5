//! [`diff`]: a pass over two arrays by all ranks.

use outcore::{
    AxisSection, Comm, Error, Fit, Pieces, Result, Section, convert, divide, reorder, shape_text,
};

use super::compare::{Differences, Peak, Tolerance, compare};
use crate::resources::Resources;
use crate::stats::Part;
use crate::stats::walk::position;

/// The bytes of a piece where both files have one order, and where not: pieces
/// must be long along the fastest axes of both then.
const PIECE: u64 = 1 << 20;
const BLOCK: u64 = 16 << 20;

/// With less memory single elements would be read.
const LEAST: u64 = 64 << 10;

/// What needs the memory.
const PURPOSE: &str = "comparing";

/// One of two arrays that are compared.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The section that is compared.
    pub part: Part<'a>,
    /// The axes of it that are compared, in ascending order; of the others one index
    /// is taken.
    pub axes: &'a [usize],
}

impl Side<'_> {
    /// The extents that are compared.
    pub fn shape(&self) -> Vec<u64> {
        let shape = self.part.section.shape();
        self.axes.iter().map(|axis| shape[*axis]).collect()
    }

    /// The axes that are compared in the order of the file, numbered as such.
    fn order(&self) -> Vec<usize> {
        let order = self.part.array.layout().slowest_first().iter();
        order
            .filter_map(|axis| self.axes.iter().position(|kept| kept == axis))
            .collect()
    }

    fn tile(&self) -> Option<Vec<u64>> {
        let tile = self.part.array.layout().tile()?;
        Some(self.axes.iter().map(|axis| tile[*axis]).collect())
    }

    /// What a box of positions takes of the array.
    fn section(&self, piece: &Section) -> Result<Section> {
        let mut axes = vec![AxisSection::span(0, 1); self.part.section.axes().len()];
        for (axis, taken) in self.axes.iter().zip(piece.axes()) {
            axes[*axis] = taken.clone();
        }
        let positions = Section::new(axes).map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(self.part.section.select(&positions))
    }

    /// The index in the array of what was found somewhere, in a comparison of which
    /// this is the first side, or one with that shape.
    pub fn index(&self, first: &Side<'_>, peak: &Peak) -> Vec<u64> {
        let whole = Section::whole(&first.shape());
        let at = whole.map_or_else(
            // Not reached: the positions were gone through.
            |_| vec![0; self.axes.len()],
            |whole| position(&whole, &first.order(), peak.place),
        );
        let axes = self.part.section.axes();
        let mut index: Vec<u64> = axes.iter().map(|axis| axis.first().unwrap_or(0)).collect();
        for (axis, at) in self.axes.iter().zip(at) {
            index[*axis] = axes[*axis].index(at);
        }
        index
    }
}

/// Collective: compares two sections of one shape; all ranks get what was found.
/// With `conversion`, elements of the first are brought into the type of the second
/// before, as [`convert`] does.
pub fn diff(
    comm: &Comm,
    (left, right): (&Side<'_>, &Side<'_>),
    tolerance: &Tolerance,
    conversion: Option<Fit>,
    resources: &Resources<'_>,
) -> Result<Differences> {
    let shape = left.shape();
    if shape != right.shape() {
        return Err(Error::Invalid(format!(
            "{} and {} cannot be compared: the shapes are {} and {}",
            left.part.array.name(),
            right.part.array.name(),
            shape_text(&shape),
            shape_text(&right.shape())
        )));
    }
    let beside = left.part.array.decoded_bytes() + right.part.array.decoded_bytes();
    let budget = resources.enough(comm, PURPOSE, |_| beside + LEAST)?;
    // A quarter is for what strategies stage, of one array at a time.
    let room = budget.limit() - beside;
    let arrays = [left, right].map(|side| side.part.array.staged(room / 4, &budget));
    let sides = (
        &Side {
            part: Part {
                array: &arrays[0],
                ..left.part
            },
            ..*left
        },
        &Side {
            part: Part {
                array: &arrays[1],
                ..right.part
            },
            ..*right
        },
    );
    let outcome = compare_share(comm, sides, tolerance, conversion, |each| {
        resources.tell(each);
        room - room / 4
    });
    let own = comm.agree(outcome)?;
    let mut all = Differences::default();
    for words in comm
        .all_gather(&own.words())?
        .chunks_exact(own.words().len())
    {
        all.join(&Differences::of_words(words));
    }
    Ok(all)
}

/// Compares what this rank has; `tell` is told of bytes that are done, and knows
/// how many the buffers may take.
fn compare_share(
    comm: &Comm,
    (left, right): (&Side<'_>, &Side<'_>),
    tolerance: &Tolerance,
    conversion: Option<Fit>,
    tell: impl Fn(u64) -> u64,
) -> Result<Differences> {
    let invalid = |error: outcore::GeometryError| Error::Invalid(error.to_string());
    let shape = left.shape();
    let (order, other_order) = (left.order(), right.order());
    let positions = Section::whole(&shape).map_err(invalid)?;
    let share = divide(&positions, &order, comm.size() as u64).swap_remove(comm.rank());
    let (old, new) = (
        left.part.array.element_type(),
        right.part.array.element_type(),
    );
    let compared = if conversion.is_some() { new } else { old };
    // Both pieces, the second in the other order, and the first converted.
    let each = old.size() + 2 * new.size() + compared.size();
    let room = tell(0) / each;
    let tiles = (left.tile(), right.tile());
    let pieces = match (&tiles, order == other_order) {
        ((None, None), true) => Pieces::new(&share, &order, room.min(PIECE / old.size())),
        _ => {
            let most = room.min(BLOCK / old.size());
            let block = block(&shape, [&order, &other_order], &tiles, most);
            Pieces::of_shape(&share, &order, &block)
        }
    };
    let mut found = Differences::default();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let (mut converted, mut ordered) = (Vec::new(), Vec::new());
    for piece in pieces {
        let count = piece.count();
        a.resize((count * old.size()) as usize, 0);
        b.resize((count * new.size()) as usize, 0);
        let (of_left, of_right) = (left.section(&piece)?, right.section(&piece)?);
        left.part.array.read_bytes(&of_left, &mut a)?;
        right.part.array.read_bytes(&of_right, &mut b)?;
        let second = if order == other_order {
            &b
        } else {
            ordered.resize(b.len(), 0);
            reorder(&piece.shape(), (&b, &other_order), (&mut ordered, &order));
            &ordered
        };
        let first = match conversion {
            Some(fit) if old != new => {
                converted.resize(second.len(), 0);
                convert((old, &a), (new, &mut converted), fit).map_err(|number| {
                    let at = position(&piece, &order, number as u64);
                    Error::Invalid(format!(
                        "a value of {} at {at:?} does not fit {new}",
                        left.part.array.name()
                    ))
                })?;
                &converted
            }
            _ => &a,
        };
        let place = |number: u64| {
            let at = position(&piece, &order, number);
            crate::stats::walk::number(&shape, &order, &at)
        };
        compare(
            (compared, first),
            (new, second),
            tolerance,
            place,
            &mut found,
        );
        tell(count * old.size());
    }
    Ok(found)
}

/// The shape of pieces of at most `most` elements that are long along the fastest
/// axes of both orders, and made of whole tiles if these fit.
fn block(
    shape: &[u64],
    orders: [&[usize]; 2],
    tiles: &(Option<Vec<u64>>, Option<Vec<u64>>),
    most: u64,
) -> Vec<u64> {
    let product = |block: &[u64]| block.iter().fold(1u64, |all, n| all.saturating_mul(*n));
    let tile = [&tiles.0, &tiles.1].into_iter().flatten();
    let mut block = tile.fold(vec![1; shape.len()], |block, tile| {
        let pairs = block.iter().zip(tile).zip(shape);
        pairs
            .map(|((a, b), extent)| (*a).max(*b).min((*extent).max(1)))
            .collect()
    });
    if product(&block) > most {
        block = vec![1; shape.len()];
    }
    // The fastest axes of both in turn, the shorter first; then the next ones.
    for depth in 1..=shape.len() {
        let axes = orders.map(|order| order[order.len() - depth]);
        loop {
            let grown = |axis: usize| (2 * block[axis]).min(shape[axis]);
            let open = axes.iter().filter(|axis| block[**axis] < shape[**axis]);
            let Some(axis) = open.min_by_key(|axis| block[**axis]).copied() else {
                break;
            };
            let mut larger = block.clone();
            larger[axis] = grown(axis);
            if product(&larger) > most {
                return block;
            }
            block = larger;
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use super::block;

    #[test]
    fn blocks_are_long_along_the_fastest_axes_of_both() {
        let none = (None, None);
        assert_eq!(block(&[100, 100], [&[0, 1], &[1, 0]], &none, 64), [8, 8]);
        assert_eq!(block(&[100, 100], [&[0, 1], &[0, 1]], &none, 250), [2, 100]);
        assert_eq!(block(&[3, 5], [&[0, 1], &[1, 0]], &none, 1000), [3, 5]);
        let tiled = (Some(vec![10, 10]), None);
        assert_eq!(
            block(&[100, 100], [&[0, 1], &[0, 1]], &tiled, 400),
            [10, 40]
        );
        assert_eq!(block(&[100, 100], [&[0, 1], &[0, 1]], &tiled, 50), [1, 32]);
        assert_eq!(block(&[], [&[], &[]], &none, 50), [0u64; 0]);
    }
}
