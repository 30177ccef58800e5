//! Irregular reads and writes against an array in memory.

mod counts;
mod failures;
mod oracle;
mod parts;
mod properties;
mod saved;
mod take;
