//! What ranks do to one another's data without all of them taking part: procedure
//! calls, global arrays in memory, task pools, node arrays. The protocol of the
//! calls is in the README beside this file.

mod agreement;
mod arithmetic;
mod distant;
mod global_array;
mod nest;
mod node_array;
mod part;
mod patience;
mod places;
mod procedure_call;
mod stretch;
mod task_pool;
mod whole_array;

pub use arithmetic::Arithmetic;
pub use global_array::{GlobalArray, Located};
pub use node_array::{BlockSource, NodeArray};
pub use procedure_call::{
    Answer, Call, Procedure, ProcedureFault, Procedures, Reply, Request, Response, ServerOptions,
};
pub use task_pool::{Balance, TaskPool};
