//! [`MatrixForm`]: how blocks become matrices.
//!
//! A product of blocks is a batch of products of matrices: the indices of the
//! left factor and the result are the rows, those of the right factor and the
//! result the columns, and those summed over lie between. A block whose indices
//! stand in such an order already, by rows or by columns, is taken as it is; the
//! others are permuted. In which order the indices of a group stand is free, and
//! chosen so that the fewest elements are permuted.

use super::expression::{Expression, Role, Term};
use super::tensor::BlockTensor;

/// How the blocks of one tensor become matrices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Side {
    /// The axes of the tensor in the order of the matrix, slowest first; `None`
    /// if they stand in it.
    pub(super) order: Option<Vec<usize>>,
    /// Whether rows are contiguous; else columns are.
    pub(super) by_rows: bool,
}

/// How the blocks of a contraction become matrices.
#[derive(Debug, Clone)]
pub(super) struct MatrixForm {
    pub(super) output: Side,
    pub(super) left: Side,
    pub(super) right: Side,
}

impl MatrixForm {
    /// The form in which the fewest elements of these tensors (the result, the
    /// left and the right factor) are permuted.
    pub(super) fn new(expression: &Expression, tensors: &[BlockTensor; 3]) -> Self {
        let group = |term: &Term, role: Role| -> Vec<String> {
            let indices = term.indices.iter();
            indices
                .filter(|index| expression.role(index) == role)
                .cloned()
                .collect()
        };
        let Expression {
            output,
            left,
            right,
            ..
        } = expression;
        let batch = group(output, Role::Batch);
        let mut best: Option<(u64, Self)> = None;
        for rows in [group(left, Role::Left), group(output, Role::Left)] {
            for columns in [group(right, Role::Right), group(output, Role::Right)] {
                for between in [group(left, Role::Summed), group(right, Role::Summed)] {
                    let form = Self {
                        output: Side::new(output, [&batch, &rows, &columns]),
                        left: Side::new(left, [&batch, &rows, &between]),
                        right: Side::new(right, [&batch, &between, &columns]),
                    };
                    let sides = [&form.output, &form.left, &form.right];
                    let permuted = sides
                        .iter()
                        .zip(tensors)
                        .map(|(side, tensor)| side.order.as_ref().map_or(0, |_| tensor.len()));
                    let cost = permuted.sum();
                    if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                        best = Some((cost, form));
                    }
                }
            }
        }
        best.map(|(_, form)| form).expect("eight forms were tried")
    }
}

impl Side {
    /// A tensor as matrices with these groups of indices.
    fn new(term: &Term, [batch, rows, columns]: [&[String]; 3]) -> Self {
        let order = |groups: [&[String]; 3]| -> Vec<usize> {
            let indices = groups.into_iter().flatten();
            indices.filter_map(|index| term.position(index)).collect()
        };
        let stands = |order: &[usize]| order.iter().copied().eq(0..term.indices.len());
        let by_rows = order([batch, rows, columns]);
        if stands(&by_rows) || stands(&order([batch, columns, rows])) {
            return Self {
                by_rows: stands(&by_rows),
                order: None,
            };
        }
        Self {
            order: Some(by_rows),
            by_rows: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::segments::Segments;
    use super::*;

    fn form(text: &str) -> MatrixForm {
        let expression: Expression = text.parse().unwrap();
        let segments = Segments::new(&[3, 2]).unwrap();
        let tensors = expression.terms().map(|term| {
            let axes = vec![segments.clone(); term.indices.len()];
            BlockTensor::new(&term.name, &axes, |_| true).unwrap()
        });
        MatrixForm::new(&expression, &tensors)
    }

    #[test]
    fn blocks_that_are_matrices_are_taken_as_they_are() {
        for text in [
            "i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p2]",
            "c[i,j] = a[k,i] * b[j,k]",
            "c[j,i] = a[i,k] * b[k,j]",
            "c[x,i,j] = a[x,k,i] * b[x,k,j]",
            "c[] = a[i,j] * b[i,j]",
            "c[i,j] = a[i] * b[j]",
        ] {
            let form = form(text);
            let sides = [form.output, form.left, form.right];
            assert!(sides.iter().all(|side| side.order.is_none()), "{text}");
        }
    }

    #[test]
    fn the_fewest_elements_are_permuted() {
        // One of the factors must be, or its order be that of the other.
        let sides = |text: &str| {
            let form = form(text);
            [form.output, form.left, form.right].map(|side| side.order.is_some())
        };
        assert_eq!(sides("c[i,j] = a[i,k,l] * b[l,k,j]"), [false, false, true]);
        assert_eq!(sides("c[i,j,m] = a[j,i,k] * b[k,m]"), [true, false, false]);
        assert_eq!(sides("c[i,m,j] = a[i,j,k] * b[k,m]"), [true, false, false]);
    }
}
