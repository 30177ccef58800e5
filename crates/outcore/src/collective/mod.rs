//! Collective reads and writes by the extended two-phase method (Thakur 1995,
//! chapter 6): strategies answer how one section moves, this answers how the
//! sections of all ranks move together. The protocol is in `README.md`.

mod account;
mod aggregate;
mod ahead;
mod beside;
mod body;
mod call;
mod choose;
mod coverage;
mod domains;
mod exchange_cost;
mod facts;
mod file_domains;
mod independent;
mod kind;
mod lent;
mod memory;
mod messages;
mod moved;
mod parties;
mod plan;
mod rehearse;
mod request;
#[cfg(test)]
mod scale;
mod schedule;
mod survey;
mod two_phase;
mod way;
mod weights;
mod winners;

pub use account::DomainAccount;
pub(crate) use beside::beside;
pub use call::{Carrier, Collective};
pub use choose::CollectiveEstimate;
pub use exchange_cost::ExchangeCost;
pub use kind::DomainKind;
pub(crate) use memory::least_memory;
pub(crate) use messages::{gone, leave_together};
pub use moved::Moved;
pub(crate) use moved::timed;
pub use plan::CollectivePlan;
pub use two_phase::Phases;
pub use way::CollectiveWay;
