//! Applications on arrays larger than memory, each as a kernel in memory and
//! as a pass over files by many ranks.
//!
//! | module | what |
//! |---|---|
//! | [`median`] | the median of a window around each element |
//! | [`laplace`] | Jacobi sweeps for Laplace's equation, several fused into one pass |
//!
//! The kernels work on dense blocks in the file's own axis order, slowest axis
//! first, whatever the layout of the array is.

mod block;
mod cpu;
mod file_order;
mod fit;

pub mod laplace;
pub mod median;
mod overlap;
mod resources;
mod slab_writer;

pub use block::Block;
pub use resources::Resources;
