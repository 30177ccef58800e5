//! [`LocalArray::shift`]: the boundary planes of every block, from one rank's
//! file into the overlap area of its neighbour's (Thakur 1995, section 5.4:
//! `PASSION_oc_shift`).
//!
//! Along one axis the blocks of all ranks follow one another. The last planes
//! of a block go into the overlap area below the next block, its first planes
//! into the one above the previous block. With CYCLIC(m), each rank has many
//! blocks, and those before or after them all belong to the same neighbour, so
//! the planes of many blocks travel together. A plane takes the whole extent
//! of the other axes, overlap areas included: so after axis 0 and then axis 1
//! the corners are right as well, and so on for more axes. At the ends of the
//! axis there is no neighbour: [`Boundary`] says what happens there.
//!
//! The path of the data: a rank reads its planes in pieces of at most
//! [`PIECE`] bytes, exchanges each piece, and writes what it receives. Sender
//! and receiver cut their planes, which have one shape, in the same way. All
//! ranks take part in as many rounds as the longest of them needs, also after
//! a failure of their own, which all learn at the end. A rank takes at most 2
//! MiB of memory for all that.

use outcore_geometry::{AxisSection, Pieces, Section};
use outcore_transport::{Comm, Exchange, Op};

use crate::error::{Error, Result};
use crate::fill::Fill;
use crate::placement::local::LocalArray;
use crate::placement::parts::{PartAxis, fitting};
use crate::placement::planes::{
    Planes, Side, downwards, first_to_last, last_end, last_to_first, too_short, upwards,
};
use crate::placement::staging::PIECE;

/// Most indices of one axis that a list of planes names.
const INDICES: u64 = 1 << 14;

/// Which planes move: of an axis, for the rank at a coordinate, so many.
type Which = fn(&PartAxis, u64, u64) -> Side;

/// What the overlap areas at the ends of an axis get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Boundary {
    /// What lies at the other end: the axis is a ring.
    Circular,
    /// This value, which must be one of the array's type.
    Value(f64),
    /// The nearest element of the array.
    Nearest,
    /// Nothing: they keep what they hold.
    Keep,
}

impl LocalArray {
    /// Collective: fills the overlap areas of all axes, corners included.
    pub fn exchange_overlap(&self, comm: &Comm, boundary: Boundary) -> Result<()> {
        let depths = self
            .parts
            .axes()
            .iter()
            .map(|axis| axis.below.max(axis.above));
        self.exchange_depths(comm, &depths.collect::<Vec<u64>>(), boundary)
    }

    /// Collective: the same, along each axis only as deep as `depths` says, for
    /// those who need less than the overlap areas could hold.
    pub fn exchange_depths(&self, comm: &Comm, depths: &[u64], boundary: Boundary) -> Result<()> {
        let axes = self.parts.axes().len();
        if depths.len() != axes {
            let given = depths.len();
            let problem = format!("it has {axes} axes, but depths are given for {given}");
            return Err(Error::format(self.name(), problem));
        }
        for (axis, depth) in depths.iter().enumerate() {
            // All mistakes before the first change.
            self.check_shift(axis, *depth, boundary)?;
        }
        for (axis, depth) in depths.iter().enumerate() {
            if *depth > 0 {
                self.shift(comm, axis, *depth, boundary)?;
            }
        }
        Ok(())
    }

    /// Collective: fills the `depth` planes next to each block, in the overlap
    /// areas along `axis`, on both sides as far as there is overlap. A rank
    /// takes at most 2 MiB of memory besides.
    pub fn shift(&self, comm: &Comm, axis: usize, depth: u64, boundary: Boundary) -> Result<()> {
        // 1. Mistakes, which all ranks see alike.
        self.check_group(comm)?;
        self.check_shift(axis, depth, boundary)?;
        let (below, above) = self.depths(axis, depth);
        // 2. From neighbour to neighbour, upwards and downwards.
        let mut outcome = Ok(());
        let mut transfer = |depth, which: Which| {
            let side = self.side(axis, depth, which);
            self.transfer(comm, axis, &side, &mut outcome)
        };
        transfer(below, upwards)?;
        transfer(above, downwards)?;
        // 3. The ends of the axis.
        match boundary {
            Boundary::Circular => {
                transfer(below, last_to_first)?;
                transfer(above, first_to_last)?;
            }
            Boundary::Value(value) => {
                outcome = outcome.and_then(|()| self.fill_ends(axis, (below, above), value));
            }
            Boundary::Nearest => {
                outcome = outcome.and_then(|()| self.repeat_ends(axis, (below, above)));
            }
            Boundary::Keep => {}
        }
        // 4. Everybody learns of everybody's failure.
        Ok(comm.agree(outcome)?)
    }

    /// How much of `depth` there is on either side.
    fn depths(&self, axis: usize, depth: u64) -> (u64, u64) {
        let axis = &self.parts.axes()[axis];
        (depth.min(axis.below), depth.min(axis.above))
    }

    fn check_shift(&self, number: usize, depth: u64, boundary: Boundary) -> Result<()> {
        let wrong = |problem: String| Err(Error::format(self.name(), problem));
        let Some(axis) = self.parts.axes().get(number) else {
            return wrong(format!(
                "there is no axis {number} to shift along: it has {} axes",
                self.parts.axes().len()
            ));
        };
        if depth > axis.below.max(axis.above) {
            return wrong(format!(
                "a shift of depth {depth} along axis {number} needs overlap areas of that depth, \
                 but they were made {} deep below and {} above",
                axis.below, axis.above
            ));
        }
        let (below, above) = self.depths(number, depth);
        let circular = boundary == Boundary::Circular;
        if let Some(short) = too_short(axis, below, above, circular) {
            return wrong(format!(
                "an overlap of depth {} along axis {number} is deeper than the neighbour's \
                 block, which has {short} (extent {} in blocks of {} on {} ranks); use a depth \
                 of at most {short}, or other blocks or ranks",
                below.max(above),
                self.distribution().shape()[number],
                axis.block(),
                axis.ranks()
            ));
        }
        if let Boundary::Value(value) = boundary {
            self.boundary_value(value)?;
        }
        Ok(())
    }

    fn boundary_value(&self, value: f64) -> Result<Fill> {
        let fill = Fill::Value(value.to_string());
        fill.check(self.whole().element_type)?;
        Ok(fill)
    }

    /// The coordinate of this rank along `axis`; `None` if it owns nothing.
    fn coordinate(&self, axis: usize) -> Option<u64> {
        if self.part().whole().is_empty() {
            return None;
        }
        Some(self.distribution().coordinates(self.rank() as u64)?[axis])
    }

    /// The rank at another coordinate along `axis`.
    fn rank_along(&self, axis: usize, coordinate: u64) -> usize {
        let own = self.distribution().coordinates(self.rank() as u64);
        let mut at = own.unwrap_or_else(|| vec![0; self.parts.axes().len()]);
        at[axis] = coordinate;
        let grid = self.distribution().grid().iter().zip(at);
        grid.fold(0, |rank, (extent, at)| rank * extent + at) as usize
    }

    /// What this rank sends and receives; nothing if it owns nothing.
    fn side(&self, axis: usize, depth: u64, which: Which) -> Side {
        let at = self.coordinate(axis);
        at.map_or_else(Side::default, |at| {
            which(&self.parts.axes()[axis], at, depth)
        })
    }

    /// Collective: moves the planes. A failure of this rank is kept in
    /// `outcome`; the call itself fails only if the ranks cannot talk.
    fn transfer(
        &self,
        comm: &Comm,
        axis: usize,
        side: &Side,
        outcome: &mut Result<()>,
    ) -> Result<()> {
        let pieces = |planes: &Option<(u64, Planes)>| {
            let planes = planes.as_ref().map(|(_, planes)| *planes);
            planes
                .into_iter()
                .flat_map(move |planes| self.pieces(axis, planes))
        };
        let (mut leaving, mut arriving) = (pieces(&side.sends), pieces(&side.receives));
        let own = pieces(&side.sends)
            .count()
            .max(pieces(&side.receives).count());
        let rounds = comm.all_reduce(&[own as u64], Op::Max)?[0];
        let part = self.staged_part();
        let size = part.layout().element_size();
        let (mut out, mut into) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (from, to) = (leaving.next(), arriving.next());
            let mut exchange = Exchange::new();
            if let (Some(section), Some((peer, _))) = (&from, &side.sends) {
                out.resize((section.count() * size) as usize, 0);
                if outcome.is_ok() {
                    *outcome = part.read_bytes(section, &mut out);
                }
                exchange.send(self.rank_along(axis, *peer), &out);
            }
            if let (Some(section), Some((peer, _))) = (&to, &side.receives) {
                into.resize((section.count() * size) as usize, 0);
                exchange.receive(self.rank_along(axis, *peer), &mut into);
            }
            comm.exchange(&mut exchange)?;
            if let (Some(section), Ok(())) = (&to, &*outcome) {
                *outcome = part.write_bytes(section, &into);
            }
        }
        Ok(())
    }

    /// The planes in pieces of bounded size; how they are cut follows from
    /// their shape alone.
    fn pieces(&self, axis: usize, planes: Planes) -> impl Iterator<Item = Section> + '_ {
        let together = (INDICES / planes.depth.max(1)).max(1);
        let starts = (0..planes.blocks).step_by(together as usize);
        let starts = starts.take_while(move |_| planes.depth > 0);
        let most = PIECE / self.part().layout().element_size();
        starts.flat_map(move |start| {
            let some = planes.blocks.min(start + together) - start;
            let section = self.planes(axis, planes.indices(start, some));
            Pieces::new(&section, self.part().layout().slowest_first(), most)
        })
    }

    /// Positions of one axis, the whole extent of the others.
    fn planes(&self, axis: usize, positions: AxisSection) -> Section {
        let whole = self.part().whole();
        let mut axes = whole.axes().to_vec();
        axes[axis] = positions;
        fitting(axes)
    }

    /// Both ends of the axis, where they are this rank's: the positions of the
    /// overlap area and that of the element next to it.
    fn ends(&self, number: usize, (below, above): (u64, u64)) -> Vec<(Planes, u64)> {
        let Some(at) = self.coordinate(number) else {
            return Vec::new();
        };
        let axis = &self.parts.axes()[number];
        let (owner, end) = last_end(axis);
        let first = (at == 0).then(|| (Planes::one(axis.below - below, below), axis.below));
        let last = (at == owner).then(|| (Planes::one(end, above), end - 1));
        first.into_iter().chain(last).collect()
    }

    fn fill_ends(&self, axis: usize, depths: (u64, u64), value: f64) -> Result<()> {
        let fill = self.boundary_value(value)?;
        let part = self.staged_part();
        let size = part.layout().element_size();
        let mut bytes = Vec::new();
        for (area, _) in self.ends(axis, depths) {
            for piece in self.pieces(axis, area) {
                bytes.resize((piece.count() * size) as usize, 0);
                fill.generate(&part, &piece, &mut bytes)?;
                part.write_bytes(&piece, &bytes)?;
            }
        }
        Ok(())
    }

    fn repeat_ends(&self, axis: usize, depths: (u64, u64)) -> Result<()> {
        let part = self.staged_part();
        let size = part.layout().element_size();
        let mut bytes = Vec::new();
        for (area, nearest) in self.ends(axis, depths) {
            for piece in self.pieces(axis, Planes::one(nearest, 1)) {
                bytes.resize((piece.count() * size) as usize, 0);
                part.read_bytes(&piece, &mut bytes)?;
                for position in area.first..area.first + area.depth {
                    let mut axes = piece.axes().to_vec();
                    axes[axis] = AxisSection::span(position, position + 1);
                    part.write_bytes(&fitting(axes), &bytes)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, ArrayDescriptor, Distribution, ElementType, LocalPlacement};

    /// Two pieces, the buffer of sieving, and one for the order of bytes.
    #[test]
    fn a_rank_takes_little_memory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.oc");
        let name = path.to_str().unwrap();
        let shape = [512, 4096];
        let distribution = Distribution::parse("cyclic(128),*", &shape, 2, None).unwrap();
        let placement = LocalPlacement::new(distribution).overlap(&[(64, 64), (0, 0)]);
        let descriptor = ArrayDescriptor::new(&shape, ElementType::F64).placed(placement);
        Array::create(name, &descriptor).unwrap();
        let local = LocalArray::open_part(name, 1).unwrap();
        let side = local.side(0, 64, upwards);
        let pieces: Vec<_> = [side.sends, side.receives]
            .into_iter()
            .flatten()
            .flat_map(|(_, planes)| local.pieces(0, planes))
            .map(|piece| piece.count() * 8)
            .collect();
        // One block has a next one, two have a previous one.
        assert_eq!(pieces.iter().sum::<u64>(), 3 * 64 * 4096 * 8);
        let largest = pieces.into_iter().max().unwrap();
        assert!(3 * largest + local.staged_part().tuning().buffer() <= 2 << 20);
    }
}
