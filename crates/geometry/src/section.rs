//! [`Section`]: the part of an array that one request names.
//!
//! A regular section in the sense of the papers (Thakur 1995, section 5.5.1):
//! the product of one [`AxisSection`] per axis. Positions inside a section
//! count from 0 along each axis; a buffer that holds the section has the
//! section's [`shape`](Section::shape).

use std::fmt;

use crate::axis::AxisSection;
use crate::error::{Error, Result};
use crate::pattern::Pattern;
use crate::shape::{checked_product, shape_text};

/// The part of an array that one request names: an [`AxisSection`] per axis.
///
/// ```
/// use outcore_geometry::Section;
/// let section = Section::parse("0:100:2, ::16", &[4096, 4096])?;
/// assert_eq!(section.shape(), [50, 256]);
/// assert_eq!(section, Section::parse("(1:100:2, 1:4096:16)", &[4096, 4096])?);
/// # Ok::<(), outcore_geometry::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Section {
    axes: Vec<AxisSection>,
    count: u64,
}

impl Section {
    /// The product of `axes`; fails if it has 2^63 elements or more.
    pub fn new(axes: Vec<AxisSection>) -> Result<Self> {
        let count = checked_product(axes.iter().map(AxisSection::count))
            .ok_or_else(|| Error::Overflow("the number of elements of the section".into()))?;
        Ok(Self { axes, count })
    }

    /// All of an array of `shape`.
    pub fn whole(shape: &[u64]) -> Result<Self> {
        Self::new(
            shape
                .iter()
                .map(|extent| AxisSection::span(0, *extent))
                .collect(),
        )
    }

    /// No element, with `axes` axes (at least one: a section without axes has
    /// one element).
    pub fn empty(axes: usize) -> Self {
        Self {
            axes: vec![AxisSection::span(0, 0); axes.max(1)],
            count: 0,
        }
    }

    /// Reads either text form (see [`Pattern`]) for an array of `shape`. The
    /// text must not depend on the rank, and must lie inside the array.
    pub fn parse(text: &str, shape: &[u64]) -> Result<Self> {
        let pattern: Pattern = text.parse()?;
        if pattern.depends_on_rank() {
            return Err(Error::invalid(format!(
                "section '{text}' depends on the rank, which has no meaning here"
            )));
        }
        pattern.section(shape, 0, 1)
    }

    /// The axes.
    pub fn axes(&self) -> &[AxisSection] {
        &self.axes
    }

    /// How many elements there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many indices each axis takes.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(AxisSection::count).collect()
    }

    /// Whether the element at `index` belongs to the section.
    pub fn contains(&self, index: &[u64]) -> bool {
        index.len() == self.axes.len()
            && self
                .axes
                .iter()
                .zip(index)
                .all(|(axis, i)| axis.position(*i).is_some())
    }

    /// Fails unless the section has as many axes as `shape` and every bound,
    /// as written, lies inside it.
    pub fn check_within(&self, shape: &[u64]) -> Result<()> {
        self.check_axes(shape.len(), "the section")?;
        for (axis, (taken, extent)) in self.axes.iter().zip(shape).enumerate() {
            let (_, upper) = taken.bounds();
            if upper > *extent {
                return Err(Error::OutOfRange {
                    section: self.to_string(),
                    axis,
                    index: upper as i128 - 1,
                    shape: shape_text(shape),
                    last: extent.checked_sub(1),
                });
            }
        }
        Ok(())
    }

    /// The elements that both take.
    pub fn intersect(&self, other: &Self) -> Result<Self> {
        other.check_axes(self.axes.len(), "the other section")?;
        self.each_axis(&other.axes, |axis, other| Ok(axis.intersect(other)))
    }

    /// The elements inside an array of `shape`.
    pub fn clip(&self, shape: &[u64]) -> Result<Self> {
        self.check_axes(shape.len(), "the section")?;
        self.each_axis(shape, |axis, extent| Ok(axis.clip(*extent)))
    }

    /// The elements moved by `distance` along each axis.
    pub fn translate(&self, distance: &[i64]) -> Result<Self> {
        self.check_axes(distance.len(), "the section")?;
        self.each_axis(distance, |axis, by| axis.translate(*by))
    }

    /// The smallest section without strides that holds this one.
    pub fn bounding(&self) -> Result<Self> {
        Self::new(self.axes.iter().map(AxisSection::bounding).collect())
    }

    /// The elements at positions `from..to` along `axis`, all of them along
    /// the others.
    pub fn slice(&self, axis: usize, from: u64, to: u64) -> Self {
        let mut axes = self.axes.clone();
        axes[axis] = axes[axis].slice(from, to);
        let count = checked_product(axes.iter().map(AxisSection::count))
            .expect("a slice has at most as many elements as the whole");
        Self { axes, count }
    }

    /// The elements at the positions that `positions` takes along each axis,
    /// all of which must exist.
    pub fn select(&self, positions: &Self) -> Self {
        let pairs = self.axes.iter().zip(&positions.axes);
        let axes = pairs
            .map(|(axis, positions)| axis.select(positions))
            .collect();
        Self {
            axes,
            count: positions.count,
        }
    }

    fn check_axes(&self, expected: usize, what: &str) -> Result<()> {
        if self.axes.len() == expected {
            return Ok(());
        }
        Err(Error::AxisCount {
            what: format!("{what} [{self}]"),
            expected,
            found: self.axes.len(),
        })
    }

    fn each_axis<T>(
        &self,
        others: &[T],
        combine: impl Fn(&AxisSection, &T) -> Result<AxisSection>,
    ) -> Result<Self> {
        let pairs = self.axes.iter().zip(others);
        Self::new(
            pairs
                .map(|(axis, other)| combine(axis, other))
                .collect::<Result<_>>()?,
        )
    }
}

/// The NumPy style: `0:100:2, 3:4`.
impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, axis) in self.axes.iter().enumerate() {
            write!(f, "{}{axis}", if position == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_axes_is_one_element() {
        let scalar = Section::whole(&[]).unwrap();
        assert_eq!((scalar.count(), scalar.is_empty()), (1, false));
        assert!(scalar.contains(&[]));
    }

    #[test]
    fn an_empty_axis_empties_the_section() {
        let section = Section::whole(&[4, 0, u64::MAX]).unwrap();
        assert!(section.is_empty());
        assert_eq!(section.bounding().unwrap().count(), 0);
    }

    #[test]
    fn sections_outside_are_refused_with_axis_and_extent() {
        let section = Section::whole(&[4, 6]).unwrap();
        section.check_within(&[4, 6]).unwrap();
        let message = section.check_within(&[4, 5]).unwrap_err().to_string();
        assert!(
            message.contains("axis 1") && message.contains("4x5"),
            "{message}"
        );
        assert!(section.check_within(&[4]).is_err());
    }

    #[test]
    fn operations_work_axis_by_axis() {
        let a = Section::parse("0:10:2, 0:10:3", &[10, 10]).unwrap();
        let b = Section::parse("0:10:3, 3:10", &[10, 10]).unwrap();
        let both = a.intersect(&b).unwrap();
        assert_eq!(both.shape(), [2, 3]);
        assert_eq!(a.clip(&[3, 3]).unwrap().shape(), [2, 1]);
        assert_eq!(a.translate(&[1, 2]).unwrap().to_string(), "1:11:2, 2:12:3");
        assert_eq!(a.bounding().unwrap().to_string(), "0:9, 0:10");
        assert_eq!(a.slice(0, 1, 3).to_string(), "2:6:2, 0:10:3");
        assert!(Section::new(vec![AxisSection::span(0, 1 << 32); 2]).is_err());
    }
}
