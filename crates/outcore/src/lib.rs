//! Arrays larger than memory, on one machine by default and on a cluster
//! under MPI without changing the program.
//!
//! An [`Array`] is a file or directory on disk. Any strided [`Section`] of it
//! is read into memory or written from there, by one rank or by many at once;
//! [`run`] starts the ranks.
//!
//! ```
//! use outcore::{Array, ArrayDescriptor, ElementType};
//!
//! # let directory = tempfile::tempdir()?;
//! # let name = directory.path().join("field.oc");
//! # let name = name.to_str().unwrap();
//! outcore::run(4, |comm| {
//!     let descriptor = ArrayDescriptor::new(&[512, 512], ElementType::F64);
//!     let array = Array::create_all(comm, name, &descriptor)?;
//!
//!     // Each rank writes every fourth row ...
//!     let pattern: outcore::Pattern = "p::N, :".parse().unwrap();
//!     let mine = pattern.section(array.shape(), comm.rank() as u64, comm.size() as u64).unwrap();
//!     array.write(&mine, &vec![comm.rank() as f64; mine.count() as usize])?;
//!     comm.barrier()?;
//!
//!     // ... and reads one column.
//!     let column: Vec<f64> = array.read(&array.section(":, 7")?)?;
//!     assert!(column.iter().enumerate().all(|(row, value)| *value == (row % 4) as f64));
//!     Ok::<(), outcore::Error>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Who knows PASSION finds each of its routines in [`passion`].

mod array;
mod bits;
mod budget;
mod bytes;
mod checkpoint;
mod codec;
mod collective;
mod container;
mod convert;
mod descriptor;
mod distinct;
mod distributed;
mod draft;
mod element;
mod error;
mod execute;
mod existing;
mod fill;
mod format;
mod freed;
mod fresh;
mod global;
mod hidden_name;
mod identity;
mod interrupt;
mod irregular;
pub mod passion;
mod placement;
mod plan;
mod redistribute;
mod relayout;
mod reorder;
mod resident;
mod run;
mod scratch;
mod stored;
mod strategy;
mod sweep;
mod verify;

pub use array::Array;
pub use budget::{MemoryBudget, Reservation};
pub use bytes::bytes_text;
pub use checkpoint::{
    Checkpoint, CheckpointEntry, Checkpoints, Damage, Savable, Saved, SavedArray, Scattered,
    Snapshot,
};
pub use codec::{Blosc, BloscCompressor, BloscShuffle, Codec, Codecs};
pub use collective::{
    Carrier, Collective, CollectiveEstimate, CollectivePlan, CollectiveWay, DomainAccount,
    DomainKind, ExchangeCost, Moved, Phases,
};
pub use container::{Filling, create_groups};
pub use convert::{Fit, convert};
pub use descriptor::{ArrayDescriptor, Stripes};
pub use distinct::distinct;
pub use distributed::DistributedArray;
pub use draft::{Draft, SharedDraft};
pub use element::{ByteOrder, Element, ElementType};
pub use error::{Error, Result};
pub use fill::Fill;
pub use format::value::json_number;
pub use format::{Item, format_of_new, list};
pub use freed::return_freed_memory;
pub use global::{
    Answer, Arithmetic, Balance, BlockSource, Blocks, CacheCounts, Call, DiskOptions, DiskResident,
    Disks, GlobalArray, Located, MemoryLevels, NodeArray, OthersDisks, PendingGet, PendingPut,
    Place, Placed, Procedure, ProcedureFault, Procedures, Reply, Request, Response, ServerOptions,
    SharedFile, Spread, State, TaskPool, Unwritten,
};
pub use half::f16;
pub use hidden_name::hidden_name;
pub use interrupt::{interrupted, stop_on_signals};
pub use irregular::{
    Combine, Groups, Indices, Inspector, Irregular, Localized, Number, PipelineModel,
    PipelineStorage, Schedule, Variable,
};
pub use num_complex::Complex;
pub use outcore_geometry::{
    AlignedDistribution, Alignment, Arrangement, AxisDistribution, AxisSection, Distribution,
    Error as GeometryError, Layout, Order, Pattern, Pieces, Run, Runs, Section, TemplateAxis,
    divide, parse_shape, shape_text,
};
pub use outcore_storage as storage;
pub use outcore_transport::{
    AllToAll, AllToAllCost, Comm, Error as TransportError, Exchange, Op, all_to_all,
};
pub use placement::{
    Block, Boundary, InCore, LocalArray, LocalDescriptor, LocalDraft, LocalPlacement, Partition,
    Partitions, Share,
};
pub use plan::Plan;
pub use redistribute::{Arrival, RedistributionMethod, RedistributionPlan, Transfer};
pub use relayout::{Relayout, RelayoutJob, RelayoutOutput};
pub use reorder::reorder;
pub use resident::PeakMemory;
pub use run::{check_launch, default_ranks, run, under_launcher};
pub use scratch::Scratch;
pub use stored::stored_bytes;
pub use strategy::choose::Estimate;
pub use strategy::profile::{Cost, StorageProfile};
pub use strategy::{Direction, Strategy, Tuning};
pub use sweep::{Prefetch, Sweep, SweepOrder, SweepPlan, Tile, WriteBehind, WriteBuffer};
pub use verify::{Checks, Fault, Problem, Verified, accept, verify};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/quick-start.md")]
struct QuickStart;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Library;
