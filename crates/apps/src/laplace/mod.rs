//! Laplace's equation by Jacobi sweeps: each element becomes the average of its
//! neighbours, two along each axis (Thakur 1995, figure 5.3).
//!
//! Several sweeps are fused into one pass over the array (a front of planes,
//! see `wavefront.rs`), so that an array larger than memory is read and
//! written once for many sweeps. The edges of the array keep their values, or
//! are joined to the opposite ones.

mod average;
mod collective;
mod global;
mod grid;
mod local;
mod pass;
mod passes;
mod problem;
mod region;
mod stencil;
mod wavefront;

pub use collective::solve_together;
pub use global::solve;
pub use grid::{Edges, Grid, relax};
pub use local::solve_local;
pub use problem::{Problem, Solution};
