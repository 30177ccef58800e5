//! Table 10: the input and output of an out-of-core Laplace solver by Jacobi
//! iterations (Thakur and Choudhary 1996, sections 2.2 and 5.2.2).
//!
//! The array is cut into blocks, which are dealt out to the ranks in turn, row
//! of blocks after row of blocks. In each round every rank reads a block with one
//! row and column more on all sides, and writes the new values of the block to
//! another file.
//!
//! The papers give neither the blocks nor the number of iterations. Here there
//! are two blocks for each rank (the fewest with which an array does not fit in
//! memory), as square as powers of two can be, and 10 iterations.

use outcore::{Direction, Result};

use super::Table;
use super::matmul;
use super::pairs::{self, Step, block};
use super::report::{Claim, GAIN, Report, Verdict, column, range};

const ROUNDS: u64 = 2;
const ITERATIONS: u64 = 10;

fn steps(extent: u64, processors: u64) -> Result<Vec<Step>> {
    let blocks = ROUNDS * processors;
    // Rows of blocks, and blocks in each.
    let rows = 1 << (blocks.ilog2() / 2);
    let columns = blocks / rows;
    let (height, width) = (extent / rows, extent / columns);
    let mut steps = Vec::new();
    for round in 0..ROUNDS {
        for (direction, halo) in [(Direction::Read, 1), (Direction::Write, 0)] {
            let of_rank = |rank: u64| {
                let at = round * processors + rank;
                let (top, left) = (at / columns * height, at % columns * width);
                let span = |first: u64, length: u64| {
                    first.saturating_sub(halo)..(first + length + halo).min(extent)
                };
                block(span(top, height), span(left, width))
            };
            steps.push(Step {
                sections: (0..processors).map(of_rank).collect::<Result<_>>()?,
                direction,
                times: ITERATIONS,
            });
        }
    }
    Ok(steps)
}

/// The table.
pub(super) fn report() -> Result<Report> {
    let values = pairs::values(Table::T10, steps)?;
    let multiplied = matmul::values()?;
    let better = |side| {
        let gains = column(&values, GAIN, side);
        let (low, high) = range(&gains);
        Verdict {
            holds: low > 0.0,
            because: format!(
                "in {} of {}, by {low:.1}% to {high:.1}%",
                gains.iter().filter(|gain| **gain > 0.0).count(),
                gains.len()
            ),
        }
    };
    let lower = |side| {
        let mean = |gains: Vec<f64>| gains.iter().sum::<f64>() / gains.len() as f64;
        let here = mean(column(&values, GAIN, side));
        let there = mean(column(&multiplied, GAIN, side));
        Verdict {
            holds: here < there,
            because: format!("{here:.1}% on average, there {there:.1}%"),
        }
    };
    let claims = vec![
        Claim::judged(
            "\"the extended two-phase method performed better than the direct method\"",
            better,
        ),
        Claim::judged(
            "\"The percentage improvement was lower than in the case of matrix multiplication\"",
            lower,
        ),
    ];
    let assumed = [
        "two blocks for each processor, as square as can be, and 10 iterations: the papers give neither",
    ];
    let title = "Laplace solver (Jacobi), input and output";
    Ok(pairs::report(Table::T10, title, &assumed, values, claims))
}
