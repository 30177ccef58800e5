//! [`TiffFile`] and [`Directory`]: the tags of each page.
//!
//! A file begins with its byte order and the place of the first directory. A
//! directory is a list of entries (tag, type, number of values, and the values or
//! where they are) and the place of the next one. BigTIFF is the same with wider
//! numbers. Nothing is read that the file does not have, and no more than
//! [`LONGEST`] bytes at a time.

use std::sync::Arc;

use outcore_storage::Store;

use crate::element::ByteOrder;
use crate::format::fields::{Fields, Parsed, text_of};

/// Lists of values longer than this are not believed.
const LONGEST: u64 = 64 << 20;

/// Directories of more entries are not believed.
const MOST_ENTRIES: u64 = 4096;

/// Longer texts are not shown.
const LONGEST_TEXT: u64 = 1 << 20;

/// A file whose directories are read.
#[derive(Debug)]
pub(super) struct TiffFile {
    pub(super) store: Arc<dyn Store>,
    pub(super) len: u64,
    pub(super) order: ByteOrder,
    /// Whether offsets have 8 bytes (BigTIFF).
    wide: bool,
}

/// The tags of a page.
#[derive(Debug)]
pub(super) struct Directory {
    entries: Vec<Entry>,
    /// Where the next directory is; 0 if there is none.
    pub(super) next: u64,
}

#[derive(Debug)]
struct Entry {
    tag: u16,
    /// The bytes of a value, and whether it is a number without a sign.
    size: u64,
    whole: bool,
    count: u64,
    /// The values if there is room for them, or where they are.
    field: Vec<u8>,
}

/// Whether a file begins so.
pub(super) fn is_magic(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..]
    )
}

impl TiffFile {
    /// The file, and where its first directory is.
    pub(super) fn open(store: Arc<dyn Store>) -> Parsed<(Self, u64)> {
        let len = store.len()?;
        let mut start = vec![0; len.min(16) as usize];
        store.read_at(0, &mut start)?;
        if !is_magic(&start) {
            return Err("it does not begin as TIFF files do".into());
        }
        let order = match start[0] {
            b'I' => ByteOrder::Little,
            _ => ByteOrder::Big,
        };
        let mut fields = Fields::new("the beginning of the file", &start[2..], order);
        let wide = fields.u16()? == 43;
        if wide && (fields.u16()?, fields.u16()?) != (8, 0) {
            return Err("its offsets do not have 8 bytes; the file is damaged".into());
        }
        let first = fields.uint(if wide { 8 } else { 4 })?;
        let file = Self {
            store,
            len,
            order,
            wide,
        };
        Ok((file, first))
    }

    /// The `len` bytes at `at`.
    fn read(&self, at: u64, len: u64) -> Parsed<Vec<u8>> {
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(format!(
                "{len} bytes are missing at offset {at}; the file is truncated or damaged"
            )
            .into());
        }
        if len > LONGEST {
            return Err(format!("a list of {len} bytes at offset {at} is not believed").into());
        }
        let mut bytes = vec![0; len as usize];
        self.store.read_at(at, &mut bytes)?;
        Ok(bytes)
    }

    fn fields<'a>(&self, bytes: &'a [u8]) -> Fields<'a> {
        Fields::new("a directory", bytes, self.order)
    }

    /// The directory at `at`.
    pub(super) fn directory(&self, at: u64) -> Parsed<Directory> {
        let (head, entry_len, width) = match self.wide {
            true => (8, 20, 8),
            false => (2, 12, 4),
        };
        let count = self.fields(&self.read(at, head)?).uint(head as usize)?;
        if count > MOST_ENTRIES {
            return Err(format!("a directory of {count} entries is not believed").into());
        }
        // The first has been read, so this is inside the file.
        let bytes = self.read(at + head, count * entry_len + width)?;
        let mut fields = self.fields(&bytes);
        let mut entries = Vec::new();
        for _ in 0..count {
            let (tag, kind) = (fields.u16()?, fields.u16()?);
            let count = fields.uint(width as usize)?;
            let field = fields.bytes(width as usize)?.to_vec();
            let (size, whole) = match kind {
                1 => (1, true),
                2 | 6 | 7 => (1, false),
                3 => (2, true),
                8 => (2, false),
                4 | 13 => (4, true),
                9 | 11 => (4, false),
                16 | 18 => (8, true),
                5 | 10 | 12 | 17 => (8, false),
                // Types that are not known yet are skipped.
                _ => continue,
            };
            entries.push(Entry {
                tag,
                size,
                whole,
                count,
                field,
            });
        }
        let next = fields.uint(width as usize)?;
        Ok(Directory { entries, next })
    }

    fn bytes(&self, entry: &Entry) -> Parsed<Vec<u8>> {
        let len = entry.count.saturating_mul(entry.size);
        match entry
            .field
            .get(..usize::try_from(len).unwrap_or(usize::MAX))
        {
            Some(bytes) => Ok(bytes.to_vec()),
            None => {
                let at = self.fields(&entry.field).uint(entry.field.len())?;
                self.read(at, len)
            }
        }
    }

    /// The numbers of a tag, at most `most`; `None` if it is not there.
    pub(super) fn numbers(
        &self,
        directory: &Directory,
        tag: u16,
        most: u64,
    ) -> Parsed<Option<Vec<u64>>> {
        let Some(entry) = directory.find(tag) else {
            return Ok(None);
        };
        if !entry.whole || entry.count > most {
            return Err(format!(
                "tag {tag} has {} values where at most {most} whole numbers are expected; the \
                 file is damaged",
                entry.count
            )
            .into());
        }
        let bytes = self.bytes(entry)?;
        let mut fields = self.fields(&bytes);
        let numbers = (0..entry.count).map(|_| fields.uint(entry.size as usize));
        numbers.collect::<Parsed<_>>().map(Some)
    }

    /// The only number of a tag.
    pub(super) fn number(&self, directory: &Directory, tag: u16) -> Parsed<Option<u64>> {
        let numbers = self.numbers(directory, tag, 1)?;
        Ok(numbers.and_then(|numbers| numbers.first().copied()))
    }

    /// The text of a tag.
    pub(super) fn text(&self, directory: &Directory, tag: u16) -> Parsed<Option<String>> {
        let Some(entry) = directory.find(tag) else {
            return Ok(None);
        };
        if entry.size != 1 || entry.count > LONGEST_TEXT {
            return Ok(Some(format!("({} values)", entry.count)));
        }
        let text = text_of(&self.bytes(entry)?);
        Ok(Some(text.trim_end_matches(['\0', ' ', '\n']).into()))
    }
}

impl Directory {
    fn find(&self, tag: u16) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.tag == tag)
    }
}
