//! Numbers as text: the last axis along the line, one line for each index of
//! the axis before, an empty line where an axis before that goes on.

use std::io::{BufWriter, Write};

use outcore::{Array, Error, Pattern, Pieces, Result, Section, reorder};

use crate::memory::Room;
use crate::ranks::until_closed;
use crate::whole_file;

/// Elements in memory at a time, at the most, unless it takes more to reach the end of
/// tiles.
const PIECE: u64 = 1 << 20;

/// What is printed.
pub(crate) struct Lines<'a> {
    pub(crate) array: &'a Array,
    pub(crate) section: &'a Section,
    pub(crate) pattern: &'a Pattern,
    /// The memory for it.
    pub(crate) room: Room,
}

impl Lines<'_> {
    /// Prints to `output` (- for standard output), in place of what is there:
    /// to a .csv file with commas, otherwise with spaces.
    pub(crate) fn write(&self, output: &str) -> Result<()> {
        let separator = if output.ends_with(".csv") { "," } else { " " };
        if output == "-" {
            let mut out = BufWriter::new(std::io::stdout().lock());
            return until_closed(self.print(&mut out, (separator, "standard output")));
        }
        whole_file::write(output, |file| {
            self.print(&mut BufWriter::new(file), (separator, output))
        })
    }

    /// Prints to `out`, which is called `name` in messages.
    fn print(&self, out: &mut impl Write, (separator, name): (&str, &str)) -> Result<()> {
        let Self { array, section, .. } = self;
        let failed = |source| Error::File {
            action: "write to",
            path: name.into(),
            source,
        };
        let dropped = self.pattern.single_axes(section.axes().len());
        let shape = section.shape();
        let row_major: Vec<usize> = (0..shape.len()).collect();
        // How many elements make a line, and how many the block up to each empty line.
        let kept: Vec<u64> = row_major
            .iter()
            .filter(|axis| !dropped.contains(axis))
            .map(|axis| shape[*axis])
            .collect();
        let mut blocks: Vec<u64> = Vec::new();
        let mut block = 1u64;
        for extent in kept.iter().rev() {
            // Beyond 64 bits another extent is 0, and nothing is printed.
            block = block.saturating_mul(*extent);
            blocks.push(block);
        }
        let size = array.layout().element_size();
        let (mut bytes, mut ordered) = (Vec::new(), Vec::new());
        let mut number = 0u64;
        for piece in self.pieces(&row_major, self.room.elements(2, size)) {
            bytes.resize((piece.count() * size) as usize, 0);
            ordered.resize(bytes.len(), 0);
            array.read_bytes(&piece, &mut bytes)?;
            let order = array.layout().slowest_first();
            reorder(&piece.shape(), (&bytes, order), (&mut ordered, &row_major));
            for element in ordered.chunks_exact(size as usize) {
                number += 1;
                let ends = blocks
                    .iter()
                    .filter(|block| number.is_multiple_of(**block))
                    .count();
                let last = ends > 0 || blocks.is_empty();
                let after = if last { "\n" } else { separator };
                let text = array.element_type().text(element);
                write!(out, "{text}{after}").map_err(failed)?;
                if ends > 1 && ends < blocks.len() {
                    out.write_all(b"\n").map_err(failed)?;
                }
            }
        }
        out.flush().map_err(failed)
    }

    /// Pieces of at most `most` elements in the order of the text. They end where tiles
    /// do, so that the next one has no use for these, if that is not too far.
    fn pieces(&self, row_major: &[usize], most: u64) -> Box<dyn Iterator<Item = Section>> {
        let (lower, upper) = match self.section.axes().first() {
            Some(axis) => axis.bounds(),
            None => (0, 0),
        };
        let tile = self.array.layout().tile().map(|tile| tile[0]);
        let (Some(tile), true) = (tile, lower < upper) else {
            return Box::new(Pieces::new(self.section, row_major, most.min(PIECE)));
        };
        let (section, order) = (self.section.clone(), row_major.to_vec());
        let each = (section.count() / section.shape()[0]).saturating_mul(tile);
        let together = (PIECE / each.max(1)).max(1);
        let count = ((upper - 1) / tile - lower / tile + 1).div_ceil(together);
        let slabs = (0..count).map(move |slab| {
            let first = lower / tile + slab * together;
            let below = |tiles: u64| section.axes()[0].count_below(tiles.saturating_mul(tile));
            section.slice(0, below(first), below(first + together))
        });
        Box::new(slabs.flat_map(move |slab| Pieces::new(&slab, &order, most)))
    }
}
