//! [`Plane`]: the two axes of an array that are drawn, and how densely
//! sections fill them.
//!
//! A section is a product of axes, so the share of its elements in a box of
//! the plane is the product of the shares along the two axes: nothing is
//! walked, whatever the size of the array.

use outcore::Section;

/// The axes that are drawn: one down the page, one across.
pub(crate) struct Plane {
    down: Option<usize>,
    across: Option<usize>,
    axes: usize,
    /// The extent down.
    pub(crate) rows: u64,
    /// The extent across.
    pub(crate) columns: u64,
}

impl Plane {
    /// The last two axes of equal length, or else the two longest.
    pub(crate) fn of(shape: &[u64]) -> Self {
        let mut longest: Vec<usize> = (0..shape.len()).rev().collect();
        longest.sort_by_key(|axis| std::cmp::Reverse(shape[*axis]));
        longest.truncate(2);
        longest.sort_unstable();
        let across = longest.pop();
        let down = longest.pop();
        let extent = |axis: Option<usize>| axis.map_or(1, |axis| shape[axis]);
        Self {
            down,
            across,
            axes: shape.len(),
            rows: extent(down),
            columns: extent(across),
        }
    }

    /// Which axes these are, if there are others.
    pub(crate) fn caption(&self) -> Option<String> {
        match (self.down, self.across) {
            (Some(down), Some(across)) if self.axes > 2 => Some(format!(
                "axis {down} down, axis {across} across, of {} axes",
                self.axes
            )),
            _ => None,
        }
    }

    /// The arrow of an axis, or its number if it is not drawn.
    pub(crate) fn direction(&self, axis: usize) -> String {
        if Some(axis) == self.across {
            format!("axis {axis} (across)")
        } else if Some(axis) == self.down {
            format!("axis {axis} (down)")
        } else {
            format!("axis {axis}")
        }
    }

    /// Whether an axis is drawn across, or down; nothing if it is not drawn.
    pub(crate) fn is_across(&self, axis: usize) -> Option<bool> {
        match Some(axis) {
            axis if axis == self.across => Some(true),
            axis if axis == self.down => Some(false),
            _ => None,
        }
    }

    /// The share of `bins` equal parts of each axis that the section takes:
    /// down, and across.
    pub(crate) fn shares(&self, section: &Section, bins: (u64, u64)) -> (Vec<f64>, Vec<f64>) {
        let down = shares(section, self.down, self.rows, bins.0);
        (down, shares(section, self.across, self.columns, bins.1))
    }

    /// The first row and column of a section that is not empty.
    pub(crate) fn first(&self, section: &Section) -> (u64, u64) {
        let first = |axis: Option<usize>| {
            let taken = axis.and_then(|axis| section.axes()[axis].first());
            taken.unwrap_or(0)
        };
        (first(self.down), first(self.across))
    }

    /// The strides of a section, down and across; 1 for lists.
    pub(crate) fn strides(&self, section: &Section) -> (u64, u64) {
        let stride = |axis: Option<usize>| {
            let stride = axis.and_then(|axis| section.axes()[axis].stride());
            stride.unwrap_or(1)
        };
        (stride(self.down), stride(self.across))
    }

    /// The index of the element of the plane through `corner`.
    pub(crate) fn index(&self, corner: &[u64], row: u64, column: u64) -> Vec<u64> {
        let mut index = corner.to_vec();
        if let Some(axis) = self.down {
            index[axis] = row;
        }
        if let Some(axis) = self.across {
            index[axis] = column;
        }
        index
    }
}

/// Where part `at` of `parts` of `extent` begins.
pub(crate) fn start(extent: u64, parts: u64, at: u64) -> u64 {
    (u128::from(extent) * u128::from(at) / u128::from(parts.max(1))) as u64
}

fn shares(section: &Section, axis: Option<usize>, extent: u64, parts: u64) -> Vec<f64> {
    let part = |at: u64| {
        let (from, to) = (start(extent, parts, at), start(extent, parts, at + 1));
        let Some(axis) = axis else {
            return f64::from(u8::from(!section.is_empty()));
        };
        if section.is_empty() || to <= from {
            return 0.0;
        }
        let taken = &section.axes()[axis];
        (taken.count_below(to) - taken.count_below(from)) as f64 / (to - from) as f64
    };
    (0..parts).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axes_that_show_most() {
        let axes = |shape: &[u64]| {
            let plane = Plane::of(shape);
            (plane.down, plane.across, plane.rows, plane.columns)
        };
        assert_eq!(axes(&[]), (None, None, 1, 1));
        assert_eq!(axes(&[7]), (None, Some(0), 1, 7));
        assert_eq!(axes(&[7, 5]), (Some(0), Some(1), 7, 5));
        assert_eq!(axes(&[9, 3, 9]), (Some(0), Some(2), 9, 9));
        assert_eq!(axes(&[4, 4, 4]), (Some(1), Some(2), 4, 4));
        assert_eq!(
            Plane::of(&[4, 4, 4]).caption().unwrap(),
            "axis 1 down, axis 2 across, of 3 axes"
        );
    }

    #[test]
    fn shares_of_bins() {
        let section = Section::parse("::4, 8:", &[16, 16]).unwrap();
        let (down, across) = Plane::of(&[16, 16]).shares(&section, (4, 2));
        assert_eq!(down, [0.25; 4]);
        assert_eq!(across, [0.0, 1.0]);
        let wide = Section::whole(&[u64::MAX >> 1]).unwrap();
        let (_, across) = Plane::of(&[u64::MAX >> 1]).shares(&wide, (1, 100));
        assert!(across.iter().all(|share| *share == 1.0));
    }
}
