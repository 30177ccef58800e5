//! Times as bars.

use super::SMALL;
use super::svg::{Area, Colour, Font, Svg};

/// A time that was predicted, and the one that was measured.
pub(crate) struct Bar {
    pub(crate) label: String,
    /// Behind the times.
    pub(crate) note: String,
    pub(crate) predicted: f64,
    pub(crate) measured: Option<f64>,
    pub(crate) colour: Colour,
    /// Whether it stands out.
    pub(crate) chosen: bool,
}

/// The colour of measured times.
pub(crate) const MEASURED: Colour = Colour(0x3d, 0x46, 0x50);

const LABEL: f64 = 96.0;
const LONGEST: f64 = 380.0;
const STEP: f64 = 24.0;

/// Draws the bars from (`x`, `y`) down; returns where they end.
pub(crate) fn draw_bars(svg: &mut Svg, (x, y): (f64, f64), bars: &[Bar]) -> f64 {
    let times = bars
        .iter()
        .flat_map(|bar| [Some(bar.predicted), bar.measured]);
    let longest = times.flatten().fold(f64::MIN_POSITIVE, f64::max);
    let length = |seconds: f64| (seconds / longest * LONGEST).max(1.5);
    for (bar, top) in bars.iter().zip((0..).map(|at| y + f64::from(at) * STEP)) {
        let font = Font {
            bold: bar.chosen,
            ..SMALL
        };
        svg.text(x, top + 13.0, font, &bar.label);
        let high = if bar.measured.is_some() { 8.0 } else { 16.0 };
        let area = Area {
            x: x + LABEL,
            y: top + 1.0,
            width: length(bar.predicted),
            height: high,
        };
        svg.rectangle(area, bar.colour, None);
        let mut text = format!("{} predicted", time(bar.predicted));
        let mut end = area.width;
        if let Some(measured) = bar.measured {
            let width = length(measured);
            let below = Area {
                y: top + 9.0,
                width,
                ..area
            };
            svg.rectangle(below, MEASURED, None);
            text = format!("{text}, {} measured", time(measured));
            end = end.max(width);
        }
        if !bar.note.is_empty() {
            text = format!("{text}; {}", bar.note);
        }
        svg.text(area.x + end + 8.0, top + 13.0, font, &text);
    }
    y + bars.len() as f64 * STEP
}

/// A time as people write it.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s > 0.0 && s < 0.9995e-6 => format!("{} ns", three_digits(s * 1e9)),
        s if s < 0.9995e-3 => format!("{} us", three_digits(s * 1e6)),
        s if s < 0.9995 => format!("{} ms", three_digits(s * 1e3)),
        s => format!("{} s", three_digits(s)),
    }
}

fn three_digits(value: f64) -> String {
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time(0.0), "0.00 us");
        assert_eq!(time(23e-9), "23.0 ns");
        assert_eq!(time(12.34e-6), "12.3 us");
        assert_eq!(time(999.9e-6), "1.00 ms");
        assert_eq!(time(0.25), "250 ms");
        assert_eq!(time(12.0), "12.0 s");
        assert_eq!(time(4321.0), "4321 s");
    }
}
