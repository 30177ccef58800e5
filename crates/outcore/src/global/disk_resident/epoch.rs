//! [`ReaderCache`]: blocks of the parts of others, kept by a rank that reads, while
//! nobody writes.
//!
//! In a read-only epoch blocks cannot change, so whatever a rank has read it may
//! keep. The epoch begins and ends on all ranks together; in between nobody can put
//! or accumulate.

use outcore_geometry::Section;

use super::boxes::{Side, copy_box};
use super::cache::{Backing, BlockCache, CacheCounts, Visit};
use super::cells::Cells;
use super::link::Link;
use super::request::Action;
use super::spread::{Item, Spread};
use crate::budget::MemoryBudget;
use crate::error::Result;

/// Blocks of others' parts.
#[derive(Debug)]
pub(crate) struct ReaderCache {
    cache: BlockCache,
    /// The pieces of all parts, in the order of their first cells.
    pieces: Vec<Piece>,
    /// Where the pieces of each part begin.
    firsts: Vec<usize>,
    size: usize,
}

#[derive(Debug)]
struct Piece {
    part: usize,
    piece: u64,
    first_cell: u64,
    cells: Cells,
}

impl ReaderCache {
    pub(crate) fn new(
        spread: &Spread,
        block: Option<&[u64]>,
        size: usize,
        budget: &MemoryBudget,
    ) -> Result<Self> {
        let (mut pieces, mut firsts) = (Vec::new(), Vec::new());
        let (mut first_cell, mut largest) = (0, 0);
        for part in 0..spread.parts() {
            firsts.push(pieces.len());
            for (piece, shape) in spread.pieces(part).iter().enumerate() {
                let cells = Cells::new(shape, block, size as u64);
                largest = largest.max(cells.bytes());
                let count = cells.count();
                pieces.push(Piece {
                    part,
                    piece: piece as u64,
                    first_cell,
                    cells,
                });
                first_cell += count;
            }
        }
        budget.require(largest, "a reader's cache of a disk-resident array")?;
        Ok(Self {
            cache: BlockCache::new(budget),
            pieces,
            firsts,
            size,
        })
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        self.cache.counts()
    }

    /// Gets an item into the buffer of its section, which has the shape `shape`.
    pub(crate) fn get(
        &self,
        link: &Link,
        item: &Item,
        shape: &[u64],
        buffer: &mut [u8],
    ) -> Result<()> {
        let piece = &self.pieces[self.firsts[item.part] + item.piece as usize];
        let remote = Remote { cache: self, link };
        piece.cells.each(&item.local, |part| {
            let number = piece.first_cell + part.number;
            let place = item.positions.select(&part.positions);
            self.cache.visit(number, Visit::Read, &remote, |seen| {
                let cell = part.cell.shape();
                copy_box(
                    (
                        seen.bytes(),
                        Side {
                            shape: &cell,
                            section: &part.inside,
                        },
                    ),
                    (
                        buffer,
                        Side {
                            shape,
                            section: &place,
                        },
                    ),
                    self.size,
                );
            })
        })
    }

    fn cell(&self, number: u64) -> (&Piece, Section) {
        let after = self
            .pieces
            .partition_point(|piece| piece.first_cell <= number);
        let piece = &self.pieces[after - 1];
        (piece, piece.cells.cell(number - piece.first_cell))
    }
}

/// Blocks come from the holders of the parts.
struct Remote<'a> {
    cache: &'a ReaderCache,
    link: &'a Link,
}

impl Backing for Remote<'_> {
    fn bytes(&self, number: u64) -> usize {
        self.cache.cell(number).1.count() as usize * self.cache.size
    }

    fn load(&self, number: u64, bytes: &mut [u8]) -> Result<()> {
        let (piece, cell) = self.cache.cell(number);
        let item = Item {
            part: piece.part,
            piece: piece.piece,
            positions: Section::empty(cell.axes().len()),
            local: cell,
        };
        self.link.ask((Action::Get, &[]), &[item], &[], bytes)
    }

    fn store(&self, _: u64, _: &[u8]) -> Result<()> {
        Ok(()) // Nobody changes anything here.
    }
}
