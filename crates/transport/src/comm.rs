//! [`Comm`]: what a program holds to talk to the other ranks of its group.
//!
//! A thin, cloneable handle on a [`Transport`]; the collectives built on top
//! are in `collectives`.

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;

use crate::all_to_all::AllToAllCost;
use crate::error::{Error, Result};
use crate::loan::{Loan, Loans, NodeMemory};
use crate::shared::Shared;
use crate::transport::{Exchange, Transport};

/// The first of the tags that belong to the collectives.
pub(crate) const RESERVED_TAGS: u16 = 0xff00;

/// One rank's handle on a group of ranks. Cloning gives another handle on the
/// same group.
#[derive(Clone)]
pub struct Comm {
    transport: Arc<dyn Transport>,
    all_to_all_cost: AllToAllCost,
}

impl Comm {
    /// A handle on the group of `transport`.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            all_to_all_cost: AllToAllCost::default(),
        }
    }

    /// A handle on the same group that chooses all-to-all algorithms by `cost`,
    /// which must be the same on all ranks. Groups made of it do so, too.
    pub fn with_all_to_all_cost(&self, cost: AllToAllCost) -> Self {
        Self {
            transport: self.transport.clone(),
            all_to_all_cost: cost,
        }
    }

    /// What all-to-all algorithms are chosen by.
    pub fn all_to_all_cost(&self) -> &AllToAllCost {
        &self.all_to_all_cost
    }

    /// This rank, counted from 0.
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// The number of ranks in the group.
    pub fn size(&self) -> usize {
        self.transport.size()
    }

    /// What carries the messages.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// Sends `values` to rank `to`. May return before they are received (a
    /// small message) or wait for the receiver (a large one).
    ///
    /// Tags from `0xff00` on belong to the collectives and give
    /// [`Error::Invalid`].
    pub fn send<T: Pod>(&self, to: usize, tag: u16, values: &[T]) -> Result<()> {
        check_tag(tag)?;
        self.transport.send(to, tag, bytemuck::cast_slice(values))
    }

    /// Receives the next message with `tag` from rank `from`; its length must
    /// be exactly that of `into`.
    pub fn receive<T: Pod>(&self, from: usize, tag: u16, into: &mut [T]) -> Result<()> {
        check_tag(tag)?;
        self.transport
            .receive(from, tag, bytemuck::cast_slice_mut(into))
    }

    /// Collective: moves all pieces of all ranks.
    pub fn exchange(&self, exchange: &mut Exchange<'_>) -> Result<()> {
        self.transport.exchange(exchange)
    }

    /// Collective: returns when every rank of the group has called it.
    pub fn barrier(&self) -> Result<()> {
        self.transport.barrier()
    }

    /// Collective: lends `own` to the group while every rank's `visit` runs with
    /// what the ranks `from` lend, and returns when all visits are over. `visit`
    /// must not call the group.
    ///
    /// `false` on all ranks, with nothing done, if some memory that is lent is
    /// out of others' reach. Ranks that are threads reach everything, ranks of
    /// one node what [`Comm::node_memory`] has made, others nothing.
    ///
    /// ```
    /// use outcore_transport::{Error, Loan, threads};
    ///
    /// threads::run(3, |comm| {
    ///     let next = (comm.rank() + 1) % comm.size();
    ///     let mut own = [0_u8];
    ///     let lent = comm.lend(Loan::Write(&mut own), &[next], |loans| {
    ///         let (start, _) = loans.writable(next).expect("lent by the next rank");
    ///         // SAFETY: one byte is lent, and nobody else writes it.
    ///         unsafe { *start = comm.rank() as u8 };
    ///     })?;
    ///     assert!(!lent || usize::from(own[0]) == (comm.rank() + 2) % comm.size());
    ///     Ok::<_, Error>(())
    /// })
    /// .into_iter()
    /// .for_each(|outcome| outcome.unwrap());
    /// ```
    pub fn lend(
        &self,
        own: Loan<'_>,
        from: &[usize],
        mut visit: impl FnMut(&Loans),
    ) -> Result<bool> {
        self.transport.lend(&mut [own], from, &mut visit)
    }

    /// Collective: the same with several loans of each rank, as many on all of
    /// them.
    pub fn lend_all(
        &self,
        own: &mut [Loan<'_>],
        from: &[usize],
        mut visit: impl FnMut(&Loans),
    ) -> Result<bool> {
        self.transport.lend(own, from, &mut visit)
    }

    /// Not collective: whether the group reaches `bytes` of this rank when they
    /// are lent.
    pub fn reaches(&self, bytes: &[u8]) -> bool {
        self.transport.reaches(bytes)
    }

    /// Collective: memory of this rank, of a length of its own, that the group
    /// reaches when it is lent; `None` on all ranks if there is no such thing.
    pub fn node_memory(&self, bytes: usize) -> Result<Option<NodeMemory>> {
        self.transport.node_memory(bytes)
    }

    /// Collective: makes `bytes` of memory, a length of each rank's own, that the
    /// ranks of one node reach for as long as they hold what comes back. If one
    /// rank has no memory, all get the same error, and the group can go on.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// use outcore_transport::{Error, threads};
    ///
    /// threads::run(3, |comm| {
    ///     let shared = comm.share(8)?;
    ///     let (start, _) = shared.of(0).expect("threads reach everything");
    ///     // SAFETY: eight aligned bytes that all ranks use as an atomic only.
    ///     let counter = unsafe { AtomicU64::from_ptr(start.cast()) };
    ///     counter.fetch_add(1, Ordering::Relaxed);
    ///     comm.barrier()?;
    ///     assert_eq!(counter.load(Ordering::Relaxed), 3);
    ///     Ok::<_, Error>(())
    /// })
    /// .into_iter()
    /// .for_each(|outcome| outcome.unwrap());
    /// ```
    pub fn share(&self, bytes: usize) -> Result<Shared> {
        self.transport.share(bytes)
    }

    /// Not collective: the failure of the run, if one is known. Whoever waits for
    /// others by itself, in shared memory, asks now and then.
    pub fn check(&self) -> Result<()> {
        self.transport.check()
    }

    /// Not collective: whether `rank` is known to have ended its part of the run.
    pub fn ended(&self, rank: usize) -> bool {
        self.transport.ended(rank)
    }

    /// Collective: divides the group. Ranks with the same colour form a new
    /// group, ordered by `key` and then by rank; `None` joins none.
    pub fn split(&self, colour: Option<u64>, key: i64) -> Result<Option<Comm>> {
        let part = self.transport.split(colour, key)?;
        Ok(part.map(|part| Comm::new(part).with_all_to_all_cost(self.all_to_all_cost)))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Comm(rank {} of {})", self.rank(), self.size())
    }
}

/// Refuses the tags that belong to the collectives.
fn check_tag(tag: u16) -> Result<()> {
    if tag >= RESERVED_TAGS {
        return Err(Error::Invalid(format!(
            "tag {tag:#x} is reserved: tags from {RESERVED_TAGS:#x} on belong to the collectives"
        )));
    }
    Ok(())
}
