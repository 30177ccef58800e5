//! How fast outcore is, beside the limits of the machine and other systems.
//!
//! A bench is a function that returns [`Line`]s, one a contestant. Contestants
//! of one case take turns ([`contest()`]), so that a machine that wanders
//! treats them alike; the limits (plain `pread`, `memcpy`) are contestants too.

mod alltoall;
mod alltoall_model;
mod apps;
mod collective;
mod contest;
mod contract;
mod disk_resident;
mod edges;
mod exchange;
mod fft;
mod files;
mod geometry;
mod global;
mod gpc;
mod io;
mod irregular;
mod library;
mod line;
mod matmul;
mod object_server;
mod papers;
mod peers;
mod python_peer;
mod redistribute;
#[cfg(feature = "remote")]
mod remote;
mod reproduce;
mod section_peers;
mod sections;
mod simulated;
mod sweep;
mod transpose;

pub use alltoall::{AllToAllOptions, all_to_all, all_to_all_summary};
pub use alltoall_model::{AllToAllEntry, Modelled, all_to_all_model, all_to_all_tables};
pub use apps::{AppsCase, AppsOptions, apps};
pub use collective::{
    CollectiveOptions, Measured, Way, collective, collective_summary, launch, papers_cases,
};
pub use contest::{Contestant, contest};
pub use contract::{ContractOptions, contract, contract_claims, contract_summary};
pub use disk_resident::{DiskResidentOptions, disk_resident};
pub use global::{GlobalOptions, global, global_peers, global_summary};
pub use gpc::{GpcOptions, gpc, gpc_summary};
pub use io::{IoOptions, io};
pub use irregular::{
    IrregularOptions, TakeOptions, irregular, irregular_pipeline, irregular_scaling, irregular_take,
};
pub use line::{Line, csv, table};
pub use object_server::{Fault, ObjectServer};
pub use redistribute::{RedistributeCase, RedistributeOptions, redistribute};
#[cfg(feature = "remote")]
pub use remote::{RemoteOptions, remote};
pub use reproduce::{Agreement, Claim, Report, Table, Value, Verdict, reproduce};
pub use section_peers::{SectionPeersOptions, section_peers};
pub use sections::{SectionsOptions, sections, summary};
pub use simulated::{DEVICES, device};
pub use sweep::{SweepOptions, sweep};
pub use transpose::{TransposeOptions, transpose};
