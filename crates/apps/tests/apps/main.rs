//! The applications against oracles in memory.

mod arrays;
mod contract;
mod edge_sweep;
mod global_files;
mod laplace_kernel;
mod lines;
mod local_files;
mod matmul;
mod median_kernel;
mod memory;
mod stats;
