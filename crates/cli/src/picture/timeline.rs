//! When which part of the file is moved: time to the right, the file downwards, a
//! colour for each rank.
//!
//! How long a single request takes is not known; the time of all is shared out
//! among them by their bytes. Requests that are too short to be seen are drawn
//! together, from the first to the last byte of them.

use outcore::{Array, Plan, Result, Section};

use super::bars::time;
use super::svg::{Area, Colour, Font, Svg};
use super::{BOLD, EDGE, FAINT, MARGIN, MOST_SHOWN, PAPER, SMALL, WIDTH};
use crate::bytes;

/// Requests of a rank that are walked at the most.
const MOST_WALKED: usize = 1 << 20;
/// Steps of time that are drawn at the most.
const STEPS: f64 = 360.0;
/// Room for the offsets.
const LABEL: f64 = 84.0;
const HEIGHT: f64 = 300.0;
/// Requests are at least so high.
const THICK: f64 = 2.0;
/// How far all lanes together are moved apart.
const STAGGER: f64 = 8.0;
const TICKS: u32 = 4;

/// What one rank does.
pub(crate) struct Lane<'a> {
    pub(crate) section: &'a Section,
    pub(crate) plan: &'a Plan,
    /// Bytes that the plan moves.
    pub(crate) moved: u64,
    /// How long it takes.
    pub(crate) seconds: f64,
    pub(crate) colour: Colour,
}

/// The picture as SVG; `times` says whether they are measured or predicted.
pub(crate) fn draw(array: &Array, lanes: &[Lane<'_>], times: &str) -> Result<String> {
    let mut svg = Svg::new(WIDTH);
    let area = Area {
        x: MARGIN + LABEL,
        y: 52.0,
        width: WIDTH - 2.0 * MARGIN - LABEL,
        height: HEIGHT,
    };
    let title = format!("when which part of the file is moved ({times} times)");
    svg.text(MARGIN, 30.0, BOLD, &title);
    svg.rectangle(area, PAPER, None);
    let longest = lanes.iter().map(|lane| lane.seconds).fold(0.0, f64::max);
    let shown = &lanes[..lanes.len().min(MOST_SHOWN)];
    // Lanes that do the same stand a little below one another.
    let shift = (STAGGER / shown.len().max(1) as f64).min(THICK);
    for (at, lane) in shown.iter().enumerate() {
        let steps = steps(array, lane)?;
        let part = |share: f64| share * lane.seconds / longest.max(f64::MIN_POSITIVE);
        let len = array.layout().byte_len().max(1) as f64;
        let areas = steps.into_iter().map(|step| Area {
            x: area.x + part(step.from) * area.width,
            y: area.y + step.start as f64 / len * (area.height - THICK) + at as f64 * shift,
            width: (part(step.to - step.from) * area.width).max(1.0),
            height: ((step.end - step.start) as f64 / len * (area.height - THICK)).max(THICK),
        });
        svg.rectangles(lane.colour, areas);
    }
    svg.outline(area, EDGE, 1.0);
    let small = Font {
        size: 11.0,
        colour: FAINT,
        ..SMALL
    };
    let len = array.layout().byte_len();
    for tick in 0..=TICKS {
        let part = f64::from(tick) / f64::from(TICKS);
        let anchor = "end";
        let font = Font { anchor, ..small };
        let y = area.y + part * area.height + 4.0;
        svg.text(
            area.x - 8.0,
            y,
            font,
            &bytes::show((part * len as f64) as u64),
        );
        let anchor = match tick {
            0 => "start",
            TICKS => "end",
            _ => "middle",
        };
        let font = Font { anchor, ..small };
        let x = area.x + part * area.width;
        svg.text(x, area.y + area.height + 16.0, font, &time(part * longest));
    }
    Ok(svg.finish(area.y + area.height + 34.0, &title))
}

/// Requests that are drawn together.
struct Step {
    /// Shares of the time at which they begin and end.
    from: f64,
    to: f64,
    /// The bytes of the file, from its first.
    start: u64,
    end: u64,
}

/// The requests of a lane in the order in which they are made;
/// without requests its runs.
fn steps(array: &Array, lane: &Lane<'_>) -> Result<Vec<Step>> {
    let runs = array.layout().runs(lane.section);
    let runs = runs.map_err(|error| outcore::Error::Invalid(error.to_string()))?;
    let (_, useful) = runs.totals();
    let first = array.data_offset();
    let mut accesses = lane.plan.accesses().peekable();
    let (accesses, moved): (Box<dyn Iterator<Item = (u64, u64)>>, u64) = match accesses.peek() {
        Some(_) => {
            let accesses = accesses.map(move |(at, len)| (at.saturating_sub(first), len));
            (Box::new(accesses), lane.moved)
        }
        None => (Box::new(runs.map(|run| (run.file_offset, run.len))), useful),
    };
    let all = moved.max(1) as f64;
    let mut steps: Vec<Step> = Vec::new();
    let mut done = 0u64;
    for (start, len) in accesses.take(MOST_WALKED) {
        let from = done as f64 / all;
        done = done.saturating_add(len);
        let (to, end) = ((done as f64 / all).min(1.0), start.saturating_add(len));
        match steps.last_mut() {
            Some(last) if to - last.from < 1.0 / STEPS => {
                last.to = to;
                last.start = last.start.min(start);
                last.end = last.end.max(end);
            }
            _ => steps.push(Step {
                from: from.min(1.0),
                to,
                start,
                end,
            }),
        }
    }
    Ok(steps)
}
