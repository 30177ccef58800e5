//! Copying a section from one array into another, in pieces, by many ranks.

use outcore::{Array, Collective, Comm, Direction, Error, Op, Result, Section, reorder};
use outcore_apps::Part;

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
    /// The positions of the section that this rank moves, in pieces for which there is
    /// room in so many buffers.
    pub(crate) fn pieces(
        &self,
        side: &Side<'_>,
        buffers: u64,
    ) -> Result<impl Iterator<Item = Section> + use<>> {
        let part = side.part();
        let share = part.share(&part.positions()?, self.comm.rank(), self.comm.size());
        Ok(part.pieces(&share, self.room.piece(side.array, buffers)))
    }
}

/// One side of a copy.
pub(crate) struct Side<'a> {
    pub(crate) array: &'a Array,
    pub(crate) section: &'a Section,
}

impl Side<'_> {
    fn part(&self) -> Part<'_> {
        Part {
            array: self.array,
            section: self.section,
        }
    }

    /// The elements of a tile; 1 where there are none.
    fn tile(&self) -> u64 {
        let tile = self.array.layout().tile().unwrap_or_default();
        tile.iter()
            .fold(1, |all, extent| all.saturating_mul(*extent))
    }
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
    // Small tiles lie in the large ones of the other side, or nearly so.
    let cut = if to.tile() > from.tile() { to } else { from };
    let (mut bytes, mut reordered) = (Vec::new(), Vec::new());
    for piece in team.pieces(cut, 2)? {
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

/// Collective: copies the section of each rank out of `shared`, which the ranks
/// read together by `calls`, into an array of its own, or back. All ranks are in
/// the same part of `shared` at a time, so that where sections overlap the
/// highest rank's values are written.
pub(crate) fn copy_together(
    team: &Team<'_>,
    (shared, calls): (&Side<'_>, &Collective<'_>),
    own: &Side<'_>,
    direction: Direction,
) -> Result<()> {
    let layout = shared.array.layout();
    let (order, own_order) = (layout.slowest_first(), own.array.layout().slowest_first());
    let all = whole(&shared.section.shape())?;
    let (mut bytes, mut reordered) = (Vec::new(), Vec::new());
    for part in parts(team, shared)? {
        let positions = (0..all.axes().len()).fold(all.clone(), |positions, axis| {
            let (lower, upper) = part.axes()[axis].bounds();
            let taken = &shared.section.axes()[axis];
            positions.slice(axis, taken.count_below(lower), taken.count_below(upper))
        });
        let section = shared.section.select(&positions);
        let (own_section, shape) = (own.section.select(&positions), positions.shape());
        bytes.resize((positions.count() * layout.element_size()) as usize, 0);
        reordered.resize(if order == own_order { 0 } else { bytes.len() }, 0);
        match direction {
            Direction::Read => {
                calls.read_bytes(team.comm, &section, &mut bytes)?;
                let values = if order == own_order {
                    &bytes
                } else {
                    reorder(&shape, (&bytes, order), (&mut reordered, own_order));
                    &reordered
                };
                let written = own.array.write_bytes(&own_section, values);
                team.comm.agree(written)?;
            }
            Direction::Write => {
                let values = match order == own_order {
                    true => &mut bytes,
                    false => &mut reordered,
                };
                let read = own.array.read_bytes(&own_section, values);
                team.comm.agree(read)?;
                if order != own_order {
                    reorder(&shape, (&reordered, own_order), (&mut bytes, order));
                }
                calls.write_bytes(team.comm, &section, &bytes)?;
            }
        }
        team.progress.add(bytes.len() as u64);
    }
    let written = match direction {
        Direction::Read => own.array,
        Direction::Write => shared.array,
    };
    Ok(team.comm.agree(written.sync())?)
}

/// Collective: what the sections of all ranks lie in, cut into parts of which
/// every rank has room for what it takes; all of it if there is room for that.
fn parts(team: &Team<'_>, side: &Side<'_>) -> Result<Vec<Section>> {
    let (comm, array) = (team.comm, side.array);
    let room = team.room.elements(2, array.layout().element_size());
    let fits = u64::from(side.section.count() <= room);
    let room = comm.all_reduce(&[room], Op::Min)?[0];
    if comm.all_reduce(&[fits], Op::Min)?[0] == 1 {
        return Ok(vec![array.whole()]);
    }
    let bounds = side.section.axes().iter().map(|axis| match axis.count() {
        0 => (u64::MAX, 0),
        _ => axis.bounds(),
    });
    let (lower, upper): (Vec<u64>, Vec<u64>) = bounds.unzip();
    let lower = comm.all_reduce(&lower, Op::Min)?;
    let upper = comm.all_reduce(&upper, Op::Max)?;
    let within = (0..lower.len()).fold(array.whole(), |within, axis| {
        within.slice(axis, lower[axis], upper[axis])
    });
    let part = Part {
        array,
        section: &within,
    };
    let pieces = part.pieces(&part.positions()?, room);
    Ok(pieces.map(|piece| within.select(&piece)).collect())
}

/// All positions of a section with this shape.
fn whole(shape: &[u64]) -> Result<Section> {
    Section::whole(shape).map_err(|error| Error::Invalid(error.to_string()))
}
