//! [`Part`]: what one rank holds of a disk-resident array, and what it does with
//! the requests of others and its own.
//!
//! Sections of the part's pieces are read and written by [`Array::read_bytes`] and
//! [`Array::write_bytes`]; so the strategies choose how, and data go straight
//! between the file and the buffer of the request. With a cache they go through
//! cells: each cell is read once, whoever asks, until it must make room.
//!
//! Who may change what. Without a cache, replacing elements is the business of the
//! file, and shares `order`; an accumulation, which reads and writes back, has it
//! alone. With a cache, all that changes elements has it alone, so that the cells
//! and the file see changes in the same order.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use outcore_geometry::Section;

use super::accumulate::{AddScaled, add_scaled};
use super::boxes::{Side, copy_box, strips};
use super::cache::{Backing, BlockCache, CacheCounts, Visit};
use super::cells::{Cells, InCell};
use super::options::Unwritten;
use super::request::{Action, Asked};
use super::written::Written;
use crate::array::Array;
use crate::budget::MemoryBudget;
use crate::error::{Error, Result};

/// What one rank holds of an array.
#[derive(Debug)]
pub(crate) struct Part {
    array: Array,
    pieces: Vec<Piece>,
    size: usize,
    cache: Option<BlockCache>,
    write_back: bool,
    written: Option<Written>,
    unwritten: Unwritten,
    order: RwLock<()>,
    /// Shared by the requests that are being served.
    closed: RwLock<bool>,
}

/// A dense box of elements in the file.
#[derive(Debug)]
struct Piece {
    /// The number of its first element in the file; `None` if it is all of it.
    start: Option<u64>,
    cells: Cells,
    /// The number of its first cell in the part.
    first_cell: u64,
}

/// How a part works.
#[derive(Debug, Clone)]
pub(crate) struct PartOptions {
    pub(crate) cell: Option<Vec<u64>>,
    pub(crate) cache: Option<MemoryBudget>,
    pub(crate) write_back: bool,
    pub(crate) unwritten: Unwritten,
}

impl Part {
    /// The part in `array`, whose pieces have these shapes: the array itself if it
    /// is the one piece, or pieces one after the other.
    pub(crate) fn new(
        array: Array,
        shapes: &[Vec<u64>],
        options: &PartOptions,
        written: impl FnOnce(u64) -> Result<Option<Written>>,
    ) -> Result<Self> {
        let size = array.element_type().size();
        let mut pieces = Vec::with_capacity(shapes.len());
        let (mut start, mut first_cell, mut largest) = (0, 0, 0);
        for shape in shapes {
            let whole = shapes.len() == 1 && array.shape() == shape;
            let cells = Cells::new(shape, options.cell.as_deref(), size);
            largest = largest.max(cells.bytes());
            let count = cells.count();
            pieces.push(Piece {
                start: (!whole).then_some(start),
                cells,
                first_cell,
            });
            start += shape.iter().product::<u64>();
            first_cell += count;
        }
        if let Some(budget) = &options.cache {
            budget.require(largest, "the cache of a disk-resident array")?;
        }
        Ok(Self {
            array,
            pieces,
            size: size as usize,
            cache: options.cache.as_ref().map(BlockCache::new),
            write_back: options.write_back && options.cache.is_some(),
            written: written(first_cell)?,
            unwritten: options.unwritten,
            order: RwLock::new(()),
            closed: RwLock::new(false),
        })
    }

    pub(crate) fn array(&self) -> &Array {
        &self.array
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        self.cache
            .as_ref()
            .map(BlockCache::counts)
            .unwrap_or_default()
    }

    /// About what share of a section of a piece is in the memory of the system.
    pub(crate) fn cached(&self, piece: u64, section: &Section) -> Result<Option<f64>> {
        self.elements(self.piece(piece)?)?.cached(section)
    }

    /// No request is served from now on, and the memory of the cache is given back.
    pub(crate) fn close(&self) -> Result<()> {
        *self.closed.write().unwrap_or_else(PoisonError::into_inner) = true;
        self.clean()?;
        if let Some(cache) = &self.cache {
            cache.clear();
        }
        Ok(())
    }

    /// Does what a request asks for: `data` are the elements that it brings, `room`
    /// is where those go that it wants.
    pub(crate) fn serve(&self, asked: &Asked, data: &[u8], room: &mut [u8]) -> Result<()> {
        let closed = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        if *closed {
            return Err(Error::format(
                self.array.name(),
                "the rank that holds this part has closed the array",
            ));
        }
        let mut at = 0;
        for (piece, section) in &asked.items {
            let piece = self.piece(*piece)?;
            section
                .check_within(piece.cells.shape())
                .map_err(Error::geometry(self.array.name()))?;
            let bytes = section.count() as usize * self.size;
            let end = at + bytes;
            let short = || Error::Invalid(format!("a buffer is shorter than {end} bytes"));
            match asked.action {
                Action::Get => {
                    let room = room.get_mut(at..end).ok_or_else(short)?;
                    self.get(piece, section, room)?;
                }
                Action::Put => {
                    self.put(piece, section, data.get(at..end).ok_or_else(short)?)?;
                }
                Action::Accumulate => {
                    let values = data.get(at..end).ok_or_else(short)?;
                    self.accumulate(piece, section, values, &asked.factor)?;
                }
                Action::Prefetch => self.expect(piece, section)?,
                Action::Sync => {}
            }
            at = end;
        }
        match asked.action {
            Action::Sync => self.sync(),
            _ => Ok(()),
        }
    }

    fn piece(&self, number: u64) -> Result<&Piece> {
        let piece = usize::try_from(number)
            .ok()
            .and_then(|at| self.pieces.get(at));
        piece.ok_or_else(|| Error::Invalid(format!("the part has no piece {number}")))
    }

    /// The elements of a piece as an array of their own.
    fn elements(&self, piece: &Piece) -> Result<Cow<'_, Array>> {
        match piece.start {
            None => Ok(Cow::Borrowed(&self.array)),
            Some(start) => {
                let block = self.array.block_at(start, piece.cells.shape());
                block.map(Cow::Owned)
            }
        }
    }

    fn get(&self, piece: &Piece, section: &Section, room: &mut [u8]) -> Result<()> {
        self.check_written(piece, section)?;
        let Some(cache) = &self.cache else {
            return self.elements(piece)?.read_bytes(section, room);
        };
        let shape = section.shape();
        piece.cells.each(section, |part| {
            let number = piece.first_cell + part.number;
            cache.visit(number, Visit::Read, self, |seen| {
                let cell = part.cell.shape();
                copy_box(
                    (seen.bytes(), side(&cell, &part.inside)),
                    (room, side(&shape, &part.positions)),
                    self.size,
                );
            })
        })
    }

    fn put(&self, piece: &Piece, section: &Section, data: &[u8]) -> Result<()> {
        match &self.cache {
            None => {
                let _shared = self.order.read().unwrap_or_else(PoisonError::into_inner);
                self.elements(piece)?.write_bytes(section, data)?;
            }
            Some(cache) if self.write_back => {
                let _alone = self.order.write().unwrap_or_else(PoisonError::into_inner);
                let replaced = |part: &InCell| match part.is_whole() {
                    true => Visit::Replace,
                    false => Visit::Change,
                };
                let cells = (cache, piece, replaced);
                self.change(cells, (section, data), |part, cell, data, shapes| {
                    copy_box(
                        (data, side(shapes.1, &part.positions)),
                        (cell, side(shapes.0, &part.inside)),
                        self.size,
                    );
                })?;
            }
            Some(cache) => {
                let _alone = self.order.write().unwrap_or_else(PoisonError::into_inner);
                self.write_through(cache, piece, section, data)?;
            }
        }
        self.mark_written(piece, section)
    }

    /// Changes cells in the cache; they are written when they go.
    fn change(
        &self,
        (cache, piece, visit): (&BlockCache, &Piece, impl Fn(&InCell) -> Visit),
        (section, data): (&Section, &[u8]),
        mut change: impl FnMut(&InCell, &mut [u8], &[u8], (&[u64], &[u64])),
    ) -> Result<()> {
        let shape = section.shape();
        piece.cells.each(section, |part| {
            let number = piece.first_cell + part.number;
            cache.visit(number, visit(&part), self, |seen| {
                let cell = part.cell.shape();
                change(&part, seen.bytes_mut(), data, (&cell, &shape));
            })
        })
    }

    /// Writes to the file, and then to the cells that are in the cache.
    fn write_through(
        &self,
        cache: &BlockCache,
        piece: &Piece,
        section: &Section,
        data: &[u8],
    ) -> Result<()> {
        let outcome = self.elements(piece)?.write_bytes(section, data);
        let shape = section.shape();
        piece.cells.each(section, |part| {
            let number = piece.first_cell + part.number;
            if outcome.is_err() {
                // Nobody knows what the file has now.
                cache.forget(number);
                return Ok(());
            }
            cache.visit_if_there(number, |bytes| {
                let cell = part.cell.shape();
                copy_box(
                    (data, side(&shape, &part.positions)),
                    (bytes, side(&cell, &part.inside)),
                    self.size,
                );
            });
            Ok::<(), Error>(())
        })?;
        outcome
    }

    fn accumulate(
        &self,
        piece: &Piece,
        section: &Section,
        values: &[u8],
        factor: &[u8],
    ) -> Result<()> {
        let add = add_scaled(self.array.element_type())?;
        let _alone = self.order.write().unwrap_or_else(PoisonError::into_inner);
        match &self.cache {
            Some(cache) if self.write_back => {
                let cells = (cache, piece, |_: &InCell| Visit::Change);
                self.change(cells, (section, values), |part, cell, values, shapes| {
                    let from = side(shapes.1, &part.positions);
                    let to = side(shapes.0, &part.inside);
                    self.add_box(add, (values, from), (cell, to), factor);
                })?;
            }
            cache => {
                let mut sums = vec![0; values.len()];
                match cache {
                    None => self.elements(piece)?.read_bytes(section, &mut sums)?,
                    Some(_) => self.cached_or_zero(piece, section, &mut sums)?,
                }
                add(&mut sums, values, factor);
                match cache {
                    None => self.elements(piece)?.write_bytes(section, &sums)?,
                    Some(cache) => self.write_through(cache, piece, section, &sums)?,
                }
            }
        }
        self.mark_written(piece, section)
    }

    /// What stands there; zeros where nothing was ever written.
    fn cached_or_zero(&self, piece: &Piece, section: &Section, room: &mut [u8]) -> Result<()> {
        match self.unwritten {
            Unwritten::Zeros => self.get(piece, section, room),
            Unwritten::Error => self.elements(piece)?.read_bytes(section, room),
        }
    }

    fn add_box(
        &self,
        add: AddScaled,
        (values, from): (&[u8], Side<'_>),
        (there, to): (&mut [u8], Side<'_>),
        factor: &[u8],
    ) {
        strips(from, to, self.size, |strip| {
            for at in 0..strip.count {
                let (from, to) = (
                    strip.from + at * strip.from_step,
                    strip.to + at * strip.to_step,
                );
                add(
                    &mut there[to..to + strip.len],
                    &values[from..from + strip.len],
                    factor,
                );
            }
        });
    }

    /// A section will be asked for: brings its cells into the cache, or lets the
    /// system fetch its bytes.
    fn expect(&self, piece: &Piece, section: &Section) -> Result<()> {
        match &self.cache {
            None => self.elements(piece)?.fetch(section),
            Some(cache) => piece.cells.each(section, |part| {
                let number = piece.first_cell + part.number;
                cache.visit(number, Visit::Read, self, |_| ())
            }),
        }
    }

    /// Whether a hint is more than a word to the system, and so a matter for
    /// another thread.
    pub(crate) fn has_cache(&self) -> bool {
        self.cache.is_some()
    }

    /// Returns when everything that was put is on stable storage.
    pub(crate) fn sync(&self) -> Result<()> {
        self.clean()?;
        self.array.sync()?;
        self.written.as_ref().map_or(Ok(()), Written::sync)
    }

    /// Writes what is only in the cache.
    fn clean(&self) -> Result<()> {
        match &self.cache {
            Some(cache) if self.write_back => cache.clean(self),
            _ => Ok(()),
        }
    }

    fn check_written(&self, piece: &Piece, section: &Section) -> Result<()> {
        let (Some(written), Unwritten::Error) = (&self.written, self.unwritten) else {
            return Ok(());
        };
        piece.cells.each(section, |part| {
            if written.is_written(piece.first_cell + part.number) {
                return Ok(());
            }
            Err(Error::format(
                self.array.name(),
                format!("block [{}] of the part has never been written", part.cell),
            ))
        })
    }

    fn mark_written(&self, piece: &Piece, section: &Section) -> Result<()> {
        let Some(written) = &self.written else {
            return Ok(());
        };
        piece
            .cells
            .each(section, |part| written.mark(piece.first_cell + part.number))
    }

    /// The piece that has a cell.
    fn piece_of(&self, cell: u64) -> &Piece {
        let after = self
            .pieces
            .partition_point(|piece| piece.first_cell <= cell);
        // Pieces without elements have no cells, and stand before the one meant.
        &self.pieces[after - 1]
    }
}

/// Cells come from the file and go there.
impl Backing for Part {
    fn bytes(&self, number: u64) -> usize {
        let piece = self.piece_of(number);
        piece.cells.cell(number - piece.first_cell).count() as usize * self.size
    }

    fn load(&self, number: u64, bytes: &mut [u8]) -> Result<()> {
        let piece = self.piece_of(number);
        self.elements(piece)?
            .read_bytes(&piece.cells.cell(number - piece.first_cell), bytes)
    }

    fn store(&self, number: u64, bytes: &[u8]) -> Result<()> {
        let piece = self.piece_of(number);
        self.elements(piece)?
            .write_bytes(&piece.cells.cell(number - piece.first_cell), bytes)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Whoever wants to know closes the array or syncs it.
        let _ = self.clean();
    }
}

fn side<'a>(shape: &'a [u64], section: &'a Section) -> Side<'a> {
    Side { shape, section }
}
