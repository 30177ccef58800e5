//! Where elements of pieces stand.

use outcore::Section;

/// Where an element of a piece stands: its position along each axis, of the
/// `number`-th element of `piece` in the axis order given.
pub(crate) fn position(piece: &Section, order: &[usize], number: u64) -> Vec<u64> {
    let mut rest = number;
    let mut at = vec![0; order.len()];
    for axis in order.iter().rev() {
        let taken = &piece.axes()[*axis];
        at[*axis] = taken.bounds().0 + rest % taken.count().max(1);
        rest /= taken.count().max(1);
    }
    at
}

/// The number of a position among all of a section with this shape, in the axis
/// order given.
pub(crate) fn number(shape: &[u64], order: &[usize], at: &[u64]) -> u64 {
    order
        .iter()
        .fold(0, |number, axis| number * shape[*axis] + at[*axis])
}
