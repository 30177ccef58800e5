//! Sweeps against an oracle in memory: every tile holds what the array holds,
//! every element is read once, and nothing hangs when storage fails.

mod arrays;
mod budgets;
mod failures;
mod prefetch;
mod tiles;
mod virtual_time;
mod write_behind;
