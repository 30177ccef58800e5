//! [`Run`] and [`Runs`]: a section as contiguous stretches of bytes.
//!
//! The runs of a section come from a nested loop (`nest`), one for the whole
//! file or one for each tile (`tiles`). Each turn of the loop is a *raw* run;
//! one whole pass through the innermost dimension is a [`Pass`]: equal runs at
//! equal distances.
//!
//! Two raw runs that follow one another may still touch, in file and buffer,
//! where the loop turns over (`[:, ::9]` of ten columns) or an index list has
//! neighbours. How often that happens follows from the dimensions alone, so
//! the number of runs is known without walking them; only if it happens at
//! all does the walk look for it.

use crate::layout::Layout;
use crate::nest::{Nest, dimension};
use crate::pass::Pass;
use crate::section::Section;
use crate::tiles::Tiles;

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
    pub(crate) fn touches(&self, next: &Run) -> bool {
        self.file_offset + self.len == next.file_offset
            && self.buffer_offset + self.len == next.buffer_offset
    }
}

/// Where the elements of a section stand in a buffer: the buffer holds `whole`,
/// and they are those at `positions` of it, or all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffer<'a> {
    pub(crate) whole: &'a Section,
    pub(crate) positions: Option<&'a Section>,
}

/// The same along one axis: where the first element stands, how far the next is,
/// and how many places there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    pub(crate) first: u64,
    pub(crate) step: u64,
    pub(crate) extent: u64,
}

impl Buffer<'_> {
    pub(crate) fn along(&self, axis: usize) -> Places {
        let taken = self.positions.map(|positions| &positions.axes()[axis]);
        let several = taken.filter(|taken| taken.count() > 1);
        Places {
            first: taken.and_then(|taken| taken.first()).unwrap_or(0),
            step: several.and_then(|taken| taken.stride()).unwrap_or(1),
            extent: self.whole.axes()[axis].count(),
        }
    }
}

/// What a section takes from a file if gaps are read as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// How many separate stretches of the file there are.
    pub accesses: u64,
    /// The bytes of these stretches, gaps included.
    pub bytes: u64,
    /// The first byte.
    pub start: u64,
    /// The end of the last byte.
    pub end: u64,
}

impl Footprint {
    /// This one and another that lies behind it.
    fn followed_by(self, next: Self, gap: u64) -> Self {
        let between = next.start - self.end;
        let joined = u64::from(between <= gap);
        Self {
            accesses: self.accesses + next.accesses - joined,
            bytes: self.bytes + next.bytes + joined * between,
            start: self.start,
            end: next.end,
        }
    }
}

/// The passes of a section, in ascending file order; see [`Runs::passes`].
#[derive(Debug, Clone)]
pub struct Passes(Runs);

impl Passes {
    /// Lets nothing follow.
    pub(crate) fn finish(&mut self) {
        self.0.inner_left = 0;
        self.0.finished = true;
    }
}

impl Iterator for Passes {
    type Item = Pass;

    fn next(&mut self) -> Option<Pass> {
        let runs = &mut self.0;
        if runs.inner_left == 0 && !runs.turn_over() {
            return None;
        }
        let pass = Pass {
            first: runs.next,
            count: runs.inner_left,
            file_step: runs.inner_file_step,
            buffer_step: runs.inner_buffer_step,
        };
        runs.next.file_offset += pass.count * pass.file_step;
        runs.next.buffer_offset += pass.count * pass.buffer_step;
        runs.inner_left = 0;
        Some(pass)
    }
}

/// The runs of a section, in ascending file order, maximally coalesced.
///
/// A value: cloning it gives a second walk from the same place. Making one
/// allocates a few words per axis; walking it allocates nothing.
#[derive(Debug, Clone)]
pub struct Runs {
    // The loop over raw runs. `inner_left` counts those left of the pass through
    // the innermost dimension, of which `next` is the first; the steps lead to
    // the following. A pass through a list goes over `stretch` of its positions.
    inner_left: u64,
    inner_count: u64,
    stretch: u64,
    inner_file_step: u64,
    inner_buffer_step: u64,
    next: Run,
    nest: Nest,
    finished: bool,
    merging: bool,
    pending: Option<Run>,
    tiles: Option<Tiles>,
}

impl Runs {
    pub(crate) fn new(layout: &Layout, section: &Section, buffer: Buffer<'_>) -> Self {
        let mut runs = Self {
            inner_left: 0,
            inner_count: 0,
            stretch: 1,
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
                    let Places {
                        first: begin,
                        step,
                        extent,
                    } = buffer.along(*axis);
                    first.file_offset += taken.index(0) * file_step;
                    first.buffer_offset += begin * buffer_step;
                    let all = (taken, 0, taken.count());
                    axes.push(dimension(all, file_step, step * buffer_step));
                    file_step *= layout.shape()[*axis];
                    buffer_step *= extent;
                }
                runs.nest.fill(first, axes.into_iter());
                let (_, touching, _) = runs.nest.totals();
                runs.merging = touching > 0;
            }
            Some(tile) => {
                let tiles = Tiles::new(layout, section, tile, buffer);
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
        let mut tiles = tiles.restarted();
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

    /// The same runs, from the beginning, in passes: for copying, where it does
    /// not matter whether two of them touch.
    pub fn passes(&self) -> Passes {
        self.passes_from(0)
    }

    /// The passes from the last raw run on that begins at or before `offset`,
    /// or from the first.
    pub(crate) fn passes_from(&self, offset: u64) -> Passes {
        let mut runs = self.clone();
        runs.seek(offset);
        Passes(runs)
    }

    /// How many tiles hold elements of the section; 0 where the layout has no tiles.
    pub fn tile_count(&self) -> u64 {
        match (&self.tiles, self.nest.first) {
            (Some(tiles), Some(_)) => tiles.count(),
            _ => 0,
        }
    }

    /// The runs of each tile that holds some, tile by tile, in file order; nothing
    /// where the layout has no tiles.
    pub fn tiles(&self) -> impl Iterator<Item = Runs> + Send + use<> {
        let mut tiles = self.tiles.as_ref().map(Tiles::restarted);
        if self.nest.first.is_none() {
            tiles = None;
        }
        let mut runs = self.clone();
        (runs.tiles, runs.pending) = (None, None);
        std::iter::from_fn(move || {
            let tiles = tiles.as_mut().filter(|tiles| !tiles.done)?;
            tiles.fill(&mut runs.nest);
            tiles.advance();
            let mut tile = runs.clone();
            let (_, touching, _) = tile.nest.totals();
            tile.merging = touching > 0;
            tile.finished = false;
            tile.enter_box();
            Some(tile)
        })
    }

    /// What the section takes from the file if gaps of up to `gap` bytes
    /// between its runs are read as well, without walking them.
    pub fn footprint(&self, gap: u64) -> Footprint {
        let Some(tiles) = &self.tiles else {
            return self.nest.footprint(gap);
        };
        let mut tiles = tiles.restarted();
        let mut all: Option<Footprint> = None;
        let mut tile = Nest::default();
        while !tiles.done {
            tiles.fill(&mut tile);
            let next = tile.footprint(gap);
            all = Some(all.map_or(next, |all| all.followed_by(next, gap)));
            tiles.advance();
        }
        all.unwrap_or_default()
    }

    /// How many bytes of the section stand before `offset` in the file.
    pub fn bytes_below(&self, offset: u64) -> u64 {
        let Some(tiles) = &self.tiles else {
            return self.nest.seek(offset, |_, _| ());
        };
        let mut tiles = tiles.clone();
        let (earlier, inside) = tiles.seek(offset);
        if !inside {
            return earlier;
        }
        let mut tile = Nest::default();
        tiles.fill(&mut tile);
        earlier + tile.seek(offset, |_, _| ())
    }

    /// Whether the bytes of the section have the same order in the file and in
    /// the buffer, as in every layout without tiles: what stands between two
    /// offsets of the file is one stretch of the buffer.
    pub fn is_ordered(&self) -> bool {
        self.tiles.is_none()
    }

    /// Goes to the last raw run that begins at or before `offset`, or to the
    /// first one.
    fn seek(&mut self, offset: u64) {
        self.pending = None;
        self.inner_left = 0;
        self.finished = self.nest.first.is_none();
        if let Some(tiles) = &mut self.tiles {
            tiles.seek(offset);
            self.finished = tiles.done;
            if !tiles.done {
                tiles.fill(&mut self.nest);
            }
        }
        let Some(first) = self.nest.first.filter(|_| !self.finished) else {
            return;
        };
        let mut positions = std::mem::take(&mut self.nest.positions);
        positions.fill(0);
        self.nest
            .seek(offset, |at, position| positions[at] = position);
        self.next = first;
        for (dimension, position) in self.nest.dimensions.iter().zip(&positions) {
            self.next.file_offset += dimension.file_distance(0, *position);
            self.next.buffer_offset += position * dimension.buffer_step;
        }
        // Passes through a list begin anywhere, others are left after a part.
        let passed = match (self.nest.dimensions.last(), positions.last_mut()) {
            (Some(inner), Some(position)) if inner.list.is_none() => std::mem::take(position),
            _ => 0,
        };
        self.nest.positions = positions;
        self.enter_inner();
        self.inner_left -= passed;
    }

    /// Where the first byte of the section stands in the file.
    pub fn first_offset(&self) -> u64 {
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

    /// Starts a pass through the innermost dimension at `next`. That of a list
    /// is taken in stretches of equal steps; neighbours in it are one run.
    fn enter_inner(&mut self) {
        let (count, file_step, buffer_step) = match self.nest.dimensions.last() {
            None => (1, 0, 0),
            Some(inner) if inner.list.is_none() => {
                (inner.count, inner.file_step, inner.buffer_step)
            }
            Some(inner) => {
                let at = self.nest.positions.last().copied().unwrap_or_default();
                let (stretch, file_step) = inner.stretch(at);
                self.stretch = stretch;
                if file_step == self.next.len && inner.buffer_step == self.next.len {
                    self.next.len *= stretch;
                    (1, 0, 0)
                } else {
                    (stretch, file_step, inner.buffer_step)
                }
            }
        };
        self.inner_left = count;
        self.inner_count = count;
        self.inner_file_step = file_step;
        self.inner_buffer_step = buffer_step;
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
        // The pass has stepped over the innermost dimension, or a stretch of it.
        self.next.file_offset -= self.inner_count * self.inner_file_step;
        self.next.buffer_offset -= self.inner_count * self.inner_buffer_step;
        self.next.len = self.nest.first.map_or(0, |run| run.len);
        let mut fastest = true;
        for (dimension, position) in self
            .nest
            .dimensions
            .iter()
            .zip(&mut self.nest.positions)
            .rev()
        {
            let step = match (std::mem::take(&mut fastest), dimension.list.is_some()) {
                (true, false) => continue,
                (true, true) => self.stretch,
                _ => 1,
            };
            if *position + step < dimension.count {
                self.next.file_offset += dimension.file_distance(*position, *position + step);
                self.next.buffer_offset += step * dimension.buffer_step;
                *position += step;
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
