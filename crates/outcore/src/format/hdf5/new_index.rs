//! The index of a new dataset with filters: a fixed array (HDF5 1.10 and later) with
//! an empty entry for every chunk, in pages that are short enough to be rewritten with
//! each chunk.

use outcore_storage::{Result, Store};

use super::checksum::lookup3;

/// A page has two to this power entries, about 4 KiB.
pub(super) const PAGE_BITS: u8 = 8;

/// Kind of entries: filtered chunks.
const FILTERED: u8 = 1;

const HEADER_LEN: u64 = 28;

/// What is written at a time.
const BATCH: usize = 1 << 20;

/// An index of entries that are all empty.
pub(super) struct NewIndex {
    /// How many chunks there are.
    pub(super) chunks: u64,
    /// Bytes of a chunk that no filter has changed.
    pub(super) chunk_bytes: u64,
}

impl NewIndex {
    /// Bytes of an entry: address, length, skipped filters. The length is as wide as
    /// the library takes it: a byte more than chunks need.
    fn entry_len(&self) -> usize {
        let width = 1 + (self.chunk_bytes.max(1).ilog2() as usize + 8) / 8;
        8 + width.min(8) + 4
    }

    fn page(&self) -> u64 {
        1 << PAGE_BITS
    }

    fn is_paged(&self) -> bool {
        self.chunks > self.page()
    }

    /// The bytes of the header and of the block of entries; `None` if they are too
    /// many to be counted.
    pub(super) fn len(&self) -> Option<u64> {
        let entries = self.chunks.checked_mul(self.entry_len() as u64)?;
        let pages = match self.is_paged() {
            true => self.chunks.div_ceil(self.page()),
            false => 0,
        };
        // A checksum behind the block's head, one behind each page.
        let sums = 4 * (pages + 1);
        (HEADER_LEN + 14 + pages.div_ceil(8))
            .checked_add(sums)?
            .checked_add(entries)
    }

    /// Writes it at an address of a file whose addresses count from `base`.
    pub(super) fn write(&self, store: &dyn Store, base: u64, address: u64) -> Result<()> {
        let block_address = address + HEADER_LEN;
        let mut head = b"FAHD\x00".to_vec();
        head.extend([FILTERED, self.entry_len() as u8, PAGE_BITS]);
        head.extend(self.chunks.to_le_bytes());
        head.extend(block_address.to_le_bytes());
        close(&mut head, 0);
        let block = head.len();
        head.extend(b"FADB\x00");
        head.push(FILTERED);
        head.extend(address.to_le_bytes());
        if !self.is_paged() {
            head.extend(self.entries(self.chunks));
            close(&mut head, block);
            return store.write_at(base + address, &head);
        }
        // Every page is written, so every bit is set.
        let pages = self.chunks.div_ceil(self.page());
        head.extend((0..pages.div_ceil(8)).map(|byte| match pages - 8 * byte {
            left @ 0..8 => !(0xff_u8 >> left),
            _ => 0xff,
        }));
        close(&mut head, block);
        store.write_at(base + address, &head)?;
        let page = self.closed_page(self.page());
        let at_once = (BATCH / page.len()).max(1);
        let batch = page.repeat(at_once);
        let mut place = base + address + head.len() as u64;
        let mut left = self.chunks / self.page();
        while left > 0 {
            let count = left.min(at_once as u64);
            let bytes = &batch[..count as usize * page.len()];
            store.write_at(place, bytes)?;
            place += bytes.len() as u64;
            left -= count;
        }
        match self.chunks % self.page() {
            0 => Ok(()),
            rest => store.write_at(place, &self.closed_page(rest)),
        }
    }

    fn closed_page(&self, count: u64) -> Vec<u8> {
        let mut page = self.entries(count);
        close(&mut page, 0);
        page
    }

    /// Entries of chunks that are not there: no address, no length.
    fn entries(&self, count: u64) -> Vec<u8> {
        let mut entry = vec![0xff; 8];
        entry.resize(self.entry_len(), 0);
        entry.repeat(count as usize)
    }
}

/// Puts the checksum of what begins at `from` behind it.
fn close(bytes: &mut Vec<u8>, from: usize) {
    let sum = lookup3(&bytes[from..]);
    bytes.extend(sum.to_le_bytes());
}
