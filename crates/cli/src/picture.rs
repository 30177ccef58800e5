//! A picture of what moving sections does: the array with the elements that
//! are taken, some of them one by one with the requests that cover them, the
//! file from its first byte to its last, and what each way takes.
//!
//! The path of the data: sections and plans of one array, one for each rank ->
//! densities (`plane`, without walking), the first elements and requests
//! (`elements`, `strip`), times (`bars`) -> SVG text (`svg`). Whatever the
//! array, the text stays below some 150 KiB: what is too fine to be seen is
//! counted together.

mod bars;
pub(crate) mod chart;
mod elements;
pub(crate) mod histogram;
mod plane;
mod strip;
mod svg;

use std::ops::Range;

use outcore::{Array, Plan, Result, Section, Strategy, shape_text};

use crate::bytes;
pub(crate) use bars::Bar;
use elements::Window;
use plane::Plane;
pub(crate) use svg::Colour;
use svg::{Area, Font, Svg};

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 36.0;
/// Room for each of the two pictures of the array.
const PANEL: (f64, f64) = (424.0, 380.0);
/// Ranks that have a strip, a bar and a place in the legend of their own.
const MOST_SHOWN: usize = 16;

const PAPER: Colour = Colour(0xea, 0xed, 0xf1);
const EDGE: Colour = Colour(0x9a, 0xa3, 0xad);
const INK: Colour = Colour(0x22, 0x2a, 0x33);
const FAINT: Colour = Colour(0x66, 0x70, 0x7a);
const WANTED: Colour = Colour(0x1f, 0x6f, 0xb4);
const GAP: Colour = Colour(0xf3, 0xc1, 0x5f);

const SMALL: Font = Font {
    size: 12.0,
    colour: INK,
    bold: false,
    anchor: "start",
};

/// The section and the plan of one rank.
pub(crate) struct Share<'a> {
    pub(crate) name: String,
    pub(crate) section: &'a Section,
    pub(crate) plan: &'a Plan,
    /// Bytes that the plan moves.
    pub(crate) moved: u64,
    /// The colour of what is wanted.
    pub(crate) colour: Colour,
    /// The colour of what is moved along.
    pub(crate) gap: Colour,
}

/// The colours of rank `rank` of `ranks`: of what it wants and of what it
/// moves along.
pub(crate) fn colours(rank: usize, ranks: usize) -> (Colour, Colour) {
    if ranks == 1 {
        return (WANTED, GAP);
    }
    let hue = (0.58 + rank as f64 / ranks as f64).fract();
    let light = if ranks > 6 && rank % 2 == 1 {
        0.62
    } else {
        0.44
    };
    let colour = Colour::of_hue(hue, light);
    (colour, colour.mixed(Colour::WHITE, 0.65))
}

/// What is drawn.
pub(crate) struct Picture<'a> {
    pub(crate) array: &'a Array,
    pub(crate) title: String,
    /// Lines below the title.
    pub(crate) facts: Vec<String>,
    pub(crate) shares: Vec<Share<'a>>,
    pub(crate) bars: Vec<Bar>,
    /// Parts of the file that ranks move for all, in the ranks' colours.
    pub(crate) domains: Vec<(Range<u64>, Colour)>,
}

impl Picture<'_> {
    /// The picture as SVG.
    pub(crate) fn draw(&self) -> Result<String> {
        let mut svg = Svg::new(WIDTH);
        let mut y = self.draw_heading(&mut svg);
        y = self.draw_array(&mut svg, y)?;
        y = self.draw_file(&mut svg, y)?;
        if !self.bars.is_empty() {
            heading(&mut svg, y, "time");
            y = bars::draw_bars(&mut svg, (MARGIN, y + 10.0), &self.bars) + 34.0;
        }
        y = self.draw_legend(&mut svg, y);
        Ok(svg.finish(y, &self.title))
    }

    fn draw_heading(&self, svg: &mut Svg) -> f64 {
        let font = Font {
            size: 19.0,
            bold: true,
            ..SMALL
        };
        svg.text(MARGIN, 42.0, font, &shortened(&self.title, 88));
        let mut y = 46.0;
        for fact in &self.facts {
            y += 18.0;
            let font = Font {
                size: 13.0,
                colour: FAINT,
                ..SMALL
            };
            svg.text(MARGIN, y, font, &shortened(fact, 140));
        }
        y + 34.0
    }

    /// The array as a whole on the left, its first elements on the right.
    fn draw_array(&self, svg: &mut Svg, top: f64) -> Result<f64> {
        let plane = Plane::of(self.array.shape());
        let mut title = format!("array {}", shape_text(self.array.shape()));
        if let Some(caption) = plane.caption() {
            title = format!("{title}: {caption}");
        }
        heading(svg, top, &title);
        let corner = (MARGIN, top + 12.0);
        if plane.rows == 0 || plane.columns == 0 {
            return Ok(top + 40.0);
        }
        let area = elements::fitted(plane.rows, plane.columns, corner, PANEL);
        let window = Window::at_the_beginning(&plane, &self.shares);
        let mut bottom = area.y + area.height;
        let all = Window::whole(&plane);
        let mut frame = None;
        match window {
            None if self.shares.iter().any(|share| !share.section.is_empty()) && all.is_small() => {
                elements::draw_elements(svg, area, (self.array, &plane), &self.shares, all)?;
            }
            _ => frame = elements::draw_overview(svg, area, &plane, &self.shares, window),
        }
        if let Some(window) = window {
            let x = WIDTH - MARGIN - PANEL.0;
            let (rows, columns) = window.extents();
            let title = format!("magnified: {}", window.caption());
            svg.text(x, top, BOLD, &title);
            let area = elements::fitted(rows, columns, (x, corner.1), PANEL);
            elements::draw_elements(svg, area, (self.array, &plane), &self.shares, window)?;
            bottom = bottom.max(area.y + area.height);
            if let Some(frame) = frame {
                let (right, end) = (frame.x + frame.width, area.y + area.height);
                let rays = [
                    [right, frame.y, x, area.y],
                    [right, frame.y + frame.height, x, end],
                ];
                svg.lines(EDGE, 0.8, rays);
            }
        }
        let layout = self.array.layout();
        if let (Some(slowest), false) = (layout.slowest_first().first(), self.domains.is_empty()) {
            self.draw_borders(svg, area, plane.is_across(*slowest));
        }
        let mut order: Vec<String> = layout
            .slowest_first()
            .iter()
            .rev()
            .map(|axis| plane.direction(*axis))
            .collect();
        if let Some(tile) = layout.tile() {
            order.push(format!("in tiles of {}", shape_text(tile)));
        }
        let mut caption = format!("order in the file: along {}", order.join(", then "));
        if window.is_some() {
            caption += "; shade: the share of each part that is taken";
        }
        if window.is_some() && self.shares.len() > 1 {
            caption += ", by several ranks: their colours in turn";
        }
        faint(svg, bottom + 18.0, &caption);
        Ok(bottom + 52.0)
    }

    /// Where one rank's part of the file ends and another's begins, on the array.
    fn draw_borders(&self, svg: &mut Svg, area: Area, across: Option<bool>) {
        let len = self.array.layout().byte_len() as f64;
        let edges = self
            .domains
            .iter()
            .flat_map(|(piece, _)| [piece.start, piece.end]);
        let lines = edges.map(|edge| edge as f64 / len);
        match across {
            Some(true) => svg.lines(
                INK,
                1.0,
                lines.map(|part| {
                    let x = area.x + part * area.width;
                    [x, area.y, x, area.y + area.height]
                }),
            ),
            Some(false) => svg.lines(
                INK,
                1.0,
                lines.map(|part| {
                    let y = area.y + part * area.height;
                    [area.x, y, area.x + area.width, y]
                }),
            ),
            None => {}
        }
    }

    fn draw_file(&self, svg: &mut Svg, top: f64) -> Result<f64> {
        let len = self.array.layout().byte_len();
        if len == 0 {
            return Ok(top);
        }
        heading(
            svg,
            top,
            "file: the share of each stretch that is wanted and moved (square-root scale)",
        );
        let shown = &self.shares[..self.shares.len().min(MOST_SHOWN)];
        let high = if shown.len() == 1 { 44.0 } else { 16.0 };
        let mut area = Area {
            x: MARGIN,
            y: top + 12.0,
            width: WIDTH - 2.0 * MARGIN,
            height: high,
        };
        for share in shown {
            strip::draw_file(svg, area, self.array, share)?;
            area.y += high + 3.0;
        }
        if !self.domains.is_empty() {
            svg.rectangle(area, PAPER, None);
            for (piece, colour) in &self.domains {
                let place = |at: u64| at as f64 / len as f64 * area.width;
                let width = (place(piece.end) - place(piece.start)).max(0.5);
                let x = area.x + place(piece.start);
                let edge = (width > 3.0).then_some(INK);
                svg.rectangle(Area { x, width, ..area }, *colour, edge);
            }
            faint(
                svg,
                area.y + high + 12.0,
                "last: who reads or writes it for all, in two phases",
            );
            area.y += high + 18.0;
        }
        scale(svg, area.y + 10.0, 0, len);
        let Some(window) = strip::first_bytes(self.array, &self.shares)? else {
            return Ok(area.y + 44.0);
        };
        area.y += 48.0;
        let mapped = |share: &Share<'_>| share.plan.strategy() == Strategy::Mapped;
        let mut first = String::from(match self.shares.iter().all(mapped) {
            true => "its first runs, copied through a mapping without requests",
            false => "its first requests",
        });
        if shown.len() > 1 {
            first += ", rank by rank";
        }
        heading(svg, area.y - 12.0, &first);
        let high = if shown.len() == 1 { 32.0 } else { 16.0 };
        area.height = high;
        for share in shown {
            if strip::has_part(self.array, share, window)? {
                strip::draw_requests(svg, area, self.array, share, window)?;
                area.y += high + 3.0;
            }
        }
        scale(svg, area.y + 10.0, window.0, window.1);
        Ok(area.y + 48.0)
    }

    fn draw_legend(&self, svg: &mut Svg, top: f64) -> f64 {
        let mut entries: Vec<(Colour, Option<Colour>, String)> = Vec::new();
        let [first, ..] = &self.shares[..] else {
            return top;
        };
        if self.shares.len() == 1 {
            entries.push((first.colour, None, "wanted".into()));
            entries.push((first.gap, None, "moved along, not wanted".into()));
        } else {
            for share in self.shares.iter().take(MOST_SHOWN) {
                entries.push((share.colour, None, share.name.clone()));
            }
            if self.shares.len() > MOST_SHOWN {
                let more = self.shares.len() - MOST_SHOWN;
                entries.push((PAPER, None, format!("{more} more ranks")));
            }
            entries.push((first.gap, None, "lighter: moved along, not wanted".into()));
        }
        if self.bars.iter().any(|bar| bar.measured.is_some()) {
            entries.push((bars::MEASURED, None, "measured time".into()));
        }
        entries.push((PAPER, Some(EDGE), "not touched".into()));
        entries.push((Colour::WHITE, Some(INK), "one request".into()));
        let (mut x, mut y) = (MARGIN, top);
        for (colour, edge, text) in entries {
            let wide = 30.0 + 6.6 * text.chars().count() as f64;
            if x + wide > WIDTH - MARGIN {
                (x, y) = (MARGIN, y + 20.0);
            }
            let area = Area {
                x,
                y: y - 10.0,
                width: 12.0,
                height: 12.0,
            };
            svg.rectangle(area, colour, edge);
            svg.text(x + 18.0, y, SMALL, &text);
            x += wide;
        }
        y + 30.0
    }
}

const BOLD: Font = Font {
    bold: true,
    ..SMALL
};

fn heading(svg: &mut Svg, y: f64, text: &str) {
    svg.text(MARGIN, y, BOLD, text);
}

fn faint(svg: &mut Svg, y: f64, text: &str) {
    let font = Font {
        size: 11.0,
        colour: FAINT,
        ..SMALL
    };
    svg.text(MARGIN, y, font, text);
}

/// The offsets below a strip.
fn scale(svg: &mut Svg, y: f64, from: u64, to: u64) {
    const TICKS: u64 = 4;
    for tick in 0..=TICKS {
        let part = tick as f64 / TICKS as f64;
        let offset = from + (u128::from(to - from) * u128::from(tick) / u128::from(TICKS)) as u64;
        let anchor = match tick {
            0 => "start",
            TICKS => "end",
            _ => "middle",
        };
        let font = Font {
            size: 11.0,
            colour: FAINT,
            anchor,
            ..SMALL
        };
        let x = MARGIN + part * (WIDTH - 2.0 * MARGIN);
        svg.text(x, y, font, &bytes::show(offset));
    }
}

/// A text of at most `most` characters.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    let kept: String = text.chars().take(most - 3).collect();
    format!("{kept}...")
}
