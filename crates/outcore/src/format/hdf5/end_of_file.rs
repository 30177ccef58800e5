//! [`EndOfFile`]: the number in the superblock that says where the file ends, and
//! how space behind it is claimed.
//!
//! Libraries refuse a file that is shorter than this number, and read nothing
//! beyond it. So the file is made longer first, and the number follows; a program
//! that dies between leaves a file that is longer than it says, which is allowed.

use std::io;

use outcore_storage::{Error, Result, Store};

use super::checksum::lookup3;

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

    fn number<'a>(&self, block: &'a mut [u8]) -> &'a mut [u8] {
        let at = (self.offset - self.block().0) as usize;
        &mut block[at..][..self.width]
    }

    /// Where the file says that it ends.
    pub(crate) fn read(&self, store: &dyn Store) -> Result<u64> {
        let mut number = [0; 8];
        store.read_at(self.offset, &mut number[..self.width])?;
        Ok(u64::from_le_bytes(number).wrapping_add(self.moved))
    }

    /// Claims `len` bytes at the end of the file; returns where they begin. The
    /// caller keeps out others who claim.
    pub(crate) fn claim(&self, store: &dyn Store, len: u64) -> Result<u64> {
        let (start, covered) = self.block();
        let begin = self.read(store)?;
        let refused = |problem: String| {
            let source = io::Error::new(io::ErrorKind::InvalidData, problem);
            Error::write(store.name(), begin, source)
        };
        let found = store.len()?;
        if begin > found || begin <= self.offset {
            return Err(refused(format!(
                "the file has {found} bytes, but says that it has {begin}; it is truncated or damaged"
            )));
        }
        let most = (u64::MAX >> (64 - 8 * self.width)).min(i64::MAX as u64);
        let end = begin.checked_add(len);
        let end = end.filter(|end| (*end).max(end.wrapping_sub(self.moved)) < most);
        let end = end.ok_or_else(|| {
            refused(format!(
                "its addresses have {} bytes; there is no room behind it",
                self.width
            ))
        })?;
        if found < end {
            store.set_len(end)?;
        }
        let mut block = vec![0; covered];
        store.read_at(start, &mut block)?;
        let number = self.number(&mut block);
        let stated = end.wrapping_sub(self.moved).to_le_bytes();
        number.copy_from_slice(&stated[..self.width]);
        if self.covered.is_some() {
            let sum = lookup3(&block).to_le_bytes();
            block.extend(sum);
        }
        store.write_at(start, &block)?;
        Ok(begin)
    }
}
