//! [`PartsStore`]: the files of all ranks as one store of the global array, in
//! its storage order, so that any program can open a locally placed array and
//! every command works on it.
//!
//! [`Sequence`] says where which byte stands; overlap areas are not seen. A
//! batch of requests is taken apart into pieces, and each file gets its pieces
//! in batches of their own.
//!
//! The length is fixed. Files are opened when they are first used. A lock of
//! bytes of the whole is a lock of every file that has some of them, each from
//! the first to the last of them there: so it keeps out others who use the
//! whole as well as a rank that works on its own file ([`Extent`]). All take
//! the locks of files in ascending order of ranks, and a rank takes that of its
//! own alone, so nobody waits for ever.

use std::io;
use std::sync::{Arc, OnceLock};

use outcore_geometry::Layout;
use outcore_storage::{Access, Error, RangeLock, ReadRequest, Result, Store, WriteRequest};

use crate::error::{Error as ArrayError, Result as ArrayResult};
use crate::format::open_file;
use crate::format::raw::RawFile;
use crate::placement::parts::Parts;
use crate::placement::sequence::{Extent, Sequence};

/// Pieces gathered before the files are asked.
const BATCH: usize = 4096;

/// Places of a range that are looked at to see whether it is cached.
const SAMPLES: u64 = 8;
const SAMPLE_BYTES: u64 = 64 << 10;

/// All files of a locally placed array as one store.
#[derive(Debug)]
pub(crate) struct PartsStore {
    array: String,
    /// Where which byte stands.
    sequence: Sequence,
    files: Vec<PartFile>,
    access: Access,
}

#[derive(Debug)]
struct PartFile {
    file: RawFile,
    opened: OnceLock<Arc<dyn Store>>,
}

impl PartsStore {
    /// Looks whether all files are there; `array` names it in messages.
    pub(crate) fn open(
        array: &str,
        parts: Parts,
        files: Vec<RawFile>,
        access: Access,
    ) -> ArrayResult<Self> {
        let mut opened = Vec::with_capacity(files.len());
        let mut layouts = Vec::with_capacity(files.len());
        for (rank, file) in files.into_iter().enumerate() {
            let own = file.descriptor.check(array)?;
            check_file(array, rank, &file, &own)?;
            layouts.push(own);
            opened.push(PartFile {
                file,
                opened: OnceLock::new(),
            });
        }
        let sequence = Sequence::new(parts, &layouts);
        Ok(Self {
            array: array.into(),
            sequence: sequence.ok_or_else(|| ArrayError::format(array, "there is no rank"))?,
            files: opened,
            access,
        })
    }

    fn file(&self, part: usize) -> Result<&Arc<dyn Store>> {
        let PartFile { file, opened, .. } = &self.files[part];
        if let Some(store) = opened.get() {
            return Ok(store);
        }
        let store = open_file(&file.path, self.access).map_err(|error| match error {
            ArrayError::Storage(error) => error,
            other => Error::Open {
                path: file.path.clone(),
                source: io::Error::other(other.to_string()),
            },
        })?;
        Ok(opened.get_or_init(|| store))
    }

    /// Locks what the files have of a range.
    fn lock_files<'a>(
        &'a self,
        (offset, len): (u64, u64),
        lock: impl Fn(&'a dyn Store, u64, u64) -> Result<Option<RangeLock<'a>>>,
    ) -> Result<Option<RangeLock<'a>>> {
        let len = len.min(self.sequence.len().saturating_sub(offset));
        let mut locks = Vec::new();
        if len > 0 {
            for Extent { part, start, end } in self.sequence.extents(offset, len) {
                locks.extend(lock(&**self.file(part)?, start, end - start)?);
            }
            return Ok(Some(RangeLock::together(locks)));
        }
        // Whether there are locks may differ from directory to directory.
        let mut asked = Vec::new();
        for (part, file) in self.files.iter().enumerate() {
            let directory = file.file.path.parent();
            if !asked.contains(&directory) {
                asked.push(directory);
                if lock(&**self.file(part)?, 0, 0)?.is_none() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(RangeLock::together(locks)))
    }

    fn check_within(&self, offset: u64, len: usize) -> Result<()> {
        if offset
            .checked_add(len as u64)
            .is_some_and(|end| end <= self.sequence.len())
        {
            return Ok(());
        }
        Err(Error::UnexpectedEnd {
            store: self.name(),
            offset,
            wanted: len as u64,
            end: self.sequence.len(),
        })
    }
}

/// Fails unless the file of `rank` is there and long enough.
pub(crate) fn check_file(
    array: &str,
    rank: usize,
    file: &RawFile,
    layout: &Layout,
) -> ArrayResult<()> {
    let path = file.path.display();
    let found = match std::fs::metadata(&file.path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => {
            let problem = format!("{path}, the local file of rank {rank}, is not a file");
            return Err(ArrayError::format(array, problem));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let problem = format!(
                "the local file of rank {rank} is missing: {path} (is it on another machine, or \
                 on a disk that is not mounted?)"
            );
            return Err(ArrayError::format(array, problem));
        }
        Err(source) => return Err(ArrayError::file("open", &file.path, source)),
    };
    if found < layout.byte_len() {
        let problem = format!(
            "{path}, the local file of rank {rank}, has {found} bytes, but its part of the array \
             has {}: the file is truncated",
            layout.byte_len()
        );
        return Err(ArrayError::format(array, problem));
    }
    Ok(())
}

impl Store for PartsStore {
    fn name(&self) -> String {
        format!("the local files of {}", self.array)
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset >= self.sequence.len() || buffer.is_empty() {
            return Ok(0);
        }
        let inside = (self.sequence.len() - offset).min(buffer.len() as u64) as usize;
        let piece = self.sequence.first_piece(offset, inside);
        let file = self.file(piece.part).map_err(io::Error::other)?;
        file.read_some_at(piece.offset, &mut buffer[..piece.len])
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.check_within(offset, data.len())
            .map_err(io::Error::other)?;
        if data.is_empty() {
            return Ok(0);
        }
        let piece = self.sequence.first_piece(offset, data.len());
        let file = self.file(piece.part).map_err(io::Error::other)?;
        file.write_some_at(piece.offset, &data[..piece.len])
    }

    fn len(&self) -> Result<u64> {
        Ok(self.sequence.len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        if len == self.sequence.len() {
            return Ok(());
        }
        let source = io::Error::new(
            io::ErrorKind::Unsupported,
            "the length of local files follows from the array's shape",
        );
        let store = self.name();
        Err(Error::SetLength { store, len, source })
    }

    fn sync(&self) -> Result<()> {
        let opened = self.files.iter().filter_map(|file| file.opened.get());
        opened.into_iter().try_for_each(|file| file.sync())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_batch(&mut [ReadRequest { offset, buffer }])
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_batch(&[WriteRequest { offset, data }])
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        let mut gathered: Vec<(usize, ReadRequest<'_>)> = Vec::new();
        for ReadRequest { offset, buffer } in requests {
            self.check_within(*offset, buffer.len())?;
            let mut rest = &mut **buffer;
            for piece in self.sequence.pieces(*offset, rest.len()) {
                let (buffer, after) = rest.split_at_mut(piece.len);
                let offset = piece.offset;
                gathered.push((piece.part, ReadRequest { offset, buffer }));
                rest = after;
                if gathered.len() == BATCH {
                    self.read_gathered(&mut gathered)?;
                }
            }
        }
        self.read_gathered(&mut gathered)
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        let mut gathered: Vec<(usize, WriteRequest<'_>)> = Vec::new();
        for WriteRequest { offset, data } in requests {
            self.check_within(*offset, data.len())?;
            let mut rest = *data;
            for piece in self.sequence.pieces(*offset, rest.len()) {
                let (data, after) = rest.split_at(piece.len);
                let offset = piece.offset;
                gathered.push((piece.part, WriteRequest { offset, data }));
                rest = after;
                if gathered.len() == BATCH {
                    self.write_gathered(&mut gathered)?;
                }
            }
        }
        self.write_gathered(&mut gathered)
    }

    fn cached(&self, offset: u64, len: u64) -> Option<f64> {
        let len = len.min(self.sequence.len().checked_sub(offset)?);
        if len == 0 {
            return None;
        }
        let samples = SAMPLES.min(len);
        let mut sum = 0.0;
        for sample in 0..samples {
            let at = offset + (u128::from(len) * u128::from(sample) / u128::from(samples)) as u64;
            let piece = self.sequence.first_piece(at, 1);
            let bytes = SAMPLE_BYTES.min(len);
            sum += self.file(piece.part).ok()?.cached(piece.offset, bytes)?;
        }
        Some(sum / samples as f64)
    }

    fn forget(&self) -> Result<()> {
        (0..self.files.len()).try_for_each(|part| self.file(part)?.forget())
    }

    fn lock(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        self.lock_files((offset, len), |file, start, len| file.lock(start, len))
    }

    /// `None` for an empty range if some file has no shared locks; of others,
    /// those that have them are locked all the same.
    fn lock_shared(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        self.lock_files((offset, len), |file, start, len| {
            file.lock_shared(start, len)
        })
    }
}

impl PartsStore {
    /// Reads what was gathered, file by file.
    fn read_gathered(&self, gathered: &mut Vec<(usize, ReadRequest<'_>)>) -> Result<()> {
        gathered.sort_by_key(|(part, _)| *part);
        let mut of_part = Vec::new();
        let mut rest = gathered.drain(..).peekable();
        while let Some((part, request)) = rest.next() {
            of_part.clear();
            of_part.push(request);
            while let Some((_, request)) = rest.next_if(|(next, _)| *next == part) {
                of_part.push(request);
            }
            self.file(part)?.read_batch(&mut of_part)?;
        }
        Ok(())
    }

    /// Writes what was gathered, file by file.
    fn write_gathered(&self, gathered: &mut Vec<(usize, WriteRequest<'_>)>) -> Result<()> {
        gathered.sort_by_key(|(part, _)| *part);
        for of_part in gathered.chunk_by(|(one, _), (other, _)| one == other) {
            let requests: Vec<_> = of_part.iter().map(|(_, request)| *request).collect();
            self.file(of_part[0].0)?.write_batch(&requests)?;
        }
        gathered.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Array;
    use crate::placement::local::LocalArray;
    use crate::{ArrayDescriptor, Distribution, ElementType, LocalPlacement};

    fn make(name: &str, shape: &[u64], distribution: &str, layout: &str, ranks: u64) -> Array {
        let distribution = Distribution::parse(distribution, shape, ranks, None).unwrap();
        let overlap = vec![(1, 2); shape.len()];
        let placement = LocalPlacement::new(distribution).overlap(&overlap);
        let descriptor = ArrayDescriptor::new(shape, ElementType::I16)
            .layout(layout.parse().unwrap())
            .placed(placement);
        Array::create(name, &descriptor).unwrap()
    }

    /// A rank that works on its own file and one that uses the whole keep each
    /// other out, wherever the file's bytes stand in the whole.
    #[test]
    fn the_whole_and_the_parts_keep_each_other_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.oc");
        let name = path.to_str().unwrap();
        let whole = make(name, &[40, 6], "block,*", "row", 4);
        for rank in 0..4 {
            let local = LocalArray::open_part_writable(name, rank).unwrap();
            let own = local.part();
            for (exclusive, alone) in [(whole.store(), own.store()), (own.store(), whole.store())] {
                let waits = || {
                    let held = exclusive.lock(0, 1000).unwrap();
                    let (done, wait) = std::sync::mpsc::channel();
                    std::thread::scope(|scope| {
                        scope.spawn(|| {
                            let lock = alone.lock_shared(0, 1000).unwrap();
                            done.send(()).unwrap();
                            drop(lock);
                        });
                        let pause = std::time::Duration::from_millis(20);
                        let waited = wait.recv_timeout(pause).is_err();
                        drop(held);
                        waited
                    })
                };
                let guarded = alone.lock_shared(0, 0).unwrap().is_some();
                assert_eq!(waits(), guarded, "rank {rank}");
            }
        }
    }
}
