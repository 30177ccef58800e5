//! Copying a section from one array into another, in pieces, by many ranks.

use outcore::{Array, Comm, Error, Pieces, Result, Section, divide, reorder};

use crate::memory::Room;
use crate::progress::Progress;

/// Ranks that divide a piece of work, and what each of them may use.
pub(crate) struct Team<'a> {
    /// Those who divide the work.
    pub(crate) comm: &'a Comm,
    /// What each may hold.
    pub(crate) room: Room,
    /// Where they tell how far they are.
    pub(crate) progress: &'a Progress,
}

impl Team<'_> {
    /// This rank's share of `section`, in pieces for which there is room.
    pub(crate) fn pieces(&self, section: &Section, array: &Array, buffers: u64) -> Pieces {
        let order = array.layout().slowest_first();
        let share = &divide(section, order, self.comm.size() as u64)[self.comm.rank()];
        Pieces::new(
            share,
            order,
            self.room.elements(buffers, array.layout().element_size()),
        )
    }
}

/// One side of a copy.
pub(crate) struct Side<'a> {
    pub(crate) array: &'a Array,
    pub(crate) section: &'a Section,
}

/// `target`, a new array for elements of `source`, if it holds their type; the
/// description of a raw file may name another.
pub(crate) fn fitting(target: &Array, source: &Array) -> Result<Array> {
    if target.element_type() == source.element_type() {
        return Ok(target.clone());
    }
    Err(Error::WrongType {
        array: "the output".into(),
        stored: target.element_type(),
        asked: source.element_type(),
    })
}

/// Collective: copies `from` to `to`, whose sections have the same shape and
/// whose arrays have the same type. The ranks divide the work.
pub(crate) fn copy(team: &Team<'_>, from: &Side<'_>, to: &Side<'_>) -> Result<()> {
    let order = from.array.layout().slowest_first();
    let target_order = to.array.layout().slowest_first();
    let size = from.array.layout().element_size();
    let positions = whole(&from.section.shape())?;
    let (mut bytes, mut reordered) = (Vec::new(), Vec::new());
    for piece in team.pieces(&positions, from.array, 2) {
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
        team.progress.add(bytes.len() as u64);
    }
    to.array.sync()
}

/// All positions of a section with this shape.
fn whole(shape: &[u64]) -> Result<Section> {
    Section::whole(shape).map_err(|error| Error::Invalid(error.to_string()))
}
