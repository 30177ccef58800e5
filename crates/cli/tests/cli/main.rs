//! The program `outcore` as its users see it: every test starts the binary.

mod alltoall;
mod applications;
mod bad_placement;
mod bad_usage;
mod checkpoint;
mod collective;
mod commands;
mod containers;
mod contract;
mod convert;
mod crash;
mod edge_sweep;
mod explain;
mod formats;
mod full_disk;
mod irregular;
mod launcher;
mod lines;
mod matmul;
mod memory;
mod names;
mod numpy;
#[cfg(feature = "remote")]
mod object_stores;
mod oracle;
mod pipes;
mod program;
mod ranks;
mod redistribute;
mod relayout;
mod reproduce;
mod sections;
mod strategies;
mod text;
