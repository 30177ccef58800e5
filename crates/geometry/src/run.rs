//! [`Run`] and [`Runs`]: a section as contiguous stretches of bytes.
//!
//! The mathematics. Inside one box of the file (the whole array, or one tile)
//! the elements of a section are the points of a grid: along each axis, taken
//! from the slowest to the fastest, positions have a step in the file and a
//! step in the buffer. The fastest axes fold into the length of one run while
//! both steps equal that length; two neighbouring axes fold into one where
//! the slower steps exactly over the faster. What is left are the
//! [`Dimension`]s of a nested loop, each turn of which is one *raw* run.
//!
//! Two raw runs that follow one another may still touch, in file and buffer,
//! where the loop turns over (`[:, ::9]` of ten columns) or an index list has
//! neighbours. How often that happens follows from the dimensions alone, so
//! the number of runs is known without walking them; only if it happens at
//! all does the walk look for it.
//!
//! A tiled layout is walked tile by tile, in the order of the tiles in the
//! file; each tile is one box.

use crate::axis::{AxisSection, Indices};
use crate::layout::Layout;
use crate::section::Section;

/// A stretch of bytes that is contiguous in the file and in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where it begins in the file, in bytes.
    pub file_offset: u64,
    /// Where it begins in the buffer, in bytes.
    pub buffer_offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

impl Run {
    /// Whether `next` begins where this one ends, in the file and in the buffer.
    fn touches(&self, next: &Run) -> bool {
        self.file_offset + self.len == next.file_offset
            && self.buffer_offset + self.len == next.buffer_offset
    }
}

/// The runs of a section, in ascending file order, maximally coalesced.
///
/// A value: cloning it gives a second walk from the same place. Making one
/// allocates a few words per axis; walking it allocates nothing.
#[derive(Debug, Clone)]
pub struct Runs {
    // The loop over raw runs. `inner_left` counts those left in the innermost
    // dimension, of which `next` is the first; the steps lead to the following.
    inner_left: u64,
    inner_file_step: u64,
    inner_buffer_step: u64,
    next: Run,
    nest: Nest,
    finished: bool,
    merging: bool,
    pending: Option<Run>,
    tiles: Option<Tiles>,
}

/// One axis of the loop over raw runs.
#[derive(Debug, Clone)]
struct Dimension {
    count: u64,
    file_step: u64,
    buffer_step: u64,
    /// An axis given by a list, and which of its positions comes first here:
    /// steps in the file are `file_step` times the difference of two indices.
    list: Option<(AxisSection, u64)>,
}

impl Dimension {
    /// The distance in the file from position `from` to position `to >= from`.
    fn file_distance(&self, from: u64, to: u64) -> u64 {
        match &self.list {
            None => (to - from) * self.file_step,
            Some((list, first)) => {
                (list.index(first + to) - list.index(first + from)) * self.file_step
            }
        }
    }
}

/// The loop over the raw runs of one box: its dimensions from the slowest to
/// the fastest, and the position in each.
#[derive(Debug, Clone, Default)]
struct Nest {
    dimensions: Vec<Dimension>,
    positions: Vec<u64>,
    first: Option<Run>,
}

impl Nest {
    /// Sets up the loop. `axes` come from the fastest to the slowest, each
    /// with its first position at `first`.
    fn fill(&mut self, mut first: Run, axes: impl Iterator<Item = Dimension>) {
        self.dimensions.clear();
        for axis in axes {
            let uniform = axis.list.is_none();
            if axis.count == 1 {
                continue;
            }
            match self.dimensions.last_mut() {
                None if uniform && axis.file_step == first.len && axis.buffer_step == first.len => {
                    first.len *= axis.count;
                }
                Some(faster)
                    if uniform
                        && faster.list.is_none()
                        && axis.file_step == faster.count * faster.file_step
                        && axis.buffer_step == faster.count * faster.buffer_step =>
                {
                    faster.count *= axis.count;
                }
                _ => self.dimensions.push(axis),
            }
        }
        self.dimensions.reverse();
        self.positions.clear();
        self.positions.resize(self.dimensions.len(), 0);
        self.first = Some(first);
    }

    /// Raw runs, how many times one touches the next, and the last one.
    fn totals(&self) -> (u64, u64, Option<Run>) {
        let Some(first) = self.first else {
            return (0, 0, None);
        };
        let raw: u64 = self
            .dimensions
            .iter()
            .map(|dimension| dimension.count)
            .product();
        let mut touching = 0;
        // From the first to the last raw run of the faster dimensions.
        let (mut file_span, mut buffer_span) = (0, 0);
        let mut outer = raw;
        for dimension in self.dimensions.iter().rev() {
            outer /= dimension.count;
            let steps = dimension.count - 1;
            if dimension.buffer_step == buffer_span + first.len {
                let wanted = file_span + first.len;
                let hits = match &dimension.list {
                    None => steps * u64::from(dimension.file_step == wanted),
                    Some(_) => (0..steps)
                        .filter(|at| dimension.file_distance(*at, at + 1) == wanted)
                        .count() as u64,
                };
                touching += outer * hits;
            }
            file_span += dimension.file_distance(0, steps);
            buffer_span += steps * dimension.buffer_step;
        }
        let last = Run {
            file_offset: first.file_offset + file_span,
            buffer_offset: first.buffer_offset + buffer_span,
            len: first.len,
        };
        (raw, touching, Some(last))
    }
}

/// Which tile of a tiled layout is being walked, and where the next begins:
/// per axis, the positions `from..to` of the section that lie in the tile.
#[derive(Debug, Clone)]
struct Tiles {
    axes: Vec<TileAxis>,
    tile_bytes: u64,
    element_size: u64,
    done: bool,
}

/// One axis of the loop over tiles, from the slowest to the fastest.
#[derive(Debug, Clone)]
struct TileAxis {
    section: AxisSection,
    extent: u64,
    /// How many tiles one step along this axis passes over in the file.
    tiles_step: u64,
    /// How many bytes one step along this axis passes over in a tile.
    inner_step: u64,
    buffer_step: u64,
    from: u64,
    to: u64,
}

impl TileAxis {
    /// Begins the tile that holds position `from`.
    fn enter(&mut self, from: u64) {
        let tile = self.section.index(from) / self.extent;
        self.from = from;
        self.to = self
            .section
            .count_below((tile + 1).saturating_mul(self.extent));
    }
}

impl Tiles {
    /// The box of the current tile.
    fn fill(&self, target: &mut Nest) {
        let mut first = Run {
            file_offset: 0,
            buffer_offset: 0,
            len: self.element_size,
        };
        for axis in &self.axes {
            let index = axis.section.index(axis.from);
            first.file_offset += index / axis.extent * axis.tiles_step * self.tile_bytes
                + index % axis.extent * axis.inner_step;
            first.buffer_offset += axis.from * axis.buffer_step;
        }
        let fastest_first = self.axes.iter().rev();
        target.fill(
            first,
            fastest_first.map(|axis| {
                let taken = (&axis.section, axis.from, axis.to);
                dimension(taken, axis.inner_step, axis.buffer_step)
            }),
        );
    }

    /// Goes to the next tile that holds elements of the section.
    fn advance(&mut self) {
        for axis in self.axes.iter_mut().rev() {
            if axis.to < axis.section.count() {
                axis.enter(axis.to);
                return;
            }
            axis.enter(0);
        }
        self.done = true;
    }
}

/// The dimension of the positions `from..to` of an axis whose index steps
/// over `bytes` in the file.
fn dimension(
    (axis, from, to): (&AxisSection, u64, u64),
    bytes: u64,
    buffer_step: u64,
) -> Dimension {
    let count = to - from;
    let (file_step, list) = match &axis.0 {
        Indices::Range { stride, .. } if count > 1 => (bytes * stride, None),
        Indices::Range { .. } => (bytes, None),
        Indices::List(_) => (bytes, Some((axis.clone(), from))),
    };
    Dimension {
        count,
        file_step,
        buffer_step,
        list,
    }
}

impl Runs {
    pub(crate) fn new(layout: &Layout, section: &Section) -> Self {
        let mut runs = Self {
            inner_left: 0,
            inner_file_step: 0,
            inner_buffer_step: 0,
            next: Run {
                file_offset: 0,
                buffer_offset: 0,
                len: 0,
            },
            nest: Nest::default(),
            finished: section.is_empty(),
            merging: false,
            pending: None,
            tiles: None,
        };
        if section.is_empty() {
            return runs;
        }
        match layout.tile() {
            None => {
                let mut first = Run {
                    file_offset: 0,
                    buffer_offset: 0,
                    len: layout.element_size(),
                };
                let (mut file_step, mut buffer_step) = (first.len, first.len);
                let mut axes = Vec::with_capacity(section.axes().len());
                for axis in layout.slowest_first().iter().rev() {
                    let taken = &section.axes()[*axis];
                    first.file_offset += taken.index(0) * file_step;
                    axes.push(dimension((taken, 0, taken.count()), file_step, buffer_step));
                    file_step *= layout.shape()[*axis];
                    buffer_step *= taken.count();
                }
                runs.nest.fill(first, axes.into_iter());
                let (_, touching, _) = runs.nest.totals();
                runs.merging = touching > 0;
            }
            Some(tile) => {
                let tiles = tiles_of(layout, section, tile);
                tiles.fill(&mut runs.nest);
                runs.tiles = Some(tiles);
                runs.merging = true;
            }
        }
        runs.enter_box();
        runs
    }

    /// The number of runs and their bytes in all, without walking them: in
    /// the time of one look at each axis (and at each tile of a tiled layout).
    /// Counted from the beginning of the section, wherever this walk stands.
    pub fn totals(&self) -> (u64, u64) {
        let Some(tiles) = &self.tiles else {
            let (raw, touching, last) = self.nest.totals();
            return (raw - touching, raw * last.map_or(0, |run| run.len));
        };
        let mut tiles = tiles.clone();
        for axis in &mut tiles.axes {
            axis.enter(0);
        }
        tiles.done = false;
        let (mut runs, mut bytes) = (0, 0);
        let mut previous: Option<Run> = None;
        let mut tile = Nest::default();
        while !tiles.done {
            tiles.fill(&mut tile);
            let (raw, touching, last) = tile.totals();
            let joins = previous
                .zip(tile.first)
                .is_some_and(|(end, start)| end.touches(&start));
            runs += raw - touching - u64::from(joins);
            bytes += raw * last.map_or(0, |run| run.len);
            previous = last;
            tiles.advance();
        }
        (runs, bytes)
    }

    pub(crate) fn first_offset(&self) -> u64 {
        self.nest.first.map_or(0, |run| run.file_offset)
    }

    /// Starts the walk of the box in `nest`.
    fn enter_box(&mut self) {
        let Some(first) = self.nest.first else {
            return;
        };
        self.next = first;
        self.enter_inner();
    }

    /// Starts a pass through the innermost dimension at `next`. That of a
    /// list is taken one run at a time, since its steps differ.
    fn enter_inner(&mut self) {
        match self.nest.dimensions.last() {
            Some(inner) if inner.list.is_none() => {
                self.inner_left = inner.count;
                self.inner_file_step = inner.file_step;
                self.inner_buffer_step = inner.buffer_step;
            }
            _ => {
                self.inner_left = 1;
                self.inner_file_step = 0;
                self.inner_buffer_step = 0;
            }
        }
    }

    #[inline(always)]
    fn next_raw(&mut self) -> Option<Run> {
        if self.inner_left == 0 && !self.turn_over() {
            return None;
        }
        let run = self.next;
        self.inner_left -= 1;
        self.next.file_offset += self.inner_file_step;
        self.next.buffer_offset += self.inner_buffer_step;
        Some(run)
    }

    /// The next raw run with all that touch it.
    #[inline(never)]
    fn next_merged(&mut self) -> Option<Run> {
        let mut run = self.pending.take().or_else(|| self.next_raw())?;
        while let Some(following) = self.next_raw() {
            if run.touches(&following) {
                run.len += following.len;
            } else {
                self.pending = Some(following);
                break;
            }
        }
        Some(run)
    }

    /// Leads `next` to the following raw run after the innermost pass ended;
    /// false if there is none.
    #[cold]
    #[inline(never)]
    fn turn_over(&mut self) -> bool {
        if self.finished {
            return false;
        }
        let mut fastest = true;
        for (dimension, position) in self
            .nest
            .dimensions
            .iter()
            .zip(&mut self.nest.positions)
            .rev()
        {
            if std::mem::take(&mut fastest) && dimension.list.is_none() {
                // The pass itself has already stepped over this dimension.
                self.next.file_offset -= dimension.count * dimension.file_step;
                self.next.buffer_offset -= dimension.count * dimension.buffer_step;
                continue;
            }
            if *position + 1 < dimension.count {
                self.next.file_offset += dimension.file_distance(*position, *position + 1);
                self.next.buffer_offset += dimension.buffer_step;
                *position += 1;
                self.enter_inner();
                return true;
            }
            self.next.file_offset -= dimension.file_distance(0, *position);
            self.next.buffer_offset -= *position * dimension.buffer_step;
            *position = 0;
        }
        self.finished = match &mut self.tiles {
            None => true,
            Some(tiles) => {
                tiles.advance();
                tiles.done
            }
        };
        let Some(tiles) = self.tiles.as_ref().filter(|_| !self.finished) else {
            return false;
        };
        tiles.fill(&mut self.nest);
        self.enter_box();
        true
    }
}

fn tiles_of(layout: &Layout, section: &Section, tile: &[u64]) -> Tiles {
    let element_size = layout.element_size();
    let mut axes = Vec::with_capacity(tile.len());
    let (mut tiles_step, mut inner_step, mut buffer_step) = (1, element_size, element_size);
    for axis in layout.slowest_first().iter().rev() {
        let mut entered = TileAxis {
            section: section.axes()[*axis].clone(),
            extent: tile[*axis],
            tiles_step,
            inner_step,
            buffer_step,
            from: 0,
            to: 0,
        };
        entered.enter(0);
        tiles_step *= layout.shape()[*axis].div_ceil(tile[*axis]);
        inner_step *= tile[*axis];
        buffer_step *= entered.section.count();
        axes.push(entered);
    }
    axes.reverse();
    Tiles {
        axes,
        tile_bytes: inner_step,
        element_size,
        done: false,
    }
}

impl Iterator for Runs {
    type Item = Run;

    #[inline(always)]
    fn next(&mut self) -> Option<Run> {
        if self.merging {
            return self.next_merged();
        }
        self.next_raw()
    }

    /// The whole walk at once, with the innermost pass as a plain loop.
    fn fold<B, F: FnMut(B, Run) -> B>(mut self, initial: B, mut combine: F) -> B {
        let mut folded = initial;
        if self.merging {
            for run in self.by_ref() {
                folded = combine(folded, run);
            }
            return folded;
        }
        while self.inner_left > 0 || self.turn_over() {
            let mut run = self.next;
            for _ in 0..self.inner_left {
                folded = combine(folded, run);
                run.file_offset += self.inner_file_step;
                run.buffer_offset += self.inner_buffer_step;
            }
            self.next = run;
            self.inner_left = 0;
        }
        folded
    }
}

impl std::iter::FusedIterator for Runs {}
