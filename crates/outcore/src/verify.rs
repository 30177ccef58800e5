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
//! Chunks, and pieces of objects far away, are read many at a time, in half of the
//! memory. A piece that is wrong, or that the device cannot read, does not end the
//! work; a server that does not answer, or refuses, does. [`accept`] gives damaged blocks the checksums of what they hold now.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use outcore_geometry::{Layout, Section};
use outcore_storage::{Address, BlockFault, Blocks, CheckedStore, ChunkStore};
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

/// Of an object far away, so many pieces are read together at most.
const TOGETHER: u64 = 64;

/// So many stretches of wrong pieces are listed at most; what each says needs memory.
const MOST_LISTED: usize = 10_000;

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
    /// It cannot be read or decoded, for this reason, which says nothing of where it is.
    Unreadable(String),
}

impl Problem {
    /// Why a piece could not be read.
    fn unreadable(error: &outcore_storage::Error) -> Self {
        use outcore_storage::Error::UnexpectedEnd;
        Self::Unreadable(match (error, std::error::Error::source(error)) {
            (UnexpectedEnd { end, .. }, _) => format!("the bytes end at offset {end}"),
            (_, Some(source)) => source.to_string(),
            (_, None) => error.to_string(),
        })
    }
}

/// `does not match its checksum`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged => f.write_str("does not match its checksum"),
            Self::Interrupted => f.write_str("was being written when the writer failed or died"),
            Self::Unreadable(problem) => write!(f, "cannot be read: {problem}"),
        }
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
    /// How many chunks are not stored, so that nothing could be compared: they read as
    /// the fill value.
    pub unstored: u64,
    /// What is wrong, in the order of the file.
    pub faults: Vec<Fault>,
    /// How many blocks or chunks are wrong besides: of very many stretches, those that
    /// come first are listed.
    pub unlisted: u64,
}

impl Verified {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty() && self.unlisted == 0
    }

    /// How many blocks or chunks are wrong.
    pub fn wrong(&self) -> u64 {
        let listed = self.faults.iter().map(|fault| &fault.pieces);
        listed.map(|pieces| pieces.end - pieces.start).sum::<u64>() + self.unlisted
    }
}

/// What is wrong, in any order: adjacent pieces with the same problem are one, and the
/// first ones are listed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Faults {
    /// By the first piece.
    listed: BTreeMap<u64, Fault>,
    unlisted: u64,
}

impl Faults {
    /// Notes a fault, together with those beside it that are the same.
    fn note(&mut self, mut fault: Fault) {
        let before = self.listed.range(..fault.pieces.start).next_back();
        if let Some((&first, before)) = before
            && before.pieces.end == fault.pieces.start
            && before.problem == fault.problem
        {
            fault.pieces.start = before.pieces.start;
            fault.bytes.start = before.bytes.start;
            self.listed.remove(&first);
        }
        if let Some(behind) = self.listed.get(&fault.pieces.end)
            && behind.problem == fault.problem
        {
            let end = behind.pieces.end;
            fault.bytes.end = behind.bytes.end;
            self.listed.remove(&fault.pieces.end);
            fault.pieces.end = end;
        }
        self.listed.insert(fault.pieces.start, fault);
        if self.listed.len() > MOST_LISTED
            && let Some((_, last)) = self.listed.pop_last()
        {
            self.unlisted += last.pieces.end - last.pieces.start;
        }
    }

    /// Notes those of another rank.
    fn join(&mut self, others: Self) {
        others
            .listed
            .into_values()
            .for_each(|fault| self.note(fault));
        self.unlisted += others.unlisted;
    }
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

    /// How many pieces are looked at together, with so much memory.
    fn together(&self, cut: Blocks, far: bool, room: u64) -> u64 {
        match self {
            Self::Bytes if far => (room / cut.block).clamp(1, TOGETHER),
            // A few, so that progress can be seen.
            _ => (PIECE / cut.block).max(1),
        }
    }
}

/// What a rank has to look at.
struct Look<'a> {
    array: &'a Array,
    pieces: Pieces<'a>,
    cut: Blocks,
    /// Whether a server has the array.
    far: bool,
    /// The memory for it.
    room: u64,
    progress: &'a (dyn Fn(u64) + Sync),
}

/// What one rank has found.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Found {
    faults: Faults,
    unstored: u64,
}

impl Look<'_> {
    /// Looks at adjacent pieces.
    fn at(&self, own: Range<u64>) -> Result<Found> {
        if let Pieces::Chunks(store) = self.pieces {
            return self.at_chunks(store, own);
        }
        let together = self.pieces.together(self.cut, self.far, self.room);
        let (mut found, mut buffer) = (Found::default(), Vec::new());
        let mut first = own.start;
        while first < own.end {
            interrupt::check()?;
            let some = first..own.end.min(first + together);
            self.at_some(some.clone(), &mut buffer, &mut found.faults)?;
            (self.progress)(bytes(self.cut, &some));
            first = some.end;
        }
        Ok(found)
    }

    /// Looks at blocks or bytes.
    fn at_some(
        &self,
        mut some: Range<u64>,
        buffer: &mut Vec<u8>,
        faults: &mut Faults,
    ) -> Result<()> {
        let mut wrong = Vec::new();
        let looked = match self.pieces {
            Pieces::Blocks(checked) => checked.examine(some.clone(), &mut |block, fault| {
                let problem = match fault {
                    BlockFault::Damaged => Problem::Damaged,
                    BlockFault::Interrupted => Problem::Interrupted,
                };
                wrong.push(self.fault(block, problem));
            }),
            _ => {
                let range = self.cut.range(some.clone());
                buffer.resize((range.end - range.start) as usize, 0);
                let start = self.array.data_offset() + range.start;
                self.array.store().read_at(start, buffer)
            }
        };
        let Err(error) = looked else {
            wrong.into_iter().for_each(|fault| faults.note(fault));
            return Ok(());
        };
        if self.ends(&error) {
            return Err(error.into());
        }
        if some.end - some.start == 1 {
            faults.note(self.fault(some.start, Problem::unreadable(&error)));
            return Ok(());
        }
        // One of them cannot be read; which, is found one by one.
        some.try_for_each(|at| self.at_some(at..at + 1, buffer, faults))
    }

    /// Looks at chunks, on several threads.
    fn at_chunks(&self, store: &ChunkStore, own: Range<u64>) -> Result<Found> {
        let (faults, unstored) = (Mutex::new(Faults::default()), AtomicU64::new(0));
        let spare: Mutex<Vec<Vec<u8>>> = Mutex::default();
        let size = store.chunks().chunk_bytes();
        let count = own.end - own.start;
        let crew = store.crew(count, count.saturating_mul(size as u64), self.room);
        let looked = crew.each(own, |chunk| {
            if interrupt::interrupted().is_some() {
                let stopped = io::Error::from(ErrorKind::Interrupted);
                return Err(outcore_storage::Error::read(self.array.name(), 0, stopped));
            }
            let old = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut buffer = old.unwrap_or_default();
            buffer.resize(size, 0);
            match store.read_whole(chunk, &mut buffer) {
                Ok(true) => {}
                Ok(false) => {
                    unstored.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) if self.ends(&error) => return Err(error),
                Err(error) => {
                    let fault = self.fault(chunk, Problem::unreadable(&error));
                    let mut faults = faults.lock().unwrap_or_else(PoisonError::into_inner);
                    faults.note(fault);
                }
            }
            (self.progress)(bytes(self.cut, &(chunk..chunk + 1)));
            let mut spare = spare.lock().unwrap_or_else(PoisonError::into_inner);
            spare.push(buffer);
            Ok(())
        });
        interrupt::check()?;
        looked?;
        let faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
        let unstored = unstored.into_inner();
        Ok(Found { faults, unstored })
    }

    fn fault(&self, piece: u64, problem: Problem) -> Fault {
        let pieces = piece..piece + 1;
        Fault {
            bytes: self.cut.range(pieces.clone()),
            pieces,
            problem,
        }
    }

    /// Whether an error says nothing of a piece, but that its server cannot be asked.
    fn ends(&self, error: &outcore_storage::Error) -> bool {
        use ErrorKind::{NotConnected, PermissionDenied, ResourceBusy, TimedOut};
        let source = std::error::Error::source(error);
        let source = source.and_then(|source| source.downcast_ref::<io::Error>());
        let kinds = [NotConnected, PermissionDenied, ResourceBusy, TimedOut];
        self.far && source.is_some_and(|source| kinds.contains(&source.kind()))
    }
}

/// How many bytes some pieces have.
fn bytes(cut: Blocks, pieces: &Range<u64>) -> u64 {
    let bytes = cut.range(pieces.clone());
    bytes.end - bytes.start
}

/// Collective: reads all of an array, and says what of it is wrong; every rank
/// gets the same answer. `progress` gets the bytes as this rank reads them. What is wrong with a
/// piece is in the answer; that the server of an array far away cannot be asked is an
/// error.
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
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Verified> {
    // 1. Who looks at what.
    let pieces = Pieces::of(array);
    let cut = comm.agree(pieces.cut(array))?;
    // A chunk is in memory as it is stored, and decoded.
    let need = (2 * cut.block).max(PIECE);
    let budget = budget.for_rank(comm);
    comm.agree(budget.require(need, "verifying an array"))?;
    let own = share(comm, cut.count());
    // 2. What of it is wrong.
    let name = array.name();
    let look = Look {
        array,
        pieces,
        cut,
        far: Address::is_one(name.strip_prefix("raw:").unwrap_or(name)),
        room: budget.limit() / 2,
        progress,
    };
    let found = comm.agree(look.at(own))?;
    // 3. All get to know.
    let told = serde_json::to_vec(&found).map_err(|error| Error::Invalid(error.to_string()));
    let told = comm.all_gatherv(&comm.agree(told)?)?;
    let read = |found: &Vec<u8>| serde_json::from_slice::<Found>(found);
    let all: Result<Vec<_>, _> = told.iter().map(read).collect();
    let all = all.map_err(|error| Error::Invalid(error.to_string()))?;
    let (mut faults, mut unstored) = (Faults::default(), 0);
    for found in all {
        unstored += found.unstored;
        faults.join(found.faults);
    }
    Ok(Verified {
        checks: look.pieces.checks(array),
        bytes: cut.bytes,
        pieces: cut.count(),
        piece: cut.block,
        unstored,
        faults: faults.listed.into_values().collect(),
        unlisted: faults.unlisted,
    })
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

/// So many blocks of an unfinished array are looked at before an interruption is.
const BETWEEN_LOOKS: usize = 256;

/// Takes all blocks of an unfinished array as they are, if it has checksums: those that
/// are wrong would stay so, since parts of them are written again at different times.
/// Calls `distrust` before, if some are damaged and not only interrupted.
pub(crate) fn accept_unfinished(array: &Array, distrust: &dyn Fn() -> Result<()>) -> Result<()> {
    let Some(checked) = (**array.store()).as_checked() else {
        return Ok(());
    };
    let (mut wrong, mut damaged) = (Vec::new(), false);
    let count = checked.blocks()?.count();
    for first in (0..count).step_by(BETWEEN_LOOKS) {
        interrupt::check()?;
        checked.examine(
            first..count.min(first + BETWEEN_LOOKS as u64),
            &mut |block, fault| {
                wrong.push(block);
                damaged |= fault == BlockFault::Damaged;
            },
        )?;
    }
    if damaged {
        distrust()?;
    }
    Ok(wrong
        .into_iter()
        .try_for_each(|block| checked.accept(block))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damaged(piece: u64) -> Fault {
        Fault {
            pieces: piece..piece + 1,
            bytes: piece * 8..piece * 8 + 8,
            problem: Problem::Damaged,
        }
    }

    #[test]
    fn adjacent_pieces_are_one_in_whatever_order_they_come() {
        let mut faults = Faults::default();
        for piece in [4, 2, 9, 3, 0, 5, 8] {
            faults.note(damaged(piece));
        }
        let found: Vec<_> = faults.listed.into_values().collect();
        let pieces: Vec<_> = found.iter().map(|fault| fault.pieces.clone()).collect();
        assert_eq!(pieces, [0..1, 2..6, 8..10]);
        assert_eq!(found[1].bytes, 16..48);
    }

    #[test]
    fn of_very_many_stretches_the_first_are_listed() {
        let count = 3 * MOST_LISTED as u64;
        let (mut odd, mut faults) = (Faults::default(), Faults::default());
        for at in (0..count).rev() {
            let own = if at % 2 == 1 { &mut odd } else { &mut faults };
            own.note(damaged(2 * at));
        }
        faults.join(odd);
        assert_eq!(faults.listed.len(), MOST_LISTED);
        assert_eq!(faults.unlisted, count - MOST_LISTED as u64);
        let last = faults.listed.last_key_value();
        assert_eq!(last.map(|(at, _)| *at), Some(2 * (MOST_LISTED as u64 - 1)));
    }
}
