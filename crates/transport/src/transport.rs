//! The [`Transport`] trait: what a kind of rank must be able to do.
//!
//! Everything else ([`crate::Comm`]'s collectives) is built on it once, for
//! ranks that are threads and for ranks that are MPI processes alike.

use std::sync::Arc;

use crate::error::Result;
use crate::loan::{Loan, Loans, NodeMemory};
use crate::shared::Shared;

/// A personalised many-to-many: for each peer, memory pieces to send and
/// memory pieces to receive into.
///
/// The pieces for one peer are taken in the order in which they were added,
/// as if joined end to end; the two sides may cut the same bytes at different
/// places. The number of bytes that one rank sends to another must equal what
/// the other expects from it; both know it beforehand. Sending to oneself is
/// allowed and copies.
#[derive(Debug, Default)]
pub struct Exchange<'a> {
    pub(crate) sends: Vec<(usize, &'a [u8])>,
    pub(crate) receives: Vec<(usize, &'a mut [u8])>,
}

impl<'a> Exchange<'a> {
    /// An exchange in which this rank takes part with nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with room for so many pieces.
    pub fn with_capacity(sends: usize, receives: usize) -> Self {
        Self {
            sends: Vec::with_capacity(sends),
            receives: Vec::with_capacity(receives),
        }
    }

    /// Adds a piece to send to `peer`.
    pub fn send(&mut self, peer: usize, piece: &'a [u8]) {
        if !piece.is_empty() {
            self.sends.push((peer, piece));
        }
    }

    /// Adds a piece to receive into from `peer`.
    pub fn receive(&mut self, peer: usize, piece: &'a mut [u8]) {
        if !piece.is_empty() {
            self.receives.push((peer, piece));
        }
    }

    /// The pieces to send, in the order added.
    pub fn sends(&self) -> &[(usize, &'a [u8])] {
        &self.sends
    }

    /// The pieces to receive into, in the order added.
    pub fn receives_mut(&mut self) -> &mut [(usize, &'a mut [u8])] {
        &mut self.receives
    }

    /// Both lists at once: the pieces to send and the pieces to receive into.
    #[expect(clippy::type_complexity, reason = "two plain lists say it best")]
    pub fn parts(&mut self) -> (&[(usize, &'a [u8])], &mut [(usize, &'a mut [u8])]) {
        (&self.sends, &mut self.receives)
    }
}

/// Messages between the ranks `0..size` of one group.
///
/// Invariants:
/// - All calls block until done, but never for ever: when any rank of the
///   program fails ([`Transport::fail`]), every waiting and every later call
///   on every rank returns [`crate::Error::PeerFailed`] with that rank and
///   its cause.
/// - Waiting gives the processor away; there may be many more ranks than cores.
/// - No count is limited to 2 GiB.
pub trait Transport: Send + Sync {
    /// What connects the ranks, such as `threads`: what is known to be fast or
    /// slow about it is kept under this name.
    fn name(&self) -> String;

    /// This rank, counted from 0.
    fn rank(&self) -> usize;

    /// The number of ranks in the group.
    fn size(&self) -> usize;

    /// Sends `data` to rank `to`. May return before it is received (small
    /// messages) or wait for the receiver (large ones).
    fn send(&self, to: usize, tag: u16, data: &[u8]) -> Result<()>;

    /// Receives the next message with `tag` from rank `from`, whose length
    /// must be exactly that of `into`.
    fn receive(&self, from: usize, tag: u16, into: &mut [u8]) -> Result<()>;

    /// Collective: moves all pieces of all ranks.
    fn exchange(&self, exchange: &mut Exchange<'_>) -> Result<()>;

    /// Collective: returns when every rank of the group has called it.
    fn barrier(&self) -> Result<()>;

    /// Collective: fills `all` with the bytes of all ranks end to end, of which
    /// rank `p` gives `counts[p]`, if there is a quicker way than messages for
    /// so many; `false` on all ranks, with nothing done, if not.
    fn all_gather(&self, own: &[u8], counts: &[usize], all: &mut [u8]) -> Result<bool> {
        let _ = (own, counts, all);
        Ok(false)
    }

    /// Collective: brings `sends[p]` to rank `p` and fills `receives[p]` from
    /// there, for all ranks `p`, through memory that the ranks share; `false` on
    /// all ranks, with nothing done, if they share none. The lengths are as in
    /// [`Transport::exchange`].
    fn all_to_all(&self, sends: &[&[u8]], receives: &mut [&mut [u8]]) -> Result<bool> {
        let _ = (sends, receives);
        Ok(false)
    }

    /// Collective: divides the group. Ranks with the same colour form a new
    /// group, ordered by `key` and then by rank; `None` joins none.
    fn split(&self, colour: Option<u64>, key: i64) -> Result<Option<Arc<dyn Transport>>>;

    /// Whether the ranks of this group can read one another's memory, so that
    /// one exchange is cheaper than a tree of messages.
    fn shares_memory(&self) -> bool;

    /// Collective: lends all of `own`, as many loans as every other rank, to the
    /// group while every rank's `visit` runs with what the ranks `from` lend, and
    /// returns when all visits are over. `visit` must not call the group.
    /// `false` on all ranks, with nothing done, if some memory that is lent is
    /// out of others' reach, or there are too many loans.
    fn lend(
        &self,
        own: &mut [Loan<'_>],
        from: &[usize],
        visit: &mut dyn FnMut(&Loans),
    ) -> Result<bool> {
        let _ = (own, from, visit);
        Ok(false)
    }

    /// Not collective: whether the group reaches `bytes` of this rank when they
    /// are lent.
    fn reaches(&self, bytes: &[u8]) -> bool {
        let _ = bytes;
        false
    }

    /// Collective: memory of this rank, of a length of its own, that the group
    /// reaches when it is lent; `None` on all ranks if there is no such thing.
    fn node_memory(&self, bytes: usize) -> Result<Option<NodeMemory>> {
        let _ = bytes;
        Ok(None)
    }

    /// Collective: makes `bytes` of memory, a length of each rank's own, that the
    /// ranks of one node reach for as long as they hold what comes back. If one
    /// rank has no memory, all get the same error, and the group can go on.
    fn share(&self, bytes: usize) -> Result<Shared> {
        Shared::alone(self.rank(), self.size(), bytes)
    }

    /// Not collective: fills `into` with the bytes from `address` on of the
    /// memory of `rank`, which has told the address; `false`, with nothing done,
    /// if that memory is out of reach. Copies are possible, if at all, after a
    /// [`Transport::share`]; one of no bytes tells whether.
    ///
    /// # Safety
    ///
    /// So many bytes must be there, and nobody may write them meanwhile.
    unsafe fn copy_from(&self, rank: usize, address: u64, into: &mut [u8]) -> Result<bool> {
        let _ = (rank, address, into);
        Ok(false)
    }

    /// Not collective: writes `from` to `address` of the memory of `rank`, like
    /// [`Transport::copy_from`].
    ///
    /// # Safety
    ///
    /// So many bytes must be there, and nobody may use them meanwhile.
    unsafe fn copy_to(&self, rank: usize, address: u64, from: &[u8]) -> Result<bool> {
        let _ = (rank, address, from);
        Ok(false)
    }

    /// Not collective, by any thread: sends `letter`, of any length, which `to`
    /// need not expect. Never waits. Letters need not arrive in order.
    fn letter(&self, to: usize, letter: Vec<u8>) -> Result<()> {
        let _ = (to, letter);
        Err(crate::Error::Invalid("there are no letters here".into()))
    }

    /// Not collective, by any thread: takes a letter that has arrived, and who
    /// wrote it. Never waits.
    fn next_letter(&self) -> Result<Option<(usize, Vec<u8>)>> {
        Ok(None)
    }

    /// Not collective, by any thread: the failure of the run, if one is known.
    /// Whoever waits by itself asks now and then.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Not collective, by any thread: whether `rank` is known to have ended its
    /// part of the run.
    fn ended(&self, rank: usize) -> bool {
        let _ = rank;
        false
    }

    /// Not collective: declares that this rank has failed for good with
    /// `cause`, which makes every rank of the whole program return an error.
    fn fail(&self, cause: &str);
}
