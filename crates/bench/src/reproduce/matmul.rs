//! Table 9: the input and output of an out-of-core matrix multiplication by the
//! GAXPY algorithm (Thakur and Choudhary 1996, sections 2.1 and 5.2.1).
//!
//! C = A B, all of n x n. A is cut into blocks of rows and B into blocks of
//! columns. For each block of A, which stays in memory, all blocks of B are
//! read, and each gives a block of C that is written. Of a block of A a rank has
//! n / P columns, and of a block of B n / P rows, so that the ranks together
//! span it; after the global sum it has 1 / P of the columns of a block of C.
//!
//! The papers do not give the sizes of the blocks; here A and B are cut into 8
//! for every n and P, which brings the simulated seconds of the direct method
//! near the printed ones for n = 4096 on 8 processors.

use std::ops::Range;

use outcore::{Direction, Result, Section};

use super::Table;
use super::pairs::{self, Step, block};
use super::report::{Claim, GAIN, Report, Value, Verdict, column, range};

const BLOCKS: u64 = 8;

/// Part `at` of `0..extent` in `parts` equal ones.
fn part(extent: u64, at: u64, parts: u64) -> Range<u64> {
    extent * at / parts..extent * (at + 1) / parts
}

fn steps(extent: u64, processors: u64) -> Result<Vec<Step>> {
    let of = |at| part(extent, at, BLOCKS);
    let own = |rank| part(extent, rank, processors);
    let step = |direction, times, section: &dyn Fn(u64) -> Result<Section>| -> Result<Step> {
        Ok(Step {
            sections: (0..processors).map(section).collect::<Result<_>>()?,
            direction,
            times,
        })
    };
    let mut steps = Vec::new();
    for at in 0..BLOCKS {
        steps.push(step(Direction::Read, 1, &|rank| block(of(at), own(rank)))?);
        // Once for each block of A.
        steps.push(step(Direction::Read, BLOCKS, &|rank| {
            block(own(rank), of(at))
        })?);
        for columns in 0..BLOCKS {
            steps.push(step(Direction::Write, 1, &|rank| {
                let first = of(columns).start;
                let share = part(extent / BLOCKS, rank, processors);
                block(of(at), first + share.start..first + share.end)
            })?);
        }
    }
    Ok(steps)
}

/// The numbers.
pub(super) fn values() -> Result<Vec<Value>> {
    pairs::values(Table::T9, steps)
}

/// The table.
pub(super) fn report() -> Result<Report> {
    let values = values()?;
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
    let bounds = |side| {
        let (low, high) = range(&column(&values, GAIN, side));
        Verdict {
            holds: low > 21.5 && high < 75.5,
            because: format!("{low:.1}% to {high:.1}%"),
        }
    };
    let claims = vec![
        Claim::judged(
            "\"In all cases, the extended two-phase method performed better than the direct method\"",
            better,
        ),
        Claim::judged("the improvement \"varied from 22% to 75%\"", bounds),
    ];
    let assumed =
        ["A is cut into 8 blocks of rows and B into 8 of columns, which the papers do not give"];
    let title = "Matrix multiplication (GAXPY), input and output";
    Ok(pairs::report(Table::T9, title, &assumed, values, claims))
}
