//! [`MpiTransport`]: the calls of the [`Transport`] trait.

use std::sync::{Arc, MutexGuard, PoisonError};

use outcore_transport::{Error, Exchange, Loan, Loans, NodeMemory, Result, Shared, Transport};

use crate::all_gather::all_gather;
use crate::exchange;
use crate::group::{Group, Lane, Member, Turn};
use crate::lend::{lend, node_memory};
use crate::operations::{Operations, parts};
use crate::share::share;
use crate::world::World;
use crate::{kernel_copy, letters};

/// One rank's view of a group of MPI processes. [`crate::run()`] makes the first
/// one, [`Transport::split`] the others.
///
/// All groups share the communicators that were made when MPI was
/// initialised; a message that was sent in a group has to be received before
/// the group is dropped.
///
/// Of a message that is longer than its receiver expects, not every MPI
/// library tells the length: where it does not, the `sent` of
/// [`Error::LengthMismatch`] is one more than what was expected.
#[derive(Debug)]
pub struct MpiTransport {
    group: Group,
}

impl MpiTransport {
    /// The group of all ranks, for a run that has just begun.
    pub(crate) fn whole_world(world: &'static World) -> Self {
        let member = |world_rank| Member {
            world_rank,
            context: 0,
        };
        let members = (0..world.size).map(member).collect();
        Self {
            group: Group::new(world, world.rank, members),
        }
    }

    /// Begins a collective call: keep the guard until it is over.
    fn enter_together(&self) -> Result<MutexGuard<'_, Turn>> {
        let turn = self.group.turn.lock();
        let turn = turn.unwrap_or_else(PoisonError::into_inner);
        self.group.enter()?;
        Ok(turn)
    }

    /// The process of `rank`, if the kernel copies between its memory and this
    /// rank's.
    fn process(&self, rank: usize) -> Result<Option<u32>> {
        self.group.member(rank)?;
        let processes = self.group.processes.get();
        Ok(processes.and_then(|processes| processes[rank]))
    }

    /// Sends to this rank itself: from a copy, as no other thread need be
    /// there to receive it.
    fn send_to_self(&self, tag: u16, data: &[u8]) -> Result<()> {
        let own = self.group.members[self.group.rank];
        let (communicator, tag) = self.group.route(Lane::Point(tag), own);
        let world = self.group.world;
        for part in parts(data.len()) {
            let bytes = part.of(data).to_vec().into_boxed_slice();
            let posted = world.outbox.post(bytes, |bytes| {
                // SAFETY: the outbox keeps the bytes until the request is complete.
                unsafe { communicator.start_send(bytes, own.world_rank, tag) }
            });
            posted.map_err(|error| self.group.mistake(error))?;
            world.count_sent(own.world_rank);
        }
        Ok(())
    }
}

impl Transport for MpiTransport {
    fn name(&self) -> String {
        crate::library_version()
    }

    fn rank(&self) -> usize {
        self.group.rank
    }

    fn size(&self) -> usize {
        self.group.members.len()
    }

    fn send(&self, to: usize, tag: u16, data: &[u8]) -> Result<()> {
        self.group.enter()?;
        if to == self.group.rank {
            return self.send_to_self(tag, data);
        }
        let mut operations = Operations::new(&self.group);
        operations.send(Lane::Point(tag), to, data)?;
        operations.wait()
    }

    fn receive(&self, from: usize, tag: u16, into: &mut [u8]) -> Result<()> {
        self.group.enter()?;
        let mut operations = Operations::new(&self.group);
        operations.receive(Lane::Point(tag), from, into)?;
        operations.wait()
    }

    fn exchange(&self, exchange: &mut Exchange<'_>) -> Result<()> {
        let mut turn = self.enter_together()?;
        exchange::exchange(&self.group, turn.lane(), exchange)
    }

    fn barrier(&self) -> Result<()> {
        let mut turn = self.enter_together()?;
        if let Some((hall, _)) = turn.hall(&self.group)? {
            return hall.meet(&self.group);
        }
        all_gather(&self.group, turn.lane(), &[]).map(drop)
    }

    fn all_gather(&self, own: &[u8], counts: &[usize], all: &mut [u8]) -> Result<bool> {
        let mut turn = self.enter_together()?;
        match turn.hall(&self.group)? {
            Some((hall, _)) => hall.all_gather(&self.group, own, counts, all),
            None => Ok(false),
        }
    }

    fn all_to_all(&self, sends: &[&[u8]], receives: &mut [&mut [u8]]) -> Result<bool> {
        let mut turn = self.enter_together()?;
        match turn.stage(&self.group)? {
            Some((hall, stage)) => {
                stage.all_to_all(&self.group, hall, sends, receives)?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn split(&self, colour: Option<u64>, key: i64) -> Result<Option<Arc<dyn Transport>>> {
        let mut turn = self.enter_together()?;
        let world = self.group.world;
        // 1. Tell everybody the colour, the key and the number that this rank
        //    gives to its new group.
        let context = colour.and_then(|_| world.contexts.acquire());
        let own = Choice {
            colour,
            key,
            context,
        };
        let all = all_gather(&self.group, turn.lane(), &own.encode()).inspect_err(|_| {
            // No group was made to give it back.
            context.inspect(|&number| world.contexts.release(number));
        })?;
        // 2. If one rank has no number left, all say so.
        let all: Vec<Choice> = all.chunks(Choice::BYTES).map(Choice::decode).collect();
        if all
            .iter()
            .any(|choice| choice.colour.is_some() && choice.context.is_none())
        {
            context.inspect(|&number| world.contexts.release(number));
            return Err(too_many_groups());
        }
        let (Some(_), Some(_)) = (colour, context) else {
            return Ok(None);
        };
        // 3. Those with the same colour, in the order of their keys.
        let mut ranks: Vec<usize> = (0..all.len())
            .filter(|&rank| all[rank].colour == colour)
            .collect();
        ranks.sort_by_key(|&rank| (all[rank].key, rank));
        let members = ranks.iter().filter_map(|&rank| {
            Some(Member {
                world_rank: self.group.members[rank].world_rank,
                context: all[rank].context?,
            })
        });
        let members = members.collect();
        let place = ranks.iter().position(|&rank| rank == self.group.rank);
        let place = place.expect("a rank has its own colour");
        Ok(Some(Arc::new(Self {
            group: Group::new(world, place, members),
        })))
    }

    fn shares_memory(&self) -> bool {
        false
    }

    fn lend(
        &self,
        own: &mut [Loan<'_>],
        from: &[usize],
        visit: &mut dyn FnMut(&Loans),
    ) -> Result<bool> {
        let mut turn = self.enter_together()?;
        match turn.hall(&self.group)? {
            Some((hall, memories)) => lend(&self.group, hall, memories, own, from, visit),
            None => Ok(false),
        }
    }

    fn reaches(&self, bytes: &[u8]) -> bool {
        let turn = self.group.turn.lock();
        let turn = turn.unwrap_or_else(PoisonError::into_inner);
        turn.memories().reach(bytes)
    }

    fn node_memory(&self, bytes: usize) -> Result<Option<NodeMemory>> {
        let mut turn = self.enter_together()?;
        match turn.hall(&self.group)? {
            Some((hall, memories)) => node_memory(&self.group, hall, memories, bytes),
            None => Ok(None),
        }
    }

    fn share(&self, bytes: usize) -> Result<Shared> {
        let mut turn = self.enter_together()?;
        let lanes = [turn.lane(), turn.lane()];
        share(&self.group, lanes, bytes)
    }

    unsafe fn copy_from(&self, rank: usize, address: u64, into: &mut [u8]) -> Result<bool> {
        let process = self.process(rank)?;
        Ok(process.is_some_and(|process| kernel_copy::copy_from(process, address, into)))
    }

    unsafe fn copy_to(&self, rank: usize, address: u64, from: &[u8]) -> Result<bool> {
        let process = self.process(rank)?;
        // SAFETY: by the caller's promise.
        Ok(process.is_some_and(|process| unsafe { kernel_copy::copy_to(process, address, from) }))
    }

    fn letter(&self, to: usize, letter: Vec<u8>) -> Result<()> {
        self.group.enter()?;
        letters::send(&self.group, to, &letter)
    }

    fn next_letter(&self) -> Result<Option<(usize, Vec<u8>)>> {
        self.group.enter()?;
        letters::next(&self.group).map_err(|error| self.group.mistake(error))
    }

    fn check(&self) -> Result<()> {
        self.group.enter()
    }

    fn ended(&self, rank: usize) -> bool {
        let member = self.group.members.get(rank);
        member.is_some_and(|member| self.group.world.board.ended(member.world_rank).is_some())
    }

    fn fail(&self, cause: &str) {
        self.group.world.fail(self.group.world.rank, cause);
    }
}

/// What one rank says when a group is split.
struct Choice {
    colour: Option<u64>,
    key: i64,
    context: Option<u32>,
}

impl Choice {
    const BYTES: usize = 8 + 8 + 4 + 1;

    fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.colour.unwrap_or(0).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.key.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.context.unwrap_or(0).to_le_bytes());
        bytes[20] = u8::from(self.colour.is_some()) | u8::from(self.context.is_some()) << 1;
        bytes
    }

    /// The reverse of [`Choice::encode`].
    fn decode(bytes: &[u8]) -> Self {
        let number = |at: usize, len: usize| {
            let mut wide = [0; 8];
            wide[..len].copy_from_slice(&bytes[at..at + len]);
            u64::from_le_bytes(wide)
        };
        Self {
            colour: (bytes[20] & 1 != 0).then(|| number(0, 8)),
            key: number(8, 8) as i64,
            context: (bytes[20] & 2 != 0).then(|| number(16, 4) as u32),
        }
    }
}

fn too_many_groups() -> Error {
    Error::Invalid("a rank has as many groups as MPI has tags for".into())
}
