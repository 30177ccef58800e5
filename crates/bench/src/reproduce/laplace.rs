//! Table 5.6: the Laplace solver (Jacobi) with and without reuse, on 64
//! processors (section 5.5.3).
//!
//! The grid is distributed along columns; before each sweep over its columns a
//! rank exchanges one column with each neighbour. A slab needs one column more
//! on both sides, and the next slab needs two of them again: with reuse they
//! are moved in memory. The thesis gives neither the slabs nor the number of
//! iterations; here are 4 slabs for both sizes (so that their thickness grows
//! with the grid, as the printed times do) and 10 iterations.

use outcore::{Result, Sweep};

use super::disk::LocalFile;
use super::printed;
use super::report::{Claim, GAIN, Report, Value, Verdict, column, range};

const PROCESSORS: u64 = 64;
const SLABS: u64 = 4;
const ITERATIONS: usize = 10;
const SIZES: [u64; 2] = [2048, 4096];

/// Seconds of computing a point: some four operations on a processor of the
/// Delta.
const POINT: f64 = 1e-6;

const WITHOUT: &str = "no reuse s";
const WITH: &str = "reuse s";

/// The time of a rank that has neighbours on both sides, and the columns that
/// it has read in one iteration, the shift apart.
pub(super) fn simulated(size: u64, reuse: bool) -> Result<(f64, u64)> {
    let columns = size / PROCESSORS;
    // Old values with an overlap column on both sides, and new ones behind.
    let width = columns + 2;
    let file = LocalFile::new(size, 2 * width)?;
    let mut read = 0;
    for iteration in 0..ITERATIONS as u64 {
        // Old and new change places.
        let (old, new) = match iteration % 2 {
            0 => (0, width),
            _ => (width, 0),
        };
        file.shift(old, columns, 1)?;
        let before = file.counts().bytes_read;
        let sweep = Sweep::<f32>::of(&file.array)
            .over(file.array.whole().slice(1, old + 1, old + 1 + columns))
            .halo(&[(0, 0), (1, 1)])
            .thickness(Some(columns / SLABS))
            .ahead(0)
            .reuse(reuse)
            .start::<f32>()?;
        for tile in sweep {
            let tile = tile?;
            file.compute(tile.core().count() as f64 * POINT);
            let result = &tile.values()[tile.core_range().unwrap_or_default()];
            let (from, to) = tile.core().axes()[1].bounds();
            let behind = file
                .array
                .whole()
                .slice(1, from - old + new, to - old + new);
            file.array.write(&behind, result)?;
        }
        read = (file.counts().bytes_read - before) / (4 * size);
    }
    Ok((file.seconds(), read))
}

/// The table.
pub(super) fn report() -> Result<Report> {
    let mut values = Vec::new();
    let mut notes = vec![format!(
        "{SLABS} slabs and {ITERATIONS} iterations, which the thesis does not give; computing takes 1 us a point"
    )];
    for size in SIZES {
        let pair = |reuse, method| -> Result<((f64, f64), u64)> {
            let printed = printed::seconds("T5.6", method, &[("rows", size)]);
            let (seconds, read) = simulated(size, reuse)?;
            Ok(((printed.unwrap_or(f64::NAN), seconds), read))
        };
        let ((without, more), (with, fewer)) = (pair(false, "no_reuse")?, pair(true, "reuse")?);
        let gain = |without: f64, with: f64| 100.0 * (without - with) / without;
        let gains = (gain(without.0, with.0), gain(without.1, with.1));
        for (quantity, (paper, simulated)) in [(WITHOUT, without), (WITH, with), (GAIN, gains)] {
            values.push(Value {
                case: format!("{size}x{size}"),
                quantity,
                paper,
                simulated,
            });
        }
        notes.push(format!(
            "{size}x{size}: an iteration reads {more} columns without reuse and {fewer} with it, each once"
        ));
    }
    let improves = |side| {
        let gains = column(&values, GAIN, side);
        let (low, high) = range(&gains);
        Verdict {
            holds: low > 0.0,
            because: format!("faster by {low:.1}% to {high:.1}%"),
        }
    };
    let less_on_larger = |side| {
        let gains = column(&values, GAIN, side);
        Verdict {
            holds: gains[1] < gains[0],
            because: format!(
                "{:.1}% on 2048x2048, {:.1}% on 4096x4096",
                gains[0], gains[1]
            ),
        }
    };
    let claims = vec![
        Claim::judged(
            "\"Reuse provides good performance improvement even in this case where only two columns can be reused\"",
            improves,
        ),
        Claim::judged(
            "the gain is smaller on the larger grid (as the table shows)",
            less_on_larger,
        ),
    ];
    Ok(Report {
        table: "T5.6",
        title: "Laplace solver with and without reuse, 64 processors".into(),
        notes,
        values,
        claims,
    })
}
