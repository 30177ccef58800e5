//! Applications on arrays larger than memory, each as a kernel in memory and
//! as a pass over files by many ranks.
//!
//! | module | what |
//! |---|---|
//! | [`median`] | the median of a window around each element |
//! | [`laplace`] | Jacobi sweeps for Laplace's equation, several fused into one pass |
//! | [`fft`] | Fourier transforms along any axes |
//! | [`adi`] | the heat equation by alternating directions |
//! | [`edge_sweep`] | flow along the edges of an unstructured mesh |
//! | [`contract`](mod@contract) | contractions of block-sparse tensors, block by block |
//! | [`matmul`] | products of matrices, block by block or in the papers' GAXPY form |
//! | [`stats`](mod@stats) | count, extremes, sum, mean, deviation, histogram; along axes |
//! | [`diff`](mod@diff) | where and by how much two arrays differ |
//!
//! The kernels work on dense blocks in the file's own axis order, slowest axis
//! first, whatever the layout of the array is.

mod block;
mod cores;
mod cpu;
mod file_order;
mod fit;
mod float;

pub mod adi;
pub mod contract;
pub mod diff;
pub mod edge_sweep;
pub mod fft;
pub mod laplace;
mod lines;
pub mod matmul;
pub mod median;
mod overlap;
mod part;
mod resources;
mod slab_writer;
pub mod stats;

pub use block::Block;
pub use float::Float;
pub use part::Part;
pub use resources::Resources;
