//! Sections of an array by ranges in the axis order of its file.

use std::ops::Range;

use outcore::{Array, AxisSection, Error, Result, Section};

/// The section with these ranges along the axes of the file, slowest first.
pub(crate) fn section(array: &Array, ranges: &[Range<u64>]) -> Result<Section> {
    let mut axes = vec![AxisSection::span(0, 0); ranges.len()];
    for (axis, range) in array.layout().slowest_first().iter().zip(ranges) {
        axes[*axis] = AxisSection::span(range.start, range.end);
    }
    Section::new(axes).map_err(|error| Error::Invalid(format!("{}: {error}", array.name())))
}

/// The ranges of a section without strides, slowest axis first.
pub(crate) fn ranges(array: &Array, section: &Section) -> Vec<Range<u64>> {
    let bounds = |axis: &usize| {
        let (lower, upper) = section.axes()[*axis].bounds();
        lower..upper
    };
    array.layout().slowest_first().iter().map(bounds).collect()
}

/// Something for each axis, from the array's order to that of the file.
pub(crate) fn in_file_order<T: Clone>(array: &Array, of_axes: &[T]) -> Vec<T> {
    let order = array.layout().slowest_first().iter();
    order.map(|axis| of_axes[*axis].clone()).collect()
}

/// At most `length`, in whole tiles of the layout if it is that long.
pub(crate) fn whole_tiles_below(array: &Array, axis: usize, length: u64) -> u64 {
    match array.layout().tile() {
        Some(tile) if length >= tile[axis] => length / tile[axis] * tile[axis],
        _ => length,
    }
}

/// Fails unless both arrays have the same shape and type.
pub(crate) fn check_alike(source: &Array, target: &Array) -> Result<()> {
    if source.shape() == target.shape() && source.element_type() == target.element_type() {
        return Ok(());
    }
    let text = |array: &Array| {
        let shape = outcore::shape_text(array.shape());
        format!("{} ({shape} {})", array.name(), array.element_type())
    };
    Err(Error::Invalid(format!(
        "the result {} must have the shape and type of {}",
        text(target),
        text(source)
    )))
}
