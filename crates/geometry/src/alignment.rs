//! [`Alignment`] of an array with a template, and the [`AlignedDistribution`]
//! that follows when the template is distributed.
//!
//! The ALIGN directive of High Performance Fortran (Thakur 1995, sections
//! 2.3.1 and 3.2). A template is a shape without elements. Each of its axes
//! does one of three things for an array:
//!
//! - it is *aligned* with one axis of the array: index `i` there stands at
//!   `stride * i + offset` on the template;
//! - it *replicates* the array: every element stands at all of its indices;
//! - it holds the array at one *fixed* index.
//!
//! Array axes that no template axis names are collapsed. Which axis goes to
//! which is free, so a transposed array is one alignment among others. A rank
//! holds an element if it owns a template index at which the element stands:
//! exactly one rank if nothing is replicated. (Ranks that own no index of a
//! replicating axis hold no copy.)
//!
//! Along an array axis, the indices that a rank holds are numbered from 0 in
//! ascending order, which is the local index: see `Line` for its arithmetic.
//!
//! Invariant: every array index lands inside the template.

mod line;

use crate::axis::AxisSection;
use crate::distribution::{Distribution, check_axes, part_of_array, product};
use crate::error::{Error, Result};
use crate::section::Section;
use crate::shape::{checked_product, element_count, shape_text};
pub(crate) use line::Line;

/// What one axis of a template does for an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TemplateAxis {
    /// Index `i` of array axis `axis` stands at `stride * i + offset`.
    Aligned {
        /// The axis of the array.
        axis: usize,
        /// Not 0; negative to reverse the axis.
        stride: i64,
        /// Where index 0 stands.
        offset: i64,
    },
    /// Every element stands at all indices of this axis.
    Replicated,
    /// Every element stands at this index.
    Fixed(u64),
}

impl TemplateAxis {
    /// Array axis `axis`, index by index.
    pub fn identity(axis: usize) -> Self {
        Self::Aligned {
            axis,
            stride: 1,
            offset: 0,
        }
    }
}

/// How an array stands on a template.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Alignment {
    shape: Vec<u64>,
    template: Vec<u64>,
    axes: Vec<TemplateAxis>,
    /// For each axis of the array the template axis aligned with it.
    lines: Vec<Option<Line>>,
}

impl Alignment {
    /// Aligns an array of `shape` with a template of shape `template`, one
    /// [`TemplateAxis`] for each of the template's axes.
    pub fn new(shape: &[u64], template: &[u64], axes: Vec<TemplateAxis>) -> Result<Self> {
        check_axes("the alignment", template.len(), axes.len())?;
        element_count(shape)?;
        if let Some(extent) = shape.iter().chain(template).find(|n| **n > i64::MAX as u64) {
            return Err(Error::Overflow(format!("an extent of {extent}")));
        }
        let mut lines = vec![None; shape.len()];
        for (template_axis, target) in axes.iter().enumerate() {
            let extent = template[template_axis];
            match *target {
                TemplateAxis::Aligned {
                    axis,
                    stride,
                    offset,
                } => {
                    let line = Line {
                        template_axis,
                        stride,
                        offset,
                    };
                    line.check(axis, shape, extent)?;
                    if let Some(earlier) = lines[axis].replace(line) {
                        return Err(Error::invalid(format!(
                            "array axis {axis} is aligned with both template axes {} and \
                             {template_axis}; at most one is possible",
                            earlier.template_axis
                        )));
                    }
                }
                TemplateAxis::Replicated if extent == 0 && !shape.contains(&0) => {
                    return Err(Error::invalid(format!(
                        "template axis {template_axis} is empty: it cannot hold copies of an array"
                    )));
                }
                TemplateAxis::Fixed(index) if index >= extent => {
                    return Err(Error::invalid(format!(
                        "the array is fixed at index {index} of template axis {template_axis}, \
                         whose extent is {extent}"
                    )));
                }
                TemplateAxis::Replicated | TemplateAxis::Fixed(_) => {}
            }
        }
        Ok(Self {
            shape: shape.into(),
            template: template.into(),
            axes,
            lines,
        })
    }

    /// An array of `shape` that is its own template.
    pub fn identity(shape: &[u64]) -> Result<Self> {
        Self::new(
            shape,
            shape,
            (0..shape.len()).map(TemplateAxis::identity).collect(),
        )
    }

    /// The shape of the array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The shape of the template.
    pub fn template(&self) -> &[u64] {
        &self.template
    }

    /// What each axis of the template does.
    pub fn axes(&self) -> &[TemplateAxis] {
        &self.axes
    }

    /// For each axis of the array how it stands on the template axis aligned
    /// with it.
    pub(crate) fn lines(&self) -> &[Option<Line>] {
        &self.lines
    }

    /// Distributes the array as `template` is distributed.
    pub fn distribute(self, template: Distribution) -> Result<AlignedDistribution> {
        if self.template != template.shape() {
            return Err(Error::invalid(format!(
                "the array is aligned with a template of shape {}, not {}",
                shape_text(&self.template),
                shape_text(template.shape())
            )));
        }
        Ok(AlignedDistribution {
            alignment: self,
            template,
        })
    }

    fn contains(&self, index: &[u64]) -> bool {
        index.len() == self.shape.len() && index.iter().zip(&self.shape).all(|(i, n)| i < n)
    }
}

/// An array distributed by way of a template that it is aligned with.
///
/// ```
/// use outcore_geometry::{AlignedDistribution, Distribution, TemplateAxis};
/// // A row of 6, transposed onto every second row of column 1.
/// let template = Distribution::parse("block,cyclic", &[12, 4], 4, None)?;
/// let aligned = TemplateAxis::Aligned { axis: 0, stride: 2, offset: 1 };
/// let row = AlignedDistribution::new(&[6], template, vec![aligned, TemplateAxis::Fixed(1)])?;
/// assert_eq!(row.owners(&[4]), [3]);
/// assert_eq!(row.local_sections(3)[0].to_string(), "3:6");
/// assert_eq!(row.to_local(3, &[4]), Some(vec![1]));
/// # Ok::<(), outcore_geometry::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AlignedDistribution {
    alignment: Alignment,
    template: Distribution,
}

/// An array that is its own template.
impl From<Distribution> for AlignedDistribution {
    fn from(template: Distribution) -> Self {
        let axes = template.shape().len();
        let lines = (0..axes).map(|axis| Line {
            template_axis: axis,
            ..Line::identity()
        });
        Self {
            alignment: Alignment {
                shape: template.shape().into(),
                template: template.shape().into(),
                axes: (0..axes).map(TemplateAxis::identity).collect(),
                lines: lines.map(Some).collect(),
            },
            template,
        }
    }
}

impl AlignedDistribution {
    /// Aligns an array of `shape` with a distributed template, one
    /// [`TemplateAxis`] for each of the template's axes.
    pub fn new(shape: &[u64], template: Distribution, axes: Vec<TemplateAxis>) -> Result<Self> {
        Alignment::new(shape, template.shape(), axes)?.distribute(template)
    }

    /// How the array stands on the template.
    pub fn alignment(&self) -> &Alignment {
        &self.alignment
    }

    /// How the template is distributed.
    pub fn template(&self) -> &Distribution {
        &self.template
    }

    /// The shape of the array.
    pub fn shape(&self) -> &[u64] {
        &self.alignment.shape
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u64 {
        self.template.ranks()
    }

    /// The ranks that hold the element at `index`, ascending: none outside
    /// the array, several if the array is replicated.
    pub fn owners(&self, index: &[u64]) -> Vec<u64> {
        if !self.alignment.contains(index) {
            return Vec::new();
        }
        let targets = self.alignment.axes.iter().zip(self.template.axes());
        let lists: Vec<Vec<u64>> = targets
            .enumerate()
            .map(|(template_axis, (target, axis))| match *target {
                TemplateAxis::Replicated => (0..axis.used_ranks()).collect(),
                TemplateAxis::Fixed(at) => vec![axis.owner(at)],
                TemplateAxis::Aligned {
                    axis: of,
                    stride,
                    offset,
                } => {
                    vec![
                        axis.owner(
                            Line {
                                template_axis,
                                stride,
                                offset,
                            }
                            .image(index[of]),
                        ),
                    ]
                }
            })
            .collect();
        let rank = |coordinates: Vec<u64>| self.template.rank_at(coordinates.into_iter());
        product(&lists).into_iter().map(rank).collect()
    }

    /// Whether `rank` holds the element at `index`.
    pub fn is_local(&self, rank: u64, index: &[u64]) -> bool {
        let Some(coordinates) = self.candidate(rank) else {
            return false;
        };
        self.alignment.contains(index)
            && self.alignment.lines.iter().zip(index).all(|(line, i)| {
                line.is_none_or(|line| {
                    let axis = &self.template.axes()[line.template_axis];
                    axis.owner(line.image(*i)) == coordinates[line.template_axis]
                })
            })
    }

    /// The shape of the local array of `rank`: all zeros if the array stands
    /// where the rank owns nothing.
    pub fn local_shape(&self, rank: u64) -> Vec<u64> {
        match self.candidate(rank) {
            None => vec![0; self.shape().len()],
            Some(at) => {
                let extents = self.shape().iter().enumerate();
                extents
                    .map(|(axis, extent)| self.count_below(axis, &at, *extent))
                    .collect()
            }
        }
    }

    /// How many elements `rank` holds.
    pub fn local_count(&self, rank: u64) -> u64 {
        if self.candidate(rank).is_none() {
            return 0; // With no axes, the shape alone would not tell.
        }
        checked_product(self.local_shape(rank).into_iter())
            .expect("a local array has at most as many elements as the whole")
    }

    /// What `rank` holds, as disjoint sections of the array in ascending
    /// order of their first element; as few along each axis as the template
    /// has sections where the array stands.
    pub fn local_sections(&self, rank: u64) -> Vec<Section> {
        let Some(coordinates) = self.candidate(rank) else {
            return Vec::new();
        };
        let lines = self.alignment.lines.iter().zip(self.shape());
        let lists: Vec<Vec<AxisSection>> = lines
            .map(|(line, extent)| match line {
                None if *extent == 0 => Vec::new(),
                None => vec![AxisSection::span(0, *extent)],
                Some(line) => {
                    let axis = &self.template.axes()[line.template_axis];
                    line.sections(axis, coordinates[line.template_axis], *extent)
                }
            })
            .collect();
        product(&lists).into_iter().map(part_of_array).collect()
    }

    /// Where the element at `index` stands in the local array of `rank`;
    /// `None` if the rank does not hold it.
    pub fn to_local(&self, rank: u64, index: &[u64]) -> Option<Vec<u64>> {
        if !self.is_local(rank, index) {
            return None;
        }
        let coordinates = self.candidate(rank)?;
        let indices = index.iter().enumerate();
        Some(
            indices
                .map(|(axis, i)| self.count_below(axis, &coordinates, *i))
                .collect(),
        )
    }

    /// Where the element at `local` of the local array of `rank` stands in the
    /// whole array; `None` outside the local array.
    pub fn to_global(&self, rank: u64, local: &[u64]) -> Option<Vec<u64>> {
        let coordinates = self.candidate(rank)?;
        if local.len() != self.shape().len() {
            return None;
        }
        let lines = self.alignment.lines.iter().zip(self.shape()).zip(local);
        lines
            .map(|((line, extent), local)| match line {
                None => (local < extent).then_some(*local),
                Some(line) => {
                    let axis = &self.template.axes()[line.template_axis];
                    line.at(axis, coordinates[line.template_axis], *local, *extent)
                }
            })
            .collect()
    }

    /// Where a box of local indices of `rank`, which must hold them, stands in the
    /// whole array.
    pub fn globals(&self, rank: u64, local: &Section) -> Section {
        let Some(coordinates) = self.candidate(rank) else {
            return Section::empty(self.shape().len());
        };
        let lines = self.alignment.lines.iter().zip(self.shape());
        let globals = |((line, extent), taken): ((&Option<Line>, &u64), &AxisSection)| {
            let (lower, upper) = taken.bounds();
            let Some(line) = line else {
                return AxisSection::span(lower, upper);
            };
            let on = line.template_axis;
            let (axis, at) = (&self.template.axes()[on], coordinates[on]);
            if line.stride == 1 && line.offset == 0 {
                return axis.globals(at, lower, upper);
            }
            let all: Option<Vec<u64>> = (lower..upper)
                .map(|local| line.at(axis, at, local, *extent))
                .collect();
            AxisSection::list(all.unwrap_or_default()).expect("indices ascend with local ones")
        };
        part_of_array(lines.zip(local.axes()).map(globals).collect())
    }

    /// The coordinates of `rank`, if it owns something along the template
    /// axes that replicate the array or fix it.
    pub(crate) fn candidate(&self, rank: u64) -> Option<Vec<u64>> {
        let coordinates = self.template.coordinates(rank)?;
        let axes = self
            .alignment
            .axes
            .iter()
            .zip(self.template.axes())
            .zip(&coordinates);
        let holds = axes.into_iter().all(|((target, axis), at)| match target {
            TemplateAxis::Aligned { .. } => true,
            TemplateAxis::Replicated => *at < axis.used_ranks(),
            TemplateAxis::Fixed(index) => axis.owner(*index) == *at,
        });
        holds.then_some(coordinates)
    }

    /// How many indices of `axis` below `limit` the rank at `coordinates` holds.
    fn count_below(&self, axis: usize, coordinates: &[u64], limit: u64) -> u64 {
        match self.alignment.lines[axis] {
            None => limit,
            Some(line) => {
                let on = line.template_axis;
                line.count_below(&self.template.axes()[on], coordinates[on], limit)
            }
        }
    }
}
