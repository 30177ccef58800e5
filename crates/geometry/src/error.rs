//! What can be wrong with a section, a layout or a distribution.

/// The result of a geometry call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can be wrong with a section, a layout or a distribution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text could not be read.
    #[error("cannot read {what} '{text}' at character {position}: {problem}", position = position + 1)]
    Text {
        /// What the text should have been: a section, a shape, a layout.
        what: &'static str,
        /// The whole text.
        text: String,
        /// Where reading stopped, in characters from 0.
        position: usize,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A section reaches outside its array.
    #[error("axis {axis} of section [{section}] reaches index {index}, but the array's shape is {shape}: the last index there is {last}", last = last.map_or("none (the axis is empty)".into(), |l| l.to_string()))]
    OutOfRange {
        /// The section, as text.
        section: String,
        /// The axis, counted from 0.
        axis: usize,
        /// The offending index, 0-based.
        index: i128,
        /// The array's shape, as text.
        shape: String,
        /// The last valid index of the axis.
        last: Option<u64>,
    },
    /// Two things with different numbers of axes.
    #[error("{what} has {found} axes where {expected} are needed")]
    AxisCount {
        /// What has the wrong number of axes.
        what: String,
        /// The number needed.
        expected: usize,
        /// The number found.
        found: usize,
    },
    /// A value that is not allowed.
    #[error("{0}")]
    Invalid(String),
    /// A product or sum that does not fit into 64 bits.
    #[error("{0} does not fit into 63 bits: the largest array has 2^63 - 1 bytes")]
    Overflow(String),
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}
