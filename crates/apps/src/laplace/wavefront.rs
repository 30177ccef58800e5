//! [`Wavefront`]: several sweeps in one pass over the planes.
//!
//! Level `l` is the array after `l` sweeps. Plane `r` of a level needs planes
//! `r - 1`, `r` and `r + 1` of the level before, so as soon as plane `r` of level
//! 0 arrives, plane `r - 1` of level 1 can be made, from it plane `r - 2` of level
//! 2, and so on: a front that runs through space and levels at once. Each level
//! keeps its last two planes and nothing else, so the work of all sweeps is
//! done in the cache while the array passes by once.
//!
//! Planes outside of `swept` keep their values on every level. Elsewhere the
//! first and the last plane of the input are only read, on each level one
//! plane further inside: from planes `a - t..b + t` come planes `a..b` after `t`
//! sweeps.
//!
//! The path of the data: [`Wavefront::push`] reads a slab where it stands (only
//! its last two planes are copied, for the next slab), planes of the levels
//! between move from level to level without copying, and the last level is
//! computed into the place that the [`Sink`] gives.

use std::ops::Range;

use outcore::{Error, Result};

use super::average::{larger, largest_change};
use super::stencil::Stencil;
use crate::block::walk;
use crate::float::Float;

/// Where finished planes go.
pub(super) trait Sink<T> {
    /// The place for the next plane; the wanted ones come one after the other.
    fn place(&mut self) -> Result<&mut [T]>;
}

/// Several sweeps in one pass.
#[derive(Debug)]
pub(super) struct Wavefront<T> {
    stencil: Stencil,
    /// The planes that change.
    swept: Range<i64>,
    /// The planes that the sink wants.
    wanted: Range<i64>,
    /// Of each plane, where its change counts.
    measured: Vec<Range<usize>>,
    /// The last two planes of level 0.
    first: Level<T>,
    /// The last two planes of levels 1 to one below the last.
    between: Vec<Level<T>>,
    free: Vec<Vec<T>>,
    change: f64,
}

/// The last two planes of a level: `last` is plane `at`, `before` the one before.
#[derive(Debug)]
struct Level<T> {
    before: Option<Vec<T>>,
    last: Option<Vec<T>>,
    at: i64,
}

impl<T> Level<T> {
    fn empty() -> Self {
        Self {
            before: None,
            last: None,
            at: i64::MIN,
        }
    }
}

impl<T: Float> Wavefront<T> {
    /// A front of `sweeps` (at least 1) sweeps in which only planes `swept`
    /// change, for the planes `wanted`. The change of the last sweep is
    /// measured inside `measured`.
    pub(super) fn new(
        stencil: Stencil,
        [swept, wanted]: [Range<i64>; 2],
        measured: Vec<Range<usize>>,
        sweeps: usize,
    ) -> Result<Self> {
        let mut between = Vec::new();
        let levels = sweeps.saturating_sub(1);
        between.try_reserve_exact(levels).map_err(|_| {
            Error::Invalid(format!(
                "{sweeps} sweeps in a pass take more memory than there is"
            ))
        })?;
        between.resize_with(levels, Level::empty);
        Ok(Self {
            stencil,
            swept,
            wanted,
            measured,
            first: Level::empty(),
            between,
            free: Vec::new(),
            change: 0.0,
        })
    }

    /// The bytes of a front of so many sweeps: of each level the last two
    /// planes, and two that are on their way.
    pub(super) fn bytes(sweeps: u64, plane_len: u64) -> u64 {
        let planes = sweeps.saturating_mul(2).saturating_add(2);
        let planes = planes.saturating_mul(plane_len.saturating_mul(size_of::<T>() as u64));
        planes.saturating_add(sweeps.saturating_mul(size_of::<Level<T>>() as u64))
    }

    /// The largest change that the last sweep made; NaN if any value was.
    pub(super) fn change(&self) -> f64 {
        self.change
    }

    /// Takes the next planes, of which the first has the number `number`.
    pub(super) fn push(&mut self, number: i64, slab: &[T], sink: &mut impl Sink<T>) -> Result<()> {
        let length = self.stencil.plane_len();
        let count = slab.len().checked_div(length).unwrap_or(0);
        let plane = |at: usize| &slab[at * length..(at + 1) * length];
        let mut saved = std::mem::replace(&mut self.first, Level::empty());
        for at in 0..count {
            let (before, last) = match at {
                0 => (saved.before.as_deref(), saved.last.as_deref()),
                1 => (saved.last.as_deref(), Some(plane(0))),
                _ => (Some(plane(at - 2)), Some(plane(at - 1))),
            };
            let Some(last) = last else { continue };
            let row = number + at as i64 - 1;
            self.advance(0, row, [before, Some(last), Some(plane(at))], sink)?;
        }
        for at in count.saturating_sub(2)..count {
            let mut copy = saved.before.take().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(plane(at));
            saved.before = saved.last.replace(copy);
            saved.at = number + at as i64;
        }
        self.first = saved;
        Ok(())
    }

    /// After the last plane: what can still be made.
    pub(super) fn finish(&mut self, sink: &mut impl Sink<T>) -> Result<()> {
        for level in 0..=self.between.len() {
            let level_below = match level {
                0 => &mut self.first,
                _ => &mut self.between[level - 1],
            };
            let below = std::mem::replace(level_below, Level::empty());
            if let Some(last) = &below.last {
                self.advance(level, below.at, [None, Some(last), None], sink)?;
            }
        }
        Ok(())
    }

    /// Makes plane `row` of the level above `level` of the planes around it, if
    /// they are there, and lets the levels above follow.
    fn advance(
        &mut self,
        level: usize,
        row: i64,
        around: [Option<&[T]>; 3],
        sink: &mut impl Sink<T>,
    ) -> Result<()> {
        let Some(mut incoming) = self.make(level, row, around, sink)? else {
            return Ok(());
        };
        let mut row = row;
        for level in level + 1..=self.between.len() {
            let mut here = std::mem::replace(&mut self.between[level - 1], Level::empty());
            let made = match &here.last {
                None => None,
                last => {
                    let around = [here.before.as_deref(), last.as_deref(), Some(&incoming[..])];
                    self.make(level, row - 1, around, sink)?
                }
            };
            self.free.extend(here.before.take());
            here.before = here.last.replace(incoming);
            here.at = row;
            self.between[level - 1] = here;
            let Some(plane) = made else { return Ok(()) };
            (incoming, row) = (plane, row - 1);
        }
        Ok(())
    }

    /// One plane of the level above `level`: into the sink if that is the last,
    /// which returns nothing.
    fn make(
        &mut self,
        level: usize,
        row: i64,
        [before, plane, after]: [Option<&[T]>; 3],
        sink: &mut impl Sink<T>,
    ) -> Result<Option<Vec<T>>> {
        let plane = plane.expect("the plane itself is always there");
        let around = match (self.swept.contains(&row), before, after) {
            (true, Some(before), Some(after)) => Some([before, plane, after]),
            (true, _, _) => return Ok(None),
            (false, ..) => None,
        };
        let is_last = level == self.between.len();
        if is_last && !self.wanted.contains(&row) {
            return Ok(None);
        }
        let stencil = &self.stencil;
        let fill = |result: &mut [T]| match around {
            Some(around) => stencil.sweep(around, result),
            None => result.copy_from_slice(plane),
        };
        if is_last {
            let place = sink.place()?;
            fill(place);
            if around.is_some() {
                let change = self.measure(place, plane);
                self.change = larger(self.change, change);
            }
            return Ok(None);
        }
        let mut made = self.free.pop().unwrap_or_default();
        made.resize(plane.len(), T::of(0.0));
        fill(&mut made);
        Ok(Some(made))
    }

    /// The largest change inside the part that counts.
    fn measure(&self, new: &[T], old: &[T]) -> f64 {
        let (outer, columns) = match &*self.measured {
            [outer @ .., columns] => (outer, columns.clone()),
            [] => (&[][..], 0..1),
        };
        let row = self.stencil.plane.last().copied().unwrap_or(1);
        let mut change = 0.0;
        walk(outer, |index| {
            let at = index.iter().zip(&self.stencil.plane);
            let at = at.fold(0, |row, (at, extent)| row * extent + at) * row;
            let part = at + columns.start..at + columns.end;
            change = larger(change, largest_change(&new[part.clone()], &old[part]));
        });
        change
    }
}
