//! Whole arrays from and to other places, by all ranks together.
//!
//! From and to an array on disk each holder reads or writes its parts piece by piece
//! by collective calls (two-phase): so the other array's file is touched in long
//! stretches, whatever the two orders are. From and to an array in memory, elements
//! move to their holders first, in memory, where the budget has room for a part, and
//! holders then write their parts in one go; otherwise every rank gets or puts what it
//! has, piece by piece.

use std::ops::Range;

use bytemuck::Pod;
use outcore_geometry::{AlignedDistribution, Pieces, Section, shape_text};
use outcore_transport::{Comm, Op};

use super::DiskResident;
use super::request::Action;
use super::spread::{Item, Spread};
use crate::array::Array;
use crate::budget::{MemoryBudget, Reservation};
use crate::distributed::DistributedArray;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::global::global_array::GlobalArray;
use crate::redistribute::RedistributionPlan;
use crate::reorder::reorder;
use crate::strategy::Direction;

/// The elements that move at a time.
const PIECE: u64 = 1 << 18;

/// A box of a part: where it stands there and in the whole array.
struct Box {
    item: Item,
    global: Section,
}

impl<T: Element + Pod> DiskResident<T> {
    /// Collective: takes all elements from an array of the same shape and type.
    pub fn load(&self, comm: &Comm, array: &Array) -> Result<()> {
        self.with_array(comm, array, Direction::Read)
    }

    /// Collective: writes all elements to an array of the same shape and type. What
    /// no part holds is written by nobody.
    pub fn store(&self, comm: &Comm, array: &Array) -> Result<()> {
        self.with_array(comm, array, Direction::Write)
    }

    fn with_array(&self, comm: &Comm, array: &Array, direction: Direction) -> Result<()> {
        comm.agree(self.check_other(array, direction))?;
        let boxes = self.boxes();
        let rounds = comm.all_reduce(&[boxes.len() as u64], Op::Max)?[0];
        let axes: Vec<usize> = (0..self.shape().len()).collect();
        let order = array.layout().slowest_first().to_vec();
        let (nothing, mut values, mut turned) =
            (Section::empty(axes.len()), Vec::new(), Vec::new());
        // A rank that fails takes part in the remaining calls.
        let mut outcome = Ok(());
        for round in 0..rounds as usize {
            let part = boxes.get(round);
            let section = part.map_or(&nothing, |part| &part.global);
            values.resize(section.count() as usize, T::zeroed());
            turned.resize(if order == axes { 0 } else { values.len() }, T::zeroed());
            let shape = section.shape();
            let calls = array.collective();
            match direction {
                Direction::Read => {
                    if order == axes {
                        calls.read_into(comm, section, &mut values)?;
                    } else {
                        calls.read_into(comm, section, &mut turned)?;
                        let from: &[u8] = bytemuck::cast_slice(&turned);
                        let to = bytemuck::cast_slice_mut(&mut values);
                        reorder(&shape, (from, &order), (to, &axes));
                    }
                    outcome = outcome.and_then(|()| self.own(Action::Put, part, &mut values));
                }
                Direction::Write => {
                    if outcome.is_ok() {
                        outcome = self.own(Action::Get, part, &mut values);
                    }
                    if order == axes {
                        calls.write(comm, section, &values)?;
                    } else {
                        let from: &[u8] = bytemuck::cast_slice(&values);
                        let to = bytemuck::cast_slice_mut(&mut turned);
                        reorder(&shape, (from, &axes), (to, &order));
                        calls.write(comm, section, &turned)?;
                    }
                }
            }
        }
        Ok(comm.agree(outcome)?)
    }

    /// Gets or puts a box of this rank's own.
    fn own(&self, action: Action, part: Option<&Box>, values: &mut [T]) -> Result<()> {
        let Some(part) = part else {
            return Ok(());
        };
        let (items, bytes) = (std::slice::from_ref(&part.item), T::bytes_mut(values));
        match action {
            Action::Get => self.inner.link.ask((action, &[]), items, &[], bytes),
            _ => self.inner.link.ask((action, &[]), items, bytes, &mut []),
        }
    }

    /// What this rank holds, in boxes of bounded size.
    fn boxes(&self) -> Vec<Box> {
        let (spread, mut boxes) = (self.spread(), Vec::new());
        let mut own: Vec<usize> = self
            .inner
            .link
            .holder()
            .parts()
            .map(|(part, _)| part)
            .collect();
        own.sort_unstable();
        for part in own {
            for (piece, shape) in spread.pieces(part).iter().enumerate() {
                let whole = Section::whole(shape).expect("a piece is part of an array");
                let axes: Vec<usize> = (0..shape.len()).collect();
                for local in Pieces::new(&whole, &axes, PIECE) {
                    let global = spread.globally(part, piece, &local);
                    let item = Item {
                        part,
                        piece: piece as u64,
                        positions: Section::empty(shape.len()),
                        local,
                    };
                    boxes.push(Box { item, global });
                }
            }
        }
        boxes
    }

    fn check_other(&self, array: &Array, direction: Direction) -> Result<()> {
        if direction == Direction::Read {
            self.check_epoch()?;
        }
        if array.shape() != self.shape() {
            return Err(Error::format(
                array.name(),
                format!(
                    "its shape is {}, but the disk-resident array's is {}",
                    shape_text(array.shape()),
                    shape_text(self.shape())
                ),
            ));
        }
        array.check_access(T::TYPE, direction)
    }

    /// Collective: takes all elements from a distributed array of the same shape.
    /// Within `budget`, elements are brought together at their holders before they
    /// are written; otherwise holders write the pieces that each rank has.
    pub fn load_distributed(
        &self,
        comm: &Comm,
        array: &DistributedArray<T>,
        budget: &MemoryBudget,
    ) -> Result<()> {
        comm.agree(
            self.check_epoch()
                .and_then(|()| self.check_shape(array.shape())),
        )?;
        let (own, _room) = match self.room_for_part(comm, budget)? {
            Some(room) => room,
            None => {
                let from = array.local();
                let put = |section: &Section, range: Range<usize>| self.put(section, &from[range]);
                return self.each_piece(comm, array.distribution(), put);
            }
        };
        let moved = array.redistribute(comm, &own)?;
        let mut rest = moved.local();
        let written = self.boxes().iter().try_for_each(|part| {
            let (values, after) = rest.split_at(part.item.local.count() as usize);
            rest = after;
            let data = bytemuck::cast_slice(values);
            let items = std::slice::from_ref(&part.item);
            self.inner
                .link
                .ask((Action::Put, &[]), items, data, &mut [])
        });
        Ok(comm.agree(written)?)
    }

    /// Collective: gives all elements to a distributed array of the same shape.
    /// Within `budget`, holders read their parts in one go before elements move;
    /// otherwise each rank gets its own, piece by piece.
    pub fn store_distributed(
        &self,
        comm: &Comm,
        array: &mut DistributedArray<T>,
        budget: &MemoryBudget,
    ) -> Result<()> {
        comm.agree(self.check_shape(array.shape()))?;
        let distribution = array.distribution().clone();
        let (own, _room) = match self.room_for_part(comm, budget)? {
            Some(room) => room,
            None => {
                let to = array.local_mut();
                let get =
                    |section: &Section, range: Range<usize>| self.get(section, &mut to[range]);
                return self.each_piece(comm, &distribution, get);
            }
        };
        let mut parts = DistributedArray::<T>::aligned(comm, own)?;
        let mut rest = parts.local_mut();
        let read = self.boxes().iter().try_for_each(|part| {
            let count = part.item.local.count() as usize;
            let (values, after) = std::mem::take(&mut rest).split_at_mut(count);
            rest = after;
            self.own(Action::Get, Some(part), values)
        });
        comm.agree(read)?;
        let plan = RedistributionPlan::new(comm, parts.distribution(), &distribution)?;
        plan.move_array(comm, &parts, array)
    }

    /// Collective: takes all elements from a global array of the same shape: holders
    /// get what they hold, and write it in long stretches.
    pub fn load_global(&self, comm: &Comm, array: &GlobalArray<T>) -> Result<()> {
        comm.agree(
            self.check_epoch()
                .and_then(|()| self.check_shape(array.shape())),
        )?;
        array.sync(comm)?;
        let mut values = Vec::new();
        let copied = self.boxes().iter().try_for_each(|part| {
            values.resize(part.global.count() as usize, T::zeroed());
            array.get(&part.global, &mut values)?;
            self.own(Action::Put, Some(part), &mut values)
        });
        Ok(comm.agree(copied)?)
    }

    /// Collective: gives all elements to a global array of the same shape: holders
    /// read what they hold in long stretches, and put it.
    pub fn store_global(&self, comm: &Comm, array: &GlobalArray<T>) -> Result<()> {
        comm.agree(self.check_shape(array.shape()))?;
        let mut values = Vec::new();
        let copied = self.boxes().iter().try_for_each(|part| {
            values.resize(part.global.count() as usize, T::zeroed());
            self.own(Action::Get, Some(part), &mut values)?;
            array.put(&part.global, &values)
        });
        comm.agree(copied)?;
        array.sync(comm)
    }

    /// Collective: takes all elements from another disk-resident array of the same
    /// shape; each rank gets what it holds of this one.
    pub fn copy_from(&self, comm: &Comm, other: &Self) -> Result<()> {
        comm.agree(
            self.check_epoch()
                .and_then(|()| self.check_shape(other.shape())),
        )?;
        let mut values = Vec::new();
        let copied = self.boxes().iter().try_for_each(|part| {
            values.resize(part.global.count() as usize, T::zeroed());
            other.get(&part.global, &mut values)?;
            self.own(Action::Put, Some(part), &mut values)
        });
        Ok(comm.agree(copied)?)
    }

    fn check_shape(&self, found: &[u64]) -> Result<()> {
        match found == self.shape() {
            true => Ok(()),
            false => Err(Error::format(
                self.name(),
                format!(
                    "its shape is {}, but the other array's is {}",
                    shape_text(self.shape()),
                    shape_text(found)
                ),
            )),
        }
    }

    /// Collective: the distribution of the parts and memory for the own one, if each
    /// rank holds its part of a distribution and all have room for it.
    fn room_for_part(
        &self,
        comm: &Comm,
        budget: &MemoryBudget,
    ) -> Result<Option<(AlignedDistribution, Reservation)>> {
        let in_order = self.inner.link.holders().iter().enumerate();
        let in_order = in_order.into_iter().all(|(part, rank)| part == *rank);
        let Spread::Distribution(distribution) = self.spread() else {
            return Ok(None);
        };
        let count = distribution.local_count(comm.rank() as u64);
        let room = budget.reserve(count * T::TYPE.size(), "a part of a disk-resident array");
        let lacking = u64::from(room.is_err() || !in_order);
        let lacking = comm.all_reduce(&[lacking], Op::Sum)?[0];
        Ok(match room {
            Ok(room) if lacking == 0 => Some((distribution.clone().into(), room)),
            _ => None,
        })
    }

    /// Collective: calls `each` with the pieces of this rank's part of a distributed
    /// array: where they stand in the whole and in the part.
    fn each_piece(
        &self,
        comm: &Comm,
        distribution: &AlignedDistribution,
        mut each: impl FnMut(&Section, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let rank = comm.rank() as u64;
        let mut outcome = Ok(());
        if distribution.local_count(rank) > 0 {
            let shape = distribution.local_shape(rank);
            let whole = Section::whole(&shape).map_err(Error::geometry(self.name()))?;
            let axes: Vec<usize> = (0..shape.len()).collect();
            let mut at = 0;
            for local in Pieces::new(&whole, &axes, PIECE) {
                let end = at + local.count() as usize;
                outcome = each(&distribution.globals(rank, &local), at..end);
                if outcome.is_err() {
                    break;
                }
                at = end;
            }
        }
        Ok(comm.agree(outcome)?)
    }
}
