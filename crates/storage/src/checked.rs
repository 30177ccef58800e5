//! [`CheckedStore`]: a store whose blocks have checksums, which are kept up to
//! date by writes and compared by reads.
//!
//! The bytes are cut into blocks of one length. Beside the data there is a
//! second store with an entry for each block ([`Sums`]): the CRC32C of the block,
//! as if it were filled up with zeros where the data end, so that extending a
//! store with zeros changes no checksum. A block that was never written has no
//! checksum and must hold zeros; so a sparse array needs no pass over it.
//!
//! The path of a read. Blocks that are wanted whole are read into the caller's
//! buffer and compared there; those wanted in part are read whole into a buffer
//! aside, compared, and the bytes are copied out. At most [`ROUND`] bytes (or one
//! block) at a time, so that what is compared is still in the processor's cache,
//! and that is all the memory it takes. Nothing is kept: others may write. The
//! store cannot be mapped, since nobody would compare what a mapping shows.
//!
//! The path of a write, for at most [`ROUND`] bytes of blocks that follow one
//! another:
//!
//! 1. an exclusive lock of their *entries*;
//! 2. of a block that is covered in part, the old bytes of what is written are read,
//!    and the new checksum is the old one with what that changes; if the parts are
//!    many, all of the block is read and compared, and the checksum of old and new
//!    together is computed, in memory;
//! 3. the entries say "being written";
//! 4. the data are written: the caller's bytes, nothing else;
//! 5. the entries get the checksums; the lock is let go.
//!
//! Writers of different elements of one block, be they threads, ranks or other
//! programs, come one after the other, because they all lock its entry. The lock
//! is of the store of checksums. A caller may hold a lock of the data meanwhile
//! (who sieves does), and whoever holds a lock of entries waits for nothing else;
//! so there is no deadlock, and the rule that a thread holds one lock of a store
//! at a time is kept. Readers take no lock. What does not match may just be
//! between 3 and 5: it is read again under a shared lock of the entry, and only
//! what does not match then is wrong.
//!
//! What a crash leaves. If the program dies between 3 and 5, or the write of the
//! data fails, the entries stay "being written": the blocks are *interrupted*, not
//! damaged. What was being written may be old, new, or in part of each; the rest
//! of the block is as it was, but nothing proves it. Reading an interrupted block
//! is an error that says so. If the system dies, blocks
//! written since the last [`sync`](Store::sync) may be anything, and are found as
//! damaged: their data or their entries may have been lost, one without the
//! other. `sync` brings first the data, then the checksums to stable storage.
//!
//! What is wrong stays wrong until it is right. Writing all of a damaged or
//! interrupted block makes it sound. Writing a part is allowed, so that programs can
//! write again what was lost in whatever pieces they have, but the block stays what
//! it is, since the part says nothing about the rest; [`CheckedStore::accept`]
//! takes it as it is. Who reads a block to write it back, as sieving does, fails.
//!
//! If the disk is full, step 3 fails first, as long as entries have no room of
//! their own yet, and nothing is changed.

mod change;
mod reads;
mod rounds;
mod sums;
mod writes;

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use self::rounds::Rounds;
use self::sums::{ENTRY, Entry, Sums};
use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::forward::forward;
use crate::store::{Own, ReadRequest, Store, WriteRequest, check_range};

/// The most bytes that are moved between two looks at the checksums, unless one
/// block is longer.
const ROUND: u64 = 1 << 20;

/// The shortest and the longest block.
const LENGTHS: (u64, u64) = (64, 16 << 20);

/// What is wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockFault {
    /// It is not what was written.
    Damaged,
    /// Who wrote it did not come to the end.
    Interrupted,
}

/// Says what the bytes of a store are, as in "section [0:4, :] of grid.oc".
#[derive(Clone)]
struct Meaning(Arc<dyn Fn(Range<u64>) -> String + Send + Sync>);

impl fmt::Debug for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meaning")
    }
}

/// A store whose blocks have checksums.
#[derive(Debug)]
pub struct CheckedStore {
    data: Arc<dyn Store>,
    sums: Sums,
    block: u64,
    /// The checksum of a block of zeros.
    of_zeros: u32,
    meaning: Option<Meaning>,
    /// Buffers for blocks that are wanted in part.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl CheckedStore {
    /// The bytes of `data`, whose blocks of `block` bytes have their checksums in
    /// `sums`. Two empty stores make an empty one.
    pub fn new(data: Arc<dyn Store>, sums: Arc<dyn Store>, block: u64) -> Result<Self> {
        let refuse = |reason: String| Error::Settings {
            store: "CheckedStore",
            reason,
        };
        if let Some(problem) = Self::problem_of(block) {
            return Err(refuse(problem));
        }
        if sums.lock(0, 0)?.is_none() {
            return Err(refuse(format!("{} has no locks", sums.name())));
        }
        Ok(Self {
            data,
            sums: Sums { store: sums },
            block,
            of_zeros: padded(0, 0, block),
            meaning: None,
            spare: Mutex::default(),
        })
    }

    /// The same store, whose errors say what `meaning` says of damaged bytes.
    pub fn with_meaning(
        mut self,
        meaning: impl Fn(Range<u64>) -> String + Send + Sync + 'static,
    ) -> Self {
        self.meaning = Some(Meaning(Arc::new(meaning)));
        self
    }

    /// What is wrong with this length of blocks.
    pub fn problem_of(block: u64) -> Option<String> {
        let (least, most) = LENGTHS;
        let possible = (least..=most).contains(&block);
        (!possible).then(|| {
            format!("blocks with a checksum have {least} to {most} bytes (16 MiB), not {block}")
        })
    }

    /// The length of the store of checksums of so many bytes of data.
    pub fn sums_len(blocks: Blocks) -> u64 {
        blocks.count() * ENTRY
    }

    /// How the data are cut into blocks now.
    pub fn blocks(&self) -> Result<Blocks> {
        let (bytes, block) = (self.data.len()?, self.block);
        Ok(Blocks { bytes, block })
    }

    /// Compares `blocks` with their checksums; `see` gets each that is not as it
    /// should be. Fails if bytes cannot be read.
    pub fn examine(&self, blocks: Range<u64>, see: &mut dyn FnMut(u64, BlockFault)) -> Result<()> {
        let mut buffer = self.take_spare();
        let mut first = blocks.start;
        while first < blocks.end {
            let round = first..blocks.end.min(first + self.per_round());
            let bytes = self.blocks()?.range(round.clone());
            grow(&mut buffer, (bytes.end - bytes.start) as usize);
            let buffer = &mut buffer[..(bytes.end - bytes.start) as usize];
            let entries = self.sums.read(std::slice::from_ref(&round))?;
            self.data.read_at(bytes.start, buffer)?;
            let pieces = buffer.chunks_mut(self.block as usize);
            for ((block, piece), entry) in round.clone().zip(pieces).zip(entries) {
                if self.fault(entry, self.sum(piece)).is_none() {
                    continue;
                }
                if let (_, Some(fault)) = self.read_held(block)? {
                    see(block, fault);
                }
            }
            first = round.end;
        }
        self.give_spare(buffer);
        Ok(())
    }

    /// Takes a block as it is now: it gets the checksum of what it holds.
    pub fn accept(&self, block: u64) -> Result<()> {
        let _alone = self.sums.lock(block..block + 1)?;
        let bytes = self.read_raw(block)?;
        self.sums.write(block, &[Entry::Written(self.sum(&bytes))])
    }

    /// How many blocks are moved together.
    fn per_round(&self) -> u64 {
        (ROUND / self.block).max(1)
    }

    /// The checksum of a block that begins with `bytes` and is zero after them.
    fn sum(&self, bytes: &[u8]) -> u32 {
        padded(crc32c::crc32c(bytes), bytes.len() as u64, self.block)
    }

    /// What is wrong with a block that has the checksum `found`.
    fn fault(&self, entry: Entry, found: u32) -> Option<BlockFault> {
        let expected = match entry {
            Entry::Unwritten => self.of_zeros,
            Entry::Written(sum) => sum,
            Entry::Writing => return Some(BlockFault::Interrupted),
            Entry::Broken | Entry::Unknown => return Some(BlockFault::Damaged),
        };
        (expected != found).then_some(BlockFault::Damaged)
    }

    /// The bytes of a block, as far as there are some.
    fn read_raw(&self, block: u64) -> Result<Vec<u8>> {
        let range = self.blocks()?.range(block..block + 1);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.data.read_at(range.start, &mut bytes)?;
        Ok(bytes)
    }

    /// The bytes of a block that nobody writes meanwhile, and what is wrong.
    fn read_held(&self, block: u64) -> Result<(Vec<u8>, Option<BlockFault>)> {
        let _held = self.sums.hold(block..block + 1)?;
        let entry = self.sums.of(block)?;
        let bytes = self.read_raw(block)?;
        let fault = self.fault(entry, self.sum(&bytes));
        Ok((bytes, fault))
    }

    fn error(&self, block: u64, fault: BlockFault) -> Error {
        let bytes = match self.blocks() {
            Ok(blocks) => blocks.range(block..block + 1),
            Err(error) => return error,
        };
        let meaning = match &self.meaning {
            Some(Meaning(meaning)) => format!(" ({})", meaning(bytes.clone())),
            None => String::new(),
        };
        Error::Block {
            store: self.name(),
            block,
            bytes,
            meaning,
            fault,
        }
    }

    fn take_spare(&self) -> Vec<u8> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.pop().unwrap_or_default()
    }

    fn give_spare(&self, buffer: Vec<u8>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.push(buffer);
    }
}

/// Makes a buffer at least so long.
fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}

/// The checksum of what has the checksum `sum` and `len` bytes, filled up with
/// zeros to `block` bytes.
fn padded(mut sum: u32, len: u64, block: u64) -> u32 {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut left = block.saturating_sub(len);
    while left > 0 {
        let count = left.min(ZEROS.len() as u64);
        sum = crc32c::crc32c_append(sum, &ZEROS[..count as usize]);
        left -= count;
    }
    sum
}

impl Store for CheckedStore {
    forward!(data: name len cached fetch striping lock lock_shared time wait_until);
    forward!(data: announce_writing);

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.len().map_err(io::Error::other)?.saturating_sub(offset);
        let wanted = (buffer.len() as u64).min(left) as usize;
        self.read_at(offset, &mut buffer[..wanted])
            .map_err(io::Error::other)?;
        Ok(wanted)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.write_at(offset, data).map_err(io::Error::other)?;
        Ok(data.len())
    }

    fn fills_or_fails(&self, own: Own) -> bool {
        (*self.data).fills_or_fails(own)
    }

    /// Arrays never do this; a crash in between may leave blocks behind the new end
    /// that are found as damaged when the store is extended again.
    fn set_len(&self, len: u64) -> Result<()> {
        check_range(self, len, 0)?;
        let block = len / self.block;
        let _alone = self.sums.lock(block..i64::MAX as u64 / ENTRY)?;
        let cut_within = !len.is_multiple_of(self.block) && len < self.data.len()?;
        let kept = match cut_within {
            false => None,
            true => {
                let bytes = self.read_raw(block)?;
                let kept = &bytes[..(len - block * self.block) as usize];
                let entry = self.sums.of(block)?;
                let new = match self.fault(entry, self.sum(&bytes)) {
                    None => Entry::Written(self.sum(kept)),
                    Some(BlockFault::Damaged) => Entry::Broken,
                    Some(BlockFault::Interrupted) => Entry::Writing,
                };
                self.sums.write(block, &[Entry::Writing])?;
                Some(new)
            }
        };
        self.data.set_len(len)?;
        let blocks = Blocks {
            bytes: len,
            block: self.block,
        };
        self.sums.store.set_len(Self::sums_len(blocks))?;
        match kept {
            Some(entry) => self.sums.write(block, &[entry]),
            None => Ok(()),
        }
    }

    fn sync(&self) -> Result<()> {
        self.data.sync()?;
        self.sums.store.sync()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_batch(&mut [ReadRequest { offset, buffer }])
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_batch(&[WriteRequest { offset, data }])
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        let len = self.len()?;
        for request in requests.iter() {
            let (offset, wanted) = (request.offset, request.buffer.len());
            check_range(self, offset, wanted)?;
            if wanted > 0 && offset + wanted as u64 > len {
                return Err(Error::UnexpectedEnd {
                    store: self.name(),
                    offset,
                    wanted: wanted as u64,
                    end: len,
                });
            }
        }
        let pieces = requests
            .iter_mut()
            .map(|request| (request.offset, &mut *request.buffer));
        let mut scratch = self.take_spare();
        let mut rounds = Rounds::of(pieces, self.block, self.per_round(), false);
        let done = rounds.try_for_each(|round| self.read_round(round, len, &mut scratch));
        self.give_spare(scratch);
        done
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        for request in requests {
            check_range(self, request.offset, request.data.len())?;
        }
        let pieces = requests
            .iter()
            .map(|request| (request.offset, request.data));
        let mut scratch = self.take_spare();
        let mut rounds = Rounds::of(pieces, self.block, self.per_round(), true);
        let done = rounds.try_for_each(|round| self.write_round(&round, &mut scratch));
        self.give_spare(scratch);
        done
    }

    fn forget(&self) -> Result<()> {
        self.data.forget()?;
        self.sums.store.forget()
    }

    fn background(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(CheckedStore {
            data: self.data.background()?,
            sums: self.sums.clone(),
            meaning: self.meaning.clone(),
            spare: Mutex::default(),
            ..*self
        }))
    }

    fn as_checked(&self) -> Option<&CheckedStore> {
        Some(self)
    }
}
