//! [`ThreadRank`]: one rank's view of its group, and the [`Transport`] calls.
//!
//! Mistakes of the program (a peer that does not exist, lengths that do not
//! match) fail the world: the rank that sees the mistake gets the precise
//! error, all others get [`Error::PeerFailed`] with its text.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::by_peer::ByPeer;
use super::group::{Group, Member};
use super::inbox::Message;
use crate::error::{Error, Result};
use crate::loan::{Loan, Loans, NodeMemory};
use crate::shared::Shared;
use crate::transport::{Exchange, Transport};

/// Messages up to this many bytes are copied on sending.
const COPIED: usize = 64 * 1024;

/// One rank of a group of threads.
pub(crate) struct ThreadRank {
    pub(super) group: Arc<Group>,
    rank: usize,
    /// Held during a collective call: a rank is in one of them at a time, even
    /// if several threads use its handle.
    turn: Mutex<Turn>,
}

/// What a rank keeps from one collective call to the next.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The number of the next meeting.
    sequence: u64,
    sends: ByPeer,
    receives: ByPeer,
}

impl Turn {
    /// The number of the next meeting.
    pub(super) fn next(&self) -> u64 {
        self.sequence
    }
}

impl ThreadRank {
    pub(crate) fn new(group: Arc<Group>, rank: usize) -> Self {
        Self {
            group,
            rank,
            turn: Mutex::default(),
        }
    }

    /// This rank in its group.
    pub(super) fn place(&self) -> usize {
        self.rank
    }

    pub(super) fn me(&self) -> &Member {
        &self.group.members[self.rank]
    }

    /// Fails the world with `error`, which is handed back.
    pub(super) fn mistake(&self, error: Error) -> Error {
        self.fail(&error.to_string());
        error
    }

    pub(super) fn member(&self, rank: usize) -> Result<&Member> {
        self.group
            .members
            .get(rank)
            .ok_or_else(|| self.no_such_rank(rank))
    }

    fn no_such_rank(&self, rank: usize) -> Error {
        let size = self.size();
        self.mistake(Error::NoSuchRank { rank, size })
    }

    /// Fails the world if `sent` bytes are not what this rank expects.
    fn check_length(&self, from: usize, sent: usize, expected: usize) -> Result<()> {
        if sent == expected {
            return Ok(());
        }
        Err(self.mistake(Error::LengthMismatch {
            from,
            to: self.rank,
            sent: sent as u64,
            expected: expected as u64,
        }))
    }

    /// The next meeting of the group.
    pub(super) fn meet(&self, turn: &mut Turn) -> Result<()> {
        let sequence = turn.sequence;
        turn.sequence += 1;
        self.group.meet(self.rank, sequence)
    }

    /// The exchange itself; gives the number of its meeting.
    fn exchange_in(&self, turn: &mut Turn, exchange: &mut Exchange<'_>) -> Result<u64> {
        let (world, size) = (&self.group.world, self.size());
        // 1. Nothing happens in a failed world, nor with peers that are not.
        world.check()?;
        let (sends, receives) = exchange.parts();
        let mut peers = (sends.iter().map(|send| send.0)).chain(receives.iter().map(|r| r.0));
        if let Some(peer) = peers.find(|&peer| peer >= size) {
            return Err(self.no_such_rank(peer));
        }
        // 2. Put up what this rank sends, and wait for everybody to do so.
        let sequence = turn.sequence;
        turn.sequence += 1;
        let board = &self.me().board;
        // SAFETY: `turn` is held, so this is the rank's only collective call;
        // it left the meeting before in the regular way, as the world has not
        // failed; the result is dropped at the end of this function.
        let published = unsafe { board.publish(sequence, size, sends, &mut turn.sends) };
        self.group.meet(self.rank, sequence)?;
        // 3. Copy what the others send, each rank beginning with another peer.
        turn.receives.sort(size, receives.iter().map(|r| r.0));
        for peer in (self.rank..size).chain(0..self.rank) {
            let member = &self.group.members[peer];
            let pieces = turn.receives.of(peer);
            let expected = pieces.iter().map(|&index| receives[index].1.len()).sum();
            // SAFETY: the meeting has been held, the next is not yet entered.
            let copied = unsafe {
                member.board.read(sequence, self.rank, |mut sent| {
                    self.check_length(peer, sent.len(), expected)?;
                    for &index in pieces {
                        sent.fill(receives[index].1);
                    }
                    Ok(())
                })
            };
            match copied {
                Some(outcome) => outcome?,
                // The peer took its pieces down because the world has failed.
                None => {
                    let cause = "it left an exchange early".into();
                    return Err(world.fail(member.world_rank, cause));
                }
            }
        }
        // 4. Stay until the others have copied what this rank lends them.
        if !published.is_read() {
            world.wait_for(&board.bell, || Ok(published.is_read().then_some(())))?;
            world.check()?;
        }
        Ok(sequence)
    }

    /// Posts `data` without a copy and waits for the receiver.
    fn send_lent(&self, to: usize, tag: u16, data: &[u8]) -> Result<()> {
        let (world, receiver) = (&self.group.world, self.member(to)?);
        let (message, receipt) = Message::lend(data);
        receiver.inbox.post(self.rank, tag, message);
        let bell = &self.me().inbox.bell;
        let is_read = || receipt.load(Ordering::Acquire);
        let outcome = world.wait_for(bell, || {
            let finished = world.has_finished(receiver.world_rank);
            if is_read() {
                return Ok(Some(()));
            }
            if finished {
                return Err(world.fail_by_absence(receiver.world_rank, self.me().world_rank));
            }
            Ok(None)
        });
        // However it ended, nobody may read `data` after the return.
        if outcome.is_err() && !receiver.inbox.withdraw(self.rank, tag, &receipt) {
            world.wait_regardless(bell, is_read);
        }
        outcome.and_then(|()| world.check())
    }
}

impl Transport for ThreadRank {
    fn name(&self) -> String {
        "threads".into()
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.group.members.len()
    }

    fn send(&self, to: usize, tag: u16, data: &[u8]) -> Result<()> {
        self.group.world.check()?;
        let receiver = self.member(to)?;
        if data.len() > COPIED && to != self.rank {
            return self.send_lent(to, tag, data);
        }
        let message = Message::Copied(data.into());
        receiver.inbox.post(self.rank, tag, message);
        Ok(())
    }

    fn receive(&self, from: usize, tag: u16, into: &mut [u8]) -> Result<()> {
        let world = &self.group.world;
        world.check()?;
        let (sender, inbox) = (self.member(from)?, &self.me().inbox);
        let message = world.wait_for(&inbox.bell, || {
            let finished = world.has_finished(sender.world_rank);
            let message = inbox.take(from, tag);
            if message.is_none() && finished {
                return Err(world.fail_by_absence(sender.world_rank, self.me().world_rank));
            }
            Ok(message)
        })?;
        let outcome = self.check_length(from, message.len(), into.len());
        let lent = matches!(message, Message::Lent(..));
        message.deliver(into);
        if lent {
            sender.inbox.bell.ring();
        }
        outcome
    }

    fn exchange(&self, exchange: &mut Exchange<'_>) -> Result<()> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.exchange_in(&mut turn, exchange).map(drop)
    }

    fn barrier(&self) -> Result<()> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.group.world.check()?;
        self.meet(&mut turn)
    }

    fn split(&self, colour: Option<u64>, key: i64) -> Result<Option<Arc<dyn Transport>>> {
        // 1. Everybody tells everybody.
        let mut mine = [0; 17];
        mine[0] = u8::from(colour.is_some());
        mine[1..9].copy_from_slice(&colour.unwrap_or(0).to_ne_bytes());
        mine[9..].copy_from_slice(&key.to_ne_bytes());
        let mut all = vec![[0; 17]; self.size()];
        let mut exchange = Exchange::with_capacity(all.len(), all.len());
        for (peer, theirs) in all.iter_mut().enumerate() {
            exchange.send(peer, &mine);
            exchange.receive(peer, theirs);
        }
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let sequence = self.exchange_in(&mut turn, &mut exchange)?;
        drop(turn);
        // 2. Those with the same colour, in the order of their keys.
        let Some(colour) = colour else {
            return Ok(None);
        };
        let mut members: Vec<usize> = (0..all.len())
            .filter(|&rank| all[rank][..9] == mine[..9])
            .collect();
        members.sort_by_key(|&rank| {
            let key = all[rank][9..].try_into().expect("eight bytes are left");
            (i64::from_ne_bytes(key), rank)
        });
        // 3. The first of them makes the group, the others find it.
        let part = self.group.part(sequence, colour, &members);
        let rank = members.iter().position(|&rank| rank == self.rank);
        let rank = rank.expect("a rank has its own colour");
        Ok(Some(Arc::new(Self::new(part, rank))))
    }

    fn shares_memory(&self) -> bool {
        true
    }

    fn lend(
        &self,
        own: &mut [Loan<'_>],
        from: &[usize],
        visit: &mut dyn FnMut(&Loans),
    ) -> Result<bool> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.lend_in(&mut turn, own, from, visit)?;
        Ok(true)
    }

    fn reaches(&self, _: &[u8]) -> bool {
        true
    }

    fn node_memory(&self, bytes: usize) -> Result<Option<NodeMemory>> {
        NodeMemory::ordinary(bytes)
            .map(Some)
            .map_err(|error| self.mistake(error))
    }

    fn share(&self, bytes: usize) -> Result<Shared> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.share_in(&mut turn, bytes)
    }

    unsafe fn copy_from(&self, rank: usize, address: u64, into: &mut [u8]) -> Result<bool> {
        self.member(rank)?;
        let address = address as *const u8;
        // SAFETY: by the caller's promise, in the one process that there is.
        unsafe { address.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        Ok(true)
    }

    unsafe fn copy_to(&self, rank: usize, address: u64, from: &[u8]) -> Result<bool> {
        self.member(rank)?;
        let address = address as *mut u8;
        // SAFETY: by the caller's promise, in the one process that there is.
        unsafe { address.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(true)
    }

    fn letter(&self, to: usize, letter: Vec<u8>) -> Result<()> {
        self.group.world.check()?;
        let letters = self.member(to)?.letters.lock();
        let mut letters = letters.unwrap_or_else(PoisonError::into_inner);
        letters.push_back((self.rank, letter));
        Ok(())
    }

    fn next_letter(&self) -> Result<Option<(usize, Vec<u8>)>> {
        self.group.world.check()?;
        let letters = self.me().letters.lock();
        let mut letters = letters.unwrap_or_else(PoisonError::into_inner);
        Ok(letters.pop_front())
    }

    fn check(&self) -> Result<()> {
        self.group.world.check()
    }

    fn ended(&self, rank: usize) -> bool {
        let member = self.group.members.get(rank);
        member.is_some_and(|member| self.group.world.has_finished(member.world_rank))
    }

    fn fail(&self, cause: &str) {
        self.group.world.fail(self.me().world_rank, cause.into());
    }
}
