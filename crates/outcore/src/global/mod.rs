//! What any rank does to the data of any other, at any time: global arrays in
//! memory, task pools, node arrays.

mod agreement;
mod arithmetic;
mod distant;
mod global_array;
mod nest;
mod node_array;
mod part;
mod patience;
mod places;
mod stretch;
mod task_pool;
mod whole_array;

pub use arithmetic::Arithmetic;
pub use global_array::{GlobalArray, Located};
pub use node_array::{BlockSource, NodeArray};
pub use task_pool::{Balance, TaskPool};
