//! [`EncodedChunks`]: strips or tiles that are compressed.
//!
//! A chunk is a strip or tile; the last strip of a page may have fewer rows, and
//! the rest of its chunk is zeros. A piece that is nowhere (length 0) was never
//! written, and is zeros too.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use outcore_storage::{Chunks, Error, RangeLock, Result, Store, cores};

use super::compression::MOST_RATIO;
use super::page::Form;
use super::predictor::Rows;
use crate::element::ByteOrder;
use crate::format::fields::Parsed;

/// Larger strips and tiles are not believed.
const LARGEST: u64 = 1 << 30;

/// Stored pieces that are longer than their content by more than this are not
/// believed.
const SLACK: u64 = 1 << 20;

/// Larger pieces that are nowhere are not believed: no byte of the file speaks
/// for them.
const LARGEST_NOWHERE: u64 = 64 << 20;

/// Strips or tiles of all pages.
#[derive(Debug)]
pub(super) struct EncodedChunks {
    store: Arc<dyn Store>,
    /// Where each is, and how many bytes it has there.
    places: Vec<(u64, u64)>,
    form: Form,
    order: ByteOrder,
    chunk_bytes: usize,
    row_bytes: usize,
}

impl EncodedChunks {
    pub(super) fn new(
        store: Arc<dyn Store>,
        places: Vec<(u64, u64)>,
        form: Form,
        order: ByteOrder,
    ) -> Parsed<Self> {
        let [rows, columns] = form.piece;
        let bytes = form.bytes(rows, columns)?;
        if bytes > LARGEST {
            return Err(format!("strips or tiles of {bytes} bytes are not believed").into());
        }
        let chunks = Self {
            store,
            places,
            order,
            chunk_bytes: bytes as usize,
            row_bytes: form.bytes(1, columns)? as usize,
            form,
        };
        for (index, (_, len)) in chunks.places.iter().enumerate() {
            let bytes = chunks.stored_bytes(index as u64) as u64;
            let most = match len {
                0 => LARGEST_NOWHERE,
                len => len.saturating_mul(MOST_RATIO).max(SLACK),
            };
            if bytes > most || *len > 2 * bytes + SLACK {
                return Err(format!(
                    "a strip or tile of {bytes} bytes that is stored in {len} is not believed"
                )
                .into());
            }
        }
        Ok(chunks)
    }

    /// The bytes of a chunk that are stored.
    fn stored_bytes(&self, index: u64) -> usize {
        if self.form.tiled {
            return self.chunk_bytes;
        }
        let [rows, _] = self.form.piece;
        let strip = index % self.form.height.div_ceil(rows);
        let left = self.form.height - strip * rows;
        left.min(rows) as usize * self.row_bytes
    }
}

impl Chunks for EncodedChunks {
    fn name(&self) -> String {
        self.store.name()
    }

    fn count(&self) -> u64 {
        self.places.len() as u64
    }

    fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    fn stored_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.places.iter().map(|(_, len)| len).sum()))
    }

    fn parallel(&self) -> usize {
        cores()
    }

    fn read(&self, index: u64, _: &[Range<usize>], out: &mut [u8]) -> Result<bool> {
        let place = self.places.get(index as usize).copied();
        let (offset, len) = place.unwrap_or_default();
        if len == 0 {
            out.fill(0);
            return Ok(false);
        }
        let mut stored = vec![0; len as usize];
        self.store.read_at(offset, &mut stored)?;
        let (data, beyond) = out.split_at_mut(self.stored_bytes(index));
        beyond.fill(0);
        let decoded = self.form.compression.decode(&stored, data);
        decoded.map_err(|problem| {
            let text = format!("strip or tile {index}: {problem}");
            let source = io::Error::new(io::ErrorKind::InvalidData, text);
            Error::read(self.name(), offset, source)
        })?;
        let rows = Rows {
            bytes: self.row_bytes,
            sample: self.form.element.size() as usize,
            together: self.form.together() as usize,
            order: self.order,
        };
        self.form.predictor.undo(data, &rows);
        Ok(true)
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<()> {
        let source = io::Error::new(io::ErrorKind::Unsupported, super::READ_ONLY);
        Err(Error::write(self.name(), 0, source))
    }

    fn lock(&self, _: u64) -> Result<Option<RangeLock<'_>>> {
        Ok(None)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
