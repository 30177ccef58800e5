//! From everybody something different for everybody: the algorithms of Thakur
//! 1995, chapter 4, Bruck's, and those through memory that ranks share.
//!
//! `algorithm` names them; a file each says who talks to whom in which step, as
//! a pure function (`schedule` puts them together); `run` carries a schedule
//! out; `calls` has what programs call; `choose` picks the fastest; [`model`] is
//! what they cost on the networks of the thesis. When which one pays is in the
//! README beside this file.

mod algorithm;
mod bex;
mod bruck;
mod calls;
mod choose;
mod general;
mod ipex;
mod lex;
pub mod model;
mod pex;
mod pex_gen;
mod pex_gen_shift;
mod rex;
mod run;
mod schedule;

use calls::Parts;

pub use algorithm::AllToAll;
pub use choose::AllToAllCost;
pub use schedule::{Block, Mesh, Parcel, Step, mesh, steps};
