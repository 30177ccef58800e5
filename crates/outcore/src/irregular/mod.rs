//! Elements at listed places: each rank has an index array that says where its
//! elements stand in the global array, in any order, and all ranks read or write
//! them together (No, Park, Carretero, Choudhary and Chen 1998).
//!
//! An [`Inspector`] turns the indices of all ranks into a [`Schedule`], which is
//! carried out as often as wanted. The file is cut into windows; each rank reads
//! and writes some of them for all, in long requests, and elements are copied
//! between windows and values. The protocol is in `README.md`.

mod call;
mod combine;
mod fetched;
mod indices;
mod inspector;
mod lists;
mod messages;
mod packed;
mod parts;
mod pipeline;
mod places;
mod saved;
mod schedule;
mod take;
mod variable;
mod window;
mod windows;

pub use call::Irregular;
pub use combine::{Combine, Number};
pub use indices::Indices;
pub use inspector::Inspector;
pub use parts::Localized;
pub use pipeline::{Groups, PipelineModel, PipelineStorage};
pub use schedule::Schedule;
pub use variable::Variable;
