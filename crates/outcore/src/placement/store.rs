//! [`PartsStore`]: the files of all ranks as one store of the global array, in
//! its storage order, so that any program can open a locally placed array and
//! every command works on it.
//!
//! A byte of the global sequence belongs to an element, the element to a block
//! of each axis, and the blocks to the file of one rank ([`Parts`]). Indices
//! that follow one another along the fastest axis inside one block follow one
//! another in that file, so a request falls apart into one piece for each line
//! and block that it crosses; pieces that touch in one file are joined again.
//! Overlap areas are not seen.
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

/// Pieces gathered before the files are asked.
const BATCH: usize = 4096;

/// Places of a range that are looked at to see whether it is cached.
const SAMPLES: u64 = 8;
const SAMPLE_BYTES: u64 = 64 << 10;

/// All files of a locally placed array as one store.
#[derive(Debug)]
pub(crate) struct PartsStore {
    array: String,
    parts: Parts,
    files: Vec<PartFile>,
    access: Access,
    element_size: u64,
    slowest_first: Vec<usize>,
    /// The ranks from one coordinate of each axis of the grid to the next.
    grid_steps: Vec<u64>,
    len: u64,
}

#[derive(Debug)]
struct PartFile {
    file: RawFile,
    /// The bytes from one position of each axis to the next.
    steps: Vec<u64>,
    opened: OnceLock<Arc<dyn Store>>,
}

/// Bytes of a request that lie together in one file.
struct Piece {
    part: usize,
    offset: u64,
    len: usize,
}

/// The bytes of one file from the first to the last of those that a range of
/// the whole has there.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Extent {
    part: usize,
    start: u64,
    end: u64,
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
        let mut layout = None;
        for (rank, file) in files.into_iter().enumerate() {
            let own = file.descriptor.check(array)?;
            check_file(array, rank, &file, &own)?;
            opened.push(PartFile {
                steps: steps(&own),
                file,
                opened: OnceLock::new(),
            });
            layout = Some(own);
        }
        let layout = layout.ok_or_else(|| ArrayError::format(array, "there is no rank"))?;
        let element_size = layout.element_size();
        let shape = parts.distribution().shape();
        let mut grid_steps = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            grid_steps[axis - 1] = grid_steps[axis] * parts.distribution().grid()[axis];
        }
        Ok(Self {
            array: array.into(),
            grid_steps,
            len: shape.iter().product::<u64>() * element_size,
            element_size,
            slowest_first: layout.slowest_first().to_vec(),
            parts,
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

    /// The first piece of the `len` bytes at `offset`, which is inside.
    fn first_piece(&self, offset: u64, len: usize) -> Piece {
        let (element, within) = (offset / self.element_size, offset % self.element_size);
        let shape = self.parts.distribution().shape();
        // Where the element stands along each axis, the fastest first.
        let along = |rest: &mut u64, axis: usize| {
            let index = *rest % shape[axis];
            *rest /= shape[axis];
            self.parts.axes()[axis].locate(index)
        };
        let fastest_first = || self.slowest_first.iter().rev();
        let (mut rest, mut part, mut follow) = (element, 0, None);
        for axis in fastest_first() {
            let (owner, _, follows) = along(&mut rest, *axis);
            part += owner * self.grid_steps[*axis];
            follow.get_or_insert(follows);
        }
        let part = part as usize;
        let steps = &self.files[part].steps;
        let (mut rest, mut start) = (element, 0);
        for axis in fastest_first() {
            start += steps[*axis] * along(&mut rest, *axis).1;
        }
        let room = follow.unwrap_or(1) * self.element_size - within;
        Piece {
            part,
            offset: start + within,
            len: room.min(len as u64) as usize,
        }
    }

    /// The pieces of the `len` bytes at `offset`, joined where they touch.
    fn pieces(&self, offset: u64, len: usize) -> impl Iterator<Item = Piece> {
        let mut done = 0;
        let next = move || {
            let piece = (done < len).then(|| self.first_piece(offset + done as u64, len - done))?;
            done += piece.len;
            Some(piece)
        };
        let mut found = std::iter::from_fn(next).peekable();
        std::iter::from_fn(move || {
            let mut piece = found.next()?;
            let touches = |piece: &Piece, next: &Piece| {
                next.part == piece.part && next.offset == piece.offset + piece.len as u64
            };
            while let Some(next) = found.next_if(|next| touches(&piece, next)) {
                piece.len += next.len;
            }
            Some(piece)
        })
    }

    /// The files that have bytes of the `len` at `offset`, which are inside, in
    /// ascending order.
    ///
    /// The first and the last element of the range agree in the slowest axes,
    /// up to the first along which they differ. Along that one, whoever owns an
    /// index between the two takes part, with the positions from its first such
    /// index to its last; along the faster axes, everybody with everything.
    fn extents(&self, offset: u64, len: u64) -> Vec<Extent> {
        let shape = self.parts.distribution().shape();
        let (mut first, mut last) = (
            offset / self.element_size,
            (offset + len - 1) / self.element_size,
        );
        let mut below = self.len / self.element_size;
        let (mut owners, mut fixed) = (0, Vec::new());
        let mut slowest_first = self.slowest_first.iter().peekable();
        while let Some(axis) = slowest_first.next() {
            below /= shape[*axis];
            let (lower, upper) = (first / below, last / below);
            (first, last) = (first % below, last % below);
            let along = &self.parts.axes()[*axis];
            if lower == upper && slowest_first.peek().is_some() {
                let (owner, position, _) = along.locate(lower);
                owners += owner * self.grid_steps[*axis];
                fixed.push((*axis, position));
                continue;
            }
            let faster: Vec<usize> = slowest_first.copied().collect();
            let mut extents = Vec::new();
            for at in 0..along.ranks() {
                let Some((from, to)) = along.between(at, lower, upper) else {
                    continue;
                };
                for part in self.all_along(owners + at * self.grid_steps[*axis], &faster) {
                    let steps = &self.files[part].steps;
                    let start: u64 = fixed.iter().map(|(axis, at)| steps[*axis] * at).sum();
                    let (start, end) =
                        (start + steps[*axis] * from, start + steps[*axis] * (to + 1));
                    extents.push(Extent { part, start, end });
                }
            }
            extents.retain(|extent| extent.start < extent.end);
            extents.sort();
            return extents;
        }
        Vec::new()
    }

    /// The parts at all coordinates along `axes`; those along the others are
    /// in `part`.
    fn all_along(&self, part: u64, axes: &[usize]) -> Vec<usize> {
        let mut parts = vec![part as usize];
        for axis in axes {
            let (ranks, step) = (self.parts.axes()[*axis].ranks(), self.grid_steps[*axis]);
            let at = |part: usize| (0..ranks).map(move |at| part + (at * step) as usize);
            parts = parts.into_iter().flat_map(at).collect();
        }
        parts
    }

    /// Locks what the files have of a range.
    fn lock_files<'a>(
        &'a self,
        (offset, len): (u64, u64),
        lock: impl Fn(&'a dyn Store, u64, u64) -> Result<Option<RangeLock<'a>>>,
    ) -> Result<Option<RangeLock<'a>>> {
        let len = len.min(self.len.saturating_sub(offset));
        let mut locks = Vec::new();
        if len > 0 {
            for Extent { part, start, end } in self.extents(offset, len) {
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
            .is_some_and(|end| end <= self.len)
        {
            return Ok(());
        }
        Err(Error::UnexpectedEnd {
            store: self.name(),
            offset,
            wanted: len as u64,
            end: self.len,
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

/// The bytes from one index of each axis to the next.
fn steps(layout: &Layout) -> Vec<u64> {
    let mut steps = vec![0; layout.shape().len()];
    let mut step = layout.element_size();
    for axis in layout.slowest_first().iter().rev() {
        steps[*axis] = step;
        step *= layout.shape()[*axis];
    }
    steps
}

impl Store for PartsStore {
    fn name(&self) -> String {
        format!("the local files of {}", self.array)
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset >= self.len || buffer.is_empty() {
            return Ok(0);
        }
        let inside = (self.len - offset).min(buffer.len() as u64) as usize;
        let piece = self.first_piece(offset, inside);
        let file = self.file(piece.part).map_err(io::Error::other)?;
        file.read_some_at(piece.offset, &mut buffer[..piece.len])
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.check_within(offset, data.len())
            .map_err(io::Error::other)?;
        if data.is_empty() {
            return Ok(0);
        }
        let piece = self.first_piece(offset, data.len());
        let file = self.file(piece.part).map_err(io::Error::other)?;
        file.write_some_at(piece.offset, &data[..piece.len])
    }

    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        if len == self.len {
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
            for piece in self.pieces(*offset, rest.len()) {
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
            for piece in self.pieces(*offset, rest.len()) {
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
        let len = len.min(self.len.checked_sub(offset)?);
        if len == 0 {
            return None;
        }
        let samples = SAMPLES.min(len);
        let mut sum = 0.0;
        for sample in 0..samples {
            let at = offset + (u128::from(len) * u128::from(sample) / u128::from(samples)) as u64;
            let piece = self.first_piece(at, 1);
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
    use std::collections::BTreeMap;

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

    fn store_of(path: &std::path::Path) -> PartsStore {
        let described = crate::format::native::describe(path).unwrap();
        let (parts, files) = described.parts().unwrap();
        PartsStore::open("a", parts, files, Access::ReadWrite).unwrap()
    }

    /// The extents against all pieces of each range.
    #[test]
    fn extents_are_the_bounds_of_what_a_range_touches() {
        let cases = [
            (&[7, 5][..], "block,block", "row", 6),
            (&[7, 5], "cyclic(2),cyclic(2)", "column", 4),
            (&[11], "cyclic(3)", "row", 2),
            (&[3, 4, 5], "cyclic,*,cyclic(2)", "axes:1,2,0", 4),
            (&[3], "block", "row", 5),
        ];
        for (shape, distribution, layout, ranks) in cases {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a.oc");
            make(path.to_str().unwrap(), shape, distribution, layout, ranks);
            let store = store_of(&path);
            for offset in 0..store.len {
                for len in 1..=store.len - offset {
                    let mut touched: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
                    for piece in store.pieces(offset, len as usize) {
                        let end = piece.offset + piece.len as u64;
                        let bounds = touched.entry(piece.part).or_insert((piece.offset, end));
                        *bounds = (bounds.0.min(piece.offset), bounds.1.max(end));
                    }
                    let extents = store.extents(offset, len);
                    assert!(extents.is_sorted());
                    for (part, (start, end)) in touched {
                        let found = extents.iter().find(|extent| extent.part == part);
                        let found = found.expect("a file that is touched is locked");
                        assert!(
                            found.start <= start && end <= found.end,
                            "{found:?} for {start}..{end}"
                        );
                    }
                    // One element is in one file alone.
                    if offset / 2 == (offset + len - 1) / 2 {
                        let locked: u64 =
                            extents.iter().map(|extent| extent.end - extent.start).sum();
                        assert_eq!((extents.len(), locked), (1, 2));
                    }
                }
            }
        }
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
