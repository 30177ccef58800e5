//! [`FilteredChunks`]: chunks that are changed by filters before they are stored.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use outcore_storage::{Chunks, Error, RangeLock, Result, Store};

use super::chunk_index::{Grid, Place};
use super::filters::Filter;
use super::index_in_file::IndexInFile;
use crate::codec::{Blosc, BloscCompressor, BloscShuffle, Codec, Codecs};
use crate::format::fields::Parsed;

/// Stored chunks longer than their content by more than this are not believed.
const MOST_OVERHEAD: u64 = 1 << 16;

thread_local! {
    /// A chunk as it is stored.
    static STORED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A larger buffer is given back after its use.
const SMALL: usize = 4 << 20;

/// How the places of chunks are known.
#[derive(Debug)]
pub(crate) enum Places {
    /// In the order of the numbers of chunks; nobody writes.
    Known(Vec<(u64, Place)>),
    /// Whatever the file says at the time.
    InFile(IndexInFile),
}

/// The chunks of a dataset.
#[derive(Debug)]
pub(crate) struct FilteredChunks {
    store: Arc<dyn Store>,
    places: Places,
    codecs: Codecs,
    count: u64,
    chunk_bytes: usize,
    /// The bytes of an element that was never written; zeros if empty.
    fill: Vec<u8>,
}

/// Chunks of so many bytes are believed in any file; larger ones only if its bytes
/// could become them: compressors reach a factor of less than this.
pub(super) const BELIEVED: u64 = 256 << 20;
const MOST_FACTOR: u64 = 40_000;

/// The most bytes that a stored chunk of a dataset may have.
pub(crate) fn most_stored(grid: &Grid) -> u64 {
    let double = grid.chunk_bytes.saturating_mul(2);
    double.saturating_add(MOST_OVERHEAD)
}

/// The filters as codecs, for elements of so many bytes.
pub(crate) fn codecs(filters: &[Filter], element: u64) -> Parsed<Codecs> {
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
        32000 => Ok(Codec::Lzf),
        32001 => blosc(filter).map(Codec::Blosc),
        32015 => Ok(Codec::Zstd {
            level: setting(filter, 0).unwrap_or(3).min(22) as i32,
            checksum: false,
        }),
        _ => Err(format!(
            "its chunks are stored with the filter {}, which is not supported; rewrite it with \
             shuffle, deflate (gzip), fletcher32 or without filters, as h5repack does",
            filter.words()
        )
        .into()),
    });
    let steps: Vec<Codec> = steps.collect::<Parsed<_>>()?;
    Ok(Codecs::new(steps)?)
}

/// Blosc's settings: versions of the filter and of Blosc, bytes of an element and of
/// a chunk, level, shuffle, compressor. Decoding needs none of them.
fn blosc(filter: &Filter) -> Parsed<Blosc> {
    let setting = |at: usize, usual: u32| filter.settings.get(at).copied().unwrap_or(usual);
    Ok(Blosc {
        compressor: match setting(6, 0) {
            0 => BloscCompressor::BloscLz,
            1 => BloscCompressor::Lz4,
            2 => BloscCompressor::Lz4hc,
            4 => BloscCompressor::Zlib,
            5 => BloscCompressor::Zstd,
            number => {
                return Err(format!(
                    "its chunks are stored by Blosc with the compressor {number}{}, which is not \
                     supported; rewrite it with shuffle, deflate (gzip) or without filters, as \
                     h5repack does",
                    if number == 3 { " (Snappy)" } else { "" }
                )
                .into());
            }
        },
        level: setting(4, 5).min(9) as u8,
        shuffle: match setting(5, 1) {
            0 => BloscShuffle::None,
            2 => BloscShuffle::Bit,
            _ => BloscShuffle::Byte,
        },
        type_size: setting(2, 1) as usize,
        block_size: 0,
    })
}

impl FilteredChunks {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        places: Places,
        codecs: Codecs,
        grid: &Grid,
        fill: Option<Vec<u8>>,
    ) -> Parsed<Self> {
        if let Places::Known(all) = &places
            && let Some((_, place)) = all.iter().find(|(_, one)| one.len > most_stored(grid))
        {
            return Err(format!("a chunk of {} bytes is not believed", place.len).into());
        }
        let most = store.len()?.saturating_mul(MOST_FACTOR).max(BELIEVED);
        if grid.chunk_bytes > most {
            let bytes = grid.chunk_bytes;
            return Err(
                format!("chunks of {bytes} bytes are not believed in a file of so few").into(),
            );
        }
        let chunk_bytes = usize::try_from(grid.chunk_bytes).map_err(|_| "a chunk is too large")?;
        Ok(Self {
            store,
            places,
            codecs,
            count: grid.count()?,
            chunk_bytes,
            fill: fill.unwrap_or_default(),
        })
    }

    fn place(&self, index: u64) -> Result<Option<Place>> {
        match &self.places {
            Places::Known(all) => {
                let at = all.binary_search_by_key(&index, |(number, _)| *number);
                Ok(at.ok().map(|at| all[at].1))
            }
            Places::InFile(all) => all.place(index),
        }
    }

    fn decode(
        &self,
        stored: &[u8],
        skipped: u32,
        out: &mut [u8],
    ) -> std::result::Result<(), String> {
        if skipped == 0 {
            return self.codecs.decode(stored, out);
        }
        let steps = self.codecs.steps().iter().enumerate();
        let done = steps.filter(|(bit, _)| skipped & (1 << (bit % 32)) == 0);
        Codecs::new(done.map(|(_, step)| *step).collect())?.decode(stored, out)
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

    fn stored_bytes(&self) -> Result<Option<u64>> {
        Ok(match &self.places {
            Places::Known(all) => Some(all.iter().map(|(_, place)| place.len).sum()),
            // Others may change them, and there may be far more entries than chunks.
            Places::InFile(_) => None,
        })
    }

    fn forms(&self) -> u64 {
        self.codecs.forms()
    }

    fn parallel(&self) -> usize {
        self.store.parallel()
    }

    fn read(&self, index: u64, _: &[Range<usize>], out: &mut [u8]) -> Result<bool> {
        let Some(place) = self.place(index)? else {
            match self.fill.len() {
                0 => out.fill(0),
                len => out
                    .chunks_mut(len)
                    .for_each(|element| element.copy_from_slice(&self.fill[..element.len()])),
            }
            return Ok(false);
        };
        let mut stored = STORED.take();
        stored.resize(place.len as usize, 0);
        let decoded = self
            .store
            .read_at(place.offset, &mut stored)
            .and_then(|()| {
                let decoded = self.decode(&stored, place.skipped, out);
                decoded.map_err(|problem| self.damaged(index, place, &problem))
            });
        if stored.capacity() <= SMALL {
            STORED.set(stored);
        }
        decoded.map(|()| true)
    }

    fn write(&self, index: u64, data: &[u8]) -> Result<()> {
        let refused = |problem: String| {
            let source = io::Error::new(io::ErrorKind::Unsupported, problem);
            Error::write(self.name(), 0, source)
        };
        match &self.places {
            Places::Known(_) => Err(refused("it is open for reading alone".into())),
            Places::InFile(places) => {
                let put = |bytes: &[u8]| places.put(index, bytes);
                self.codecs.encode(data, put).map_err(refused)?
            }
        }
    }

    fn lock(&self, index: u64) -> Result<Option<RangeLock<'_>>> {
        match &self.places {
            Places::Known(_) => Ok(None),
            Places::InFile(places) => places.lock(index),
        }
    }

    fn lock_shared(&self, index: u64) -> Result<Option<RangeLock<'_>>> {
        match &self.places {
            Places::Known(_) => Ok(None),
            Places::InFile(places) => places.lock_shared(index),
        }
    }

    fn sync(&self) -> Result<()> {
        self.store.sync()
    }
}
