//! Two-phase reads and writes without messages: ranks lend their buffers for
//! the length of the call, and each aggregator copies straight between its
//! windows and those buffers. There are no rounds: everybody goes through the
//! windows of its own domain at its own pace, and all meet at the end.
//!
//! Ranks that are threads reach every buffer. Ranks that are processes of one
//! node reach node memory only ([`Comm::node_memory`]); for other buffers a plan
//! that is executed again makes itself a *shadow* there, which costs a copy
//! more, unless it has to do with the memory of a budget.

use std::time::Duration;

use outcore_transport::{Comm, Loan, Loans, NodeMemory};

use super::aggregate::Window;
use super::ahead::Ahead;
use super::moved::{Moved, timed};
use super::two_phase::TwoPhase;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::strategy::Direction;

/// Node memory in the place of a buffer that others do not reach.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    /// Whether the plan has been executed before.
    used: bool,
    /// Whether there is none to be had.
    none: bool,
    memory: Option<NodeMemory>,
}

impl Shadow {
    /// None at all, for a plan that may take no memory.
    pub(super) fn none() -> Self {
        Self {
            none: true,
            ..Self::default()
        }
    }

    /// The shadow of `buffer`, unless that is reached itself.
    fn of(&mut self, comm: &Comm, buffer: &[u8]) -> Option<&mut NodeMemory> {
        let shadow = self.memory.as_mut();
        shadow.filter(|shadow| shadow.len() == buffer.len() && !comm.reaches(buffer))
    }

    /// Collective: makes shadows where they are missing; false on all ranks if
    /// there are none.
    fn make(&mut self, comm: &Comm, buffer: &[u8]) -> Result<bool> {
        if !std::mem::replace(&mut self.used, true) || self.none {
            return Ok(false);
        }
        self.memory = None;
        let len = if comm.reaches(buffer) {
            0
        } else {
            buffer.len()
        };
        self.memory = comm.node_memory(len)?;
        self.none = self.memory.is_none();
        Ok(!self.none)
    }
}

/// Reads into `buffer`; `None` on all ranks, with nothing done, if some buffer is
/// out of reach. The inner outcome is that of this rank's own part.
pub(super) fn read(
    plan: &TwoPhase,
    array: &Array,
    (window, shadow): (&mut Window, &mut Shadow),
    comm: &Comm,
    buffer: &mut [u8],
) -> Result<Option<Result<Moved>>> {
    let mut work = Work::new(plan, array, comm);
    let mut ahead = Ahead::new(plan, array, Direction::Read);
    loop {
        let kept = shadow.of(comm, buffer);
        let own = match kept {
            Some(shadow) => Loan::Write(shadow),
            None => Loan::Write(buffer),
        };
        let lent = work.lend(own, |work, loans, k| {
            ahead.reach(work.plan, work.array, k);
            window.turn(work.plan, k);
            window.fill(work.array, &mut work.moved)?;
            let store = &**work.array.store();
            timed(store, &mut work.moved.copy, || window.give(plan, loans));
            Ok(())
        })?;
        if lent {
            break;
        }
        if !shadow.make(comm, buffer)? {
            return Ok(None);
        }
    }
    shadow.used = true;
    if let Some(shadow) = shadow.of(comm, buffer) {
        let copy = || buffer.copy_from_slice(shadow);
        timed(&**array.store(), &mut work.moved.copy, copy);
    }
    Ok(Some(work.end()))
}

/// Writes `data`; `None` on all ranks, with nothing done, if some data are out
/// of reach. The inner outcome is that of this rank's own part.
pub(super) fn write(
    plan: &TwoPhase,
    array: &Array,
    (window, shadow): (&mut Window, &mut Shadow),
    comm: &Comm,
    data: &[u8],
) -> Result<Option<Result<Moved>>> {
    let mut work = Work::new(plan, array, comm);
    let mut ahead = Ahead::new(plan, array, Direction::Write);
    loop {
        let kept = shadow.of(comm, data);
        let own = match kept {
            Some(shadow) => {
                let copy = || shadow.copy_from_slice(data);
                timed(&**array.store(), &mut work.moved.copy, copy);
                Loan::Read(shadow)
            }
            None => Loan::Read(data),
        };
        let lent = work.lend(own, |work, loans, k| {
            ahead.reach(work.plan, work.array, k);
            window.turn(work.plan, k);
            window.flush(work.plan, work.array, Some(loans), &mut work.moved)
        })?;
        if lent {
            break;
        }
        if !shadow.make(comm, data)? {
            return Ok(None);
        }
    }
    shadow.used = true;
    Ok(Some(work.end()))
}

/// What this rank does as an aggregator.
struct Work<'a> {
    plan: &'a TwoPhase,
    array: &'a Array,
    comm: &'a Comm,
    /// The ranks that have to do with the own domain.
    from: Vec<usize>,
    moved: Moved,
    outcome: Result<()>,
}

impl<'a> Work<'a> {
    fn new(plan: &'a TwoPhase, array: &'a Array, comm: &'a Comm) -> Self {
        let groups = plan.touching().iter();
        Self {
            plan,
            array,
            comm,
            from: groups.flat_map(|group| group.ranks.clone()).collect(),
            moved: plan.begun(),
            outcome: Ok(()),
        }
    }

    /// Lends `own` and lets `visit` go through the windows of the own domain,
    /// one after the other, up to the first failure.
    fn lend(
        &mut self,
        own: Loan<'_>,
        mut visit: impl FnMut(&mut Self, &Loans, u64) -> Result<()>,
    ) -> Result<bool> {
        let (comm, from) = (self.comm, std::mem::take(&mut self.from));
        let (mut visits, mut all) = (Duration::ZERO, Duration::ZERO);
        let store = &**self.array.store();
        let lent = timed(store, &mut all, || {
            comm.lend(own, &from, |loans| {
                timed(store, &mut visits, || {
                    self.outcome = self.check(loans).and_then(|()| {
                        (0..self.plan.rounds()).try_for_each(|k| visit(self, loans, k))
                    });
                });
            })
        })?;
        self.from = from;
        self.moved.exchange += all.saturating_sub(visits);
        Ok(lent)
    }

    /// All have lent as much as they ask for.
    fn check(&self, loans: &Loans) -> Result<()> {
        for group in self.plan.touching() {
            let bytes = self.plan.bytes(&group.request);
            for rank in &group.ranks {
                if loans.readable(*rank).map(|(_, len)| len as u64) != Some(bytes) {
                    let cause =
                        format!("rank {rank} does not lend the {bytes} bytes of its section");
                    return Err(Error::Invalid(cause));
                }
            }
        }
        Ok(())
    }

    fn end(self) -> Result<Moved> {
        self.outcome.map(|()| self.moved)
    }
}
