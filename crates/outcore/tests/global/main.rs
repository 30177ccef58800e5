//! What ranks do to one another without all of them taking part.

mod apart;
mod disk_faults;
mod disk_resident;
mod disk_transfer;
mod oracle;
mod others_disks;
mod procedure_call;
mod shared_file;
