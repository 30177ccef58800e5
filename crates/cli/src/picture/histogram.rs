//! A histogram as columns.

use outcore_apps::stats::Histogram;

use super::svg::{Area, Font, Svg};
use super::{EDGE, FAINT, INK, MARGIN, SMALL, WANTED, WIDTH};
use crate::stats::short;

const TOP: f64 = 66.0;
const HEIGHT: f64 = 320.0;
/// Room for the counts on the left.
const LEFT: f64 = 90.0;

/// Columns narrower than this stand without gaps.
const NARROW: f64 = 6.0;

/// The picture as SVG.
pub(crate) fn draw(title: &str, histogram: &Histogram) -> String {
    let mut svg = Svg::new(WIDTH);
    let font = Font {
        size: 17.0,
        bold: true,
        ..SMALL
    };
    svg.text(MARGIN, 42.0, font, title);
    let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let (left, wide) = (MARGIN + LEFT, WIDTH - 2.0 * MARGIN - LEFT);
    let bottom = TOP + HEIGHT;
    let high = |count: f64| count / most * HEIGHT;
    let step = round_step(most);
    for line in 0..=(most / step) as u32 {
        let count = f64::from(line) * step;
        let y = bottom - high(count);
        svg.lines(EDGE, 0.5, [[left, y, left + wide, y]]);
        let font = Font {
            size: 11.0,
            colour: FAINT,
            anchor: "end",
            ..SMALL
        };
        svg.text(left - 6.0, y + 4.0, font, &short(count));
    }
    let column = wide / histogram.counts.len().max(1) as f64;
    let gap = match column < NARROW {
        true => 0.0,
        false => (column * 0.08).min(1.5),
    };
    let areas = histogram.counts.iter().enumerate();
    let areas = areas
        .filter(|(_, count)| **count > 0)
        .map(|(at, count)| Area {
            x: left + at as f64 * column + gap,
            y: bottom - high(*count as f64),
            width: column - 2.0 * gap,
            height: high(*count as f64),
        });
    svg.rectangles(WANTED, areas);
    svg.lines(INK, 1.0, [[left, bottom, left + wide, bottom]]);
    let edges = &histogram.edges;
    for part in 0..=4usize {
        let at = (edges.len() - 1) * part / 4;
        let x = left + wide * at as f64 / (edges.len() - 1).max(1) as f64;
        let font = Font {
            size: 11.0,
            anchor: "middle",
            ..SMALL
        };
        svg.text(x, bottom + 18.0, font, &short(edges[at]));
    }
    let mut y = bottom + 44.0;
    if histogram.below + histogram.above > 0 {
        let outside = format!("below {}, above {}", histogram.below, histogram.above);
        svg.text(left, y, SMALL, &outside);
        y += 20.0;
    }
    svg.finish(y, title)
}

/// Between lines of counts: 1, 2 or 5 times a power of ten, of which three to seven
/// reach `most`.
fn round_step(most: f64) -> f64 {
    let rough = (most / 6.0).max(1.0);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|times| times * power).into_iter();
    step.clone()
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_at_round_steps() {
        for (most, step) in [
            (1.0, 1.0),
            (7.0, 2.0),
            (60.0, 10.0),
            (61.0, 20.0),
            (123456.0, 50000.0),
        ] {
            assert_eq!(round_step(most), step, "{most}");
        }
    }
}
