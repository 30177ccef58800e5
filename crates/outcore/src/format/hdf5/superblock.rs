//! The superblock: where an HDF5 file begins, how wide its numbers are, and
//! where its root group is.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use outcore_storage::Store;

use super::checksum::lookup3;
use super::end_of_file::EndOfFile;
use super::object_header::{ObjectHeader, kind};
use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// What every HDF5 file begins with, at offset 0 or behind a user block.
pub(crate) const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// User blocks longer than this are not looked behind.
const LONGEST_USER_BLOCK: u64 = 1 << 30;

/// Flags of the newest superblock: open for writing, alone or with others who read.
const IN_USE: u8 = 1 | 4;

/// A file and the address of its root group's object header.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) source: Source,
    pub(crate) root: u64,
    /// Where it says where it ends.
    pub(crate) end: EndOfFile,
    /// Whether it says that somebody has it open for writing.
    pub(crate) in_use: bool,
    /// The object header of what a newer superblock says besides.
    pub(crate) extension: Option<u64>,
    /// Whether it says of itself where it begins.
    pub(crate) begins_at_base: bool,
    /// The paths of its objects by their addresses, if somebody asked.
    pub(super) paths: OnceLock<HashMap<u64, String>>,
}

/// Finds the superblock of `store`, or `None` if it is not an HDF5 file.
fn find(store: &dyn Store) -> Parsed<Option<u64>> {
    let len = store.len()?;
    let mut start = 0;
    while start + SIGNATURE.len() as u64 <= len && start <= LONGEST_USER_BLOCK {
        let mut found = [0; SIGNATURE.len()];
        store.read_at(start, &mut found)?;
        if found == SIGNATURE {
            return Ok(Some(start));
        }
        start = (start * 2).max(512);
    }
    Ok(None)
}

impl File {
    pub(crate) fn open(store: Arc<dyn Store>) -> Parsed<Self> {
        let start = find(&*store)?
            .ok_or("this is not an HDF5 file: it does not begin with \\x89HDF\\r\\n\\x1a\\n")?;
        let mut source = Source::new(store)?;
        let bytes = source.read_up_to(start, 128)?;
        let mut fields = Fields::little("the superblock", &bytes);
        fields.skip(SIGNATURE.len())?;
        let version = fields.u8()?;
        let mut in_use = false;
        let (offset_size, length_size) = match version {
            0 | 1 => {
                fields.skip(4)?;
                let sizes = (fields.u8()?, fields.u8()?);
                // Reserved, sizes of group nodes, flags.
                fields.skip(9)?;
                if version == 1 {
                    fields.skip(4)?;
                }
                sizes
            }
            2 | 3 => {
                let sizes = (fields.u8()?, fields.u8()?);
                let flags = fields.u8()?;
                in_use = version == 3 && flags & IN_USE != 0;
                sizes
            }
            _ => {
                return Err(
                    format!("its superblock has version {version}; known are 0 to 3").into(),
                );
            }
        };
        for size in [offset_size, length_size] {
            if !matches!(size, 2 | 4 | 8) {
                return Err(format!("numbers of {size} bytes are not known").into());
            }
        }
        source.offset_size = offset_size.into();
        source.length_size = length_size.into();
        let base = source.defined(&mut fields)?;
        let second = source.address(&mut fields)?;
        let end_at = bytes.len() - fields.rest().len();
        source.address(&mut fields)?;
        let mut end = EndOfFile {
            offset: start + end_at as u64,
            width: source.offset_size,
            moved: start.wrapping_sub(base),
            covered: None,
        };
        let mut extension = None;
        let root = if version < 2 {
            // Of a driver.
            source.address(&mut fields)?;
            // The root group's symbol table entry begins with a name.
            source.address(&mut fields)?;
            source.defined(&mut fields)?
        } else {
            extension = second;
            let root = source.defined(&mut fields)?;
            let covered = bytes.len() - fields.rest().len();
            check(&bytes[..covered], fields.u32()?, "the superblock")?;
            end.covered = Some((start, covered));
            root
        };
        // Where it was found counts: a user block may have come or gone since.
        source.base = start;
        let file = Self {
            source,
            root,
            end,
            in_use,
            extension,
            begins_at_base: base == start,
            paths: OnceLock::new(),
        };
        if file.says(kind::CACHE_IMAGE)? {
            return Err(
                "it was closed with an image of its metadata, which is newer than they are and is \
                 not read; h5repack makes a copy without one"
                    .into(),
            );
        }
        Ok(file)
    }

    /// Whether a newer superblock has a message of this kind besides.
    pub(crate) fn says(&self, kind: u16) -> Parsed<bool> {
        match self.extension {
            Some(address) => Ok(ObjectHeader::read(&self.source, address)?.has(kind)),
            None => Ok(false),
        }
    }

    /// The first address behind the offset `end` at which an object can begin.
    pub(crate) fn free(&self, end: u64) -> Parsed<u64> {
        let address = end.checked_sub(self.source.base);
        let address = address.and_then(|address| address.checked_next_multiple_of(8));
        address.ok_or_else(|| "the file says that it ends before it begins; it is damaged".into())
    }

    /// Makes the group at the address `root` the root, and the offset `end` the end, in
    /// one write. Addresses have 8 bytes; the caller keeps out others who change the
    /// superblock.
    pub(crate) fn set_root(&self, root: u64, end: u64) -> outcore_storage::Result<()> {
        let store = self.source.store();
        let (offset, bytes) = self.end.with_root(&**store, end, root)?;
        store.write_at(offset, &bytes)
    }
}

/// Fails unless `bytes` have this checksum.
pub(crate) fn check(bytes: &[u8], expected: u32, what: &str) -> Parsed<()> {
    if lookup3(bytes) == expected {
        return Ok(());
    }
    Err(format!("the checksum of {what} is wrong; the file is damaged").into())
}
