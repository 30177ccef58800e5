//! Tables 5.4 and 5.5: the median filter with and without prefetch (section
//! 5.5.2).
//!
//! An image of 2048x2048 is distributed along columns. Each rank gets the
//! columns that it needs from its neighbours by a shift into the overlap area
//! of its file, and goes through its own columns in slabs: read a slab with its
//! halo, compute, write the result. With prefetch the next slab is read
//! meanwhile, on the same disk that the results are written to.
//!
//! What a pixel costs is fitted once for each window, from two printed numbers:
//! 4 processors with 16 slabs. Without prefetch they take `C + R + W`, and with
//! it, if all reads but the first are hidden, `C + R / 16 + W`. With reading
//! and writing alike, `R = W`, the difference gives `R`, and then `C`.

use outcore::{Result, Sweep};

use super::Table;
use super::disk::LocalFile;
use super::printed;
use super::report::{Claim, GAIN, Report, Side, Value, Verdict, column, range};

const SIDE: u64 = 2048;
const PROCESSORS: [u64; 5] = [4, 8, 16, 32, 64];
const SLABS: [u64; 3] = [4, 8, 16];

const WITHOUT: &str = "no prefetch s";
const WITH: &str = "prefetch s";

/// What the filter does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    pub(super) window: u64,
    pub(super) processors: u64,
    pub(super) slabs: u64,
    pub(super) prefetch: bool,
    /// Seconds of computing a pixel.
    pub(super) pixel: f64,
}

impl Filter {
    /// The time of a rank that has neighbours on both sides.
    pub(super) fn seconds(&self) -> Result<f64> {
        let (columns, halo) = (SIDE / self.processors, self.window / 2);
        // The image with its overlap area, and behind it the result.
        let width = columns + 2 * halo;
        let file = LocalFile::new(SIDE, 2 * width)?;
        file.shift(0, columns, halo)?;
        let sweep = Sweep::<f32>::of(&file.array)
            .over(file.array.whole().slice(1, halo, halo + columns))
            .halo(&[(0, 0), (halo, halo)])
            .thickness(Some(columns / self.slabs))
            .ahead(usize::from(self.prefetch))
            .reuse(false)
            .start::<f32>()?;
        for tile in sweep {
            let tile = tile?;
            file.compute(tile.core().count() as f64 * self.pixel);
            let result = &tile.values()[tile.core_range().unwrap_or_default()];
            let (from, to) = tile.core().axes()[1].bounds();
            let behind = file.array.whole().slice(1, from + width, to + width);
            file.array.write(&behind, result)?;
        }
        Ok(file.seconds())
    }
}

fn printed_seconds(table: &str, prefetch: bool, processors: u64, slabs: u64) -> f64 {
    let method = if prefetch { "prefetch" } else { "no_prefetch" };
    let wanted = [("procs", processors), ("slabs", slabs)];
    printed::seconds(table, method, &wanted).unwrap_or(f64::NAN)
}

/// The seconds of a pixel.
fn fitted(table: &str) -> f64 {
    let (without, with) = (
        printed_seconds(table, false, 4, 16),
        printed_seconds(table, true, 4, 16),
    );
    let read = (without - with) * 16.0 / 15.0;
    (without - 2.0 * read) / (SIDE * SIDE / 4) as f64
}

/// The table of one window.
pub(super) fn report(table: Table, window: u64) -> Result<Report> {
    let (table, pixel) = (table.name(), fitted(table.name()));
    let mut values = Vec::new();
    for processors in PROCESSORS {
        for slabs in SLABS {
            let simulated = |prefetch| {
                let filter = Filter {
                    window,
                    processors,
                    slabs,
                    prefetch,
                    pixel,
                };
                filter.seconds()
            };
            let pair = |prefetch| -> Result<(f64, f64)> {
                Ok((
                    printed_seconds(table, prefetch, processors, slabs),
                    simulated(prefetch)?,
                ))
            };
            let (without, with) = (pair(false)?, pair(true)?);
            let gain = |without: f64, with: f64| 100.0 * (without - with) / without;
            let gains = (gain(without.0, with.0), gain(without.1, with.1));
            let case = format!("{processors} processors {slabs} slabs");
            for (quantity, (paper, simulated)) in [(WITHOUT, without), (WITH, with), (GAIN, gains)]
            {
                values.push(Value {
                    case: case.clone(),
                    quantity,
                    paper,
                    simulated,
                });
            }
        }
    }
    let claims = claims(&values);
    Ok(Report {
        table,
        title: format!("Median filter {window}x{window} of 2048x2048 pixels (single precision)"),
        notes: vec![
            format!("computing takes {:.1} us a pixel, fitted to the paper's 4 processors with 16 slabs;", pixel * 1e6),
            "the paper's reads are about eight times as slow as this disk's, so less can be hidden here;".into(),
            "each slab more costs 20 ms of writing, which nothing hides and which soon outweighs the".into(),
            "shorter wait for the first slab".into(),
        ],
        values,
        claims,
    })
}

fn claims(values: &[Value]) -> Vec<Claim> {
    let improves = |side| {
        let gains = column(values, GAIN, side);
        let (low, high) = range(&gains);
        let better = gains.iter().filter(|gain| **gain > 0.0).count();
        Verdict {
            holds: better == gains.len(),
            because: format!(
                "faster in {better} of {}, by {low:.1}% to {high:.1}%",
                gains.len()
            ),
        }
    };
    let close_to_40 = |side| {
        let (_, high) = range(&column(values, GAIN, side));
        Verdict {
            holds: high >= 38.0,
            because: format!("at most {high:.1}%"),
        }
    };
    let more_slabs_slower = |side| {
        let (slower, all) = steps(values, WITHOUT, side, |before, after| after > before);
        Verdict {
            holds: slower.len() == all,
            because: format!(
                "slower in {} of {all} steps to twice the slabs",
                slower.len()
            ),
        }
    };
    let more_slabs_faster = |side| {
        let (faster, all) = steps(values, WITH, side, |before, after| after < before);
        Verdict {
            holds: 2 * faster.len() > all,
            because: format!(
                "faster in {} of {all} steps to twice the slabs",
                faster.len()
            ),
        }
    };
    let degrades = |side, on_64: bool| {
        let (slower, _) = steps(values, WITH, side, |before, after| after > before);
        let chosen = |step: &String| step.starts_with("64 ") == on_64;
        let found: Vec<String> = slower.into_iter().filter(chosen).collect();
        Verdict {
            holds: found.is_empty() != on_64,
            because: match found.is_empty() {
                true => "no step to twice the slabs is slower".into(),
                false => format!("slower: {}", found.join("; ")),
            },
        }
    };
    vec![
        Claim::judged(
            "\"In all cases, prefetching improves performance considerably\"",
            improves,
        ),
        Claim::judged(
            "\"In some cases, the improvement is close to 40%\"",
            close_to_40,
        ),
        Claim::judged(
            "\"Without prefetching, as the number of slabs is increased, the time taken increases\"",
            more_slabs_slower,
        ),
        Claim::judged(
            "\"With prefetching, as the number of slabs is increased, the time taken decreases in most cases\"",
            more_slabs_faster,
        ),
        Claim::judged(
            "\"when the slab size is small (64 processor case with 8 or 16 slabs) [...] performance \
             actually degrades\"",
            |side| degrades(side, true),
        ),
        Claim::judged(
            "and with larger slabs it does not (as the thesis implies)",
            |side| degrades(side, false),
        ),
    ]
}

/// The steps from some slabs to twice as many, on the same processors, that
/// pass the test; and how many there are in all.
fn steps(
    values: &[Value],
    quantity: &str,
    side: Side,
    test: impl Fn(f64, f64) -> bool,
) -> (Vec<String>, usize) {
    let column = column(values, quantity, side);
    let mut found = Vec::new();
    for (times, processors) in column.chunks_exact(SLABS.len()).zip(PROCESSORS) {
        for (pair, slabs) in times.windows(2).zip(SLABS.windows(2)) {
            if test(pair[0], pair[1]) {
                found.push(format!(
                    "{processors} processors from {} to {}",
                    slabs[0], slabs[1]
                ));
            }
        }
    }
    (found, PROCESSORS.len() * (SLABS.len() - 1))
}
