//! Distributed arrays in memory, and how they move between distributions.

mod arrays;
mod counts;
mod failures;
mod properties;
