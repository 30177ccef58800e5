//! An edge-based sweep over an unstructured mesh whose nodes and edges are
//! larger than memory (No and Choudhary 1998, figure 2).
//!
//! The mathematics. A mesh has `n` nodes, each with values `x`, and `m` edges,
//! each of which joins two nodes. In a step, something flows along every edge
//! from the higher to the lower value:
//!
//! ```text
//! for each edge (a, b):   f = s (x[b] - x[a]);   y[a] += f;   y[b] -= f
//! ```
//!
//! where `y` begins as `x` and is `x` in the next step: the heat equation on a
//! graph, in explicit steps of the length `s`. What one end gets the other one
//! loses, so the sum of all values stays. Steps are stable if `s` times the
//! most edges of a node is at most 1.
//!
//! The nodes of an edge may stand anywhere, so `x` and `y` are read and changed
//! through indices. Each rank has a stretch of the edges and goes through it in
//! slabs that fit its memory:
//!
//! ```text
//! edges -> numbers   the nodes of a slab, each once, get local numbers    localizer.rs
//!  -> Schedule       where these nodes stand, told to all                 slab.rs
//!  -> read           x of these nodes, by all ranks together
//!  -> flow           over the edges of the slab, in memory                kernel.rs
//!  -> accumulate     what flows is added to y, by all ranks together
//! ```
//!
//! If the slabs of all edges fit the memory together, numbers and schedules are
//! made once; otherwise in every step. Memory is bounded by slabs, whatever the
//! numbers of nodes and edges are (`room.rs`). The values after some of the steps
//! can be saved, and any number of ranks can go on from there (`checkpoint.rs`).

mod checkpoint;
mod copy;
mod kernel;
mod localizer;
mod mesh;
mod problem;
mod reader;
mod room;
mod slab;
mod sweep;

pub use checkpoint::SweepCheckpoints;
pub use copy::copy_nodes;
pub use kernel::sweep_in_memory;
pub use mesh::Mesh;
pub use problem::{EdgeSweep, Swept, check_mesh};
pub use sweep::sweep_edges;
