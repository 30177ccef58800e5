//! Local placement, against an oracle in memory that knows where each element
//! belongs by index arithmetic alone.

mod descriptors;
mod failures;
mod oracle;
mod partitions;
mod properties;
mod sweeps;
