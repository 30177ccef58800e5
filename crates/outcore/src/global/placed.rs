//! [`Placed`]: an array wherever there is room for it, used the same everywhere.
//!
//! A program says how much memory of each kind it may use; the array goes to the
//! first level of the hierarchy that has room for the part of every rank: memory that
//! the ranks of a node share, ordinary memory of each rank, disks. Sections are got,
//! put and accumulated by the same calls on all of them (the papers' extended global
//! arrays); only the time differs.

use outcore_geometry::{Distribution, Section};
use outcore_transport::{Comm, Op};

use crate::budget::{MemoryBudget, Reservation};
use crate::bytes::bytes_text;
use crate::element::Element;
use crate::error::Result;
use crate::global::arithmetic::Arithmetic;
use crate::global::disk_resident::{DiskOptions, DiskResident, Disks};
use crate::global::global_array::GlobalArray;
use crate::global::procedure_call::Procedures;

/// Where an array is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In memory that the ranks of a node share: reached without asking.
    NodeMemory,
    /// In the ordinary memory of the rank that owns each part, which others ask.
    OwnMemory,
    /// On disks, whose ranks others ask.
    Disk,
}

impl Place {
    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeMemory => "node memory",
            Self::OwnMemory => "own memory",
            Self::Disk => "disk",
        }
    }
}

/// What a rank may use of each level.
#[derive(Debug, Clone)]
pub struct MemoryLevels {
    /// Memory that ranks of the node reach.
    pub node: MemoryBudget,
    /// Ordinary memory.
    pub own: MemoryBudget,
    /// The disks, and how parts on them work.
    pub disk: DiskOptions,
}

impl MemoryLevels {
    /// Levels with `memory` bytes a rank, in memory that the ranks of a node share,
    /// and with these disks for what does not fit.
    pub fn new(memory: u64, disks: Disks) -> Self {
        Self {
            node: MemoryBudget::of(memory),
            own: MemoryBudget::of(0),
            disk: DiskOptions::new(disks),
        }
    }

    /// With so many bytes of ordinary memory a rank.
    pub fn own(mut self, bytes: u64) -> Self {
        self.own = MemoryBudget::of(bytes);
        self
    }
}

/// An array wherever there is room for it.
///
/// ```
/// use outcore::{Disks, Distribution, MemoryLevels, Place, Placed, Procedures};
/// # let directory = tempfile::tempdir()?;
/// # let disks = directory.path().join("{rank}");
/// # let disks = disks.to_str().unwrap();
/// outcore::run(2, |comm| {
///     let calls = Procedures::start(comm)?;
///     let levels = MemoryLevels::new(64 << 10, Disks::pattern(disks));
///     let mut places = Vec::new();
///     for (name, extent) in [("small", 1000), ("large", 100_000)] {
///         let spread = Distribution::parse("block", &[extent], 2, None).expect("it fits");
///         let array = Placed::<f64>::new(comm, &calls, name, spread, &levels)?;
///         let some = array.section("10:20")?;
///         array.accumulate(&some, &[1.5; 10], 2.0)?;
///         array.sync(comm)?;
///         assert_eq!(array.read(&some)?, [6.0; 10]);
///         places.push(array.place());
///         array.close(comm)?;
///     }
///     assert_eq!(places, [Place::NodeMemory, Place::Disk]);
///     calls.close()
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Placed<T> {
    kept: Kept<T>,
    place: Place,
    why: String,
    /// What it takes of the budget.
    _room: Option<Reservation>,
}

#[derive(Debug)]
enum Kept<T> {
    Node(GlobalArray<T>),
    Parts(DiskResident<T>),
}

impl<T: Element> Placed<T> {
    /// Collective: an array of zeros on the first level that has room for the part of
    /// every rank. Dropped, it gives the memory back.
    pub fn new(
        comm: &Comm,
        calls: &Procedures,
        name: &str,
        distribution: Distribution,
        levels: &MemoryLevels,
    ) -> Result<Self> {
        let own = distribution.local_count(comm.rank() as u64);
        let need = own.saturating_mul(T::TYPE.size());
        let most = comm.all_reduce(&[need], Op::Max)?[0];
        // 1. Each level in turn, unless some rank has no room.
        let mut why = format!("the largest part takes {}", bytes_text(most));
        for (place, budget) in [
            (Place::NodeMemory, &levels.node),
            (Place::OwnMemory, &levels.own),
        ] {
            let least = comm.all_reduce(&[budget.free()], Op::Min)?[0];
            let room = budget.reserve(need, "an array").ok();
            let lacking = comm.all_reduce(&[u64::from(room.is_none())], Op::Sum)?[0];
            if lacking > 0 {
                let free = bytes_text(least);
                why += &format!(
                    ", of {} no more than {free} are free on a rank",
                    place.name()
                );
                continue;
            }
            why += &format!(", for which {} has room", place.name());
            let kept = match place {
                Place::NodeMemory => Kept::Node(GlobalArray::new(comm, Some(calls), distribution)?),
                _ => {
                    let options = DiskOptions::new(Disks::Memory);
                    Kept::Parts(DiskResident::create(
                        comm,
                        calls,
                        name,
                        distribution,
                        &options,
                    )?)
                }
            };
            return Ok(Self {
                kept,
                place,
                why,
                _room: room,
            });
        }
        // 2. Disks have room for whatever memory has not.
        let array = DiskResident::create(comm, calls, name, distribution, &levels.disk)?;
        Ok(Self {
            kept: Kept::Parts(array),
            place: Place::Disk,
            why: why + "; so it is on disk",
            _room: None,
        })
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Why it is there, in words.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The extent of each axis.
    pub fn shape(&self) -> &[u64] {
        match &self.kept {
            Kept::Node(array) => array.shape(),
            Kept::Parts(array) => array.shape(),
        }
    }

    /// Reads a section's text for this array.
    pub fn section(&self, text: &str) -> Result<Section> {
        match &self.kept {
            Kept::Node(array) => array.section(text),
            Kept::Parts(array) => array.section(text),
        }
    }

    /// The rank that owns an element; `None` outside.
    pub fn owner(&self, index: &[u64]) -> Option<usize> {
        match &self.kept {
            Kept::Node(array) => array.owner(index),
            Kept::Parts(array) => array.owner(index),
        }
    }

    /// Reads a section into `values`, dense, the last axis fastest.
    pub fn get(&self, section: &Section, values: &mut [T]) -> Result<()> {
        match &self.kept {
            Kept::Node(array) => array.get(section, values),
            Kept::Parts(array) => array.get(section, values),
        }
    }

    /// Reads a section.
    pub fn read(&self, section: &Section) -> Result<Vec<T>> {
        match &self.kept {
            Kept::Node(array) => array.read(section),
            Kept::Parts(array) => array.read(section),
        }
    }

    /// Writes a section.
    pub fn put(&self, section: &Section, values: &[T]) -> Result<()> {
        match &self.kept {
            Kept::Node(array) => array.put(section, values),
            Kept::Parts(array) => array.put(section, values),
        }
    }

    /// Says that a section will be read soon; what is in memory needs no such word.
    pub fn prefetch(&self, section: &Section) -> Result<()> {
        match &self.kept {
            Kept::Node(_) => Ok(()),
            Kept::Parts(array) => array.prefetch(section),
        }
    }

    /// Collective: what was put before is seen by all afterwards. It does not bring
    /// anything to stable storage.
    pub fn sync(&self, comm: &Comm) -> Result<()> {
        match &self.kept {
            Kept::Node(array) => array.sync(comm),
            Kept::Parts(_) => Ok(comm.barrier()?),
        }
    }

    /// Collective: ends all access. Parts on disks are removed: the next run may find
    /// room elsewhere. To keep them, use a [`DiskResident`].
    pub fn close(self, comm: &Comm) -> Result<()> {
        match self.kept {
            Kept::Node(_) => Ok(comm.barrier()?),
            Kept::Parts(array) => array.remove(comm),
        }
    }
}

impl<T: Arithmetic> Placed<T> {
    /// Adds `scale` times the values to a section; no sum of several ranks is lost.
    pub fn accumulate(&self, section: &Section, values: &[T], scale: T) -> Result<()> {
        match &self.kept {
            Kept::Node(array) => array.accumulate(section, values, scale),
            Kept::Parts(array) => array.accumulate(section, values, scale),
        }
    }
}
