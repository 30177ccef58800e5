//! [`CollectivePlan`]: what all ranks of a group will do together. A value that
//! can be executed any number of times without asking anybody.

use std::sync::{Mutex, PoisonError};

use outcore_transport::Comm;

use super::aggregate::Window;
use super::body::Body;
use super::call::Carrier;
use super::lent::{self, Shadow};
use super::messages;
use super::moved::Moved;
use super::two_phase::TwoPhase;
use super::way::CollectiveWay;
use crate::array::Array;
use crate::budget::Reservation;
use crate::element::{Element, ElementType, swap_bytes};
use crate::error::{Error, Result};
use crate::strategy::Direction;

/// What all ranks of a group will do together to read, or to write, the section
/// of each: made by [`Collective::plan`](super::Collective::plan), and executed
/// as often as wanted by the ranks that made it.
#[derive(Debug)]
pub struct CollectivePlan {
    pub(super) array: Array,
    pub(super) direction: Direction,
    pub(super) body: Body,
    /// The rank, and how many there are.
    pub(super) place: (usize, usize),
    /// Kept from one execution to the next.
    pub(super) kept: Mutex<(Vec<Window>, Shadow)>,
    pub(super) carrier: Carrier,
    pub(super) _memory: Option<Reservation>,
}

impl CollectivePlan {
    /// In which of the ways it moves the sections: the same on all ranks.
    pub fn way(&self) -> CollectiveWay {
        match &self.body {
            Body::Independent(alone) => CollectiveWay::Independent(alone.strategy()),
            Body::TwoPhase(_) => CollectiveWay::TwoPhase,
        }
    }

    /// Collective: every rank reads the section that it has planned.
    pub fn read_into<T: Element>(&self, comm: &Comm, values: &mut [T]) -> Result<Moved> {
        let own = self.check(comm, Direction::Read, T::TYPE, size_of_val(values));
        self.read_values(comm, values, self.settle(comm, own)?)
    }

    /// Collective: the same as bytes, in this machine's byte order.
    pub fn read_bytes(&self, comm: &Comm, bytes: &mut [u8]) -> Result<Moved> {
        let stored = self.array.element_type();
        let own = self.check(comm, Direction::Read, stored, bytes.len());
        self.read_with(comm, bytes, self.settle(comm, own)?, |_| Ok(()))
    }

    /// Collective: every rank writes the section that it has planned.
    pub fn write<T: Element>(&self, comm: &Comm, values: &[T]) -> Result<Moved> {
        let own = self.check(comm, Direction::Write, T::TYPE, size_of_val(values));
        let own = self.settle(comm, own)?;
        self.write_with(comm, bytemuck::cast_slice(values), own)
    }

    /// Collective: the same from bytes in this machine's byte order.
    pub fn write_bytes(&self, comm: &Comm, bytes: &[u8]) -> Result<Moved> {
        let stored = self.array.element_type();
        let own = self.check(comm, Direction::Write, stored, bytes.len());
        let own = self.settle(comm, own)?;
        self.write_with(comm, bytes, own)
    }

    /// Ranks that depend on one another see first to it that all can go on; where
    /// each does its own, it is enough to tell at the end.
    fn settle(&self, comm: &Comm, own: Result<()>) -> Result<Result<()>> {
        match &self.body {
            Body::Independent(_) => Ok(own),
            Body::TwoPhase(_) => Ok(Ok(comm.agree(own)?)),
        }
    }

    /// Whether this rank can execute the plan so.
    fn check(
        &self,
        comm: &Comm,
        direction: Direction,
        asked: ElementType,
        bytes: usize,
    ) -> Result<()> {
        if (comm.rank(), comm.size()) != self.place {
            let (rank, ranks) = self.place;
            return Err(Error::Invalid(format!(
                "a collective plan of rank {rank} of {ranks} is executed by rank {} of {}",
                comm.rank(),
                comm.size()
            )));
        }
        if direction != self.direction {
            let (planned, asked) = match self.direction {
                Direction::Read => ("read", "write"),
                Direction::Write => ("write", "read"),
            };
            return Err(Error::Invalid(format!(
                "a collective {planned} of {} was planned, not a {asked}",
                self.array.name()
            )));
        }
        self.array.check_access(asked, direction)?;
        self.array.check_length(&self.body.own().section, bytes)
    }

    /// As many windows as a plan needs.
    fn prepare(&self, plan: &TwoPhase, windows: &mut Vec<Window>) {
        let element = self.array.layout().element_size();
        windows.resize_with(plan.windows(), || Window::new(element));
    }

    /// Reads values, unless something was wrong before; that is settled.
    pub(super) fn read_values<T: Element>(
        &self,
        comm: &Comm,
        values: &mut [T],
        before: Result<()>,
    ) -> Result<Moved> {
        let bytes = T::bytes_mut(values);
        let section = &self.body.own().section;
        let accept = |bytes: &mut [u8]| self.array.check_values::<T>(section, bytes);
        let outcome = self.read_with(comm, bytes, before, accept);
        if outcome.is_err() {
            // Whatever came of it, the buffer must hold values.
            T::accept(bytes);
        }
        outcome
    }

    pub(super) fn read_with(
        &self,
        comm: &Comm,
        bytes: &mut [u8],
        before: Result<()>,
        accept: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Moved> {
        let (plan, array) = match &self.body {
            Body::TwoPhase(plan) => (&**plan, &self.array),
            Body::Independent(alone) => {
                let outcome = before.and_then(|()| alone.read(bytes));
                messages::leave_together(&**self.array.store(), comm)?;
                let outcome = outcome.and_then(|moved| accept(bytes).map(|()| moved));
                return Ok(comm.agree(outcome)?);
            }
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (windows, shadow) = &mut *kept;
        self.prepare(plan, windows);
        let outcome = match self.carrier {
            Carrier::Messages => None,
            _ => lent::read(plan, array, (&mut windows[0], shadow), comm, bytes)?,
        };
        let outcome = match (outcome, self.carrier) {
            (Some(outcome), _) => outcome,
            (None, Carrier::Memory) => Err(out_of_reach()),
            (None, _) => messages::read(plan, array, windows, comm, bytes)?,
        };
        messages::leave_together(&**array.store(), comm)?;
        let outcome = outcome.and_then(|moved| {
            if let Some(width) = self.array.swap() {
                swap_bytes(bytes, width);
            }
            accept(bytes)?;
            Ok(moved)
        });
        Ok(comm.agree(outcome)?)
    }

    pub(super) fn write_with(
        &self,
        comm: &Comm,
        bytes: &[u8],
        before: Result<()>,
    ) -> Result<Moved> {
        let (plan, array) = match &self.body {
            Body::TwoPhase(plan) => (&**plan, &self.array),
            Body::Independent(alone) => {
                let outcome = before.and_then(|()| alone.write(bytes));
                messages::leave_together(&**self.array.store(), comm)?;
                return Ok(comm.agree(outcome)?);
            }
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (windows, shadow) = &mut *kept;
        self.prepare(plan, windows);
        let outcome = match self.carrier {
            Carrier::Messages => None,
            _ => lent::write(plan, array, (&mut windows[0], shadow), comm, bytes)?,
        };
        let outcome = match (outcome, self.carrier) {
            (Some(outcome), _) => outcome,
            (None, Carrier::Memory) => Err(out_of_reach()),
            (None, _) => messages::write(plan, array, windows, comm, bytes)?,
        };
        messages::leave_together(&**array.store(), comm)?;
        Ok(comm.agree(outcome)?)
    }
}

fn out_of_reach() -> Error {
    Error::Invalid("the ranks do not reach one another's buffers".into())
}
