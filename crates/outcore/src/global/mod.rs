//! What ranks do to one another without all of them taking part: procedure
//! calls, arrays on the disks of many ranks, files striped over them, and states on
//! the disks of others. The protocol of the calls is in the README beside this file.

mod disk_resident;
mod others_disks;
mod procedure_call;
mod shared_file;

pub use disk_resident::{
    Blocks, CacheCounts, DiskOptions, DiskResident, Disks, PendingGet, PendingPut, Spread,
    Unwritten,
};
pub use others_disks::{OthersDisks, State};
pub use procedure_call::{
    Answer, Call, Procedure, ProcedureFault, Procedures, Reply, Request, Response, ServerOptions,
};
pub use shared_file::SharedFile;
