//! Local files from a global array and back: [`LocalArray::load`], which is
//! the creation phase of the Local Placement Model (Thakur 1995, section
//! 5.3.2), and [`LocalArray::store`].
//!
//! Each rank goes through its local indices piece by piece. A piece is a box
//! of local indices; where it stands in the global array and in the part are
//! two sections of one shape, so a piece is one read and one write, reordered
//! between them if the two have different storage orders. Both sections are
//! strided or lists if the distribution is cyclic, and move as any section
//! does. Overlap areas are not touched.

use outcore_geometry::{Pieces, shape_text};
use outcore_transport::Comm;

use crate::array::Array;
use crate::budget::MemoryBudget;
use crate::error::{Error, Result};
use crate::placement::local::LocalArray;
use crate::placement::staging::staged;
use crate::reorder::reorder;
use crate::strategy::Direction;

/// A piece of so many bytes is as good as a larger one.
const LARGEST: u64 = 64 << 20;

/// What the lists of a piece may take for each of its elements.
const LISTS: u64 = 32;

/// The least that a strategy may stage.
const LEAST_STAGING: u64 = 4096;

impl LocalArray {
    /// Collective: fills the parts of all ranks from `source`, of the same
    /// shape and type, in pieces that fit the budget of the process. The
    /// overlap areas stay as they are.
    pub fn load(&self, comm: &Comm, source: &Array, budget: &MemoryBudget) -> Result<()> {
        self.check_group(comm)?;
        let own = budget.for_rank(comm);
        Ok(comm.agree(self.load_part(source, &own, &|_| ()))?)
    }

    /// Collective: writes what the ranks own into `target`, of the same shape
    /// and type, in pieces that fit the budget of the process.
    pub fn store(&self, comm: &Comm, target: &Array, budget: &MemoryBudget) -> Result<()> {
        self.check_group(comm)?;
        let own = budget.for_rank(comm);
        Ok(comm.agree(self.store_part(target, &own, &|_| ()))?)
    }

    /// Not collective: fills this part alone, within `budget`; `progress` is
    /// told of the bytes as they are done.
    pub fn load_part(
        &self,
        source: &Array,
        budget: &MemoryBudget,
        progress: &dyn Fn(u64),
    ) -> Result<()> {
        self.copy(source, Direction::Read, budget, progress)
    }

    /// Not collective: writes what this part owns into `target`.
    pub fn store_part(
        &self,
        target: &Array,
        budget: &MemoryBudget,
        progress: &dyn Fn(u64),
    ) -> Result<()> {
        self.copy(target, Direction::Write, budget, progress)
    }

    /// Moves what the rank owns from (`Read`) or to (`Write`) `global`.
    fn copy(
        &self,
        global: &Array,
        direction: Direction,
        budget: &MemoryBudget,
        progress: &dyn Fn(u64),
    ) -> Result<()> {
        self.check_like(global)?;
        let size = global.layout().element_size();
        let (there, here) = (
            global.layout().slowest_first(),
            self.part().layout().slowest_first(),
        );
        let lists = self
            .parts
            .axes()
            .iter()
            .any(|axis| axis.all_blocks() > axis.ranks() && axis.block() > 1);
        let each = if there == here { size } else { 2 * size } + if lists { LISTS } else { 0 };
        budget.require(each, "copying between local files and a global array")?;
        let room = budget.free().clamp(each, LARGEST.max(each));
        let _held = budget.reserve(room, "copying between local files and a global array")?;
        // A strategy may stage what it moves: a quarter is for that.
        let staging = (room / 4).max(LEAST_STAGING);
        let (global, part) = (&staged(global, staging), &staged(self.part(), staging));
        let most = room.saturating_sub(staging).max(each) / each;
        let (mut bytes, mut reordered) = (Vec::new(), Vec::new());
        for piece in Pieces::new(&self.local(), there, most) {
            let (global_section, part_section) = self.parts.sections(self.rank(), &piece);
            bytes.resize((piece.count() * size) as usize, 0);
            let (from, to) = match direction {
                Direction::Read => ((global, &global_section), (part, &part_section)),
                Direction::Write => ((part, &part_section), (global, &global_section)),
            };
            from.0.read_bytes(from.1, &mut bytes)?;
            if there == here {
                to.0.write_bytes(to.1, &bytes)?;
            } else {
                reordered.resize(bytes.len(), 0);
                let orders = (
                    from.0.layout().slowest_first(),
                    to.0.layout().slowest_first(),
                );
                reorder(
                    &piece.shape(),
                    (&bytes, orders.0),
                    (&mut reordered, orders.1),
                );
                to.0.write_bytes(to.1, &reordered)?;
            }
            progress(bytes.len() as u64);
        }
        Ok(())
    }

    fn check_like(&self, global: &Array) -> Result<()> {
        let (own, other) = (self.whole(), global);
        if own.shape != other.shape() {
            return Err(Error::format(
                self.name(),
                format!(
                    "its shape is {}, but {} has {}",
                    shape_text(&own.shape),
                    other.name(),
                    shape_text(other.shape())
                ),
            ));
        }
        if own.element_type != other.element_type() {
            return Err(Error::WrongType {
                array: other.name().into(),
                stored: other.element_type(),
                asked: own.element_type,
            });
        }
        Ok(())
    }
}
