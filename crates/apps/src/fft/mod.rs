//! Discrete Fourier transforms of arrays larger than memory, along any axes.
//!
//! Each pass over the files transforms the lines along one axis, or along as
//! many as fit the memory together (Thakur 1995, section 3.9: transforms along
//! the rows, a redistribution, transforms along the columns). The first pass
//! reads the input, the others what the one before has written, in place.
//!
//! Forward transforms are not scaled, inverse ones by one over the number of
//! elements of a transform; so both together give the input.

mod kernel;
mod memory;
mod sample;
mod transform;

pub use memory::transform_in_memory;
pub use sample::{FftFloat, Sample, spectrum_type};
pub use transform::{Fourier, transform};
