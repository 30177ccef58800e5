//! [`along`]: statistics along some axes, one result for each position of the
//! others.
//!
//! The positions that are left are cut into groups whose results fit the memory of
//! a rank. For each group the ranks divide the elements that belong to it, each has
//! results for the whole group, and these are joined; so every element is read
//! once, whichever axes are left. Results are joined by Welford's and Chan's formulas.

use bytemuck::{Pod, Zeroable};
use outcore::{Comm, Error, Pieces, Result, Section, dispatch};

use super::number::{CHUNK, Number};
use super::summary::Chunk;
use crate::part::Part;
use crate::resources::Resources;

/// The bytes of a piece.
const PIECE: u64 = 1 << 20;

/// What needs the memory.
const PURPOSE: &str = "the pass along the axes";

/// Copies of the results that joining takes.
const COPIES: u64 = 4;

/// What the numbers along the axes come to at one position of the others.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Moments {
    /// How many elements are numbers.
    pub count: u64,
    /// How many are not.
    pub nans: u64,
    /// The least number; infinite if there is none.
    pub least: f64,
    /// The largest number; infinite, below zero, if there is none.
    pub most: f64,
    sum: f64,
    lost: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    const NONE: Self = Self {
        count: 0,
        nans: 0,
        least: f64::INFINITY,
        most: f64::NEG_INFINITY,
        sum: 0.0,
        lost: 0.0,
        mean: 0.0,
        squares: 0.0,
    };

    /// The sum of the numbers.
    pub fn sum(&self) -> f64 {
        match self.lost.is_finite() {
            true => self.sum + self.lost,
            false => self.sum,
        }
    }

    /// Their mean; NaN without numbers.
    pub fn mean(&self) -> f64 {
        self.sum() / self.count as f64
    }

    /// Their deviation, as [`Summary::deviation`](super::Summary::deviation).
    pub fn deviation(&self) -> f64 {
        (self.squares / self.count as f64).sqrt()
    }

    fn add(&mut self, value: f64) {
        if value.is_nan() {
            self.nans += 1;
            return;
        }
        self.count += 1;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        let apart = value - self.mean;
        self.mean += apart / self.count as f64;
        self.squares += apart * (value - self.mean);
        self.add_sum(value);
    }

    fn add_sum(&mut self, value: f64) {
        let new = self.sum + value;
        self.lost += match self.sum.abs() >= value.abs() {
            true => (self.sum - new) + value,
            false => (value - new) + self.sum,
        };
        self.sum = new;
    }

    fn add_chunk(&mut self, chunk: &Chunk) {
        self.nans += chunk.nans;
        if chunk.count > 0 {
            let sum = chunk.sum.as_f64();
            *self = self.joined(&Self {
                count: chunk.count,
                nans: 0,
                least: chunk.least.as_f64(),
                most: chunk.most.as_f64(),
                sum,
                lost: 0.0,
                mean: sum / chunk.count as f64,
                squares: chunk.squares,
            });
        }
    }

    fn joined(&self, other: &Self) -> Self {
        let mut all = *self;
        all.nans += other.nans;
        if other.count == 0 {
            return all;
        }
        if self.count == 0 {
            return Self {
                nans: all.nans,
                ..*other
            };
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        all.count += other.count;
        all.least = self.least.min(other.least);
        all.most = self.most.max(other.most);
        all.mean += apart * (b / (a + b));
        all.squares += other.squares + apart * apart * (a * b / (a + b));
        all.lost += other.lost;
        all.add_sum(other.sum);
        all
    }
}

/// Fails unless these are different axes of an array with so many.
pub fn check_axes(axes: &[usize], count: usize) -> Result<()> {
    let twice = (1..axes.len()).any(|at| axes[..at].contains(&axes[at]));
    if !twice && axes.iter().all(|axis| *axis < count) {
        return Ok(());
    }
    let text: Vec<String> = axes.iter().map(usize::to_string).collect();
    Err(Error::Invalid(format!(
        "axes {} are not different axes of an array that has {count}, counted from 0",
        text.join(",")
    )))
}

/// Collective: statistics along `axes`. Rank 0 calls `take` for each group of
/// positions that are left (a box of positions of the section, without the axes),
/// with their results in the axis order of the file.
pub fn along(
    comm: &Comm,
    part: &Part<'_>,
    axes: &[usize],
    resources: &Resources<'_>,
    mut take: impl FnMut(&Section, &[Moments]) -> Result<()>,
) -> Result<()> {
    check_axes(axes, part.section.axes().len())?;
    let order = part.array.layout().slowest_first();
    let left: Vec<usize> = (0..order.len())
        .filter(|axis| !axes.contains(axis))
        .collect();
    let shape = part.section.shape();
    let left_shape: Vec<u64> = left.iter().map(|axis| shape[*axis]).collect();
    let left_order: Vec<usize> = order
        .iter()
        .filter_map(|axis| left.iter().position(|kept| kept == axis))
        .collect();
    let invalid = |error: outcore::GeometryError| Error::Invalid(error.to_string());
    let all_left = Section::whole(&left_shape).map_err(invalid)?;
    let size = part.array.layout().element_size();
    let each = COPIES * size_of::<Moments>() as u64;
    let beside = part.array.decoded_bytes();
    let budget = resources.enough(comm, PURPOSE, |_| beside + 4 * (each + size))?;
    // A half for results, a quarter for a piece and one for what a strategy stages.
    let room = budget.limit() - beside;
    let array = part.array.staged(room / 4, &budget);
    let part = &Part {
        array: &array,
        section: part.section,
    };
    let piece = PIECE.min(room / 4) / size;
    let groups = Pieces::new(&all_left, &left_order, room / 2 / each);
    for group in groups {
        let mut axes = Section::whole(&shape).map_err(invalid)?.axes().to_vec();
        for (axis, taken) in left.iter().zip(group.axes()) {
            axes[*axis] = taken.clone();
        }
        let positions = Section::new(axes).map_err(invalid)?;
        let steps = steps(&group, &left, &left_order, order.len());
        let pass = Pass {
            part,
            positions,
            steps,
            piece: piece.max(1),
        };
        let count = usize::try_from(group.count()).map_err(|_| Error::Invalid(PURPOSE.into()))?;
        let mut own = vec![Moments::NONE; count];
        let outcome = dispatch!(part.array.element_type(), T => {
            pass.run::<T>(comm, &mut own, resources)
        });
        comm.agree(outcome)?;
        let joined = comm.reduce_with(0, &own, |a: Moments, b| a.joined(&b))?;
        let taken = match joined {
            Some(all) => take(&group, &all),
            None => Ok(()),
        };
        comm.agree(taken)?;
    }
    Ok(())
}

/// How far apart the results of neighbours along each axis stand; 0 along the axes
/// that vanish.
fn steps(group: &Section, left: &[usize], left_order: &[usize], axes: usize) -> Vec<usize> {
    let mut steps = vec![0; axes];
    let mut step = 1;
    for at in left_order.iter().rev() {
        steps[left[*at]] = step;
        step *= group.axes()[*at].count() as usize;
    }
    steps
}

/// One group.
struct Pass<'a> {
    part: &'a Part<'a>,
    positions: Section,
    steps: Vec<usize>,
    piece: u64,
}

impl Pass<'_> {
    fn run<T: Number>(
        &self,
        comm: &Comm,
        results: &mut [Moments],
        resources: &Resources<'_>,
    ) -> Result<()> {
        let Part { array, section } = *self.part;
        let order = array.layout().slowest_first();
        let share = self.part.share(&self.positions, comm.rank(), comm.size());
        let mut values: Vec<T> = Vec::new();
        for piece in self.part.pieces(&share, self.piece) {
            values.resize(piece.count() as usize, T::zeroed());
            array.read_into(&section.select(&piece), &mut values)?;
            self.add(&piece, order, &values, results);
            resources.tell(size_of_val(&values[..]) as u64);
        }
        Ok(())
    }

    /// Adds a piece: lines along the fastest axis of the file, each to one result
    /// or to as many as it has elements.
    fn add<T: Number>(
        &self,
        piece: &Section,
        order: &[usize],
        values: &[T],
        results: &mut [Moments],
    ) {
        let Some((fastest, slower)) = order.split_last() else {
            values
                .iter()
                .for_each(|value| results[0].add(value.value().as_f64()));
            return;
        };
        let first = |axis: usize| {
            let start = piece.axes()[axis].bounds().0 - self.positions.axes()[axis].bounds().0;
            start as usize * self.steps[axis]
        };
        let start: usize = order.iter().map(|axis| first(*axis)).sum();
        let length = piece.axes()[*fastest].count() as usize;
        for (number, line) in values.chunks_exact(length.max(1)).enumerate() {
            let (mut rest, mut at) = (number, start);
            for axis in slower.iter().rev() {
                let count = piece.axes()[*axis].count() as usize;
                at += rest % count * self.steps[*axis];
                rest /= count;
            }
            match self.steps[*fastest] {
                0 => {
                    for chunk in line.chunks(CHUNK) {
                        results[at].add_chunk(&T::chunk(chunk));
                    }
                }
                // The fastest axis that is left: its results are neighbours.
                _ => {
                    for (result, value) in results[at..].iter_mut().zip(line) {
                        result.add(value.value().as_f64());
                    }
                }
            }
        }
    }
}
