//! Outputs that are described by their names ('raw:...'), so that the description may be of
//! something else than what is written.

use outcore::{Array, ArrayDescriptor, Error, Result, shape_text};

/// Fails unless the new array `target`, named `output`, is for what `wanted` describes.
pub(crate) fn check_described(
    target: &Array,
    output: &str,
    wanted: &ArrayDescriptor,
) -> Result<()> {
    let as_wanted = target.shape() == wanted.shape && target.element_type() == wanted.element_type;
    match as_wanted {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "{output} is described as {} {}, but what is written is {} {}; describe that",
            shape_text(target.shape()),
            target.element_type(),
            shape_text(&wanted.shape),
            wanted.element_type
        ))),
    }
}
