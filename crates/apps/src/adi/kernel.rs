//! [`Implicit`]: steps along one axis of a tile, several in a row.
//!
//! Heat falls off by a factor from element to element, so far from it there is less
//! than any normal number can say: that is zero here.

use crate::float::Float;
use crate::lines::{LineKernel, Piece};

/// Lines side by side that are solved together, in bytes.
const ACROSS: usize = 256;

/// The tridiagonal matrix `1 - r/2 D` of a line between fixed ends, eliminated.
#[derive(Debug)]
struct Line<T> {
    /// `r / 2`, and the weight of an element itself on the other side.
    half: T,
    own: T,
    /// One over the pivot of each row, and what the next element is taken with.
    pivots: Vec<T>,
    factors: Vec<T>,
}

impl<T: Float> Line<T> {
    fn new(length: usize, ratio: f64) -> Self {
        let half = ratio / 2.0;
        let (mut pivots, mut factors) = (vec![0.0; length], vec![0.0; length]);
        for at in 1..length.saturating_sub(1) {
            let before: f64 = factors[at - 1];
            pivots[at] = 1.0 / (1.0 + 2.0 * half - half * before);
            factors[at] = half * pivots[at];
        }
        let narrow = |values: Vec<f64>| values.into_iter().map(T::of).collect();
        Self {
            half: T::of(half),
            own: T::of(1.0 - 2.0 * half),
            pivots: narrow(pivots),
            factors: narrow(factors),
        }
    }

    /// One step of `count` lines side by side, whose elements are `apart`;
    /// `before` has room for one element of each.
    #[inline(always)]
    fn step(&self, values: &mut [T], apart: usize, count: usize, before: &mut [T]) {
        let length = self.pivots.len();
        let before = &mut before[..count];
        // 1. The right side from old values, and the elimination downwards.
        before.copy_from_slice(&values[..count]);
        for at in 1..length - 1 {
            let (done, rest) = values.split_at_mut(at * apart);
            let done = &done[(at - 1) * apart..][..count];
            let (now, next) = rest.split_at_mut(apart);
            let (now, next) = (&mut now[..count], &next[..count]);
            let (pivot, last) = (self.pivots[at], at == length - 2);
            for line in 0..count {
                let old = now[line];
                let mut right = self.own * old + self.half * (before[line] + next[line]);
                if last {
                    right = right + self.half * next[line];
                }
                now[line] = ((right + self.half * done[line]) * pivot).normal_or_zero();
                before[line] = old;
            }
        }
        // 2. Upwards; the last inner element is known.
        for at in (1..length - 2).rev() {
            let (now, next) = values[at * apart..].split_at_mut(apart);
            let (now, next) = (&mut now[..count], &next[..count]);
            let factor = self.factors[at];
            for (now, next) in now.iter_mut().zip(next) {
                *now = (*now + factor * *next).normal_or_zero();
            }
        }
    }
}

/// Some steps along one axis.
#[derive(Debug)]
pub(super) struct Implicit<T> {
    /// The place of the axis in the order of the file.
    place: usize,
    line: Line<T>,
    steps: u64,
    /// The shape of the array in the order of the file.
    whole: Vec<u64>,
    before: Vec<T>,
    /// Lines that stand in one piece, side by side.
    beside: Vec<T>,
}

impl<T: Float> Implicit<T> {
    pub(super) fn new(place: usize, whole: Vec<u64>, (ratio, steps): (f64, u64)) -> Self {
        let length = whole[place] as usize;
        let contiguous = place + 1 == whole.len();
        let beside = if contiguous { length * Self::WIDTH } else { 0 };
        Self {
            place,
            line: Line::new(length, ratio),
            steps,
            whole,
            before: vec![T::zeroed(); Self::WIDTH],
            beside: vec![T::zeroed(); beside],
        }
    }

    const WIDTH: usize = ACROSS / size_of::<T>();

    /// Whether the element with this index along the axis at `place` has
    /// neighbours on both sides.
    fn is_inner(&self, place: usize, index: u64) -> bool {
        index > 0 && index + 1 < self.whole[place]
    }

    /// Of the positions of a piece along the axes `places`, taken as one, those
    /// of inner elements, in stretches.
    fn inner(&self, piece: &Piece<'_, T>, places: std::ops::Range<usize>) -> Vec<(usize, usize)> {
        let mut stretches: Vec<(usize, usize)> = vec![(0, 1)];
        let mut extent = 1;
        // From the fastest axis outwards: what is inner inside, at every inner index.
        for place in places.rev() {
            let mut wider: Vec<(usize, usize)> = Vec::new();
            for index in 0..piece.shape[place] {
                if !self.is_inner(place, piece.start[place] + index as u64) {
                    continue;
                }
                for (start, end) in &stretches {
                    let (start, end) = (index * extent + start, index * extent + end);
                    match wider.last_mut() {
                        Some(last) if last.1 == start => last.1 = end,
                        _ => wider.push((start, end)),
                    }
                }
            }
            stretches = wider;
            extent *= piece.shape[place];
        }
        stretches
    }

    /// Lines in one piece each, of which there are `count` in `values`.
    fn contiguous(&mut self, values: &mut [T], count: usize) {
        let length = self.line.pivots.len();
        let width = Self::WIDTH;
        for (number, line) in values.chunks_exact(length).enumerate().take(count) {
            for (at, value) in line.iter().enumerate() {
                self.beside[at * width + number] = *value;
            }
        }
        for _ in 0..self.steps {
            solve(
                &self.line,
                &mut self.beside,
                (width, count),
                &mut self.before,
            );
        }
        for (number, line) in values.chunks_exact_mut(length).enumerate().take(count) {
            for (at, value) in line.iter_mut().enumerate() {
                *value = self.beside[at * width + number];
            }
        }
    }
}

crate::cpu::vectorised! {
    fn solve[T: Float](line: &Line<T>, values: &mut [T], side: (usize, usize), before: &mut [T]) {
        line.step(values, side.0, side.1, before);
    }
}

impl<T: Float> LineKernel<T, T> for Implicit<T> {
    fn bytes(&self, _: u64) -> u64 {
        let numbers = 2 * self.line.pivots.len() + self.before.len() + self.beside.len();
        (numbers * size_of::<T>()) as u64
    }

    fn apply(&mut self, piece: &Piece<'_, T>, results: &mut [T]) {
        results.copy_from_slice(piece.values);
        let length = self.line.pivots.len();
        if length < 3 {
            return;
        }
        let (place, axes) = (self.place, piece.shape.len());
        let apart: usize = piece.shape[place + 1..].iter().product();
        let slower = self.inner(piece, 0..place);
        let faster = self.inner(piece, place + 1..axes);
        for (start, end) in slower {
            if place + 1 == axes {
                let lines = &mut results[start * length..end * length];
                for some in lines.chunks_mut(Self::WIDTH * length) {
                    self.contiguous(some, some.len() / length);
                }
                continue;
            }
            for block in start..end {
                let values = &mut results[block * length * apart..][..length * apart];
                for (first, last) in &faster {
                    for column in (*first..*last).step_by(Self::WIDTH) {
                        let count = Self::WIDTH.min(last - column);
                        for _ in 0..self.steps {
                            let values = &mut values[column..];
                            solve(&self.line, values, (apart, count), &mut self.before);
                        }
                    }
                }
            }
        }
    }
}
