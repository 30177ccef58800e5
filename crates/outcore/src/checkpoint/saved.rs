//! [`Checkpoint`]: a complete checkpoint, from which data are restored.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use bytemuck::Pod;
use outcore_geometry::shape_text;
use outcore_storage::{Blocks, Store};
use outcore_transport::{Comm, Error as TransportError};
use serde_json::{Map, Value};

use super::checksum::checksums;
use super::manifest::{Manifest, SavedArray};
use super::series::Checkpoints;
use crate::array::Array;
use crate::distributed::DistributedArray;
use crate::draft::parent;
use crate::element::{Element, ElementType};
use crate::error::{Error, Result};
use crate::irregular::Schedule;

/// A complete checkpoint.
///
/// Its arrays are restored on any number of ranks and in any distribution. By
/// default an array is compared with its checksums, by all ranks, before it is
/// loaded: the data are read twice, the second time mostly from memory.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    path: String,
    manifest: Manifest,
    /// Whether arrays are compared with their checksums before they are loaded.
    suspicious: bool,
}

/// Adjacent blocks of an array that differ from their checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The name of the array.
    pub array: String,
    /// Which blocks.
    pub blocks: Range<u64>,
    /// Which bytes of the array's file these are.
    pub bytes: Range<u64>,
}

/// `array 'u' is damaged in block 3: bytes 3145728 to 4194303`.
impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.blocks;
        match end - start {
            1 => write!(f, "array '{}' is damaged in block {start}", self.array)?,
            _ => {
                let last = end - 1;
                let array = &self.array;
                write!(f, "array '{array}' is damaged in blocks {start} to {last}")?;
            }
        }
        let last = self.bytes.end.saturating_sub(1);
        write!(f, ": bytes {} to {last} of its file", self.bytes.start)
    }
}

impl Checkpoint {
    pub(super) fn new(path: String, manifest: Manifest) -> Self {
        Self {
            path,
            manifest,
            suspicious: true,
        }
    }

    /// Collective: the checkpoint in the directory `path`.
    pub fn open(comm: &Comm, path: &str) -> Result<Self> {
        let read = match comm.rank() {
            0 => Manifest::read(Path::new(path)),
            _ => Ok(String::new()),
        };
        let mut text = comm.agree(read)?;
        comm.broadcast_string(0, &mut text)?;
        let manifest = comm.agree(Manifest::parse(Path::new(path), &text))?;
        Ok(Self::new(path.into(), manifest))
    }

    /// The same, whose arrays are loaded without a look at their checksums.
    pub fn unverified(mut self) -> Self {
        self.suspicious = false;
        self
    }

    /// The directory.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name in its series.
    pub fn name(&self) -> &str {
        let name = Path::new(&self.path).file_name();
        name.and_then(|name| name.to_str()).unwrap_or(&self.path)
    }

    /// The number in its series; later ones have higher numbers.
    pub fn sequence(&self) -> u64 {
        self.manifest.sequence
    }

    /// When it was saved, in seconds since 1970.
    pub fn created(&self) -> u64 {
        self.manifest.created
    }

    /// How many ranks have saved it.
    pub fn ranks(&self) -> u64 {
        self.manifest.ranks
    }

    /// The notes that were saved with it.
    pub fn notes(&self) -> &Map<String, Value> {
        &self.manifest.notes
    }

    /// A note that was saved with it.
    pub fn note(&self, name: &str) -> Option<&Value> {
        self.manifest.notes.get(name)
    }

    /// The arrays in it.
    pub fn arrays(&self) -> &[SavedArray] {
        &self.manifest.arrays
    }

    /// The bytes of all arrays.
    pub fn bytes(&self) -> u64 {
        self.manifest.bytes()
    }

    /// Collective: one of the arrays, opened for reading, so that any section of
    /// it can be read. It is not compared with its checksums.
    pub fn array(&self, comm: &Comm, name: &str) -> Result<Array> {
        let opened = self.find(name).and_then(|saved| self.open_array(saved));
        Ok(comm.agree(opened)?)
    }

    /// Collective: fills `array` from the saved array `name`, of the same shape
    /// and type, whatever the distributions and numbers of ranks.
    pub fn load<T: Pod + Element>(
        &self,
        comm: &Comm,
        name: &str,
        array: &mut DistributedArray<T>,
    ) -> Result<()> {
        let saved = self.checked(comm, name, array.shape(), T::TYPE)?;
        array.load(comm, &saved)
    }

    /// Collective: fills `values` with this rank's elements of the saved array
    /// `name`, in the order of the indices of `schedule`, which may be others
    /// than those with which it was saved. Axes of the array behind those of the
    /// schedule are those of records.
    pub fn load_scattered<T: Element>(
        &self,
        comm: &Comm,
        name: &str,
        schedule: &Schedule,
        values: &mut [T],
    ) -> Result<()> {
        let saved = self.find(name).map_or(&[][..], SavedArray::shape);
        let record = saved.get(schedule.shape().len()..).unwrap_or_default();
        let shape = [schedule.shape(), record].concat();
        let saved = self.checked(comm, name, &shape, T::TYPE)?;
        schedule.read(comm, &saved, values).map(drop)
    }

    /// Collective: the saved array `name`, if it is of this shape and type and,
    /// unless nobody asks for that, as it was saved.
    fn checked(
        &self,
        comm: &Comm,
        name: &str,
        shape: &[u64],
        element_type: ElementType,
    ) -> Result<Array> {
        let fitting = self.find(name).and_then(|saved| {
            let asked = format!("{} {element_type}", shape_text(shape));
            let stored = format!("{} {}", shape_text(saved.shape()), saved.element_type());
            match asked == stored {
                true => Ok(saved),
                false => Err(Error::format(
                    &self.path,
                    format!("array '{name}' was saved as {stored}, and does not fit {asked}"),
                )),
            }
        });
        let saved = comm.agree(fitting)?;
        if self.suspicious {
            let problem = self.problem_of(comm, &[saved], &|_| ())?;
            self.refuse(comm, problem)?;
        }
        Ok(comm.agree(self.open_array(saved))?)
    }

    /// Collective: fails unless all arrays are as they were saved. The error says
    /// what is damaged, and which older checkpoint of the same directory is not.
    /// `progress` gets the bytes that this rank looks at.
    pub fn verify(&self, comm: &Comm, progress: &dyn Fn(u64)) -> Result<()> {
        let problem = self.problem(comm, progress)?;
        self.refuse(comm, problem)
    }

    /// Collective: what of the data differs from the checksums. Files that are
    /// missing or cannot be read are an error.
    pub fn damage(&self, comm: &Comm, progress: &dyn Fn(u64)) -> Result<Vec<Damage>> {
        let all: Vec<&SavedArray> = self.arrays().iter().collect();
        self.damage_of(comm, &all, progress)
    }

    /// Collective: what is wrong with it, if anything is.
    pub(super) fn problem(&self, comm: &Comm, progress: &dyn Fn(u64)) -> Result<Option<String>> {
        let all: Vec<&SavedArray> = self.arrays().iter().collect();
        self.problem_of(comm, &all, progress)
    }

    fn problem_of(
        &self,
        comm: &Comm,
        arrays: &[&SavedArray],
        progress: &dyn Fn(u64),
    ) -> Result<Option<String>> {
        match self.damage_of(comm, arrays, progress) {
            Ok(damage) => Ok(damage.first().map(|first| {
                let more = match damage.len() {
                    1 => String::new(),
                    count => format!(", and in {} more places", count - 1),
                };
                format!("{first}{more}")
            })),
            // Of all ranks; they can go on together.
            Err(Error::Transport(TransportError::Agreed { cause, .. })) => Ok(Some(cause)),
            Err(error) => Err(error),
        }
    }

    fn damage_of(
        &self,
        comm: &Comm,
        arrays: &[&SavedArray],
        progress: &dyn Fn(u64),
    ) -> Result<Vec<Damage>> {
        let opened: Result<Vec<Array>> =
            arrays.iter().map(|saved| self.open_array(saved)).collect();
        let opened = comm.agree(opened)?;
        let files: Vec<(&dyn Store, Blocks)> = arrays
            .iter()
            .zip(&opened)
            .map(|(saved, array)| (&**array.store(), saved.blocks))
            .collect();
        let found = checksums(comm, &files, progress)?;
        let each = arrays.iter().zip(&found);
        Ok(each
            .flat_map(|(saved, sums)| differing(saved, sums))
            .collect())
    }

    /// Collective: fails with the problem, if there is one.
    fn refuse(&self, comm: &Comm, problem: Option<String>) -> Result<()> {
        let Some(problem) = problem else {
            return Ok(());
        };
        let directory = parent(Path::new(&self.path)).display().to_string();
        let older = Checkpoints::at(directory);
        let older = older.newest_intact_before(comm, self.sequence(), &|_| ())?;
        let advice = match older {
            Some(older) => format!(
                "the newest older checkpoint that is intact is '{}'",
                older.name()
            ),
            None => "no older checkpoint beside it is intact".into(),
        };
        Err(Error::format(&self.path, format!("{problem}; {advice}")))
    }

    fn find(&self, name: &str) -> Result<&SavedArray> {
        let found = self.arrays().iter().find(|saved| saved.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.arrays().iter().map(SavedArray::name).collect();
            let there = match names.is_empty() {
                true => "no arrays".into(),
                false => names.join(", "),
            };
            Error::format(
                &self.path,
                format!("there is no array '{name}' in this checkpoint; it holds {there}"),
            )
        })
    }

    /// Opens an array, which must be what the manifest says.
    fn open_array(&self, saved: &SavedArray) -> Result<Array> {
        let path = Path::new(&self.path).join(saved.file());
        let array = Array::open(&path.to_string_lossy())?;
        let mut found = array.descriptor().clone();
        found.attributes.clear();
        if found != saved.descriptor {
            return Err(Error::format(
                array.name(),
                format!(
                    "its descriptor is not that of the array that was saved, {} {} in row layout",
                    shape_text(saved.shape()),
                    saved.element_type()
                ),
            ));
        }
        let len = array.store().len()?;
        if len != saved.bytes() {
            return Err(Error::format(
                array.name(),
                format!("its data are {len} bytes, but {} were saved", saved.bytes()),
            ));
        }
        Ok(array)
    }
}

/// The blocks that differ, adjacent ones together.
fn differing(saved: &SavedArray, found: &[u32]) -> Vec<Damage> {
    let pairs = saved.sums.iter().zip(found).zip(0u64..);
    let wrong: Vec<u64> = pairs
        .filter(|((saved, found), _)| saved != found)
        .map(|(_, block)| block)
        .collect();
    let runs = wrong.chunk_by(|one, next| one + 1 == *next);
    runs.map(|run| {
        let blocks = run[0]..run[0] + run.len() as u64;
        Damage {
            array: saved.name.clone(),
            bytes: saved.blocks.range(blocks.clone()),
            blocks,
        }
    })
    .collect()
}
