//! Copying a section from one array into another, in pieces, by many ranks.

use outcore::{Array, Comm, Error, Pieces, Result, Section, divide, reorder};

use crate::progress::Progress;

/// Bytes in flight in one process, shared by its ranks.
const BUFFERS: u64 = 64 << 20;

/// The largest number of elements in a piece, for `comm`'s ranks.
pub(crate) fn piece_elements(comm: &Comm, element_size: u64) -> u64 {
    let ranks = if comm.transport().shares_memory() {
        comm.size() as u64
    } else {
        1
    };
    (BUFFERS / ranks / element_size).max(1)
}

/// One side of a copy.
pub(crate) struct Side<'a> {
    pub(crate) array: &'a Array,
    pub(crate) section: &'a Section,
}

/// Collective: copies `from` to `to`, whose sections have the same shape and
/// whose arrays have the same type. The ranks divide the work.
pub(crate) fn copy(comm: &Comm, from: &Side<'_>, to: &Side<'_>, progress: &Progress) -> Result<()> {
    let order = from.array.layout().slowest_first();
    let target_order = to.array.layout().slowest_first();
    let size = from.array.layout().element_size();
    let positions = whole(&from.section.shape())?;
    let share = &divide(&positions, order, comm.size() as u64)[comm.rank()];
    let (mut bytes, mut reordered) = (Vec::new(), Vec::new());
    for piece in Pieces::new(share, order, piece_elements(comm, size) / 2) {
        bytes.resize((piece.count() * size) as usize, 0);
        from.array
            .read_bytes(&from.section.select(&piece), &mut bytes)?;
        let target = to.section.select(&piece);
        if order == target_order {
            to.array.write_bytes(&target, &bytes)?;
        } else {
            reordered.resize(bytes.len(), 0);
            reorder(
                &piece.shape(),
                (&bytes, order),
                (&mut reordered, target_order),
            );
            to.array.write_bytes(&target, &reordered)?;
        }
        progress.add(bytes.len() as u64);
    }
    Ok(())
}

/// All positions of a section with this shape.
fn whole(shape: &[u64]) -> Result<Section> {
    Section::whole(shape).map_err(|error| Error::Invalid(error.to_string()))
}
