//! What ranks do to one another's data without all of them taking part: procedure
//! calls, global arrays in memory, task pools, node arrays, arrays on the disks of many
//! ranks, files striped over them, and states on the disks of others. The protocol of
//! the calls is in the README beside this file.

mod agreement;
mod arithmetic;
mod disk_resident;
mod distant;
mod global_array;
mod nest;
mod node_array;
mod others_disks;
mod part;
mod patience;
mod placed;
mod places;
mod procedure_call;
mod shared_file;
mod stretch;
mod task_pool;
mod whole_array;

pub use arithmetic::Arithmetic;
pub use disk_resident::{
    Blocks, CacheCounts, DiskOptions, DiskResident, Disks, PendingGet, PendingPut, Spread,
    Unwritten,
};
pub use global_array::{GlobalArray, Located};
pub use node_array::{BlockSource, NodeArray};
pub use others_disks::{OthersDisks, State};
pub use placed::{MemoryLevels, Place, Placed};
pub use procedure_call::{
    Answer, Call, Procedure, ProcedureFault, Procedures, Reply, Request, Response, ServerOptions,
};
pub use shared_file::SharedFile;
pub use task_pool::{Balance, TaskPool};
