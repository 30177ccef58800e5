//! Local files from a global array and back: [`LocalArray::load`], which is
//! the creation phase of the Local Placement Model (Thakur 1995, section
//! 5.3.2), and [`LocalArray::store`].
//!
//! Each rank moves its local indices block by block ([`crate::Relayout`]). A
//! block is a box of local indices; where it stands in the global array and in
//! the part are two sections of one shape, strided or lists if the distribution
//! is cyclic. Overlap areas are not touched.

use outcore_geometry::shape_text;
use outcore_transport::Comm;

use crate::array::Array;
use crate::budget::MemoryBudget;
use crate::error::{Error, Result};
use crate::placement::local::LocalArray;
use crate::relayout::{Leg, move_part};
use crate::strategy::Direction;

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
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<()> {
        self.copy(source, Direction::Read, budget, progress)
    }

    /// Not collective: writes what this part owns into `target`.
    pub fn store_part(
        &self,
        target: &Array,
        budget: &MemoryBudget,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<()> {
        self.copy(target, Direction::Write, budget, progress)
    }

    /// Moves what the rank owns from (`Read`) or to (`Write`) `global`.
    fn copy(
        &self,
        global: &Array,
        direction: Direction,
        budget: &MemoryBudget,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<()> {
        self.check_like(global)?;
        let part = (self.part(), &self.parts, self.rank());
        let leg = Leg::of_part(part, global, direction == Direction::Read);
        move_part(leg, budget, progress)
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
