//! [`Step`]: one redistribution, its tables, and the three ways to carry it
//! out.
//!
//! - *Straight*: ranks that reach one another's memory lend both parts, and
//!   each copies a share of all positions from wherever it stands to wherever
//!   it goes: one copy. Shares are ranges of positions, so both sides are gone
//!   through once and in order; a rank that fetched all of its own new part
//!   would read the same lines as every other rank.
//! - *Staged*: ranks of one node whose parts are not in shared memory pack what
//!   they send into memory that is, and fetch from there: two copies.
//! - *Messages*: the same with messages between the packets.
//!
//! Packets hold what one rank has for another in ascending order of positions,
//! the last axis fastest, and know nothing of the element size.

use std::sync::OnceLock;

use outcore_geometry::{ArraySide, AxisExchange, Redistribution};
use outcore_transport::{Comm, Loan, Loans, Reach};

use super::nest::{CUT, Ends, Nest, Part, Trip, Which};
use super::{Transfer, wrong};
use crate::error::Result;

/// One redistribution with its tables, which are made when they are first
/// needed.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) what: Redistribution,
    share: OnceLock<Nest>,
    halves: OnceLock<[Option<Half>; 2]>,
}

impl Step {
    pub(super) fn new(what: Redistribution) -> Self {
        Self {
            what,
            share: OnceLock::new(),
            halves: OnceLock::new(),
        }
    }

    /// How many tables have been made.
    pub(super) fn tables(&self) -> usize {
        usize::from(self.share.get().is_some()) + usize::from(self.halves.get().is_some())
    }

    /// Makes the table for memory or for messages, and returns how many strips
    /// it has.
    pub(super) fn prepare(&self, comm: &Comm, messages: bool) -> usize {
        match messages {
            false => self.share(comm).strips(),
            true => {
                let halves = self.halves(comm).iter().flatten();
                halves.map(|half| half.nest.strips()).sum()
            }
        }
    }

    fn share(&self, comm: &Comm) -> &Nest {
        self.share.get_or_init(|| {
            let (part, parts) = (comm.rank() as u64, comm.size() as u64);
            let exchanges = self.what.share(part, parts, CUT);
            match exchanges.is_empty() && part > 0 {
                true => Nest::empty(),
                false => Nest::new(&self.what, &exchanges, [Which::Source, Which::Target]),
            }
        })
    }

    /// What this rank exchanges as a source, and as a target.
    pub(super) fn halves(&self, comm: &Comm) -> &[Option<Half>; 2] {
        self.halves.get_or_init(|| {
            let rank = comm.rank() as u64;
            [
                self.what
                    .sends(rank, CUT)
                    .map(|axes| Half::new(&self.what, &axes, rank, true)),
                self.what
                    .receives(rank, CUT)
                    .map(|axes| Half::new(&self.what, &axes, rank, false)),
            ]
        })
    }

    /// Both sides in the order of travel.
    pub(super) fn sides(&self, backwards: bool) -> [&ArraySide; 2] {
        match backwards {
            true => [self.what.target(), self.what.source()],
            false => [self.what.source(), self.what.target()],
        }
    }

    /// Collective: straight from memory to memory; `false` on all ranks, with
    /// nothing done, if some of it is out of reach.
    pub(super) fn straight(
        &self,
        comm: &Comm,
        transfers: &mut [Transfer<'_>],
        backwards: bool,
    ) -> Result<bool> {
        let all: Vec<usize> = (0..comm.size()).collect();
        let sizes: Vec<usize> = transfers.iter().map(|transfer| transfer.size).collect();
        let mut loans: Vec<Loan<'_>> = transfers
            .iter_mut()
            .flat_map(|transfer| {
                [
                    Loan::Read(transfer.source),
                    Loan::Write(&mut *transfer.target),
                ]
            })
            .collect();
        let mut outcome = Ok(());
        let lent = comm.lend_all(&mut loans, &all, |loans| {
            outcome = self.visit(comm, loans, &sizes, backwards);
        })?;
        outcome.map(|()| lent)
    }

    /// Copies this rank's share of each transfer.
    fn visit(&self, comm: &Comm, loans: &Loans, sizes: &[usize], backwards: bool) -> Result<()> {
        let sides = self.sides(backwards);
        let nest = self.share(comm);
        for (number, size) in sizes.iter().enumerate() {
            let from = lent(nest, sides[0], loans, (2 * number, *size))?;
            let mut to = lent(nest, sides[1], loans, (2 * number + 1, *size))?;
            let first = to.base;
            for copy in sides[1].copies() {
                to.base = first + *copy as usize;
                let ends = match backwards {
                    true => [&to, &from],
                    false => [&from, &to],
                };
                let trip = Trip {
                    ends,
                    backwards,
                    only: None,
                };
                // SAFETY: the parts are lent for the length of the visit, and
                // have just been found to have the size of their local arrays.
                // Shares are disjoint, and so no two ranks write one element.
                unsafe { nest.run(&trip, *size) }
            }
        }
        Ok(())
    }
}

/// The parts of all ranks that hold something of `side`: loan `number` of each.
fn lent(
    nest: &Nest,
    side: &ArraySide,
    loans: &Loans,
    (number, size): (usize, usize),
) -> Result<Ends> {
    let part = |rank: u64| {
        let elements = side.local_count(rank);
        if elements == 0 {
            return Ok(None);
        }
        let reach = loans.all_of(rank as usize).get(number);
        let (start, len) = reach.map_or((std::ptr::null(), 0), |reach| Reach::readable(*reach));
        if len as u64 != elements * size as u64 {
            return Err(wrong(format!(
                "rank {rank} lends {len} bytes, where its part has {elements} elements of {size}"
            )));
        }
        Ok(Some(Part {
            start: start.cast_mut(),
            strides: nest.strides(&side.local_shape(rank)),
        }))
    };
    let parts: Result<Vec<_>> = (0..side.ranks()).map(part).collect();
    Ok(Ends {
        parts: parts?,
        base: side.rank_at(&vec![0; side.axes().len()]) as usize,
        weights: side
            .weights()
            .iter()
            .map(|weight| *weight as usize)
            .collect(),
    })
}

/// What one rank exchanges with all others, in one role.
#[derive(Debug)]
pub(super) struct Half {
    nest: Nest,
    /// This rank's strides.
    local: Vec<usize>,
    /// The packets, one for each combination of the others' coordinates.
    pub(super) packets: Vec<Packet>,
    weights: Vec<usize>,
    /// Whether this rank sends in this role.
    pub(super) first: bool,
    /// Where this rank's own packet stands in the others' lists.
    pub(super) place: usize,
}

/// What goes from one rank to another.
#[derive(Debug)]
pub(super) struct Packet {
    /// The ranks that hold copies of the other end; the first one sends.
    pub(super) ranks: Vec<usize>,
    /// The coordinates of the other end.
    slots: Vec<usize>,
    /// In elements.
    pub(super) count: usize,
    strides: Vec<usize>,
}

impl Half {
    fn new(what: &Redistribution, axes: &[AxisExchange], rank: u64, as_source: bool) -> Self {
        let (own, others, which, packed) = match as_source {
            true => (
                what.source(),
                what.target(),
                Which::Source,
                Which::PackedByTarget,
            ),
            false => (
                what.target(),
                what.source(),
                Which::Target,
                Which::PackedBySource,
            ),
        };
        let nest = Nest::new(what, axes, [which, packed]);
        let at = own.coordinates(rank).unwrap_or_default();
        let extents: Vec<u64> = others.axes().iter().map(|axis| axis.ranks()).collect();
        let mut weights = vec![1; extents.len()];
        for axis in (1..extents.len()).rev() {
            weights[axis - 1] = weights[axis] * extents[axis] as usize;
        }
        let count = |axis: usize, other: u64| match as_source {
            true => axes[axis].count(at[axis], other),
            false => axes[axis].count(other, at[axis]),
        };
        let packet = |number: u64| {
            let mut rest = number;
            let mut slots = vec![0; extents.len()];
            for (slot, extent) in slots.iter_mut().zip(&extents).rev() {
                *slot = rest % extent;
                rest /= extent;
            }
            let shape: Vec<u64> = (0..slots.len())
                .map(|axis| count(axis, slots[axis]))
                .collect();
            let first = others.rank_at(&slots);
            let copies = others.copies().iter();
            Packet {
                ranks: copies.map(|copy| (first + copy) as usize).collect(),
                count: shape.iter().product::<u64>() as usize,
                strides: nest.strides(&shape),
                slots: slots.iter().map(|slot| *slot as usize).collect(),
            }
        };
        let place = own.axes().iter().zip(&at);
        let place = place.fold(0, |place, (axis, at)| place * axis.ranks() + at);
        Self {
            local: nest.strides(&own.local_shape(rank)),
            packets: (0..extents.iter().product()).map(packet).collect(),
            nest,
            weights,
            first: own.is_first(rank),
            place: place as usize,
        }
    }

    /// Where packets begin in memory that has all of them end to end, and how
    /// long that is, in elements.
    pub(super) fn offsets(&self) -> Vec<usize> {
        let mut end = 0;
        let ends = self.packets.iter().map(|packet| {
            end += packet.count;
            end
        });
        std::iter::once(0).chain(ends).collect()
    }

    /// Copies between this rank's part and its packets, which begin at
    /// `starts`: into them, or out of them (`out`); only packet `only` if given.
    ///
    /// # Safety
    ///
    /// The part and the packets must be memory of the sizes of this half,
    /// `size` bytes an element, that may be read or written, and nobody writes
    /// it meanwhile.
    pub(super) unsafe fn copy(
        &self,
        part: *mut u8,
        starts: &[*mut u8],
        size: usize,
        out: bool,
        only: Option<usize>,
    ) {
        let local = Ends {
            parts: vec![Some(Part {
                start: part,
                strides: self.local.clone(),
            })],
            base: 0,
            weights: vec![0; self.weights.len()],
        };
        let parts = self.packets.iter().zip(starts).map(|(packet, start)| {
            Some(Part {
                start: *start,
                strides: packet.strides.clone(),
            })
        });
        let packets = Ends {
            parts: parts.collect(),
            base: 0,
            weights: self.weights.clone(),
        };
        let trip = Trip {
            ends: [&local, &packets],
            backwards: out,
            only: only.map(|only| &self.packets[only].slots[..]),
        };
        // SAFETY: passed on to the caller.
        unsafe { self.nest.run(&trip, size) }
    }
}
