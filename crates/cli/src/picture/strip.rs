//! The file from its first byte to its last: how much of each stretch is
//! wanted and how much is moved along, and its first requests one by one.
//!
//! A section of few runs is walked. One of many is cut into pieces whose
//! extents in the file are known without walking, and each piece counts as
//! spread evenly over its extent.

use outcore::{Array, Error, Pieces, Result};

use super::svg::{Area, Svg};
use super::{EDGE, INK, PAPER, Share};

/// Stretches into which the file is cut at the most, and at the least.
const STRETCHES: (u64, u64) = (444, 64);
/// Runs and requests that are walked at the most.
const MOST_WALKED: usize = 1 << 20;
/// Requests of the magnified strip.
const FIRST_REQUESTS: usize = 24;
/// Runs of the magnified strip: many if it then shows the end of a request,
/// otherwise few, so that they can be seen.
const FIRST_RUNS: (usize, usize) = (160, 48);

/// Bytes in each stretch of a file.
struct Tally {
    file: u64,
    bytes: Vec<f64>,
}

impl Tally {
    fn new(file: u64, stretches: usize) -> Self {
        Self {
            file,
            bytes: vec![0.0; stretches],
        }
    }

    /// The bytes of a stretch.
    fn stretch(&self) -> f64 {
        self.file.max(1) as f64 / self.bytes.len() as f64
    }

    /// Adds so many bytes, spread evenly from `start` to `end`.
    fn add(&mut self, start: u64, end: u64, bytes: u64) {
        let (stretch, stretches) = (self.stretch(), self.bytes.len());
        let (from, to) = (start as f64 / stretch, end as f64 / stretch);
        let last = (to.ceil() as usize).min(stretches);
        for at in (from as usize).min(stretches - 1)..last {
            let inside = (to.min(at as f64 + 1.0) - from.max(at as f64)).max(0.0);
            self.bytes[at] += bytes as f64 * inside / (to - from);
        }
    }

    /// The share of each stretch.
    fn shares(&self) -> impl Iterator<Item = f64> {
        let stretch = self.stretch();
        self.bytes
            .iter()
            .map(move |bytes| (bytes / stretch).min(1.0))
    }
}

/// How many stretches the file of `array` is cut into: a whole number of rows
/// (of its slowest axis) each, if that is possible, so that all look alike.
fn stretches(array: &Array) -> usize {
    let layout = array.layout();
    let slowest = layout.slowest_first().first();
    let rows = slowest.map_or(1, |axis| layout.shape()[*axis]);
    let mut fitting = (STRETCHES.1..=STRETCHES.0).rev();
    let fitting = fitting.find(|count| rows.is_multiple_of(*count));
    fitting.unwrap_or(STRETCHES.0) as usize
}

/// What is wanted of each stretch of the file, and what is moved.
fn tallies(array: &Array, share: &Share<'_>) -> Result<(Tally, Tally)> {
    let layout = array.layout();
    let stretches = stretches(array);
    let mut wanted = Tally::new(layout.byte_len(), stretches);
    let mut moved = Tally::new(layout.byte_len(), stretches);
    let (section, count) = (share.section, share.section.count());
    let runs = layout.runs(section).map_err(wrong)?;
    let (number, useful) = runs.totals();
    if number <= MOST_WALKED as u64 {
        for run in runs {
            wanted.add(run.file_offset, run.file_offset + run.len, run.len);
        }
    } else {
        for piece in Pieces::new(section, layout.slowest_first(), count / stretches as u64) {
            let extent = layout.runs(&piece).map_err(wrong)?.footprint(0);
            let bytes = piece.count() * layout.element_size();
            wanted.add(extent.start, extent.end, bytes);
        }
    }
    let mut requests = 0;
    for (offset, len) in share.plan.accesses().take(MOST_WALKED + 1) {
        let start = offset - array.data_offset();
        moved.add(start, start + len, len);
        requests += 1;
    }
    if requests > MOST_WALKED {
        let ratio = share.moved as f64 / useful.max(1) as f64;
        moved.bytes = wanted.bytes.iter().map(|bytes| bytes * ratio).collect();
    }
    Ok((wanted, moved))
}

/// Draws how much of each stretch of the file `share` wants and moves.
pub(crate) fn draw_file(svg: &mut Svg, area: Area, array: &Array, share: &Share<'_>) -> Result<()> {
    let (wanted, moved) = tallies(array, share)?;
    svg.rectangle(area, PAPER, None);
    for (tally, colour) in [(moved, share.gap), (wanted, share.colour)] {
        let heights = tally.shares().map(|part| match part {
            0.0 => 0.0,
            part => (part.sqrt() * area.height).max(1.0),
        });
        svg.rectangles(colour, columns(area, heights.collect()));
    }
    svg.outline(area, EDGE, 1.0);
    Ok(())
}

/// Columns of the given heights that stand side by side in `area`; neighbours
/// of the same height are one.
fn columns(area: Area, heights: Vec<f64>) -> Vec<Area> {
    let wide = area.width / heights.len() as f64;
    let mut columns: Vec<Area> = Vec::new();
    for (at, height) in heights.into_iter().enumerate() {
        let x = area.x + at as f64 * wide;
        match columns.last_mut() {
            Some(last) if (last.height - height).abs() < 0.05 && x - last.x - last.width < 0.01 => {
                last.width += wide;
            }
            _ if height == 0.0 => {}
            _ => columns.push(Area {
                x,
                y: area.y + area.height - height,
                width: wide,
                height,
            }),
        }
    }
    columns
}

/// The bytes of the file from the first run that anybody wants up to where it
/// gets too crowded to see single ones.
pub(crate) fn first_bytes(array: &Array, shares: &[Share<'_>]) -> Result<Option<(u64, u64)>> {
    let mut window: Option<(u64, u64)> = None;
    for share in shares {
        let runs = array.layout().runs(share.section).map_err(wrong)?;
        let runs: Vec<_> = runs.take(FIRST_RUNS.0).collect();
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            continue;
        };
        if window.is_some_and(|(start, _)| start <= first.file_offset) {
            continue;
        }
        let mut end = last.file_offset + last.len;
        let requests = share.plan.accesses().take(FIRST_REQUESTS);
        let mut ends = requests.map(|(offset, len)| offset - array.data_offset() + len);
        let first_end = ends.next().unwrap_or(u64::MAX);
        if first_end > end {
            let few = &runs[runs.len().min(FIRST_RUNS.1) - 1];
            end = few.file_offset + few.len;
        } else {
            end = end.min(ends.last().unwrap_or(first_end));
        }
        window = Some((first.file_offset, end));
    }
    Ok(window)
}

/// Whether `share` wants something in `window`.
pub(crate) fn has_part(array: &Array, share: &Share<'_>, window: (u64, u64)) -> Result<bool> {
    let extent = array
        .layout()
        .runs(share.section)
        .map_err(wrong)?
        .footprint(0);
    Ok(extent.start < window.1 && extent.end > window.0)
}

/// Draws the bytes of `window` with the runs that `share` wants and its
/// requests.
pub(crate) fn draw_requests(
    svg: &mut Svg,
    area: Area,
    array: &Array,
    share: &Share<'_>,
    window: (u64, u64),
) -> Result<()> {
    let (start, end) = window;
    let place = |from: u64, to: u64| {
        let scale = area.width / (end - start) as f64;
        let left = (from.max(start) - start) as f64 * scale;
        let right = (to.min(end).max(start) - start) as f64 * scale;
        Area {
            x: area.x + left,
            width: (right - left).max(1.5),
            ..area
        }
    };
    svg.rectangle(area, PAPER, None);
    let requests: Vec<Area> = share
        .plan
        .accesses()
        .map(|(offset, len)| (offset - array.data_offset(), len))
        .take_while(|(offset, _)| *offset < end)
        .take(FIRST_RUNS.0)
        .map(|(offset, len)| place(offset, offset + len))
        .collect();
    svg.rectangles(share.gap, requests.iter().copied());
    let runs = array.layout().runs(share.section).map_err(wrong)?;
    let runs = runs
        .take_while(|run| run.file_offset < end)
        .take(FIRST_RUNS.0);
    let inside = runs.map(|run| place(run.file_offset, run.file_offset + run.len));
    svg.rectangles(share.colour, inside);
    for request in requests {
        svg.outline(request, INK, 0.8);
    }
    svg.outline(area, EDGE, 1.0);
    Ok(())
}

fn wrong(error: outcore::GeometryError) -> Error {
    Error::Invalid(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_spread_over_their_stretches() {
        let mut tally = Tally::new(1000, 100);
        tally.add(0, 10, 10);
        tally.add(15, 35, 4);
        tally.add(995, 1000, 5);
        let shares: Vec<f64> = tally.shares().collect();
        assert_eq!(shares[..5], [1.0, 0.1, 0.2, 0.1, 0.0]);
        assert_eq!(shares[99], 0.5);
        let mut small = Tally::new(3, 100);
        small.add(1, 2, 1);
        let total: f64 = small.bytes.iter().sum();
        assert!((total - 1.0).abs() < 1e-9);
    }
}
