//! [`CallBlocks`]: blocks on the disks of the ranks, each of which serves the
//! others by procedure calls (the paper's GPC-IO).
//!
//! The blocks of a tensor are a disk-resident array with one axis; whole blocks,
//! about as many elements each, are on the disk of each rank. What a rank reads
//! itself, as its own part and those of its node, and is in memory it reads when it needs
//! it; everything else is on its way while it multiplies. A long block that another rank holds arrives in its
//! buffer itself, without a copy: the reader's thread waits for the call.

use std::path::Path;
use std::sync::Arc;

use outcore::{Array, Blocks as Parts, Comm, DiskOptions, DiskResident, Disks, Procedures, Result};

use super::blocks::{Blocks, Fetch};
use super::file_blocks::{WARM, span};
use super::reader::{Reader, result_of};
use super::tensor::{BlockTensor, Place};
use crate::matmul::Number;

/// Blocks of fewer bytes are copied once more rather than handed from thread to
/// thread.
const LONG: usize = 64 << 10;

/// The packed elements of a tensor on the disks of the ranks.
#[derive(Debug)]
pub struct CallBlocks<T> {
    array: Arc<DiskResident<T>>,
    rank: usize,
    /// The first element of each rank's part, and the end.
    cuts: Vec<u64>,
    /// This rank's part.
    own: Option<Array>,
    reader: Reader,
}

impl<T: Number> CallBlocks<T> {
    /// Collective: makes a tensor of zeros, with the part of rank `r` in the
    /// subdirectory `disk` and `r` of `directory`.
    pub fn create(
        comm: &Comm,
        calls: &Procedures,
        directory: &Path,
        tensor: &BlockTensor,
    ) -> Result<Self> {
        let options = options(directory);
        let cuts = tensor.cuts(comm.size());
        let places: Vec<Place> = tensor.blocks().map(|(_, place)| place).collect();
        let lengths: Vec<u64> = places.iter().map(|place| place.len).collect();
        let holder = |block: &[u64]| {
            let start = places[block[0] as usize].start;
            Some(cuts.partition_point(|cut| *cut <= start) - 1)
        };
        let parts = Parts::new(&[lengths], comm.size(), holder);
        let parts = comm.agree(parts)?;
        let array = DiskResident::create(comm, calls, tensor.name(), parts, &options)?;
        Self::of(comm, array, cuts)
    }

    fn of(comm: &Comm, array: DiskResident<T>, cuts: Vec<u64>) -> Result<Self> {
        let own = array.parts().into_iter().next().map(|(_, own)| own);
        Ok(Self {
            array: Arc::new(array),
            rank: comm.rank(),
            cuts,
            own,
            reader: comm.agree(Reader::start())?,
        })
    }

    /// Whether this rank reads a block itself that the system has in memory; `None` if
    /// it asks another rank for it.
    fn is_warm(&self, place: Place) -> Result<Option<bool>> {
        let (start, end) = (self.cuts[self.rank], self.cuts[self.rank + 1]);
        let Some(own) = self
            .own
            .as_ref()
            .filter(|_| (start..end).contains(&place.start))
        else {
            let cached = self.array.cached(&span(place.start, place.len)?)?;
            return Ok(cached.map(|share| share >= WARM));
        };
        let cached = own.cached(&span(place.start - start, place.len)?)?;
        Ok(Some(cached.is_none_or(|share| share >= WARM)))
    }
}

/// Where the parts are.
fn options(directory: &Path) -> DiskOptions {
    let pattern = directory.join("disk{rank}").to_string_lossy().to_string();
    DiskOptions::new(Disks::pattern(pattern))
}

impl<T: Number> Blocks<T> for CallBlocks<T> {
    fn fetch(&self, place: Place, mut buffer: Vec<T>) -> Result<Fetch<'_, T>> {
        let section = span(place.start, place.len)?;
        match self.is_warm(place)? {
            // 1. Read here, and in memory.
            Some(true) => {
                return Ok(Fetch::new(move || {
                    self.array.get(&section, &mut buffer)?;
                    Ok(buffer)
                }));
            }
            // 2. Held elsewhere, and short.
            None if size_of_val(&buffer[..]) < LONG => {
                let coming = self.array.start_get(&section)?;
                return Ok(Fetch::new(move || {
                    coming.wait_into(&mut buffer)?;
                    Ok(buffer)
                }));
            }
            _ => {}
        }
        // 3. On a disk, or long.
        let array = Arc::clone(&self.array);
        let arrives = self.reader.give(move || {
            array.get(&section, &mut buffer)?;
            Ok(buffer)
        });
        Ok(Fetch::new(move || result_of(&arrives)))
    }

    fn store(&self, place: Place, values: &[T]) -> Result<()> {
        self.array.put(&span(place.start, place.len)?, values)
    }

    fn sync(&self) -> Result<()> {
        self.own.iter().try_for_each(Array::sync)
    }

    fn forget(&self) -> Result<()> {
        let mut own = self.own.iter();
        own.try_for_each(|array| Ok(array.store().forget()?))
    }
}
