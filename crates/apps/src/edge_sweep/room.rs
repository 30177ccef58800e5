//! [`Room`]: what the memory of a rank is for.
//!
//! | part | for |
//! |---|---|
//! | a sixteenth, at most 1 MiB | pieces of edges and nodes that are read and copied |
//! | a sixteenth, at most 1 MiB | a window of the nodes, where values of all ranks meet; a quarter if they come in messages |
//! | an eighth at most | what a schedule says about every window |
//! | before all, two chunks of each array that can be had only whole | as they are stored, and decoded |
//! | the rest | a slab: its edges, the numbers of its nodes, their schedule and values |
//!
//! A file of many nodes has larger windows, so that what is said about all of
//! them stays small. With `64` bytes a window, both bounds hold if the memory is
//! at least `128 sqrt(bytes of the nodes)`.

use outcore::{Array, Comm, MemoryBudget, Result};

use crate::resources::Resources;

/// Less makes no sense.
const LEAST: u64 = 64 << 10;

/// Windows and pieces are not larger without need.
const ENOUGH: u64 = 1 << 20;

/// What a schedule says about a window, at most.
const WINDOW_TABLE: u64 = 64;

/// What the memory of this rank is for, in bytes.
#[derive(Debug, Clone)]
pub(super) struct Room {
    /// For edges and nodes that are read or copied.
    pub(super) piece: u64,
    /// The records of a window.
    pub(super) window: u64,
    /// The memory of calls, as these want to hear it: of all ranks of the
    /// process.
    pub(super) calls: MemoryBudget,
    /// For slabs, with their tables.
    pub(super) slabs: u64,
    /// What a schedule says about windows.
    pub(super) tables: u64,
    /// What a schedule says about an element.
    pub(super) entry: u64,
    /// The values of a node.
    pub(super) record: u64,
}

impl Room {
    /// Collective: for sweeps over nodes like these, and what goes with them.
    pub(super) fn of(
        comm: &Comm,
        (nodes, others): (&Array, &[&Array]),
        resources: &Resources<'_>,
    ) -> Result<Self> {
        let record = nodes.shape()[1..].iter().product::<u64>();
        let record = record.saturating_mul(nodes.layout().element_size()).max(1);
        let bytes = nodes.shape()[0].saturating_mul(record);
        let shared = comm.transport().shares_memory();
        // A message has what one rank wants of a window, and all may want all.
        let parts = if shared { 1 } else { comm.size() as u64 + 2 };
        let tabled = 128.0 * (bytes as f64 * parts as f64).sqrt();
        let least = LEAST
            .max(tabled as u64 + 1)
            .max(record.saturating_mul(256 * parts));
        let of_nodes = nodes.decoded_bytes();
        let others = others.iter().map(|array| array.decoded_bytes());
        let chunks = others.fold(of_nodes, u64::saturating_add);
        let least = least.saturating_add(chunks);
        let budget = resources.enough(comm, "the sweep over edges", |_| least)?;
        let limit = budget.limit() - chunks;
        let room = Self::within(limit, (bytes, record), comm, parts);
        // A call divides its budget among the threads.
        let threads = if shared { comm.size() as u64 } else { 1 };
        let calls = of_nodes.saturating_mul(threads);
        Ok(Self {
            calls: MemoryBudget::of(room.calls.limit().saturating_add(calls)),
            ..room
        })
    }

    fn within(limit: u64, (bytes, record): (u64, u64), comm: &Comm, parts: u64) -> Self {
        let piece = (limit / 16).min(ENOUGH);
        // As large as tables ask for, which is less than the most.
        let wanted = bytes / (limit / (16 * WINDOW_TABLE)).max(1);
        let image = (limit / 16 / parts).min(wanted.max(ENOUGH)).max(record);
        let window = 1 << (image / record).ilog2();
        let tables = WINDOW_TABLE * (bytes / record).div_ceil(window);
        let (called, calls) = match parts {
            // A call divides its budget among the threads, and takes a quarter.
            1 => (image + image / 8, 4 * image * comm.size() as u64),
            _ => (limit / 4, limit / 4),
        };
        Self {
            piece,
            window,
            calls: MemoryBudget::of(calls),
            slabs: limit.saturating_sub(piece + called),
            tables,
            entry: if parts == 1 { 8 } else { 16 },
            record,
        }
    }
}
