//! PASSION's routines and what does their work here.
//!
//! PASSION (Thakur 1995, chapter 5) keeps the *out-of-core local array* of a
//! processor (OCLA) in a *local array file* (LAF), or the arrays of all in one
//! *global array file* (GAF), and computes on an *in-core local array* (ICLA).
//! Here a LAF is [`LocalArray::part`], a GAF any [`Array`], and an ICLA a
//! buffer of numbers, most easily the [`Tile`] that a [`Sweep`] hands out. The
//! *out-of-core array descriptor* (OCAD) is [`LocalArray::descriptor`], and
//! what it says of the ICLA is [`InCore`]; nobody has to fill it in.
//!
//! | table 5.1 | what it does | here |
//! |---|---|---|
//! | `PASSION_read` | reads an entire LAF into the ICLA | [`Array::read_into`] of [`Array::whole`], on [`LocalArray::part`] |
//! | `PASSION_write` | writes an entire ICLA to the LAF | [`Array::write`], likewise |
//! | `PASSION_read_section` | reads a regular section, by sieving | [`Array::read`] or [`Array::read_into`]; the cost model sieves where that is fastest, [`Strategy::Sieving`] forces it, [`Tuning::whole_slices`] is the thesis' very form |
//! | `PASSION_write_section` | writes a regular section, by sieving | [`Array::write`], likewise |
//! | `PASSION_read_prefetch` | begins to read a section | [`Array::prefetch`]; in a loop [`Array::sweep`] does it by itself |
//! | `PASSION_prefetch_wait` | waits for it | [`Prefetch::wait`]; [`Prefetch::is_ready`] asks without waiting |
//! | `PASSION_read_reuse` | reads a section, reusing what is in memory | [`Array::sweep`] with a halo, or [`SweepPlan::reuse`] |
//! | `PASSION_global_read` | reads sections of a GAF collectively | not there yet: each rank reads its own by [`Array::read`] |
//! | `PASSION_global_write` | writes sections of a GAF collectively | not there yet: each rank writes its own by [`Array::write`] |
//! | `PASSION_oc_shift` | neighbours' boundaries into overlap areas | [`LocalArray::shift`]; [`LocalArray::exchange_overlap`] for all axes and corners |
//! | `PASSION_oc_multicast` | one processor's data to several | [`LocalArray::multicast`] |
//!
//! What stands beside the table in the thesis: the slab loop is
//! [`LocalArray::slabs`] or a [`Sweep`] of the part, whose results
//! [`WriteBehind`] writes in the background; local arrays are made from a global
//! one by [`LocalArray::load`] and put back by [`LocalArray::store`]; the
//! partitioned in-core model is [`Partitions`].
//!
//! # Prefetching by hand
//!
//! The next slab is read while the current one is computed on:
//!
//! ```
//! use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget};
//! # let directory = tempfile::tempdir()?;
//! # let name = directory.path().join("a.oc");
//! # let name = name.to_str().unwrap();
//! let array = Array::create(name, &ArrayDescriptor::new(&[64, 100], ElementType::F64))?;
//! array.write(&array.whole(), &vec![1.0; 6400])?;
//! let budget = MemoryBudget::of(1 << 20);
//! let slab = |k: u64| array.whole().slice(0, 16 * k, 16 * (k + 1));
//!
//! let mut next = array.prefetch::<f64>(&slab(0), &budget)?;        // PASSION_read_prefetch
//! let mut sum = 0.0;
//! for k in 0..4 {
//!     let current = next.wait()?;                                   // PASSION_prefetch_wait
//!     next = array.prefetch(&slab((k + 1).min(3)), &budget)?;
//!     sum += current.iter().sum::<f64>();
//! }
//! assert_eq!(sum, 6400.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reuse
//!
//! Slabs with a halo of a row above and below share two rows with the next
//! slab. These are moved in memory: every row is read from the file once, as
//! the count of bytes shows.
//!
//! ```
//! use std::sync::Arc;
//! use outcore::storage::{CountedStore, MemoryStore, Store};
//! use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget, SweepOrder};
//! let store = Arc::new(CountedStore::new(MemoryStore::from(vec![0; 64 * 100 * 4])));
//! let descriptor = ArrayDescriptor::new(&[64, 100], ElementType::F32);
//! let array = Array::in_store("counted", &descriptor, store.clone())?;
//!
//! let budget = MemoryBudget::of(16 << 10);
//! let mut tiles = 0;
//! for tile in array.sweep::<f32>(SweepOrder::Slabs, &[1, 0], &budget)? {
//!     let tile = tile?;
//!     let (all, own) = (tile.section().count(), tile.core().count());
//!     assert!(all > own, "the tile has its neighbours' rows as well");
//!     tiles += 1;
//! }
//! assert!(tiles > 1);
//! assert_eq!(store.counts().bytes_read, 64 * 100 * 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Shift and multicast
//!
//! Columns are dealt out in blocks of two, CYCLIC(2), and each block has room
//! for one column of either neighbour, so its boundaries travel from file to
//! file. Then rank 0 sends its first column to everybody.
//!
//! ```
//! use outcore::{ArrayDescriptor, Boundary, Distribution, ElementType, LocalArray, LocalPlacement};
//! # let directory = tempfile::tempdir()?;
//! # let name = directory.path().join("a.oc");
//! # let name = name.to_str().unwrap();
//! outcore::run(3, |comm| {
//!     let shape = [4, 12];
//!     let distribution = Distribution::parse("*,cyclic(2)", &shape, 3, None).unwrap();
//!     let placement = LocalPlacement::new(distribution).overlap(&[(0, 0), (1, 1)]);
//!     let descriptor = ArrayDescriptor::new(&shape, ElementType::F64);
//!     let array = LocalArray::create_all(comm, name, &descriptor, &placement)?;
//!     let part = array.part();
//!     part.write(&array.owned(), &vec![comm.rank() as f64; 16])?;
//!
//!     // Each of the two blocks in the file: overlap, two columns, overlap.
//!     array.shift(comm, 1, 1, Boundary::Circular)?;                 // PASSION_oc_shift
//!     let (before, own) = (((comm.rank() + 2) % 3) as f64, comm.rank() as f64);
//!     let after = ((comm.rank() + 1) % 3) as f64;
//!     let row: Vec<f64> = part.read(&part.section("2, :")?)?;
//!     assert_eq!(row, [before, own, own, after, before, own, own, after]);
//!
//!     let (from, into) = (part.section(":, 1")?, part.section(":, 6")?);
//!     array.multicast(comm, 0, &from, &[1, 2], &into)?;             // PASSION_oc_multicast
//!     let got: Vec<f64> = part.read(&into)?;
//!     assert_eq!(got, [0.0; 4]);
//!     Ok::<(), outcore::Error>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[allow(unused_imports, reason = "named in the documentation")]
use crate::{
    Array, InCore, LocalArray, Partitions, Prefetch, Strategy, Sweep, SweepPlan, Tile, Tuning,
    WriteBehind,
};
