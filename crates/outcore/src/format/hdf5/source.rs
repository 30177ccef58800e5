//! [`Source`]: the metadata of an HDF5 file, read from a store.
//!
//! Addresses count from the base of the file (behind a user block, if there is
//! one). Metadata are many small pieces close to one another, so they are read
//! in blocks that are kept. Lengths that a file states are checked against the
//! file before memory is taken.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use outcore_storage::{Store, cores};

use crate::format::fields::{Fields, Parsed};

/// Bytes of a block, and how many of them are kept in all.
const BLOCK: u64 = 16 << 10;
const KEPT: u64 = 4 << 20;

/// The same for a file that is far away: a store that answers more than `MANY`
/// requests at a time is.
const FAR_BLOCK: u64 = 256 << 10;
const MANY: usize = 16;

/// Pieces longer than this are not believed; nor are lists of chunks.
const LONGEST: u64 = 16 << 20;
const LONGEST_LIST: u64 = 1 << 30;

/// Collections of values of more bytes are not looked through in all.
const MOST_SEARCHED: u64 = 2 << 30;

/// An HDF5 file whose metadata are read.
#[derive(Debug)]
pub(crate) struct Source {
    store: Arc<dyn Store>,
    len: u64,
    /// Where address 0 is.
    pub(crate) base: u64,
    /// Bytes of an address.
    pub(crate) offset_size: usize,
    /// Bytes of a length.
    pub(crate) length_size: usize,
    block: u64,
    blocks: Mutex<HashMap<u64, Arc<[u8]>>>,
    /// Bytes of collections that were looked through.
    searched: AtomicU64,
}

impl Source {
    pub(crate) fn new(store: Arc<dyn Store>) -> Parsed<Self> {
        let len = store.len()?;
        let far = store.parallel() > MANY.max(cores());
        Ok(Self {
            block: if far { FAR_BLOCK } else { BLOCK },
            store,
            len,
            base: 0,
            offset_size: 8,
            length_size: 8,
            blocks: Mutex::default(),
            searched: AtomicU64::new(0),
        })
    }

    /// Notes that a collection of `len` bytes is looked through for one value; fails
    /// if there were too many, as values may all lead to one that is long.
    pub(crate) fn search(&self, len: u64) -> Parsed<()> {
        match self.searched.fetch_add(len, Ordering::Relaxed) {
            before if before < MOST_SEARCHED => Ok(()),
            _ => {
                Err("values of variable length lead to too many bytes; the file is damaged".into())
            }
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The bytes of the file.
    pub(crate) fn file_len(&self) -> u64 {
        self.len
    }

    /// Where an address is in the file.
    pub(crate) fn place(&self, address: u64) -> Parsed<u64> {
        let place = self.base.checked_add(address);
        let place = place.filter(|place| *place <= self.len);
        place.ok_or_else(|| {
            format!(
                "address {address} is beyond the end of the file; the file is truncated or damaged"
            )
            .into()
        })
    }

    /// The `len` bytes at `address`.
    pub(crate) fn read(&self, address: u64, len: u64) -> Parsed<Vec<u8>> {
        self.read_at_most(address, len, LONGEST)
    }

    /// As `read`, for lists of chunks, which may be long.
    pub(crate) fn read_long(&self, address: u64, len: u64) -> Parsed<Vec<u8>> {
        self.read_at_most(address, len, LONGEST_LIST)
    }

    fn read_at_most(&self, address: u64, len: u64, most: u64) -> Parsed<Vec<u8>> {
        let start = self.place(address)?;
        if len > self.len - start {
            return Err(format!(
                "{len} bytes of metadata are missing at offset {start}, but the file has only \
                 {} bytes; it is truncated or damaged",
                self.len
            )
            .into());
        }
        if len > most {
            return Err(format!(
                "a piece of metadata of {len} bytes at offset {start} is not believed"
            )
            .into());
        }
        let mut bytes = vec![0; len as usize];
        if len > self.block {
            self.store.read_at(start, &mut bytes)?;
            return Ok(bytes);
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = start + done as u64;
            let block = self.block_of(at / self.block)?;
            let from = (at % self.block) as usize;
            let count = (block.len() - from).min(bytes.len() - done);
            bytes[done..done + count].copy_from_slice(&block[from..from + count]);
            done += count;
        }
        Ok(bytes)
    }

    /// As `read`, but no more than the file has.
    pub(crate) fn read_up_to(&self, address: u64, len: u64) -> Parsed<Vec<u8>> {
        let start = self.place(address)?;
        self.read(address, len.min(self.len - start))
    }

    fn block_of(&self, index: u64) -> Parsed<Arc<[u8]>> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = blocks.get(&index) {
            return Ok(Arc::clone(block));
        }
        let start = index * self.block;
        let mut bytes = vec![0; (self.len - start).min(self.block) as usize];
        self.store.read_at(start, &mut bytes)?;
        if blocks.len() as u64 >= KEPT / self.block {
            blocks.clear();
        }
        let block: Arc<[u8]> = bytes.into();
        blocks.insert(index, Arc::clone(&block));
        Ok(block)
    }

    /// The next address; `None` if it is undefined.
    pub(crate) fn address(&self, fields: &mut Fields<'_>) -> Parsed<Option<u64>> {
        let address = fields.uint(self.offset_size)?;
        let undefined = u64::MAX >> (64 - 8 * self.offset_size);
        Ok((address != undefined).then_some(address))
    }

    /// The next address, which must be defined.
    pub(crate) fn defined(&self, fields: &mut Fields<'_>) -> Parsed<u64> {
        let address = self.address(fields)?;
        address.ok_or_else(|| "an address is missing; the file is damaged".into())
    }

    /// The next length.
    pub(crate) fn length(&self, fields: &mut Fields<'_>) -> Parsed<u64> {
        fields.uint(self.length_size)
    }
}
