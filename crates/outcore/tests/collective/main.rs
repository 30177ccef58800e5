//! Collective reads and writes against an array in memory.

mod carriers;
mod counts;
mod failures;
mod many;
mod oracle;
mod properties;
mod ways;
