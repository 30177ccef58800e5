//! [`EndOfFile`]: the number in the superblock that says where the file ends, and
//! how space behind it is claimed.
//!
//! Libraries refuse a file that is shorter than this number, and read nothing
//! beyond it. So the file is made longer first, and the number follows; a program
//! that dies between leaves a file that is longer than it says, which is allowed.

use std::io;

use outcore_storage::{Error, Result, Store};

use super::checksum::lookup3;

/// In older superblocks the number is followed by the address of a driver's settings and
/// the entry of the root group: where its name is, its address, what is kept of it. So
/// many bytes behind the number's beginning that ends, if addresses have 8 bytes.
const ENTRY_END: usize = 8 + 8 + 8 + 8 + 24;

/// Where the number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndOfFile {
    /// Where in the file.
    pub(crate) offset: u64,
    /// Its bytes.
    pub(crate) width: usize,
    /// How far behind where the file says that it begins it does begin (wrapping): a user
    /// block may have been put before it, or taken away, since the number was written.
    pub(crate) moved: u64,
    /// Where the bytes begin that a checksum covers, and how many they are; the
    /// checksum follows them. `None`: there is no checksum.
    pub(crate) covered: Option<(u64, usize)>,
}

impl EndOfFile {
    /// Where the block begins that is changed with the number, and its bytes without
    /// the checksum.
    fn block(&self) -> (u64, usize) {
        self.covered.unwrap_or((self.offset, self.width))
    }

    fn put(&self, block: &mut [u8], end: u64) {
        let at = (self.offset - self.block().0) as usize;
        let stated = end.wrapping_sub(self.moved).to_le_bytes();
        block[at..][..self.width].copy_from_slice(&stated[..self.width]);
    }

    /// Where the file says that it ends.
    pub(crate) fn read(&self, store: &dyn Store) -> Result<u64> {
        let mut number = [0; 8];
        store.read_at(self.offset, &mut number[..self.width])?;
        Ok(u64::from_le_bytes(number).wrapping_add(self.moved))
    }

    /// The same; fails if the file is shorter, or ends before this is said.
    pub(crate) fn checked(&self, store: &dyn Store) -> Result<u64> {
        let (end, found) = (self.read(store)?, store.len()?);
        if end <= found && end > self.offset {
            return Ok(end);
        }
        let problem = format!(
            "the file has {found} bytes, but says that it has {end}; it is truncated or damaged"
        );
        let source = io::Error::new(io::ErrorKind::InvalidData, problem);
        Err(Error::write(store.name(), end, source))
    }

    /// Claims `len` bytes at the end of the file; returns where they begin. The
    /// caller keeps out others who claim.
    pub(crate) fn claim(&self, store: &dyn Store, len: u64) -> Result<u64> {
        let (start, covered) = self.block();
        let begin = self.checked(store)?;
        let refused = |problem: String| {
            let source = io::Error::new(io::ErrorKind::InvalidData, problem);
            Error::write(store.name(), begin, source)
        };
        let most = (u64::MAX >> (64 - 8 * self.width)).min(i64::MAX as u64);
        let end = begin.checked_add(len);
        let end = end.filter(|end| (*end).max(end.wrapping_sub(self.moved)) < most);
        let end = end.ok_or_else(|| {
            refused(format!(
                "its addresses have {} bytes; there is no room behind it",
                self.width
            ))
        })?;
        if store.len()? < end {
            store.set_len(end)?;
        }
        let mut block = vec![0; covered];
        store.read_at(start, &mut block)?;
        self.put(&mut block, end);
        if self.covered.is_some() {
            let sum = lookup3(&block).to_le_bytes();
            block.extend(sum);
        }
        store.write_at(start, &block)?;
        Ok(begin)
    }

    /// The write that changes the number and the address of the root group at once:
    /// where, and the bytes. Both have 8 bytes.
    pub(crate) fn with_root(
        &self,
        store: &dyn Store,
        end: u64,
        root: u64,
    ) -> Result<(u64, Vec<u8>)> {
        let (start, covered) = self.block();
        let mut block = vec![
            0;
            if self.covered.is_some() {
                covered
            } else {
                ENTRY_END
            }
        ];
        store.read_at(start, &mut block)?;
        self.put(&mut block, end);
        match self.covered {
            Some(_) => {
                block[covered - 8..].copy_from_slice(&root.to_le_bytes());
                let sum = lookup3(&block).to_le_bytes();
                block.extend(sum);
            }
            None => {
                // Nothing is kept of the group in its entry.
                block[ENTRY_END - 32..].fill(0);
                block[ENTRY_END - 32..][..8].copy_from_slice(&root.to_le_bytes());
            }
        }
        Ok((start, block))
    }
}
