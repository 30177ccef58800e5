//! Collective reads and writes against an array in memory.

mod failures;
mod oracle;
mod properties;
