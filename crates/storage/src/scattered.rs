//! [`ScatteredStore`]: pieces of another store, anywhere in it, as one store:
//! chunks of a file that are stored as they are, records of variables that
//! alternate, strips of an image.
//!
//! Pieces are listed, or they are as long as one another and stand at equal
//! distances; then they need no memory, however many they are.
//!
//! A batch becomes batches of the store beneath, so that it overlaps what it
//! can. Many short pieces close to one another are read in stretches, with what
//! stands between them. Bytes that no piece has read as a pattern that repeats,
//! and cannot be written; the length is fixed. There are no locks, so nothing is
//! read to be written back.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::store::{ReadRequest, Store, WriteRequest, check_range};

/// Bytes of the whole that stand together in the store beneath.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Where they begin in the whole.
    pub start: u64,
    /// How many they are.
    pub len: u64,
    /// Where they begin in the store beneath.
    pub offset: u64,
}

/// Pieces of equal length at equal distances: piece `k` begins at
/// `first + k * step` of the store beneath, and at `k * len` of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EqualPieces {
    /// Where the first begins in the store beneath.
    pub first: u64,
    /// The bytes of a piece.
    pub len: u64,
    /// From the beginning of a piece to that of the next; at least `len`.
    pub step: u64,
    /// How many there are.
    pub count: u64,
}

impl EqualPieces {
    /// Where byte `at` of the whole is in the store beneath.
    fn place(&self, at: u64) -> u64 {
        self.first + at / self.len * self.step + at % self.len
    }

    /// Whether to read what stands between them costs less than to leave it out.
    fn are_near(&self) -> bool {
        self.step <= NEAR
    }
}

/// Where the pieces are.
#[derive(Debug)]
enum Pieces {
    /// By `start`; none is empty.
    Listed(Vec<Fragment>),
    Equal(EqualPieces),
}

/// So many requests go to the store beneath at a time.
const BATCH: usize = 1024;

/// Equal pieces no farther apart than this are read in stretches of at most
/// `STRETCH` bytes: to copy what stands between costs less than a request.
const NEAR: u64 = 4 << 10;
const STRETCH: u64 = 256 << 10;

/// Pieces of a store as one store.
#[derive(Debug)]
pub struct ScatteredStore {
    inner: Arc<dyn Store>,
    pieces: Pieces,
    len: u64,
    /// What bytes without a piece hold, over and over from the beginning.
    pattern: Vec<u8>,
}

/// A part of a transfer: bytes of its buffer, and where they are beneath, if
/// they are anywhere.
type Part = (Range<usize>, Option<u64>);

impl ScatteredStore {
    /// `len` bytes, of which `fragments` are somewhere in `inner`; the others
    /// hold `pattern`, or zeros if it is empty.
    pub fn new(
        inner: Arc<dyn Store>,
        mut fragments: Vec<Fragment>,
        len: u64,
        pattern: Vec<u8>,
    ) -> Result<Self> {
        fragments.retain(|fragment| fragment.len > 0);
        fragments.sort_unstable_by_key(|fragment| fragment.start);
        let mut end = 0;
        for fragment in &fragments {
            if fragment.start < end {
                return Err(refuse("two fragments overlap"));
            }
            let reach = |start: u64| start.checked_add(fragment.len);
            end = reach(fragment.start).ok_or_else(|| refuse("a fragment is too long"))?;
            reach(fragment.offset)
                .filter(|end| *end <= i64::MAX as u64)
                .ok_or_else(|| refuse("a fragment is too long"))?;
        }
        if end > len || len > i64::MAX as u64 {
            return Err(refuse("the fragments are longer than the whole"));
        }
        Ok(Self {
            inner,
            pieces: Pieces::Listed(fragments),
            len,
            pattern,
        })
    }

    /// The bytes of equal pieces, one after another.
    pub fn equal(inner: Arc<dyn Store>, pieces: EqualPieces) -> Result<Self> {
        let EqualPieces {
            first,
            len,
            step,
            count,
        } = pieces;
        if step < len {
            return Err(refuse("two pieces overlap"));
        }
        let end = count.saturating_sub(1).checked_mul(step);
        let end = end.and_then(|last| last.checked_add(first)?.checked_add(len));
        end.filter(|end| *end <= i64::MAX as u64)
            .ok_or_else(|| refuse("the pieces reach too far"))?;
        Ok(Self {
            inner,
            // No longer than the stretch that they stand in.
            len: count * len,
            pieces: Pieces::Equal(pieces),
            pattern: Vec::new(),
        })
    }

    /// The parts of a transfer of `len` bytes at `offset`.
    fn parts(&self, offset: u64, len: usize) -> impl Iterator<Item = Part> + '_ {
        let end = offset + len as u64;
        let mut at = offset;
        let mut next = self.pieces.reaching(offset);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let fragment = self.pieces.get(next);
            let (reach, place) = match fragment {
                Some(fragment) if fragment.start <= at => {
                    next += 1;
                    let place = fragment.offset + (at - fragment.start);
                    (fragment.start + fragment.len, Some(place))
                }
                Some(fragment) => (fragment.start, None),
                None => (end, None),
            };
            let reach = reach.min(end);
            let range = (at - offset) as usize..(reach - offset) as usize;
            at = reach;
            Some((range, place))
        })
    }

    /// Reads a transfer of equal pieces in stretches if that is better; whether it
    /// has.
    fn read_stretches(&self, offset: u64, buffer: &mut [u8]) -> Result<bool> {
        let Pieces::Equal(pieces) = &self.pieces else {
            return Ok(false);
        };
        let len = pieces.len;
        if !pieces.are_near() || buffer.len() as u64 <= 2 * len {
            return Ok(false);
        }
        let at_a_time = (STRETCH / pieces.step).max(1) * len;
        let end = offset + buffer.len() as u64;
        let mut stretch = Vec::new();
        let (mut at, mut rest) = (offset, buffer);
        while at < end {
            let reach = (at - at % len).saturating_add(at_a_time).min(end);
            let from = pieces.place(at);
            stretch.resize((pieces.place(reach - 1) + 1 - from) as usize, 0);
            self.inner.read_at(from, &mut stretch)?;
            let (part, after) = rest.split_at_mut((reach - at) as usize);
            for (range, place) in self.parts(at, part.len()) {
                let start = (place.unwrap_or(from) - from) as usize;
                part[range.clone()].copy_from_slice(&stretch[start..start + range.len()]);
            }
            (at, rest) = (reach, after);
        }
        Ok(true)
    }

    /// Fills a buffer that stands at `offset` of the whole.
    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        if self.pattern.is_empty() {
            return buffer.fill(0);
        }
        let first = (offset % self.pattern.len() as u64) as usize;
        let bytes = self.pattern.iter().cycle().skip(first);
        buffer
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, byte)| *to = *byte);
    }

    fn check(&self, offset: u64, len: usize) -> Result<()> {
        check_range(self, offset, len)?;
        if offset + len as u64 > self.len {
            return Err(Error::UnexpectedEnd {
                store: self.name(),
                offset,
                wanted: len as u64,
                end: self.len,
            });
        }
        Ok(())
    }
}

impl Pieces {
    /// The number of the first piece that ends behind `offset`.
    fn reaching(&self, offset: u64) -> u64 {
        match self {
            Self::Listed(fragments) => {
                let ends = |fragment: &Fragment| fragment.start + fragment.len <= offset;
                fragments.partition_point(ends) as u64
            }
            Self::Equal(pieces) => offset / pieces.len.max(1),
        }
    }

    fn get(&self, number: u64) -> Option<Fragment> {
        match self {
            Self::Listed(fragments) => fragments.get(usize::try_from(number).ok()?).copied(),
            Self::Equal(pieces) => (number < pieces.count).then(|| Fragment {
                start: number * pieces.len,
                len: pieces.len,
                offset: pieces.first + number * pieces.step,
            }),
        }
    }
}

fn refuse(reason: &str) -> Error {
    Error::Settings {
        store: "ScatteredStore",
        reason: reason.into(),
    }
}

impl Store for ScatteredStore {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(offset);
        let wanted = (buffer.len() as u64).min(left) as usize;
        let Some((range, place)) = self.parts(offset, wanted).next() else {
            return Ok(0);
        };
        let buffer = &mut buffer[range];
        match place {
            Some(place) => self.inner.read_some_at(place, buffer),
            None => {
                self.fill(offset, buffer);
                Ok(buffer.len())
            }
        }
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(offset);
        let wanted = (data.len() as u64).min(left) as usize;
        match self.parts(offset, wanted).next() {
            Some((range, Some(place))) => self.inner.write_some_at(place, &data[range]),
            _ => Err(no_room()),
        }
    }

    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        if len == self.len {
            return Ok(());
        }
        let source = io::Error::new(io::ErrorKind::Unsupported, "its length is fixed");
        Err(Error::set_length(self.name(), len, source))
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_batch(&mut [ReadRequest { offset, buffer }])
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_batch(&[WriteRequest { offset, data }])
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        let mut beneath = Vec::with_capacity(requests.len().min(BATCH));
        for request in requests {
            self.check(request.offset, request.buffer.len())?;
            if self.read_stretches(request.offset, request.buffer)? {
                continue;
            }
            let mut rest = &mut *request.buffer;
            for (range, place) in self.parts(request.offset, rest.len()) {
                let (buffer, after) = rest.split_at_mut(range.len());
                rest = after;
                match place {
                    Some(offset) => beneath.push(ReadRequest { offset, buffer }),
                    None => self.fill(request.offset + range.start as u64, buffer),
                }
                if beneath.len() == BATCH {
                    self.inner.read_batch(&mut beneath)?;
                    beneath.clear();
                }
            }
        }
        self.inner.read_batch(&mut beneath)
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        let mut beneath = Vec::with_capacity(requests.len().min(BATCH));
        for request in requests {
            self.check(request.offset, request.data.len())?;
            for (range, place) in self.parts(request.offset, request.data.len()) {
                let at = request.offset + range.start as u64;
                let offset = place.ok_or_else(|| Error::write(self.name(), at, no_room()))?;
                let data = &request.data[range];
                beneath.push(WriteRequest { offset, data });
                if beneath.len() == BATCH {
                    self.inner.write_batch(&beneath)?;
                    beneath.clear();
                }
            }
        }
        self.inner.write_batch(&beneath)
    }

    fn forget(&self) -> Result<()> {
        self.inner.forget()
    }

    fn fetch(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.len);
        if let Pieces::Equal(pieces) = &self.pieces
            && pieces.are_near()
            && offset < end
        {
            let from = pieces.place(offset);
            return self.inner.fetch(from, pieces.place(end - 1) + 1 - from);
        }
        let len = usize::try_from(end.saturating_sub(offset)).unwrap_or(0);
        for (range, place) in self.parts(offset, len) {
            if let Some(place) = place {
                self.inner.fetch(place, range.len() as u64);
            }
        }
    }
}

/// Why a byte without a place cannot be written.
fn no_room() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "the file has no room for this part yet; write it with the program that made the file",
    )
}
