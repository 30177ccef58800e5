//! The array itself: how densely each part of it is taken, and a part of it
//! element by element, with the requests that cover it.

use std::collections::BTreeMap;

use outcore::{Array, Result};

use super::plane::Plane;
use super::svg::{Area, Colour, Svg};
use super::{EDGE, INK, PAPER, Share};

/// A shorter axis is drawn element by element; a longer one is cut into no
/// more parts.
const SINGLE: u64 = 64;
/// The elements of a magnified axis: at least, and at most.
const WINDOW: (u64, u64) = (16, 64);
/// Requests that are looked through for those of the magnified part.
const MOST_REQUESTS: usize = 1 << 22;

/// A part of the plane.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    rows: (u64, u64),
    columns: (u64, u64),
}

impl Window {
    /// The part at the beginning of the sections that shows some strides of
    /// them; `None` if the whole array is no larger.
    pub(crate) fn at_the_beginning(plane: &Plane, shares: &[Share<'_>]) -> Option<Self> {
        if plane.rows <= SINGLE && plane.columns <= SINGLE {
            return None;
        }
        let taken = || shares.iter().map(|share| share.section);
        let taken = || taken().filter(|section| !section.is_empty());
        let firsts = || taken().map(|section| plane.first(section));
        let strides = || taken().map(|section| plane.strides(section));
        let rows = (
            firsts().map(|at| at.0).min()?,
            strides().map(|s| s.0).max()?,
        );
        let columns = (
            firsts().map(|at| at.1).min()?,
            strides().map(|s| s.1).max()?,
        );
        let window = |(first, stride): (u64, u64), extent: u64| {
            let length = stride.saturating_mul(3).clamp(WINDOW.0, WINDOW.1);
            let length = length.min(extent);
            let from = first.saturating_sub(2).min(extent - length);
            (from, from + length)
        };
        Some(Self {
            rows: window(rows, plane.rows),
            columns: window(columns, plane.columns),
        })
    }

    /// All of the plane.
    pub(crate) fn whole(plane: &Plane) -> Self {
        Self {
            rows: (0, plane.rows),
            columns: (0, plane.columns),
        }
    }

    /// Whether it can be drawn element by element.
    pub(crate) fn is_small(&self) -> bool {
        let (rows, columns) = self.extents();
        rows <= SINGLE && columns <= SINGLE
    }

    pub(crate) fn extents(&self) -> (u64, u64) {
        (self.rows.1 - self.rows.0, self.columns.1 - self.columns.0)
    }

    pub(crate) fn caption(&self) -> String {
        let ((top, bottom), (left, right)) = (self.rows, self.columns);
        let columns = format!("{left} to {}", right - 1);
        match bottom - top {
            1 => format!("elements {columns}"),
            _ => format!("rows {top} to {}, columns {columns}", bottom - 1),
        }
    }
}

/// The area of a box of rows and columns at (`x`, `y`) that fits `room`.
pub(crate) fn fitted(rows: u64, columns: u64, (x, y): (f64, f64), room: (f64, f64)) -> Area {
    let ratio = rows as f64 / columns.max(1) as f64;
    // Flat arrays are drawn higher than they are, and high ones wider.
    let ratio = if rows == 1 {
        0.07
    } else {
        ratio.clamp(0.2, 4.0)
    };
    let width = room.0.min(room.1 / ratio);
    Area {
        x,
        y,
        width,
        height: width * ratio,
    }
}

/// Draws the whole plane in `area`, and where `window` is in it; returns that
/// place.
pub(crate) fn draw_overview(
    svg: &mut Svg,
    area: Area,
    plane: &Plane,
    shares: &[Share<'_>],
    window: Option<Window>,
) -> Option<Area> {
    svg.rectangle(area, PAPER, None);
    let (rows, columns) = (parts(plane.rows), parts(plane.columns));
    let densities: Vec<_> = shares
        .iter()
        .map(|share| plane.shares(share.section, (rows, columns)))
        .collect();
    let colour = |row: u64, column: u64| {
        let densities = densities
            .iter()
            .map(|(down, across)| (down[row as usize], across[column as usize]));
        colour_of(shares, densities.collect(), (row, column))
    };
    let (high, wide) = (area.height / rows as f64, area.width / columns as f64);
    let mut found: BTreeMap<Colour, Vec<Area>> = BTreeMap::new();
    let mut row = 0;
    while row < rows {
        let line: Vec<_> = (0..columns).map(|column| colour(row, column)).collect();
        let same = (row + 1..rows)
            .take_while(|other| (0..columns).all(|c| colour(*other, c) == line[c as usize]))
            .count() as u64;
        let mut column = 0;
        while column < columns {
            let own = line[column as usize];
            let length = line[column as usize..].iter().take_while(|c| **c == own);
            let length = length.count() as u64;
            if let Some(colour) = own {
                found.entry(colour).or_default().push(Area {
                    x: area.x + column as f64 * wide,
                    y: area.y + row as f64 * high,
                    width: length as f64 * wide,
                    height: (same + 1) as f64 * high,
                });
            }
            column += length;
        }
        row += same + 1;
    }
    for (colour, areas) in found {
        svg.rectangles(colour, areas);
    }
    svg.outline(area, EDGE, 1.0);
    let window = window?;
    let at = |index: u64, extent: u64, length: f64| index as f64 / extent as f64 * length;
    let (rows, columns) = window.extents();
    let frame = Area {
        x: area.x + at(window.columns.0, plane.columns, area.width),
        y: area.y + at(window.rows.0, plane.rows, area.height),
        width: at(columns, plane.columns, area.width).max(4.0),
        height: at(rows, plane.rows, area.height).max(4.0),
    };
    svg.outline(frame, INK, 1.5);
    Some(frame)
}

/// Into how many parts an axis is cut: equal ones, if that is possible.
fn parts(extent: u64) -> u64 {
    if extent <= SINGLE {
        return extent;
    }
    let mut equal = (SINGLE / 2..=SINGLE).rev();
    let equal = equal.find(|count| extent.is_multiple_of(*count));
    equal.unwrap_or(SINGLE)
}

/// The colour of a part of which ranks take such shares, down and across; none
/// if nobody does. Ranks that share a part show their colours in turn from part
/// to part: down the page if their elements differ by the row, and so on.
fn colour_of(
    shares: &[Share<'_>],
    densities: Vec<(f64, f64)>,
    (row, column): (u64, u64),
) -> Option<Colour> {
    let present = || {
        let all = shares.iter().zip(&densities);
        all.filter(|(_, (down, across))| down * across > 0.0)
    };
    let count = present().count() as u64;
    let down: f64 = present().map(|(_, (down, _))| down).sum();
    let across: f64 = present().map(|(_, (_, across))| across).sum();
    let turn = match (down > 1.0, across > 1.0) {
        (false, true) => row,
        (true, false) => column,
        _ => row + column,
    };
    let (share, _) = present().nth(turn.checked_rem(count)? as usize)?;
    let total: f64 = present().map(|(_, (down, across))| down * across).sum();
    // In steps, so that equal parts have equal colours.
    let strength = (0.2 + 0.8 * total.min(1.0).sqrt()) * 16.0;
    Some(PAPER.mixed(share.colour, strength.round() / 16.0))
}

/// Draws the elements of `window` in `area`: those that are wanted, those that
/// are moved along with them, and the edges of requests.
pub(crate) fn draw_elements(
    svg: &mut Svg,
    area: Area,
    (array, plane): (&Array, &Plane),
    shares: &[Share<'_>],
    window: Window,
) -> Result<()> {
    let (rows, columns) = window.extents();
    let (high, wide) = (area.height / rows as f64, area.width / columns as f64);
    let cell = |row: u64, column: u64| Area {
        x: area.x + column as f64 * wide,
        y: area.y + row as f64 * high,
        width: wide,
        height: high,
    };
    let places = || (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    svg.rectangle(area, PAPER, None);
    let mut wanted: BTreeMap<Colour, Vec<Area>> = BTreeMap::new();
    let mut gaps: BTreeMap<Colour, Vec<Area>> = BTreeMap::new();
    let mut edges = Vec::new();
    for share in shares.iter().filter(|share| !share.section.is_empty()) {
        let corner: Vec<u64> = share
            .section
            .axes()
            .iter()
            .map(|axis| axis.first().unwrap_or(0))
            .collect();
        let index = |(row, column): (u64, u64)| {
            plane.index(&corner, row + window.rows.0, column + window.columns.0)
        };
        // 1. Which request covers each element.
        let mut offsets = Vec::new();
        for place in places() {
            let offset = array.layout().offset(&index(place));
            let offset = offset.map_err(|error| outcore::Error::Invalid(error.to_string()))?;
            offsets.push((array.data_offset() + offset, place));
        }
        offsets.sort_unstable();
        let mut covers = vec![None; offsets.len()];
        let mut rest = offsets.iter().peekable();
        for (number, (start, len)) in share.plan.accesses().take(MOST_REQUESTS).enumerate() {
            while rest.next_if(|(offset, _)| *offset < start).is_some() {}
            while let Some((_, (row, column))) = rest.next_if(|(offset, _)| *offset < start + len) {
                covers[(row * columns + column) as usize] = Some(number);
            }
            if rest.peek().is_none() {
                break;
            }
        }
        // 2. The elements, and the edges between different requests.
        let request = |row: u64, column: u64| covers[(row * columns + column) as usize];
        for (row, column) in places() {
            if share.section.contains(&index((row, column))) {
                let cells = wanted.entry(share.colour).or_default();
                cells.push(cell(row, column));
            } else if request(row, column).is_some() {
                let cells = gaps.entry(share.gap).or_default();
                cells.push(cell(row, column));
            }
            let own = request(row, column);
            let Area { x, y, .. } = cell(row, column);
            let above = row.checked_sub(1).and_then(|above| request(above, column));
            if own != above {
                edges.push([x, y, x + wide, y]);
            }
            let left = column.checked_sub(1).and_then(|left| request(row, left));
            if own != left {
                edges.push([x, y, x, y + high]);
            }
            if own.is_some() && row + 1 == rows {
                edges.push([x, y + high, x + wide, y + high]);
            }
            if own.is_some() && column + 1 == columns {
                edges.push([x + wide, y, x + wide, y + high]);
            }
        }
    }
    for (colour, cells) in gaps.into_iter().chain(wanted) {
        svg.rectangles(colour, cells);
    }
    if wide >= 5.0 && high >= 5.0 {
        let down = (1..columns).map(|at| area.x + at as f64 * wide);
        let across = (1..rows).map(|at| area.y + at as f64 * high);
        let (right, bottom) = (area.x + area.width, area.y + area.height);
        let down = down.map(|x| [x, area.y, x, bottom]);
        let grid = down.chain(across.map(|y| [area.x, y, right, y]));
        svg.lines(Colour::WHITE, 1.0, grid);
    }
    svg.lines(INK, 1.2, joined(edges));
    svg.outline(area, EDGE, 1.0);
    Ok(())
}

/// The same lines, with those that continue one another as one.
fn joined(edges: Vec<[f64; 4]>) -> Vec<[f64; 4]> {
    let (mut across, mut down): (Vec<_>, Vec<_>) =
        edges.into_iter().partition(|edge| edge[1] == edge[3]);
    across.sort_by(|a, b| a[1].total_cmp(&b[1]).then(a[0].total_cmp(&b[0])));
    down.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    let mut lines: Vec<[f64; 4]> = Vec::new();
    for edge in across.into_iter().chain(down) {
        let near = |a: f64, b: f64| (a - b).abs() < 0.01;
        match lines.last_mut() {
            Some(last)
                if near(last[2], edge[0]) && near(last[3], edge[1]) && same_way(last, &edge) =>
            {
                last[2] = edge[2];
                last[3] = edge[3];
            }
            _ => lines.push(edge),
        }
    }
    lines
}

fn same_way(one: &[f64; 4], other: &[f64; 4]) -> bool {
    (one[1] == one[3]) == (other[1] == other[3])
}
