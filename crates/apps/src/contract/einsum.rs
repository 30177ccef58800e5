//! [`einsum`]: a contraction of dense tensors in memory by the plain loop over all
//! indices, against which everything else is checked.

use outcore::{Error, Result};

use super::expression::{Expression, Term};
use crate::matmul::Number;

/// Adds the product of `left` and `right` to `output`, which are dense and
/// row-major; `extent` says how far each index runs.
///
/// ```
/// use outcore_apps::contract::einsum;
/// let expression = "c[i] += a[i,k] * b[k]".parse()?;
/// let mut output = [100.0, 200.0];
/// let extent = |index: &str| Ok(if index == "i" { 2 } else { 3 });
/// einsum(&expression, extent, (&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1.0, 1.0, 2.0]), &mut output)?;
/// assert_eq!(output, [109.0, 221.0]);
/// # Ok::<(), outcore::Error>(())
/// ```
pub fn einsum<T: Number>(
    expression: &Expression,
    extent: impl Fn(&str) -> Result<u64>,
    (left, right): (&[T], &[T]),
    output: &mut [T],
) -> Result<()> {
    let indices = expression.indices();
    let extents: Result<Vec<u64>> = indices.iter().map(|index| extent(index)).collect();
    let extents: Vec<usize> = extents?.into_iter().map(|extent| extent as usize).collect();
    // How far an element of each tensor is from that of the next index.
    let steps = |term: &Term| -> Vec<usize> {
        let mut steps = vec![0; indices.len()];
        let mut step = 1;
        for own in term.indices.iter().rev() {
            if let Some(at) = indices.iter().position(|index| index == own) {
                steps[at] = step;
                step *= extents[at];
            }
        }
        steps
    };
    let loops = Loops {
        extents: &extents,
        steps: expression.terms().map(steps),
    };
    let lengths = [output.len(), left.len(), right.len()];
    for (term, length) in expression.terms().into_iter().zip(lengths) {
        let of = |index: &String| indices.iter().position(|one| *one == index.as_str());
        let expected: usize = term
            .indices
            .iter()
            .filter_map(of)
            .map(|at| extents[at])
            .product();
        if expected != length {
            return Err(Error::Invalid(format!(
                "{term} has {expected} elements, but {length} are given"
            )));
        }
    }
    loops.run(0, [0; 3], (left, right), output);
    Ok(())
}

struct Loops<'a> {
    extents: &'a [usize],
    /// Of the result, the left and the right factor.
    steps: [Vec<usize>; 3],
}

impl Loops<'_> {
    /// All loops from that over the index `depth` on.
    fn run<T: Number>(
        &self,
        depth: usize,
        at: [usize; 3],
        factors: (&[T], &[T]),
        output: &mut [T],
    ) {
        let Some(extent) = self.extents.get(depth) else {
            output[at[0]] += factors.0[at[1]] * factors.1[at[2]];
            return;
        };
        for index in 0..*extent {
            let moved = |tensor: usize| at[tensor] + index * self.steps[tensor][depth];
            self.run(depth + 1, [moved(0), moved(1), moved(2)], factors, output);
        }
    }
}
