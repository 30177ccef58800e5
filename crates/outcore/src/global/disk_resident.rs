//! [`DiskResident`]: an array on the disks of many ranks, of which any rank gets and
//! puts any section at any time.
//!
//! The elements are spread over parts ([`Spread`]); each part is an ordinary
//! [`Array`](crate::Array) in a directory of the rank that holds it, and that rank
//! alone changes its files. Others reach a part by procedure calls, served by the data
//! server of the holder while the holder computes; on the holder's own node they read the
//! files themselves if it keeps no cache. Nobody waits for a collective
//! call: elements on disk are used as if they were remote memory (the seed's disk
//! resident arrays; the papers' DRA, whose calls are collective).
//!
//! The path of a get:
//!
//! ```text
//! get(section)              check, items by part                  disk_resident/spread.rs
//!  -> ask the holders       in place, or procedure calls          disk_resident/moving.rs, link.rs
//!     or read their files   if they are on this node              disk_resident/near.rs
//!  -> Part::serve           through the cache, or straight        disk_resident/part.rs, cache.rs
//!  -> Array::read_bytes     plan, execute                         array.rs
//!  <- the caller's buffer   itself, if its stretch is one; else copied to its places
//! ```
//!
//! What is promised. A put has reached the holder when it returns; whoever gets the
//! elements afterwards sees it. Gets and puts of the same elements at the same time
//! may see and leave a mixture of both, element by element; accumulations never lose
//! one another. A failure at a holder (a full disk) is an error of the one call that
//! met it; all others go on.

mod accumulate;
mod boxes;
mod cache;
mod cells;
mod description;
mod epoch;
mod holder;
mod link;
mod moving;
mod near;
mod options;
mod part;
mod parts;
mod pending;
mod request;
mod spread;
mod transfer;
mod written;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError, RwLock};

use outcore_geometry::Section;
use outcore_transport::Comm;

use crate::array::Array;
use crate::budget::MemoryBudget;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::format::native::new_id;
use crate::global::agreement::same_on_all;
use crate::global::arithmetic::Arithmetic;
use crate::global::node_array::BlockSource;
use crate::global::procedure_call::Procedures;
use description::Description;
use epoch::ReaderCache;
use holder::Holder;
use link::Link;
use moving::{Groups, Moving};
use near::Near;
use parts::{Files, Found, Made, Unmade};
use request::Action;
use spread::NOBODY;

pub use cache::CacheCounts;
pub(crate) use link::once;
pub(crate) use parts::check_name;

pub use options::{DiskOptions, Disks, Unwritten};
pub use pending::{PendingGet, PendingPut};
pub use spread::{Blocks, Spread};

/// An array on the disks of many ranks.
///
/// Buffers are dense, the last axis fastest. The calls without a [`Comm`] are not
/// collective: any rank makes them at any time, from any thread.
///
/// ```
/// use outcore::{DiskOptions, DiskResident, Disks, Distribution, Procedures, Section};
/// # let directory = tempfile::tempdir()?;
/// # let disks = directory.path().join("{rank}");
/// # let disks = disks.to_str().unwrap();
/// outcore::run(3, |comm| {
///     let calls = Procedures::start(comm)?;
///     let shape = [100, 80];
///     let distribution = Distribution::parse("block,*", &shape, 3, None).expect("it fits");
///     let options = DiskOptions::new(Disks::pattern(disks));
///     let array = DiskResident::<f64>::create(comm, &calls, "field", distribution, &options)?;
///
///     // Rank 0 writes what others hold; all ranks add to it; rank 2 reads it.
///     let some = Section::parse("20:90:2, 5:9", &shape).expect("it lies inside");
///     if comm.rank() == 0 {
///         array.put(&some, &[1.0; 35 * 4])?;
///     }
///     comm.barrier()?;
///     array.accumulate(&some, &[2.0; 35 * 4], 0.5)?;
///     comm.barrier()?;
///     if comm.rank() == 2 {
///         let mut values = [0.0; 35 * 4];
///         array.get(&some, &mut values)?;
///         assert_eq!(values, [4.0; 35 * 4]);
///     }
///     array.close(comm)?;
///     calls.close()
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DiskResident<T> {
    inner: Arc<Inner>,
    element: PhantomData<T>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    spread: Arc<Spread>,
    block: Option<Vec<u64>>,
    link: Link,
    files: Vec<Files>,
    size: usize,
    /// In a read-only epoch: the blocks that this rank has read.
    epoch: RwLock<Option<Arc<ReaderCache>>>,
}

impl<T: Element> DiskResident<T> {
    /// Collective: makes an array of zeros. All ranks of `comm`, which must be those
    /// of `calls`, succeed, or all return the same error.
    pub fn create(
        comm: &Comm,
        calls: &Procedures,
        name: &str,
        spread: impl Into<Spread>,
        options: &DiskOptions,
    ) -> Result<Self> {
        let spread = spread.into();
        // 1. All agree on what is made.
        Procedures::check_group(Some(calls), comm)?;
        let mut id = new_id();
        comm.broadcast_string(0, &mut id)?;
        let element = T::TYPE.to_string();
        let (block, unwritten) = (options.block.clone(), options.unwritten);
        let description = Description::new(id, &spread, element, block, unwritten);
        let checked = check_name(name)
            .and_then(|()| description.check_block())
            .and_then(|()| {
                let holders = options.holders_of(spread.parts(), comm.size())?;
                Ok((description.to_text()?, holders))
            });
        let (text, holders) = comm.agree(checked)?;
        let differ = "the ranks do not mean the same disk-resident array: its name, type, spread, \
                      blocks or holders differ";
        same_on_all(comm, (name, text, &holders), differ)?;
        // 2. Holders make their parts, and give them their names when all are made.
        let own = holders_own(&holders, comm.rank());
        let begin = |part: &usize| {
            let rank = comm.rank();
            Unmade::begin((name, rank), *part, (&spread, &description), options)
        };
        let begun: Result<Vec<Unmade>> = own.iter().map(begin).collect();
        let begun = comm.agree(begun)?;
        let mut made = Vec::new();
        let mut outcome = Ok(());
        for part in begun {
            match part.make(name, &spread, options) {
                Ok(part) => made.push(part),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        let files: Vec<Files> = made.iter().map(|made| made.files.clone()).collect();
        // 3. From now on parts can be reached.
        let near = (name, &description, &Arc::new(spread));
        let reached = match comm.agree(outcome) {
            Ok(()) => Self::reached(comm, calls, near, (options, holders), made),
            Err(error) => Err(error.into()),
        };
        if reached.is_err() {
            // What cannot be removed is in nobody's way; the error says why it is there.
            files.iter().for_each(|files| drop(files.remove()));
        }
        reached
    }

    /// Collective: opens an array again. There must be a rank for each part, which
    /// finds it in its directory.
    pub fn open(
        comm: &Comm,
        calls: &Procedures,
        name: &str,
        options: &DiskOptions,
    ) -> Result<Self> {
        let rank = comm.rank();
        Procedures::check_group(Some(calls), comm)?;
        let differ = "the ranks open disk-resident arrays of different names or holders";
        same_on_all(comm, (name, &options.holders), differ)?;
        // 1. The first holder says what the array is.
        let first = options.holders.as_ref().and_then(|holders| holders.first());
        let first = comm.agree(match first.copied().unwrap_or(0) {
            first if first < comm.size() => check_name(name).map(|()| first),
            first => Err(Error::Invalid(format!("there is no rank {first}"))),
        })?;
        let said = match rank == first {
            true => {
                Found::find((name, rank), 0, options).and_then(|found| found.description.to_text())
            }
            false => Ok(String::new()),
        };
        let mut text = comm.agree(said)?;
        comm.broadcast_string(first, &mut text)?;
        let opened = Description::from_text(&text).and_then(|description| {
            let holders = options.holders_of(description.parts, comm.size())?;
            description.check_block()?;
            if description.element_type != T::TYPE.to_string() {
                return Err(Error::WrongType {
                    array: name.into(),
                    stored: description.element_type.parse()?,
                    asked: T::TYPE,
                });
            }
            Ok((description.spread()?, description, holders))
        });
        let (spread, description, holders) = comm.agree(opened)?;
        // 2. All parts must belong to it.
        let open = |part: &usize| {
            let found = Found::find((name, rank), *part, options)?;
            match found.description == description {
                true => found.open(name, &spread, options),
                false => Err(Error::format(
                    name,
                    format!("part {part} on the disk of rank {rank} belongs to another array"),
                )),
            }
        };
        let made: Result<Vec<Made>> = holders_own(&holders, rank).iter().map(open).collect();
        let made = comm.agree(made)?;
        let near = (name, &description, &Arc::new(spread));
        Self::reached(comm, calls, near, (options, holders), made)
    }

    /// Collective: registers the parts of this rank.
    fn reached(
        comm: &Comm,
        calls: &Procedures,
        (name, description, spread): (&str, &Description, &Arc<Spread>),
        (options, holders): (&DiskOptions, Vec<usize>),
        made: Vec<Made>,
    ) -> Result<Self> {
        let whole = (name, description, spread);
        let near = Near::new(comm, calls, whole, (options, &holders))?;
        let files = made.iter().map(|made| made.files.clone()).collect();
        let parts: HashMap<_, _> = made
            .into_iter()
            .map(|made| (made.part, made.held))
            .collect();
        let holder = Holder::new(parts);
        let link = Link::new(comm, calls, (name, near), holder, holders)?;
        let inner = Inner {
            name: name.into(),
            spread: Arc::clone(spread),
            block: description.block.clone(),
            link,
            files,
            size: size_of::<T>(),
            epoch: RwLock::new(None),
        };
        Ok(Self {
            inner: Arc::new(inner),
            element: PhantomData,
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The extent of each axis.
    pub fn shape(&self) -> &[u64] {
        self.inner.spread.shape()
    }

    /// Which part holds which element.
    pub fn spread(&self) -> &Spread {
        &self.inner.spread
    }

    /// The rank that holds an element; `None` if nobody does.
    pub fn owner(&self, index: &[u64]) -> Option<usize> {
        let part = self.inner.spread.part_of(index)?;
        Some(self.inner.link.rank_of(part))
    }

    /// Which ranks hold which sections of `section`; what nobody holds is left out.
    pub fn locate(&self, section: &Section) -> Result<Vec<(usize, Section)>> {
        self.check(section)?;
        let items = self.inner.spread.items(section)?.into_iter();
        let held = items.filter(|item| item.part != NOBODY);
        let place = |item: spread::Item| {
            let rank = self.inner.link.rank_of(item.part);
            (rank, section.select(&item.positions))
        };
        Ok(held.map(place).collect())
    }

    /// The parts that this rank holds, as ordinary arrays, with their numbers.
    pub fn parts(&self) -> Vec<(usize, Array)> {
        let parts = self.inner.link.holder().parts();
        parts
            .map(|(part, held)| (part, held.array().clone()))
            .collect()
    }

    /// How the caches of the parts of this rank have served so far.
    pub fn cache_counts(&self) -> CacheCounts {
        let mut sum = CacheCounts::default();
        for (_, part) in self.inner.link.holder().parts() {
            let counts = part.counts();
            sum.hits += counts.hits;
            sum.misses += counts.misses;
            sum.written += counts.written;
        }
        sum
    }

    /// About what share of a section is in the memory of the system; `None` if that is
    /// not known here, as of what this rank does not read itself.
    pub fn cached(&self, section: &Section) -> Result<Option<f64>> {
        self.check(section)?;
        let link = &self.inner.link;
        let (mut all, mut there) = (0.0, 0.0);
        for item in self.inner.spread.items(section)? {
            let part = match link.part(item.part) {
                Some(part) => part,
                None if item.part == NOBODY => continue,
                None => return Ok(None),
            };
            let Some(share) = part.cached(item.piece, &item.local)? else {
                return Ok(None);
            };
            let count = item.local.count() as f64;
            (all, there) = (all + count, there + share * count);
        }
        Ok(Some(if all > 0.0 { there / all } else { 1.0 }))
    }

    /// Reads a section's text for this array.
    pub fn section(&self, text: &str) -> Result<Section> {
        Section::parse(text, self.shape()).map_err(Error::geometry(self.name()))
    }

    fn check(&self, section: &Section) -> Result<()> {
        section
            .check_within(self.shape())
            .map_err(Error::geometry(self.name()))
    }

    fn check_length(&self, section: &Section, found: usize) -> Result<()> {
        self.check(section)?;
        if found as u64 == section.count() {
            return Ok(());
        }
        Err(Error::BufferLength {
            array: self.name().into(),
            section: section.to_string(),
            expected: section.count(),
            found: found as u64,
        })
    }

    fn moving(&self, section: &Section) -> Moving<'_> {
        Moving::new(&self.inner.link, section, self.inner.size)
    }

    fn groups(&self, section: &Section) -> Result<Groups> {
        Groups::new(&self.inner.spread, &self.inner.link, section)
    }

    /// Reads a section into `values`.
    pub fn get(&self, section: &Section, values: &mut [T]) -> Result<()> {
        self.check_length(section, values.len())?;
        let bytes = T::bytes_mut(values);
        let outcome = self.get_bytes(section, bytes);
        // Whatever came of it, the buffer must hold values.
        accept::<T>(self.name(), section, bytes)?;
        outcome
    }

    /// Reads a section.
    pub fn read(&self, section: &Section) -> Result<Vec<T>> {
        self.check(section)?;
        let mut values = vec![T::zeroed(); section.count() as usize];
        self.get(section, &mut values)?;
        Ok(values)
    }

    fn get_bytes(&self, section: &Section, bytes: &mut [u8]) -> Result<()> {
        let groups = self.groups(section)?;
        let moving = self.moving(section);
        let Some(cache) = self.epoch() else {
            return moving.get(groups, bytes);
        };
        moving.clear(&groups.nobody, bytes);
        for items in &groups.own {
            moving.get_now(items, bytes)?;
        }
        let shape = section.shape();
        let mut others = groups.others.iter().flatten();
        others.try_for_each(|item| cache.get(&self.inner.link, item, &shape, bytes))
    }

    /// Writes a section.
    pub fn put(&self, section: &Section, values: &[T]) -> Result<()> {
        self.check_length(section, values.len())?;
        self.check_epoch()?;
        let groups = self.groups(section)?;
        let data = bytemuck::cast_slice(values);
        self.moving(section).put((Action::Put, &[]), groups, data)
    }

    /// Begins to read a section; others may be read and written meanwhile.
    pub fn start_get(&self, section: &Section) -> Result<PendingGet<T>> {
        self.check(section)?;
        PendingGet::start(&self.inner, section, self.groups(section)?)
    }

    /// Begins to write a section. The values are copied, so they need not be kept.
    pub fn start_put(&self, section: &Section, values: &[T]) -> Result<PendingPut> {
        self.start_change((Action::Put, &[]), section, values)
    }

    fn start_change(
        &self,
        action: (Action, &[u8]),
        section: &Section,
        values: &[T],
    ) -> Result<PendingPut> {
        self.check_length(section, values.len())?;
        self.check_epoch()?;
        let data = bytemuck::cast_slice(values);
        let groups = self.groups(section)?;
        PendingPut::start(&self.inner, (action, section), groups, data)
    }

    /// Says that a section will be read soon: its holders begin to bring it into
    /// their caches. Does not wait, and whether they do makes no difference but in
    /// time.
    pub fn prefetch(&self, section: &Section) -> Result<()> {
        self.check(section)?;
        let groups = self.groups(section)?;
        let mut all = groups.own.iter().chain(&groups.others);
        all.try_for_each(|items| self.inner.link.hint(items))
    }

    /// Not collective: returns when everything that was put before, by any rank, is
    /// on stable storage.
    pub fn sync(&self) -> Result<()> {
        let mut parts = 0..self.inner.spread.parts();
        let link = &self.inner.link;
        parts.try_for_each(|part| link.ask_part((Action::Sync, &[]), part, (&[], &[]), &mut []))
    }

    /// Collective: each rank syncs what it holds.
    pub fn sync_all(&self, comm: &Comm) -> Result<()> {
        comm.barrier()?;
        let mut parts = self.inner.link.holder().parts();
        let synced = parts.try_for_each(|(_, part)| part.sync());
        Ok(comm.agree(synced)?)
    }

    /// Collective: begins a read-only epoch. Until it ends nobody can put or
    /// accumulate, and this rank keeps blocks of others that it has read, within
    /// `budget`. What was begun before must have been waited for.
    pub fn begin_epoch(&self, comm: &Comm, budget: &MemoryBudget) -> Result<()> {
        let inner = &self.inner;
        let made = self.check_epoch().and_then(|()| {
            ReaderCache::new(&inner.spread, inner.block.as_deref(), inner.size, budget)
        });
        let made = comm.agree(made)?;
        *inner.epoch.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(made));
        Ok(comm.barrier()?)
    }

    /// Collective: ends a read-only epoch, and tells how the cache has served.
    pub fn end_epoch(&self, comm: &Comm) -> Result<CacheCounts> {
        comm.barrier()?;
        let mut epoch = self
            .inner
            .epoch
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let cache = epoch.take();
        drop(epoch);
        comm.barrier()?;
        Ok(cache.map(|cache| cache.counts()).unwrap_or_default())
    }

    fn epoch(&self) -> Option<Arc<ReaderCache>> {
        let epoch = self
            .inner
            .epoch
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        epoch.clone()
    }

    fn check_epoch(&self) -> Result<()> {
        match self.epoch() {
            None => Ok(()),
            Some(_) => Err(Error::format(
                self.name(),
                "it is in a read-only epoch, which must end before anything is written",
            )),
        }
    }

    /// Collective: ends all access. What is only in caches is written.
    pub fn close(self, comm: &Comm) -> Result<()> {
        comm.barrier()?;
        let closed = self.inner.link.holder().close();
        Ok(comm.agree(closed)?)
    }

    /// Collective: ends all access, and removes the parts from their disks.
    pub fn remove(self, comm: &Comm) -> Result<()> {
        comm.barrier()?;
        let closed = self.inner.link.holder().close();
        let removed = self.inner.files.iter().try_for_each(Files::remove);
        Ok(comm.agree(closed.and(removed))?)
    }
}

impl<T: Element> BlockSource<T> for DiskResident<T> {
    fn fetch(&self, section: &Section, values: &mut [T]) -> Result<()> {
        self.get(section, values)
    }
}

impl<T: Arithmetic> DiskResident<T> {
    /// Adds `scale` times the values to a section. Accumulations of the same
    /// elements do not lose one another.
    pub fn accumulate(&self, section: &Section, values: &[T], scale: T) -> Result<()> {
        self.check_length(section, values.len())?;
        self.check_epoch()?;
        let groups = self.groups(section)?;
        let action = (Action::Accumulate, bytemuck::bytes_of(&scale));
        self.moving(section)
            .put(action, groups, bytemuck::cast_slice(values))
    }

    /// Begins to add `scale` times the values to a section.
    pub fn start_accumulate(
        &self,
        section: &Section,
        values: &[T],
        scale: T,
    ) -> Result<PendingPut> {
        let action = (Action::Accumulate, bytemuck::bytes_of(&scale));
        self.start_change(action, section, values)
    }
}

/// The parts that a rank holds.
fn holders_own(holders: &[usize], rank: usize) -> Vec<usize> {
    let own = |part: &usize| holders[*part] == rank;
    (0..holders.len()).filter(own).collect()
}

/// Refuses bytes from a file that stand for no value.
fn accept<T: Element>(name: &str, section: &Section, bytes: &mut [u8]) -> Result<()> {
    match T::accept(bytes) {
        true => Ok(()),
        false => Err(Error::format(
            name,
            format!("section [{section}] holds bytes other than 0 and 1, which are no bool"),
        )),
    }
}
