//! What ranks do to one another's data without all of them taking part.

mod apart;
mod disk_faults;
mod disk_resident;
mod disk_transfer;
mod ground;
mod groups;
mod node_arrays;
mod oracle;
mod others_disks;
mod placed;
mod procedure_call;
mod sections;
mod shared_file;
mod stress;
mod tasks;
mod whole_arrays;
