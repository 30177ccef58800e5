//! The heat equation by alternating directions (ADI) on arrays larger than
//! memory.
//!
//! The mathematics. With `r = a dt / h^2` and the second difference `D` along an
//! axis, a step of the Crank-Nicolson method along that axis takes `u` to
//!
//! ```text
//! (1 - r/2 D)^-1 (1 + r/2 D) u:
//! ```
//!
//! one tridiagonal system for each line, all with the same matrix. A time step
//! does this along every axis, one after the other; the next one in the opposite
//! order, which makes two steps symmetric and so accurate to the second order.
//! (On a rectangle whose edges are 0 the factors commute, and this is the method
//! of Peaceman and Rachford.) The outermost elements keep their values.
//!
//! The last axis of a step is the first of the next: both are done in one pass
//! over the file. So `t` steps on two axes are `t + 1` passes, not `2 t`.

mod heat;
mod kernel;

pub use heat::{Heat, heat_in_memory, solve_heat};
