//! The program `outcore` as its users see it: every test starts the binary.

mod alltoall;
mod applications;
mod bad_placement;
mod bad_usage;
mod collective;
mod commands;
mod convert;
mod crash;
mod explain;
mod formats;
mod full_disk;
mod launcher;
mod lines;
mod matmul;
mod memory;
mod names;
mod numpy;
mod oracle;
mod pipes;
mod program;
mod ranks;
mod relayout;
mod reproduce;
mod sections;
mod strategies;
mod text;
