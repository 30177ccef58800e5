//! The median filter: each element becomes the median of the window around it
//! (Thakur 1995, section 5.5.2).
//!
//! The window has an odd extent along each axis; beyond the edges of the array
//! the nearest element counts. Any type with an order will do; floats are
//! ordered by IEEE 754's total order, so a NaN counts as larger than everything
//! (one with the sign bit set, as smaller).

mod global;
mod histogram;
mod kernel;
mod key;
mod local;
mod network;
mod pass;
mod pool;
mod row;
mod window;

pub use global::filter;
pub use kernel::MedianKernel;
pub use key::{Key, Real};
pub use local::filter_local;
pub use window::Window;
