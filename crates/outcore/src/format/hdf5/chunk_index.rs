//! Where the chunks of a dataset are: what all kinds of indexes come to.
//!
//! A chunk has a place in the grid of chunks. Indexes count chunks of the grid
//! that the array may grow to; here they are numbered in the grid of the array
//! as it is, in row order, which is the order of tiles of a layout. A table has
//! an entry for each chunk that the file has, so its size is that of the index,
//! whatever the shape claims.

use super::dataspace::Dataspace;
use super::extensible_array;
use super::first_tree;
use super::fixed_array;
use super::layout::{Chunking, Index};
use super::second_tree;
use super::slot::{Form, Slot};
use super::source::Source;
use crate::format::fields::{Fields, Parsed, Problem};

/// Datasets of more chunks are refused.
const MOST_CHUNKS: usize = 1 << 25;

/// Kinds of B-trees of chunks: plain and filtered.
const PLAIN_RECORDS: u8 = 10;
const FILTERED_RECORDS: u8 = 11;

/// Where a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where in the file.
    pub(crate) offset: u64,
    /// Its bytes there.
    pub(crate) len: u64,
    /// A bit for each filter that was not applied.
    pub(crate) skipped: u32,
}

/// What an index has of a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Where the chunk is, as an address still; `None` if it was never written.
    pub(crate) place: Option<Place>,
    /// Where the entry stands.
    pub(crate) slot: Slot,
}

/// The grid of chunks of a dataset.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// Chunks along each axis, of the array as it is.
    pub(crate) counts: Vec<u64>,
    /// The same of the array as large as it may become; `u64::MAX` is without
    /// limit.
    pub(crate) limits: Vec<u64>,
    /// The shape of a chunk.
    pub(crate) chunk: Vec<u64>,
    /// Bytes of a chunk.
    pub(crate) chunk_bytes: u64,
}

impl Grid {
    pub(crate) fn new(chunking: &Chunking, space: &Dataspace, element: u64) -> Parsed<Self> {
        let axes = space.shape.len();
        let Some((&[size], chunk)) = chunking.extents.split_last_chunk().map(|(a, b)| (b, a))
        else {
            return Err("a chunk without axes; the file is damaged".into());
        };
        if chunk.len() != axes || axes == 0 || chunk.contains(&0) || size != element {
            return Err(format!(
                "chunks of {:?} do not fit an array of {axes} axes with elements of {element} \
                 bytes; the file is damaged",
                chunking.extents
            )
            .into());
        }
        let bytes = chunking.extents.iter().try_fold(1u64, |product, extent| {
            product
                .checked_mul(*extent)
                .filter(|product| *product <= i64::MAX as u64)
        });
        let per_axis = |extents: &[u64]| -> Vec<u64> {
            let pairs = extents.iter().zip(chunk);
            pairs
                .map(|(extent, chunk)| match *extent {
                    u64::MAX => u64::MAX,
                    extent => extent.div_ceil(*chunk),
                })
                .collect()
        };
        Ok(Self {
            counts: per_axis(&space.shape),
            limits: per_axis(&space.limits),
            chunk: chunk.to_vec(),
            chunk_bytes: bytes.ok_or("a chunk is too large; the file is damaged")?,
        })
    }

    /// The number of chunks; fails beyond 63 bits.
    pub(crate) fn count(&self) -> Parsed<u64> {
        outcore_geometry::element_count(&self.counts)
            .map_err(|_| "it has too many chunks; the file is damaged".into())
    }

    /// The number of the chunk at a place of the grid; `None` if the array
    /// does not reach it.
    fn number(&self, place: &[u64]) -> Option<u64> {
        let mut number = 0u64;
        for (at, count) in place.iter().zip(&self.counts) {
            if at >= count {
                return None;
            }
            number = number.checked_mul(*count)?.checked_add(*at)?;
        }
        Some(number)
    }

    /// The number of a chunk that is the `position`-th of the grid that the
    /// array may grow to, where axis `slowest` is taken as the slowest.
    fn number_of_position(&self, position: u64, slowest: usize) -> Option<u64> {
        let axes = self.counts.len();
        let mut place = vec![0; axes];
        let mut rest = position;
        for axis in (0..axes).rev().filter(|axis| *axis != slowest) {
            let limit = self.limits[axis];
            if limit == 0 {
                return None;
            }
            (place[axis], rest) = (rest % limit, rest / limit);
        }
        place[slowest] = rest;
        self.number(&place)
    }
}

/// The chunks that a file has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Table {
    /// All, one after another from an offset of the file on.
    Consecutive(u64),
    /// Some, in the order of their numbers.
    Listed(Vec<(u64, Place)>),
}

impl Table {
    /// Reads the index of a dataset.
    pub(crate) fn read(
        source: &Source,
        chunking: &Chunking,
        grid: &Grid,
        filtered: bool,
    ) -> Parsed<Self> {
        let Some(address) = chunking.address else {
            return Ok(Self::Listed(Vec::new()));
        };
        if grid.count()? == 0 {
            return Ok(Self::Listed(Vec::new()));
        }
        if let Index::Implicit = chunking.index
            && grid.counts[1..] == grid.limits[1..]
        {
            return Ok(Self::Consecutive(source.place(address)?));
        }
        let mut list = List::new(source, grid);
        list.take(&chunking.index, address)?;
        let mut entries = list.entries;
        entries.sort_unstable_by_key(|(number, _)| *number);
        if entries.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err("a chunk is in the index twice; the file is damaged".into());
        }
        for (_, place) in &entries {
            let end = place.offset.checked_add(place.len);
            if end.is_none_or(|end| end > source.file_len()) {
                return Err(format!(
                    "a chunk of {} bytes at offset {} is beyond the end of the file ({} bytes); \
                     the file is truncated or damaged",
                    place.len,
                    place.offset,
                    source.file_len()
                )
                .into());
            }
        }
        Ok(Self::Listed(entries).simplified(grid, filtered))
    }

    /// Plain chunks that are all there, one after another, need no list.
    fn simplified(self, grid: &Grid, filtered: bool) -> Self {
        let Self::Listed(entries) = &self else {
            return self;
        };
        let all = grid
            .count()
            .is_ok_and(|count| count == entries.len() as u64);
        let Some((_, first)) = entries.first() else {
            return self;
        };
        let start = first.offset;
        let mut places = entries.iter().zip(0u64..);
        let in_line = !filtered
            && all
            && places.all(|((_, place), at)| {
                at.checked_mul(grid.chunk_bytes)
                    .and_then(|distance| start.checked_add(distance))
                    == Some(place.offset)
            });
        match in_line {
            true => Self::Consecutive(start),
            false => self,
        }
    }
}

/// Where the entries of the chunks stand, in the order of their numbers.
pub(crate) fn slots(source: &Source, chunking: &Chunking, grid: &Grid) -> Parsed<Vec<(u64, Slot)>> {
    let Some(address) = chunking.address else {
        return Ok(Vec::new());
    };
    let mut list = List::new(source, grid);
    list.slots = Some(Vec::new());
    list.take(&chunking.index, address)?;
    let mut slots = list.slots.unwrap_or_default();
    slots.sort_unstable_by_key(|(number, _)| *number);
    let twice = slots.windows(2).any(|pair| pair[0].0 == pair[1].0);
    let mut all = slots.iter();
    if twice || all.any(|(_, slot)| !slot.is_inside(source.offset_size)) {
        return Err("a chunk index is damaged".into());
    }
    Ok(slots)
}

fn too_many() -> Problem {
    format!("more than {MOST_CHUNKS} chunks are not supported").into()
}

/// A list that is being made.
struct List<'a> {
    source: &'a Source,
    grid: &'a Grid,
    entries: Vec<(u64, Place)>,
    /// Where the entries stand, if somebody wants to know that instead.
    slots: Option<Vec<(u64, Slot)>>,
}

impl<'a> List<'a> {
    fn new(source: &'a Source, grid: &'a Grid) -> Self {
        Self {
            source,
            grid,
            entries: Vec::new(),
            slots: None,
        }
    }

    /// Takes all entries of the index at `address`.
    fn take(&mut self, index: &Index, address: u64) -> Parsed<()> {
        let (source, grid) = (self.source, self.grid);
        match index {
            Index::Tree => self.tree(address),
            Index::Single(None) => self.add(Some(0), address, grid.chunk_bytes, 0),
            Index::Single(Some((len, skipped, slot))) => {
                self.note(Some(0), *slot)?;
                self.add(Some(0), address, *len, *skipped)
            }
            Index::Implicit => self.implicit(address),
            Index::FixedArray => {
                let array = fixed_array::FixedArray::read(source, address)?;
                array.walk(source, grid.chunk_bytes, &mut |position, entry| {
                    self.at_position(position, 0, entry)
                })
            }
            Index::ExtensibleArray => {
                let endless = grid.limits.iter().position(|limit| *limit == u64::MAX);
                let slowest = endless.unwrap_or(0);
                extensible_array::walk(source, address, grid.chunk_bytes, &mut |position, entry| {
                    self.at_position(position, slowest, entry)
                })
            }
            Index::SecondTree => self.second_tree(address),
        }
    }

    /// Remembers where the entry of a chunk stands.
    fn note(&mut self, number: Option<u64>, slot: Slot) -> Parsed<()> {
        let (Some(slots), Some(number)) = (&mut self.slots, number) else {
            return Ok(());
        };
        if slots.len() == MOST_CHUNKS {
            return Err(too_many());
        }
        slots.push((number, slot));
        Ok(())
    }

    fn add(&mut self, number: Option<u64>, address: u64, len: u64, skipped: u32) -> Parsed<()> {
        let Some(number) = number.filter(|_| self.slots.is_none()) else {
            return Ok(());
        };
        if self.entries.len() == MOST_CHUNKS {
            return Err(too_many());
        }
        let offset = self.source.place(address)?;
        self.entries.push((
            number,
            Place {
                offset,
                len,
                skipped,
            },
        ));
        Ok(())
    }

    /// An entry of an array of chunks.
    fn at_position(&mut self, position: u64, slowest: usize, entry: Entry) -> Parsed<()> {
        let number = self.grid.number_of_position(position, slowest);
        self.note(number, entry.slot)?;
        match entry.place {
            Some(place) => self.add(number, place.offset, place.len, place.skipped),
            None => Ok(()),
        }
    }

    fn tree(&mut self, address: u64) -> Parsed<()> {
        let axes = self.grid.chunk.len();
        let kind = first_tree::Kind::Chunks(axes + 1);
        first_tree::walk(self.source, address, kind, &mut |leaf| {
            let mut fields = Fields::little("a key of a chunk", leaf.key);
            let (len, skipped) = (fields.u32()?, fields.u32()?);
            let mut place = Vec::with_capacity(axes);
            for extent in &self.grid.chunk {
                let start = fields.u64()?;
                if start % extent != 0 {
                    return Err("a chunk is not on the grid; the file is damaged".into());
                }
                place.push(start / extent);
            }
            let number = self.grid.number(&place);
            let slot = Slot {
                offset: self.source.place(leaf.address)?,
                form: Form::LengthFirst {
                    width: 4,
                    gap: 8 * (axes as u16 + 1),
                },
                covered: None,
            };
            self.note(number, slot)?;
            self.add(number, leaf.child, len.into(), skipped)
        })
    }

    fn second_tree(&mut self, address: u64) -> Parsed<()> {
        let source = self.source;
        let axes = self.grid.chunk.len();
        let kinds = [PLAIN_RECORDS, FILTERED_RECORDS];
        second_tree::walk(source, address, &kinds, &mut |record| {
            let mut fields = Fields::little("a record of a chunk", record.bytes);
            let chunk = source.defined(&mut fields)?;
            let others = source.offset_size + 4 + 8 * axes;
            let width = record.bytes.len().saturating_sub(others);
            let (len, skipped) = match record.kind {
                FILTERED_RECORDS => (fields.uint(width)?, fields.u32()?),
                _ => (self.grid.chunk_bytes, 0),
            };
            let place: Vec<u64> = (0..axes).map(|_| fields.u64()).collect::<Parsed<_>>()?;
            let number = self.grid.number(&place);
            if record.kind == FILTERED_RECORDS {
                let slot = Slot {
                    offset: source.place(record.address)?,
                    form: Form::AddressFirst { width: width as u8 },
                    covered: Some((source.place(record.node.0)?, record.node.1 as u32)),
                };
                self.note(number, slot)?;
            }
            self.add(number, chunk, len, skipped)
        })
    }

    /// Chunks one after another in a grid that the array does not fill.
    fn implicit(&mut self, address: u64) -> Parsed<()> {
        let grid = self.grid;
        let all = outcore_geometry::element_count(&grid.limits).ok();
        let bytes = all.and_then(|all| all.checked_mul(grid.chunk_bytes));
        let (Some(all), Some(bytes)) = (all, bytes) else {
            return Err("it has too many chunks; the file is damaged".into());
        };
        let room = self.source.file_len() - self.source.place(address)?;
        if bytes > room {
            return Err(format!(
                "its chunks need {bytes} bytes, but the file has only {room} from there on; it \
                 is truncated or damaged"
            )
            .into());
        }
        for position in 0..all {
            let number = grid.number_of_position(position, 0);
            let at = address + position * grid.chunk_bytes;
            self.add(number, at, grid.chunk_bytes, 0)?;
        }
        Ok(())
    }
}
