//! What ranks do to one another's data without all of them taking part.

mod apart;
mod ground;
mod node_arrays;
mod procedure_call;
mod sections;
mod stress;
mod tasks;
mod whole_arrays;
