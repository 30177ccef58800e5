//! [`Region`]: the box of a file that one rank sweeps in one pass.
//!
//! In the axis order of the file. A box is a core, whose values after the pass
//! are wanted, and along axes that are divided among ranks a halo as deep as
//! there are sweeps. With every sweep the outermost elements of the halo lose
//! their meaning, and the core is reached by none of that. What lies on the
//! fixed edge of the whole array, or beyond, keeps its values.

use std::ops::Range;

use outcore::{Array, Block as LocalBlock, Result, Section};

use super::grid::Edges;
use super::stencil::{Ends, Stencil};
use super::wavefront::Wavefront;
use crate::file_order::{ranges, section};
use crate::float::Float;

/// What one rank sweeps in one pass.
#[derive(Debug, Clone)]
pub(super) struct Region {
    /// The box along each axis of the file, slowest first.
    axes: Vec<AxisBox>,
    /// The file's axes in the order of the array's own.
    order: Vec<usize>,
    edges: Edges,
    sweeps: u64,
}

/// One axis of a box.
#[derive(Debug, Clone)]
struct AxisBox {
    /// The core, in the file.
    core: Range<u64>,
    /// How much of the file on both sides belongs to the box.
    halo: u64,
    /// Where the core begins in the whole array.
    global: u64,
    /// The extent of the whole array.
    extent: u64,
    /// Whether the file holds the whole axis.
    whole: bool,
}

impl Region {
    /// The box for `core` of a file that holds the whole array.
    pub(super) fn of_file(array: &Array, core: &Section, edges: Edges, sweeps: u64) -> Self {
        Self::new(array, (core, core), array.shape(), (edges, sweeps), |_| {
            true
        })
    }

    /// The box for `core` of a file that holds the whole array, with a halo along
    /// axes of which the core has not all; the halo may reach beyond the array.
    pub(super) fn of_core(array: &Array, core: &Section, edges: Edges, sweeps: u64) -> Self {
        let is_whole = |axis: usize| core.axes()[axis].count() == array.shape()[axis];
        Self::new(
            array,
            (core, core),
            array.shape(),
            (edges, sweeps),
            is_whole,
        )
    }

    /// The box for a block of a file that holds this block and, along axes of
    /// which it has not all, its neighbours; `shape` is that of the whole array.
    pub(super) fn of_block(
        part: &Array,
        block: &LocalBlock,
        shape: &[u64],
        edges: Edges,
        sweeps: u64,
    ) -> Self {
        let is_whole = |axis: usize| block.global.axes()[axis].count() == shape[axis];
        Self::new(
            part,
            (&block.part, &block.global),
            shape,
            (edges, sweeps),
            is_whole,
        )
    }

    /// The box for planes `core` of a row-major array in memory.
    pub(super) fn of_planes(
        shape: &[usize],
        core: &Range<usize>,
        edges: Edges,
        sweeps: u64,
    ) -> Self {
        let axes = shape.iter().enumerate().map(|(axis, extent)| {
            let core = if axis == 0 { core.clone() } else { 0..*extent };
            AxisBox {
                core: core.start as u64..core.end as u64,
                halo: 0,
                global: core.start as u64,
                extent: *extent as u64,
                whole: true,
            }
        });
        Self {
            axes: axes.collect(),
            order: (0..shape.len()).collect(),
            edges,
            sweeps,
        }
    }

    fn new(
        array: &Array,
        (core, global): (&Section, &Section),
        shape: &[u64],
        (edges, sweeps): (Edges, u64),
        is_whole: impl Fn(usize) -> bool,
    ) -> Self {
        let slowest_first = array.layout().slowest_first();
        let (core, global) = (ranges(array, core), ranges(array, global));
        let axes = slowest_first.iter().enumerate().map(|(k, axis)| {
            let whole = is_whole(*axis);
            AxisBox {
                core: core[k].clone(),
                halo: if whole { 0 } else { sweeps },
                global: global[k].start,
                extent: shape[*axis],
                whole,
            }
        });
        let place = |axis: usize| slowest_first.iter().position(|of_file| *of_file == axis);
        Self {
            axes: axes.collect(),
            order: (0..shape.len()).filter_map(place).collect(),
            edges,
            sweeps,
        }
    }

    /// The elements of a plane of the box.
    pub(super) fn plane_len(&self) -> u64 {
        let lengths = self.axes.iter().skip(1).map(AxisBox::length);
        lengths.product()
    }

    /// How many sweeps a pass does.
    pub(super) fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// The planes of the core.
    pub(super) fn planes(&self) -> u64 {
        self.axes
            .first()
            .map_or(0, |axis| axis.core.end - axis.core.start)
    }

    /// The elements of so many planes of the core.
    pub(super) fn core_len(&self, planes: u64) -> u64 {
        let plane = self.axes.iter().skip(1);
        let lengths = plane.map(|axis| axis.core.end - axis.core.start);
        planes * lengths.product::<u64>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.axes.iter().any(|axis| axis.core.is_empty())
    }

    /// The planes that the front needs: stretches of the file, each with the
    /// number of its first plane, in ascending order of these. Plane 0 is the
    /// first of the core. Where an axis is joined to itself, planes come again.
    pub(super) fn needed(&self) -> impl Iterator<Item = (i64, Range<u64>)> + use<> {
        let axis = self.axes.first().cloned();
        let joined = axis.as_ref().is_some_and(|axis| axis.joined(self.edges));
        let Range {
            start: mut number,
            end,
        } = self.numbers();
        std::iter::from_fn(move || {
            let axis = axis.as_ref().filter(|_| number < end)?;
            let (global, extent) = (axis.global as i64, axis.extent as i64);
            let (at, most) = match joined {
                true => {
                    let at = (number + global).rem_euclid(extent);
                    (at, extent - at)
                }
                false => (number + global, i64::MAX),
            };
            let start = axis.core.start.wrapping_add_signed(at - global);
            let length = most.min(end - number);
            let found = (number, start..start + length as u64);
            number += length;
            Some(found)
        })
    }

    /// The numbers of the planes that the front needs.
    pub(super) fn numbers(&self) -> Range<i64> {
        let planes = self.planes();
        let (below, above) = match self.axes.first() {
            // The file ends, or the halo does.
            Some(axis) if axis.whole && !axis.joined(self.edges) => (
                self.sweeps.min(axis.global),
                self.sweeps.min(axis.extent - axis.global - planes),
            ),
            _ => (self.sweeps, self.sweeps),
        };
        -(below as i64)..(planes + above) as i64
    }

    /// Planes of the box as a section of the file.
    pub(super) fn section(&self, array: &Array, planes: Range<u64>) -> Result<Section> {
        let columns = self.axes.iter().skip(1).map(AxisBox::range);
        let all: Vec<Range<u64>> = std::iter::once(planes).chain(columns).collect();
        section(array, &all)
    }

    /// Where plane `number` of the core stands in the file.
    pub(super) fn in_file(&self, number: u64) -> u64 {
        self.axes.first().map_or(0, |axis| axis.core.start + number)
    }

    /// The front that sweeps it.
    pub(super) fn front<T: Float>(&self) -> Result<Wavefront<T>> {
        let plane = self.axes.get(1..).unwrap_or(&[]);
        let stencil = Stencil {
            plane: plane.iter().map(|axis| axis.length() as usize).collect(),
            ends: plane.iter().map(|axis| axis.ends(self.edges)).collect(),
            order: self.order.clone(),
        };
        let measured = plane.iter().map(|axis| {
            let length = axis.core.end - axis.core.start;
            axis.halo as usize..(axis.halo + length) as usize
        });
        let swept = match (self.edges, self.axes.first()) {
            (Edges::Fixed, Some(axis)) => {
                let first = -(axis.global as i64);
                first + 1..first + axis.extent as i64 - 1
            }
            _ => i64::MIN..i64::MAX,
        };
        let wanted = 0..self.planes() as i64;
        Wavefront::new(
            stencil,
            [swept, wanted],
            measured.collect(),
            self.sweeps as usize,
        )
    }
}

impl AxisBox {
    fn length(&self) -> u64 {
        self.core.end - self.core.start + 2 * self.halo
    }

    /// The box in the file.
    fn range(&self) -> Range<u64> {
        self.core.start - self.halo..self.core.end + self.halo
    }

    /// Whether the axis goes on at its other end, in the same file.
    fn joined(&self, edges: Edges) -> bool {
        edges == Edges::Periodic && self.whole
    }

    /// What the axis does at the ends of the box.
    fn ends(&self, edges: Edges) -> Ends {
        if self.joined(edges) {
            return Ends::Joined;
        }
        let length = self.length() as i64;
        let (mut first, mut end) = (1, length - 1);
        if edges == Edges::Fixed {
            // Index 0 of the whole array is this one of the box.
            let zero = self.halo as i64 - self.global as i64;
            first = first.max(zero + 1);
            end = end.min(zero + self.extent as i64 - 1);
        }
        Ends::Kept(first as usize..end.max(first) as usize)
    }
}
