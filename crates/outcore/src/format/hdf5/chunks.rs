//! [`FilteredChunks`]: chunks that were changed by filters before they were
//! stored.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use outcore_storage::{Chunks, Error, RangeLock, Result, Store};

use super::chunk_index::{Grid, Place};
use super::filters::Filter;
use crate::codec::{Codec, Codecs};
use crate::format::fields::Parsed;

/// Stored chunks longer than their content by more than this are not believed.
const MOST_OVERHEAD: u64 = 1 << 16;

/// The chunks of a dataset.
#[derive(Debug)]
pub(crate) struct FilteredChunks {
    pub(crate) store: Arc<dyn Store>,
    /// In the order of their numbers.
    pub(crate) table: Vec<(u64, Place)>,
    pub(crate) steps: Vec<Codec>,
    pub(crate) count: u64,
    pub(crate) chunk_bytes: usize,
    /// The bytes of an element that was never written; zeros if empty.
    pub(crate) fill: Vec<u8>,
}

/// The filters as codecs, for elements of so many bytes.
pub(crate) fn codecs(filters: &[Filter], element: u64) -> Parsed<Vec<Codec>> {
    let setting = |filter: &Filter, at: usize| filter.settings.get(at).copied();
    let steps = filters.iter().map(|filter| match filter.id {
        1 => Ok(Codec::Deflate {
            level: setting(filter, 0).unwrap_or(4).min(9) as u8,
        }),
        2 => {
            let width = setting(filter, 0).map_or(element, u64::from);
            Ok(Codec::Shuffle {
                width: width as usize,
            })
        }
        3 => Ok(Codec::Fletcher32),
        32015 => Ok(Codec::Zstd {
            level: setting(filter, 0).unwrap_or(3).min(22) as i32,
            checksum: false,
        }),
        _ => Err(format!(
            "its chunks are stored with the filter {}, which is not supported; rewrite it with \
             shuffle, deflate (gzip), zstd, fletcher32 or without filters, as h5repack does",
            filter.words()
        )
        .into()),
    });
    let steps: Vec<Codec> = steps.collect::<Parsed<_>>()?;
    Codecs::new(steps.clone())?;
    Ok(steps)
}

impl FilteredChunks {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        table: Vec<(u64, Place)>,
        steps: Vec<Codec>,
        grid: &Grid,
        fill: Option<Vec<u8>>,
    ) -> Parsed<Self> {
        for (_, place) in &table {
            if place.len
                > grid
                    .chunk_bytes
                    .saturating_mul(2)
                    .saturating_add(MOST_OVERHEAD)
            {
                return Err(format!("a chunk of {} bytes is not believed", place.len).into());
            }
        }
        let chunk_bytes = usize::try_from(grid.chunk_bytes).map_err(|_| "a chunk is too large")?;
        Ok(Self {
            store,
            table,
            steps,
            count: grid.count()?,
            chunk_bytes,
            fill: fill.unwrap_or_default(),
        })
    }

    fn damaged(&self, index: u64, place: Place, problem: &str) -> Error {
        let source = io::Error::new(
            io::ErrorKind::InvalidData,
            format!("chunk {index}: {problem}"),
        );
        Error::read(self.name(), place.offset, source)
    }
}

impl Chunks for FilteredChunks {
    fn name(&self) -> String {
        self.store.name()
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    fn parallel(&self) -> usize {
        self.store.parallel()
    }

    fn read(&self, index: u64, _: &[Range<usize>], out: &mut [u8]) -> Result<()> {
        let Ok(at) = self
            .table
            .binary_search_by_key(&index, |(number, _)| *number)
        else {
            match self.fill.len() {
                0 => out.fill(0),
                len => out
                    .chunks_mut(len)
                    .for_each(|element| element.copy_from_slice(&self.fill[..element.len()])),
            }
            return Ok(());
        };
        let place = self.table[at].1;
        let mut stored = vec![0; place.len as usize];
        self.store.read_at(place.offset, &mut stored)?;
        let all = match place.skipped {
            0 => self.steps.clone(),
            skipped => {
                let steps = self.steps.iter().enumerate();
                let done = steps.filter(|(bit, _)| skipped & (1 << (bit % 32)) == 0);
                done.map(|(_, step)| *step).collect()
            }
        };
        let decoded = Codecs::new(all).and_then(|codecs| codecs.decode(&stored, out));
        decoded.map_err(|problem| self.damaged(index, place, &problem))
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<()> {
        let source = io::Error::new(
            io::ErrorKind::Unsupported,
            "chunks with filters are not rewritten in place",
        );
        Err(Error::write(self.name(), 0, source))
    }

    fn lock(&self, _: u64) -> Result<Option<RangeLock<'_>>> {
        Ok(None)
    }

    fn sync(&self) -> Result<()> {
        self.store.sync()
    }
}
