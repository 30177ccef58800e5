//! [`filter_local`]: the median filter on local placement, one file a rank.
//!
//! 1. The overlap areas of the source get the neighbours' rims, as deep as the
//!    window reaches and corners included; at the edges of the array, its
//!    nearest elements. So windows find everything in the rank's own file.
//! 2. Each rank filters its blocks from its file into its file.
//! 3. The overlap areas of the result are filled, too.

use outcore::{Block, Boundary, Comm, Error, LocalArray, MemoryBudget, Result};

use super::global::of_real;
use super::pass::{PURPOSE, Pass};
use super::window::Window;
use crate::overlap::{check_placed_alike, deepest_fill, depth_along, fill, is_divided};
use crate::resources::Resources;
use crate::slab_writer::depth;

/// Collective: writes the median of the window around each element of `source`
/// to the same place of `target`, which is placed alike. Both must be open for
/// writing, since overlap areas are filled; along divided axes these must be as
/// deep as the window reaches.
pub fn filter_local(
    comm: &Comm,
    source: &LocalArray,
    target: &LocalArray,
    window: &Window,
    resources: &Resources<'_>,
) -> Result<()> {
    window.check(&source.whole().shape)?;
    check_placed_alike(source, target)?;
    let reach = window.reach();
    for (axis, reach) in reach.iter().enumerate() {
        let depth = depth_along(source, axis);
        if is_divided(source, axis) && depth < *reach {
            return Err(Error::Invalid(format!(
                "the window {window} reaches {reach} elements along axis {axis}, but the overlap \
                 areas of {} are {depth} deep there; 'outcore convert {} NEW.oc --placement local' \
                 with a deeper --overlap makes such files",
                source.name(),
                source.name()
            )));
        }
    }
    let behind = depth(&[target.part()], source.whole());
    let pass = |block: Block| Pass {
        source: source.part(),
        target: target.part(),
        window,
        region: block.part,
        behind,
    };
    of_real!((source.name(), source.whole().element_type), T => {
        let need = |budget: &MemoryBudget| {
            // The first block of a rank is as large as any.
            let first = source.blocks().next().map(pass);
            first.map_or(0, |pass| pass.need_within::<T>(budget.limit()))
        };
        let budget = resources.enough(comm, PURPOSE, need)?;
        fill(comm, source, Boundary::Nearest, |axis| reach[axis])?;
        let filtered = source.blocks().try_for_each(|block| pass(block).run::<T>(&budget, resources));
        comm.agree(filtered)?;
        fill(comm, target, Boundary::Nearest, |axis| deepest_fill(target, axis))
    })
}
