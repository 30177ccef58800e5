//! [`Places`]: whose part an element of a global array is in, and where there.
//!
//! Arithmetic only. A section inside one block of every axis is one owner's and
//! one nest of loops, found without memory being allocated; others are cut into
//! stretches along each axis, whose products are nests.

use outcore_geometry::{Distribution, Section};

use super::nest::{Loop, MOST_AXES, Nest};
use super::stretch::{PlacedAxis, Stretch, by_owner};
use crate::error::{Error, Result};

/// Where the elements of a distributed array stand.
#[derive(Debug)]
pub(super) struct Places {
    axes: Vec<PlacedAxis>,
    extents: Vec<u64>,
    /// The ranks from one coordinate of the grid to the next.
    grid: Vec<usize>,
    /// For each rank, the elements from one index of each axis to the next.
    steps: Vec<usize>,
}

/// What one rank has of a section: its stretches along each axis.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) rank: usize,
    pub(super) axes: Vec<Vec<Stretch>>,
}

impl Places {
    /// Of `distribution`, of which every part fits into memory.
    pub(super) fn new(distribution: &Distribution) -> Result<Self> {
        let count = distribution.shape().len();
        if count > MOST_AXES {
            return Err(Error::Invalid(format!(
                "a global array has {MOST_AXES} axes at most, not {count}"
            )));
        }
        let mut steps = Vec::with_capacity(count * distribution.ranks() as usize);
        for rank in 0..distribution.ranks() {
            steps.extend(dense(&distribution.local_shape(rank)));
        }
        Ok(Self {
            axes: distribution.axes().iter().map(PlacedAxis::new).collect(),
            extents: distribution.shape().into(),
            grid: dense(distribution.grid()),
            steps,
        })
    }

    /// The elements from one index of each axis to the next in the part of a rank.
    #[inline(always)]
    pub(super) fn steps(&self, rank: usize) -> &[usize] {
        let count = self.axes.len();
        &self.steps[rank * count..][..count]
    }

    /// The rank that has an element and its place there, in elements; `None`
    /// outside the array.
    #[inline]
    pub(super) fn element(&self, index: &[u64]) -> Option<(usize, usize)> {
        if index.len() != self.axes.len() {
            return None;
        }
        let mut local = [0; MOST_AXES];
        let mut rank = 0;
        for (at, index) in index.iter().enumerate() {
            if *index >= self.extents[at] {
                return None;
            }
            let (owner, place, _) = self.axes[at].place(*index);
            local[at] = place;
            rank += owner * self.grid[at];
        }
        let steps = self.steps(rank).iter().zip(&local);
        Some((rank, steps.map(|(step, local)| step * local).sum()))
    }

    /// The one rank that has all of `section` and the loops over it, if it lies
    /// in the array and in one block of every axis.
    #[inline]
    pub(super) fn single(&self, section: &Section) -> Option<(usize, Nest)> {
        let taken = section.axes();
        if taken.len() != self.axes.len() {
            return None;
        }
        match taken.len() {
            1 => self.single_of::<1>(section),
            2 => self.single_of::<2>(section),
            3 => self.single_of::<3>(section),
            4 => self.single_of::<4>(section),
            _ => None,
        }
    }

    #[inline(always)]
    fn single_of<const AXES: usize>(&self, section: &Section) -> Option<(usize, Nest)> {
        let taken: &[_; AXES] = section.axes().try_into().ok()?;
        let axes: &[PlacedAxis; AXES] = self.axes.as_slice().try_into().ok()?;
        let grid: &[usize; AXES] = self.grid.as_slice().try_into().ok()?;
        let mut stretches = [Stretch::NONE; AXES];
        let mut rank = 0;
        for axis in 0..AXES {
            stretches[axis] = axes[axis].single(&taken[axis])?;
            rank += stretches[axis].owner * grid[axis];
        }
        let steps: &[usize; AXES] = self.steps(rank).try_into().ok()?;
        let mut part = 0;
        for axis in 0..AXES {
            part += stretches[axis].local * steps[axis];
        }
        let mut nest = Nest::at(part, 0);
        let mut buffer = 1;
        for axis in (0..AXES).rev() {
            let Stretch { count, step, .. } = stretches[axis];
            nest.around(Loop {
                count,
                part: step * steps[axis],
                buffer,
            });
            buffer *= count;
        }
        Some((rank, nest))
    }

    /// What each rank has of `section`, which lies in the array.
    pub(super) fn shares(&self, section: &Section) -> Vec<Share> {
        let axes = self.axes.iter().zip(section.axes());
        let lists: Vec<_> = axes
            .map(|(axis, taken)| by_owner(axis.stretches(taken)))
            .collect();
        let mut shares = Vec::new();
        each_of_product(&lists, |owners| {
            let owners = owners.iter().zip(&self.grid);
            let rank = owners.clone().map(|((owner, _), step)| owner * step).sum();
            shares.push(Share {
                rank,
                axes: owners.map(|((_, list), _)| list.clone()).collect(),
            });
            Ok::<(), ()>(())
        })
        .unwrap_or_default();
        shares
    }

    /// What `rank` has of `section`, which lies in the array.
    pub(super) fn share(&self, rank: usize, section: &Section) -> Option<Share> {
        let mut rest = rank;
        let mut axes = Vec::with_capacity(self.axes.len());
        for (at, taken) in section.axes().iter().enumerate() {
            let owner = rest / self.grid[at];
            rest %= self.grid[at];
            let mut list = self.axes[at].stretches(taken);
            list.retain(|stretch| stretch.owner == owner);
            if list.is_empty() {
                return None;
            }
            axes.push(list);
        }
        (rest == 0).then_some(Share { rank, axes })
    }
}

/// The elements from one index of each axis to the next in a dense array of
/// `shape`, the last axis fastest.
pub(super) fn dense(shape: &[u64]) -> Vec<usize> {
    let mut steps = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        steps[axis - 1] = steps[axis] * shape[axis] as usize;
    }
    steps
}

/// Calls `visit` with the loops of every product of stretches, one of each axis,
/// between a part and a buffer with such steps.
pub(super) fn each_nest(
    axes: &[Vec<Stretch>],
    (part_steps, buffer_steps): (&[usize], &[usize]),
    mut visit: impl FnMut(&Nest) -> Result<()>,
) -> Result<()> {
    each_of_product(axes, |stretches| {
        let (mut part, mut buffer) = (0, 0);
        for (at, stretch) in stretches.iter().enumerate() {
            part += stretch.local * part_steps[at];
            buffer += stretch.at * buffer_steps[at];
        }
        let mut nest = Nest::at(part, buffer);
        for (at, stretch) in stretches.iter().enumerate().rev() {
            nest.around(Loop {
                count: stretch.count,
                part: stretch.step * part_steps[at],
                buffer: stretch.at_step * buffer_steps[at],
            });
        }
        visit(&nest)
    })
}

/// Calls `visit` with every way to take one of each list, the last list varying
/// fastest.
fn each_of_product<T, E>(
    lists: &[Vec<T>],
    mut visit: impl FnMut(&[&T]) -> Result<(), E>,
) -> Result<(), E> {
    if lists.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let mut turns = vec![0; lists.len()];
    let mut taken: Vec<&T> = lists.iter().map(|list| &list[0]).collect();
    loop {
        visit(&taken)?;
        let mut axis = lists.len();
        loop {
            if axis == 0 {
                return Ok(());
            }
            axis -= 1;
            turns[axis] += 1;
            if turns[axis] < lists[axis].len() {
                taken[axis] = &lists[axis][turns[axis]];
                break;
            }
            turns[axis] = 0;
            taken[axis] = &lists[axis][0];
        }
    }
}
