//! Whether the data of an array are as they were written: [`verify`].
//!
//! The path of the data: every byte is read once, in pieces that are numbered
//! through; the ranks divide the pieces, adjacent ones to each; what is wrong is
//! told to all. What a piece is depends on the array:
//!
//! - an array with checksums: a block, which is compared with its checksum;
//! - an array of chunks (Zarr, HDF5): a chunk, which is decoded; a codec with a
//!   checksum, like crc32c or fletcher32, finds flipped bits, others find some;
//! - any other: 1 MiB, which is read; nobody can say more of it.
//!
//! A piece that is wrong, or that the device cannot read, does not end the work.
//! [`accept`] gives damaged blocks the checksums of what they hold now.

use std::fmt;
use std::ops::Range;

use outcore_geometry::{Layout, Section};
use outcore_storage::{BlockFault, Blocks, CheckedStore, ChunkStore};
use outcore_transport::Comm;
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::budget::MemoryBudget;
use crate::checkpoint::share;
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::interrupt;

/// The bytes that are read at a time if nothing else says how many.
const PIECE: u64 = 1 << 20;

/// What the data of an array can be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// A checksum for each block of the file.
    Blocks,
    /// A checksum in each chunk.
    Chunks,
    /// Nothing but that the chunks can be decoded.
    Decoding,
    /// Nothing: the bytes can be read, or not.
    Nothing,
}

/// What is wrong with a piece of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Problem {
    /// It is not what was written.
    Damaged,
    /// Who wrote it failed or died before the end.
    Interrupted,
    /// It cannot be read or decoded, for this reason.
    Unreadable(String),
}

/// `does not match its checksum`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damaged => "does not match its checksum",
            Self::Interrupted => "was being written when the writer failed or died",
            Self::Unreadable(problem) => problem,
        })
    }
}

/// Adjacent pieces with the same problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Which blocks or chunks.
    pub pieces: Range<u64>,
    /// Which bytes these are, from where the data begin.
    pub bytes: Range<u64>,
    /// What is wrong.
    pub problem: Problem,
}

impl Fault {
    /// The elements that are concerned, of an array in this layout.
    pub fn sections<'a>(&self, layout: &'a Layout) -> impl Iterator<Item = Section> + 'a {
        layout.sections_of(self.bytes.clone())
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What the data were compared with.
    pub checks: Checks,
    /// The bytes that were looked at, as they are after decoding.
    pub bytes: u64,
    /// How many blocks or chunks there are.
    pub pieces: u64,
    /// The bytes of each.
    pub piece: u64,
    /// What is wrong, in the order of the file.
    pub faults: Vec<Fault>,
}

/// What is looked at.
enum Pieces<'a> {
    Blocks(&'a CheckedStore),
    Chunks(&'a ChunkStore),
    Bytes,
}

impl<'a> Pieces<'a> {
    fn of(array: &'a Array) -> Self {
        let store = &**array.store();
        match (store.as_checked(), store.as_chunks()) {
            (Some(checked), _) => Self::Blocks(checked),
            (None, Some(chunks)) => Self::Chunks(chunks),
            (None, None) => Self::Bytes,
        }
    }

    fn checks(&self, array: &Array) -> Checks {
        let sums = |codec: &Codec| matches!(codec, Codec::Crc32c | Codec::Fletcher32);
        match self {
            Self::Blocks(_) => Checks::Blocks,
            Self::Chunks(_) if array.descriptor().codecs.steps().iter().any(sums) => Checks::Chunks,
            Self::Chunks(_) => Checks::Decoding,
            Self::Bytes => Checks::Nothing,
        }
    }

    /// How the data are cut.
    fn cut(&self, array: &Array) -> Result<Blocks> {
        let bytes = array.layout().byte_len();
        Ok(match self {
            Self::Blocks(checked) => Blocks {
                bytes,
                block: checked.blocks()?.block,
            },
            Self::Chunks(store) => {
                let block = store.chunks().chunk_bytes() as u64;
                Blocks {
                    bytes: store.chunks().count() * block,
                    block: block.max(1),
                }
            }
            Self::Bytes => Blocks {
                bytes,
                block: PIECE,
            },
        })
    }

    /// Looks at adjacent pieces, of which `see` gets each that is wrong.
    fn look(
        &self,
        array: &Array,
        (cut, pieces): (Blocks, Range<u64>),
        buffer: &mut Vec<u8>,
        see: &mut dyn FnMut(u64, Problem),
    ) {
        if let Self::Blocks(checked) = self {
            let mut found = Vec::new();
            let looked = checked.examine(pieces.clone(), &mut |block, fault| {
                found.push((block, fault));
            });
            let problem = |fault| match fault {
                BlockFault::Damaged => Problem::Damaged,
                BlockFault::Interrupted => Problem::Interrupted,
            };
            match looked {
                Ok(()) => found
                    .into_iter()
                    .for_each(|(at, fault)| see(at, problem(fault))),
                Err(error) if pieces.end - pieces.start == 1 => {
                    see(pieces.start, Problem::Unreadable(error.to_string()));
                }
                // One of them cannot be read; which, is found one by one.
                Err(_) => pieces.for_each(|at| self.look(array, (cut, at..at + 1), buffer, see)),
            }
            return;
        }
        for piece in pieces {
            let bytes = cut.range(piece..piece + 1);
            buffer.resize((bytes.end - bytes.start) as usize, 0);
            let whole = 0..buffer.len();
            let read = match self {
                Self::Chunks(store) => {
                    let chunks = store.chunks();
                    chunks.read(piece, std::slice::from_ref(&whole), buffer)
                }
                _ => array
                    .store()
                    .read_at(array.data_offset() + bytes.start, buffer),
            };
            if let Err(error) = read {
                see(piece, Problem::Unreadable(error.to_string()));
            }
        }
    }
}

/// Collective: reads all of an array, and says what of it is wrong; every rank
/// gets the same answer. `progress` gets the bytes as this rank reads them.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, Checks, ElementType, MemoryBudget, verify};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("grid.oc");
/// # let name = name.to_str().unwrap();
/// let descriptor = ArrayDescriptor::new(&[100, 100], ElementType::F32).checksummed(None);
/// let array = Array::create(name, &descriptor)?;
/// array.write(&array.section("7, :")?, &[1.5f32; 100])?;
/// outcore::run(2, |comm| {
///     let found = verify(comm, &array, &MemoryBudget::machine(), &|_| ())?;
///     assert_eq!(found.checks, Checks::Blocks);
///     assert!(found.faults.is_empty());
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify(
    comm: &Comm,
    array: &Array,
    budget: &MemoryBudget,
    progress: &dyn Fn(u64),
) -> Result<Verified> {
    // 1. Who looks at what.
    let pieces = Pieces::of(array);
    let cut = comm.agree(pieces.cut(array))?;
    // A chunk is in memory as it is stored, and decoded.
    let need = (2 * cut.block).max(PIECE);
    comm.agree(budget.for_rank(comm).require(need, "verifying an array"))?;
    let own = share(comm, cut.count());
    // 2. A few pieces at a time, so that progress can be seen.
    let step = (PIECE / cut.block).max(1);
    let (mut faults, mut buffer): (Vec<Fault>, _) = (Vec::new(), Vec::new());
    let (mut first, mut going) = (own.start, interrupt::check());
    while first < own.end && going.is_ok() {
        let some = first..own.end.min(first + step);
        pieces.look(
            array,
            (cut, some.clone()),
            &mut buffer,
            &mut |piece, problem| {
                let (pieces, bytes) = (piece..piece + 1, cut.range(piece..piece + 1));
                let fault = Fault {
                    pieces,
                    bytes,
                    problem,
                };
                note(&mut faults, fault);
            },
        );
        let bytes = cut.range(some.clone());
        progress(bytes.end - bytes.start);
        first = some.end;
        going = interrupt::check();
    }
    comm.agree(going)?;
    // 3. All get to know.
    let told = serde_json::to_vec(&faults).map_err(|error| Error::Invalid(error.to_string()));
    let told = comm.all_gatherv(&comm.agree(told)?)?;
    let read = |faults: &Vec<u8>| serde_json::from_slice::<Vec<Fault>>(faults);
    let faults: Result<Vec<_>, _> = told.iter().map(read).collect();
    let told = faults.map_err(|error| Error::Invalid(error.to_string()))?;
    let mut faults = Vec::new();
    told.into_iter()
        .flatten()
        .for_each(|fault| note(&mut faults, fault));
    Ok(Verified {
        checks: pieces.checks(array),
        bytes: cut.bytes,
        pieces: cut.count(),
        piece: cut.block,
        faults,
    })
}

/// Notes a fault, together with the one before if that is adjacent and the same.
fn note(faults: &mut Vec<Fault>, fault: Fault) {
    match faults.last_mut() {
        Some(last) if last.pieces.end == fault.pieces.start && last.problem == fault.problem => {
            last.pieces.end = fault.pieces.end;
            last.bytes.end = fault.bytes.end;
        }
        _ => faults.push(fault),
    }
}

/// Gives the blocks of a fault the checksums of what they hold now, whatever that
/// is. Fails if the array has no checksums or was opened for reading only.
pub fn accept(array: &Array, fault: &Fault) -> Result<()> {
    let Some(checked) = (**array.store()).as_checked() else {
        return Err(Error::format(
            array.name(),
            "it has no checksums of blocks, so none can be accepted",
        ));
    };
    Ok(fault
        .pieces
        .clone()
        .try_for_each(|block| checked.accept(block))?)
}

/// Takes all interrupted blocks as they are, if the array has checksums.
pub(crate) fn accept_interrupted(array: &Array) -> Result<()> {
    match (**array.store()).as_checked() {
        Some(checked) => {
            let mut blocks = checked.interrupted()?.into_iter();
            Ok(blocks.try_for_each(|block| checked.accept(block))?)
        }
        None => Ok(()),
    }
}
