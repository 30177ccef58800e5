//! The times of contestants, case by case, on a logarithmic scale.

use outcore_bench::Line;

use super::bars::time;
use super::svg::{Area, Colour, Font, Svg};
use super::{EDGE, FAINT, INK, MARGIN, PAPER, SMALL, WIDTH};

/// Room for the name of a case.
const LABEL: f64 = 330.0;
const STEP: f64 = 17.0;
const MARK: f64 = 8.0;

/// The picture as SVG.
pub(crate) fn draw(lines: &[Line]) -> String {
    let contestants = contestants(lines);
    let title = match lines.first() {
        Some(line) => format!("outcore bench {}: best times", line.bench),
        None => "no times".into(),
    };
    let mut svg = Svg::new(WIDTH);
    let font = Font {
        size: 19.0,
        bold: true,
        ..SMALL
    };
    svg.text(MARGIN, 42.0, font, &title);
    let mut y = legend(&mut svg, &contestants, 72.0) + 14.0;
    let times = || lines.iter().map(|line| line.best_s).filter(|s| *s > 0.0);
    let from = times().fold(f64::INFINITY, f64::min).log10().floor();
    let to = times().fold(0.0, f64::max).log10().ceil();
    if !(from.is_finite() && to.is_finite()) {
        return svg.finish(y, &title);
    }
    let wide = WIDTH - MARGIN - MARGIN - LABEL - MARK;
    let place = |seconds: f64| {
        let part = (seconds.log10() - from) / (to - from).max(1.0);
        MARGIN + LABEL + part * wide
    };
    let rows = rows(lines);
    let bottom = y + 8.0 + rows.len() as f64 * STEP;
    for power in from as i32..=to as i32 {
        let seconds = 10f64.powi(power);
        let x = place(seconds) + MARK / 2.0;
        svg.lines(EDGE, 0.5, [[x, y + 4.0, x, bottom]]);
        let font = Font {
            size: 11.0,
            colour: FAINT,
            anchor: "middle",
            ..SMALL
        };
        svg.text(x, y, font, &time(seconds));
    }
    y += 8.0;
    for (at, row) in rows.iter().enumerate() {
        let area = Area {
            x: MARGIN,
            y,
            width: WIDTH - 2.0 * MARGIN,
            height: STEP,
        };
        if at % 2 == 0 {
            svg.rectangle(area, PAPER.mixed(Colour::WHITE, 0.5), None);
        }
        let font = Font {
            size: 11.0,
            ..SMALL
        };
        svg.text(MARGIN + 4.0, y + 12.5, font, &label(row));
        // The own mark stands in front.
        for (at, who) in contestants.iter().enumerate().rev() {
            let best = lines
                .iter()
                .filter(|line| same(line, row) && name(line) == *who && line.best_s > 0.0);
            if let Some(best) = best.map(|line| line.best_s).reduce(f64::min) {
                let mark = Area {
                    x: place(best),
                    y: y + (STEP - MARK) / 2.0,
                    width: MARK,
                    height: MARK,
                };
                svg.rectangle(mark, colour(at, contestants.len()), Some(INK));
            }
        }
        y += STEP;
    }
    svg.finish(y + 24.0, &title)
}

fn legend(svg: &mut Svg, contestants: &[String], top: f64) -> f64 {
    let (mut x, mut y) = (MARGIN, top);
    for (at, who) in contestants.iter().enumerate() {
        let wide = 34.0 + 6.6 * who.chars().count() as f64;
        if x + wide > WIDTH - MARGIN {
            (x, y) = (MARGIN, y + 20.0);
        }
        let area = Area {
            x,
            y: y - 10.0,
            width: 12.0,
            height: 12.0,
        };
        svg.rectangle(area, colour(at, contestants.len()), Some(INK));
        svg.text(x + 18.0, y, SMALL, who);
        x += wide;
    }
    y + 20.0
}

/// Who is drawn: `auto` first, the best of the other own ways as one.
fn name(line: &Line) -> String {
    match (line.system.as_str(), line.strategy.as_str()) {
        ("outcore", "auto") => "outcore auto".into(),
        ("outcore", _) => "outcore, best other way".into(),
        (system, strategy) => format!("{system} {strategy}"),
    }
}

fn contestants(lines: &[Line]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in lines.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The colours go once round; the first is dark.
fn colour(at: usize, of: usize) -> Colour {
    match at {
        0 => Colour(0x1f, 0x3a, 0x5f),
        _ => Colour::of_hue(at as f64 / of as f64, 0.6),
    }
}

fn same(one: &Line, other: &Line) -> bool {
    (&one.case, one.op, one.ranks) == (&other.case, other.op, other.ranks)
}

fn rows(lines: &[Line]) -> Vec<&Line> {
    let mut rows: Vec<&Line> = Vec::new();
    for line in lines {
        if !rows.iter().any(|row| same(row, line)) {
            rows.push(line);
        }
    }
    rows
}

fn label(line: &Line) -> String {
    let case = line.case.replace(',', ";");
    format!("{case} {} {} ranks", line.op, line.ranks)
}
