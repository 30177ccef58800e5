//! Bars: for each case the times of all contestants, on one scale for a chart.
//! Where times differ by more than a factor, that is logarithmic.

use std::fmt::Write;

use super::row::{Role, Row};
use crate::counted::counted;
use crate::page::escaped;
use crate::picture::time;

/// Times that differ more are drawn on a logarithmic scale.
const LINEAR: f64 = 30.0;

const WIDTH: f64 = 980.0;
/// Where bars begin and how long they are at the most.
const LEFT: f64 = 200.0;
const LONGEST: f64 = 610.0;
const AXIS: f64 = 22.0;
const HEADING: f64 = 19.0;
const STEP: f64 = 16.0;
const BAR: f64 = 12.0;
const GAP: f64 = 10.0;

/// What is compared with one another.
pub(super) struct Case<'a> {
    name: String,
    pub(super) bars: Vec<Bar<'a>>,
}

/// One contestant of a case.
pub(super) struct Bar<'a> {
    name: String,
    pub(super) row: &'a Row,
}

impl Case<'_> {
    /// The time of outcore, if it takes part beside others.
    pub(super) fn us(&self) -> Option<f64> {
        let us = self.bars.iter().filter(|bar| bar.row.role() == Role::Us);
        us.map(|bar| bar.row.best_s).next()
    }
}

/// The cases of some rows of one operation, in their order.
pub(super) fn cases<'a>(rows: &[&'a Row]) -> Vec<Case<'a>> {
    let several = |value: fn(&Row) -> String| rows.iter().any(|row| value(row) != value(rows[0]));
    // Alone, outcore's ways are compared with one another.
    let (by_system, by_ranks) = (
        several(|row| row.system.clone()),
        several(|row| row.ranks.to_string()),
    );
    let contestant = |row: &Row| match by_system {
        true => row.system.clone(),
        false => row.strategy.clone(),
    };
    let mut cases: Vec<Case<'a>> = Vec::new();
    for row in rows {
        let name = match by_ranks {
            true => format!("{}, {}", row.case, counted(row.ranks, "rank")),
            false => row.case.clone(),
        };
        let at = cases.iter().position(|case| case.name == name);
        let at = at.unwrap_or_else(|| {
            let bars = Vec::new();
            cases.push(Case { name, bars });
            cases.len() - 1
        });
        let bars = &mut cases[at].bars;
        let name = contestant(row);
        match bars.iter_mut().find(|bar| bar.name == name) {
            Some(bar) if is_better(row, bar.row) => bar.row = row,
            Some(_) => {}
            None => bars.push(Bar { name, row }),
        }
    }
    cases
}

/// Whether a line stands for its system rather than another one: what outcore
/// chooses itself, otherwise the faster one.
fn is_better(row: &Row, other: &Row) -> bool {
    let chosen = |row: &Row| row.role() == Role::Us && row.strategy == "auto";
    match (chosen(row), chosen(other)) {
        (true, false) => true,
        (false, true) => false,
        _ => row.best_s < other.best_s,
    }
}

/// A scale of times.
struct Axis {
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Axis {
    fn of(cases: &[Case<'_>]) -> Option<Self> {
        let times = || cases.iter().flat_map(|case| &case.bars);
        let times = || times().map(|bar| bar.row.best_s).filter(|time| *time > 0.0);
        let (least, most) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
        if most / least <= LINEAR {
            let power = 10f64.powf(most.log10().floor());
            let round = [1.0, 2.0, 4.0, 5.0, 8.0].map(|times| times * power);
            let round = round.into_iter().find(|end| *end >= most);
            return Some(Self {
                from: 0.0,
                to: round.unwrap_or(10.0 * power),
                logarithmic: false,
            });
        }
        // Half a power below the least, so that its bar can be seen.
        Some(Self {
            from: 10f64.powf((least.log10() - 0.5).floor()),
            to: 10f64.powf(most.log10().ceil()),
            logarithmic: true,
        })
    }

    fn place(&self, time: f64) -> f64 {
        let share = match self.logarithmic {
            true => (time / self.from).log10() / (self.to / self.from).log10(),
            false => time / self.to,
        };
        LEFT + share.clamp(0.0, 1.0) * LONGEST
    }

    fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            return (0..=4)
                .map(|part| self.to * f64::from(part) / 4.0)
                .collect();
        }
        let (from, to) = (
            self.from.log10().round() as i32,
            self.to.log10().round() as i32,
        );
        (from..=to).map(|power| 10f64.powi(power)).collect()
    }
}

/// Draws some cases on the scale of all.
pub(super) fn draw(cases: &[Case<'_>], all: &[Case<'_>]) -> String {
    let Some(axis) = Axis::of(all) else {
        return "<p>no times</p>\n".into();
    };
    let peers = peers(all);
    let high = |case: &Case<'_>| HEADING + STEP * case.bars.len() as f64 + GAP;
    let height = AXIS + 8.0 + cases.iter().map(high).sum::<f64>();
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n");
    let scale = if axis.logarithmic {
        "logarithmic"
    } else {
        "linear"
    };
    let _ = writeln!(
        svg,
        "<text class=\"faint\" x=\"0\" y=\"12\">{scale} scale</text>"
    );
    for tick in axis.ticks() {
        let x = axis.place(tick);
        // A round number without digits behind the point.
        let text = match tick {
            0.0 => "0".into(),
            tick => time(tick).replace(".00 ", " ").replace(".0 ", " "),
        };
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{AXIS}\" y2=\"{height}\"/>\
             <text class=\"faint\" x=\"{x:.1}\" y=\"12\" text-anchor=\"middle\">{text}</text>"
        );
    }
    let mut y = AXIS;
    for case in cases {
        let _ = writeln!(
            svg,
            "<text class=\"case\" x=\"0\" y=\"{:.1}\">{}</text>",
            y + 13.0,
            escaped(&case.name)
        );
        y += HEADING;
        for bar in &case.bars {
            draw_bar(&mut svg, &axis, y, (case, bar, &peers));
            y += STEP;
        }
        y += GAP;
    }
    svg + "</svg>\n"
}

/// The other systems, which have a colour each.
fn peers<'a>(cases: &'a [Case<'_>]) -> Vec<&'a str> {
    let mut peers: Vec<&str> = Vec::new();
    for bar in cases.iter().flat_map(|case| &case.bars) {
        if bar.row.role() == Role::Peer && !peers.contains(&bar.name.as_str()) {
            peers.push(&bar.name);
        }
    }
    peers
}

fn draw_bar(
    svg: &mut String,
    axis: &Axis,
    y: f64,
    (case, bar, peers): (&Case<'_>, &Bar<'_>, &[&str]),
) {
    let row = bar.row;
    let class = match row.role() {
        Role::Us => "us".into(),
        Role::Limit => "limit".into(),
        Role::Peer => {
            let at = peers.iter().position(|peer| *peer == bar.name);
            format!("peer{}", at.unwrap_or(0) % 6)
        }
    };
    let end = axis.place(row.best_s);
    let mut text = time(row.best_s);
    if let Some(us) = case.us().filter(|us| row.role() != Role::Us && *us > 0.0) {
        let ratio = row.best_s / us;
        let digits = if ratio < 10.0 { 2 } else { 0 };
        let _ = write!(text, "  x{ratio:.digits$}");
    }
    let how = format!(
        "{} {}, {}: best {}, median {}",
        row.system,
        row.strategy,
        counted(row.ranks, "rank"),
        time(row.best_s),
        time(row.median_s)
    );
    let wrong = match row.ok {
        true => "",
        false => "<tspan class=\"wrong\" dx=\"8\">WRONG</tspan>",
    };
    let _ = writeln!(
        svg,
        "<text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <rect class=\"{class}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\">\
         <title>{}</title></rect>\
         <text x=\"{:.1}\" y=\"{:.1}\">{}{wrong}</text>",
        LEFT - 8.0,
        y + 10.0,
        escaped(&bar.name),
        (end - LEFT).max(1.0),
        escaped(&how),
        end + 7.0,
        y + 10.5,
        escaped(&text),
    );
}
