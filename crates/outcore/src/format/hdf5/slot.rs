//! [`Slot`]: where the entry of a chunk stands in an index, so that it can be
//! changed in its place.
//!
//! All indexes have the same three numbers of a filtered chunk: its address, its
//! bytes, and a bit for each filter that was skipped. Newer ones keep them in a
//! block with a checksum behind it, which changes with the entry.

use outcore_storage::{Result, Store};

use super::checksum::lookup3;
use super::chunk_index::Place;

/// The entry of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Where it begins in the file.
    pub(crate) offset: u64,
    pub(crate) form: Form,
    /// Where the bytes begin that a checksum covers, and how many they are; the
    /// checksum follows them. `None`: there is no checksum.
    pub(crate) covered: Option<(u64, u32)>,
}

/// How the numbers of an entry follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Address, bytes in so many bytes, skipped filters.
    AddressFirst {
        /// Bytes of the number of bytes.
        width: u8,
    },
    /// Bytes, skipped filters, something that stays, address.
    LengthFirst {
        /// Bytes of the number of bytes.
        width: u8,
        /// Bytes of what stays.
        gap: u16,
    },
}

/// How addresses of a file are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    /// Where address 0 is in the file.
    pub(crate) base: u64,
    /// Bytes of an address.
    pub(crate) size: usize,
}

impl Addresses {
    fn undefined(self) -> u64 {
        u64::MAX >> (64 - 8 * self.size)
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

impl Form {
    /// Where the address, the bytes and the skipped filters begin, and where the
    /// entry ends.
    fn parts(self, address: usize) -> ([usize; 3], usize) {
        match self {
            Self::AddressFirst { width } => {
                let mask = address + usize::from(width);
                ([0, address, mask], mask + 4)
            }
            Self::LengthFirst { width, gap } => {
                let mask = usize::from(width);
                let at = mask + 4 + usize::from(gap);
                ([at, 0, mask], at + address)
            }
        }
    }

    fn width(self) -> usize {
        match self {
            Self::AddressFirst { width } | Self::LengthFirst { width, .. } => width.into(),
        }
    }
}

impl Slot {
    /// The most bytes that a chunk of this entry may have.
    pub(crate) fn most(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.form.width().clamp(1, 8))
    }

    /// What the entry says; `None` if the chunk is not there.
    pub(crate) fn read(&self, store: &dyn Store, addresses: Addresses) -> Result<Option<Place>> {
        let ([address, len, mask], end) = self.form.parts(addresses.size);
        let mut entry = vec![0; end];
        store.read_at(self.offset, &mut entry)?;
        let address = number(&entry[address..][..addresses.size]);
        if address == addresses.undefined() {
            return Ok(None);
        }
        Ok(Some(Place {
            offset: addresses.base.saturating_add(address),
            len: number(&entry[len..][..self.form.width()]),
            skipped: number(&entry[mask..][..4]) as u32,
        }))
    }

    /// Changes the entry, and the checksum with it, in one write, which begins at the
    /// entry: so a program that dies in it leaves what comes before as it was. The caller
    /// keeps out others who change the same block.
    pub(crate) fn write(
        &self,
        store: &dyn Store,
        addresses: Addresses,
        place: Place,
    ) -> Result<()> {
        let ([address, len, mask], end) = self.form.parts(addresses.size);
        let change = |entry: &mut [u8]| {
            let bytes = (place.offset - addresses.base).to_le_bytes();
            entry[address..][..addresses.size].copy_from_slice(&bytes[..addresses.size]);
            let width = self.form.width();
            entry[len..][..width].copy_from_slice(&place.len.to_le_bytes()[..width]);
            entry[mask..][..4].copy_from_slice(&place.skipped.to_le_bytes());
        };
        let Some((start, covered)) = self.covered else {
            let mut entry = vec![0; end];
            store.read_at(self.offset, &mut entry)?;
            change(&mut entry);
            return store.write_at(self.offset, &entry);
        };
        let mut block = vec![0; covered as usize + 4];
        store.read_at(start, &mut block)?;
        let (bytes, sum) = block.split_at_mut(covered as usize);
        let at = (self.offset - start) as usize;
        change(&mut bytes[at..][..end]);
        sum.copy_from_slice(&lookup3(bytes).to_le_bytes());
        store.write_at(self.offset, &block[at..])
    }

    /// Whether the entry lies in the block that its checksum covers.
    pub(crate) fn is_inside(&self, address: usize) -> bool {
        let (_, end) = self.form.parts(address);
        let Some((start, covered)) = self.covered else {
            return true;
        };
        let entry_end = self.offset.checked_add(end as u64);
        self.offset >= start
            && entry_end.is_some_and(|end| end <= start.saturating_add(covered.into()))
    }
}
