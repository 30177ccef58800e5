//! What any rank does to the data of any other at any time: global arrays, task
//! pools, node arrays.

mod ground;
mod node_arrays;
mod sections;
mod stress;
mod tasks;
mod whole_arrays;
