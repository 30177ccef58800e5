//! [`Plane`]: the two axes of a section that a picture shows.

use outcore::{Array, AxisSection, Error, Result, Section};

/// A section of which at most two axes are longer than one.
pub(super) struct Plane {
    section: Section,
    /// Downwards and to the right; none if there are fewer axes.
    rows: Option<usize>,
    columns: Option<usize>,
    /// Whether rows are slower in the file than columns.
    by_rows: bool,
    /// Which axes were longer, with their extents.
    cut: Vec<(usize, u64)>,
}

impl Plane {
    /// The last two axes of `section` that are longer than one, at the first
    /// index of the others.
    pub(super) fn of(array: &Array, section: &Section) -> Result<Self> {
        let shape = section.shape();
        if let Some(axis) = shape.iter().position(|extent| *extent == 0) {
            return Err(Error::Invalid(format!(
                "{}: there is nothing to see in [{section}]: axis {axis} is empty",
                array.name()
            )));
        }
        // Long axes first, then the last ones, so that a row is a row.
        let long = |axis: &usize| shape[*axis] > 1;
        let short = |axis: &usize| shape[*axis] == 1;
        let axes = || (0..shape.len()).rev();
        let mut shown: Vec<usize> = axes().filter(long).chain(axes().filter(short)).collect();
        shown.truncate(2);
        shown.sort_unstable();
        let others = (0..shape.len()).filter(|axis| !shown.contains(axis) && shape[*axis] > 1);
        let cut: Vec<(usize, u64)> = others.map(|axis| (axis, shape[axis])).collect();
        let first = |section: Section, (axis, _): &(usize, u64)| section.slice(*axis, 0, 1);
        let section = cut.iter().fold(section.clone(), first);
        let columns = shown.pop();
        let rows = shown.pop();
        let place = |wanted: Option<usize>| {
            let mut order = array.layout().slowest_first().iter();
            order.position(|axis| Some(*axis) == wanted)
        };
        Ok(Self {
            by_rows: place(rows) <= place(columns),
            section,
            rows,
            columns,
            cut,
        })
    }

    /// Of which axes only the first index is shown.
    pub(super) fn note(&self) -> String {
        let note =
            |(axis, extent): &(usize, u64)| format!(", the first of {extent} on axis {axis}");
        self.cut.iter().map(note).collect()
    }

    pub(super) fn section(&self) -> &Section {
        &self.section
    }

    /// How many rows and columns there are.
    pub(super) fn extents(&self) -> (u64, u64) {
        let shape = self.section.shape();
        let extent = |axis: Option<usize>| axis.map_or(1, |axis| shape[axis]);
        (extent(self.rows), extent(self.columns))
    }

    /// Every so many-th row and column.
    pub(super) fn strided(&self, (down, across): (u64, u64)) -> Result<Section> {
        let shape = self.section.shape();
        let wrong = |error: outcore::GeometryError| Error::Invalid(error.to_string());
        let positions = (0..shape.len()).map(|axis| {
            let stride = match Some(axis) {
                here if here == self.rows => down,
                here if here == self.columns => across,
                _ => 1,
            };
            AxisSection::range(0, shape[axis], stride)
        });
        let positions: Result<Vec<AxisSection>, _> = positions.collect();
        let positions = Section::new(positions.map_err(wrong)?).map_err(wrong)?;
        Ok(self.section.select(&positions))
    }

    /// The first row, the first column, and how many of them a piece of the
    /// positions of a section of this plane has.
    pub(super) fn part(&self, piece: &Section) -> Part {
        let bounds = |axis: Option<usize>| axis.map_or((0, 1), |axis| piece.axes()[axis].bounds());
        let (rows, columns) = (bounds(self.rows), bounds(self.columns));
        let extents = (rows.1 - rows.0, columns.1 - columns.0);
        Part {
            first: (rows.0, columns.0),
            strides: if self.by_rows {
                (extents.1, 1)
            } else {
                (1, extents.0)
            },
            extents,
        }
    }
}

/// A box of the plane, as it stands in a buffer.
pub(super) struct Part {
    /// Row and column of the first element.
    pub(super) first: (u64, u64),
    /// The number of rows and columns.
    pub(super) extents: (u64, u64),
    /// From one row to the next, and from one column to the next.
    pub(super) strides: (u64, u64),
}
