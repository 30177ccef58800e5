//! [`Group`]: what the ranks of one group share, and how they meet.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::bell::Bell;
use super::board::Board;
use super::inbox::Inbox;
use super::loans::LoanDesk;
use super::shares::Shares;
use super::world::World;
use crate::error::Result;

/// The shared part of a group.
pub(crate) struct Group {
    pub(crate) world: Arc<World>,
    pub(crate) members: Vec<Member>,
    /// Ranks that have arrived at the meeting that is next to be held.
    arrived: AtomicUsize,
    /// Meetings held.
    held: AtomicU64,
    /// Rung after each meeting.
    bell: Bell,
    /// Groups made of this one by the split at a certain meeting, by colour.
    parts: Mutex<HashMap<(u64, u64), Part>>,
    pub(crate) shares: Shares,
}

/// A new group, and how many of its ranks have still to pick it up.
struct Part {
    group: Arc<Group>,
    left: usize,
}

/// What belongs to one rank of a group; apart from its neighbours in the
/// caches.
#[repr(align(128))]
pub(crate) struct Member {
    /// The rank in the whole run.
    pub(crate) world_rank: usize,
    /// Meetings it has entered.
    entered: AtomicU64,
    pub(crate) board: Board,
    pub(crate) inbox: Inbox,
    pub(crate) desk: LoanDesk,
    /// Letters that it has not yet read, with their senders.
    pub(crate) letters: Mutex<VecDeque<(usize, Vec<u8>)>>,
}

impl Group {
    /// A group of the given ranks of the world.
    pub(crate) fn new(world: &Arc<World>, world_ranks: &[usize]) -> Arc<Self> {
        let member = |&world_rank| Member {
            world_rank,
            entered: AtomicU64::new(0),
            board: Board::new(),
            inbox: Inbox::default(),
            desk: LoanDesk::default(),
            letters: Mutex::default(),
        };
        let group = Arc::new(Self {
            world: world.clone(),
            members: world_ranks.iter().map(member).collect(),
            arrived: AtomicUsize::new(0),
            held: AtomicU64::new(0),
            bell: Bell::default(),
            parts: Mutex::default(),
            shares: Shares::default(),
        });
        world.register(Arc::downgrade(&group));
        group
    }

    /// Meeting number `sequence`: returns when every rank has come to it. What
    /// they did before is then visible to all.
    pub(crate) fn meet(&self, rank: usize, sequence: u64) -> Result<()> {
        // Seen by whoever sees this rank finish.
        self.members[rank]
            .entered
            .store(sequence + 1, Ordering::Relaxed);
        // Each arrival passes on what the earlier ones did; the last one
        // passes it all to everybody with `held`.
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members.len() {
            // Nobody arrives for the next meeting before `held` has changed.
            self.arrived.store(0, Ordering::Relaxed);
            self.held.store(sequence + 1, Ordering::Release);
            self.bell.ring();
            return Ok(());
        }
        self.world.wait_for(&self.bell, || {
            if self.held.load(Ordering::Acquire) > sequence {
                return Ok(Some(()));
            }
            match self.absent(sequence) {
                None => Ok(None),
                Some(absent) => Err(self
                    .world
                    .fail_by_absence(absent, self.members[rank].world_rank)),
            }
        })
    }

    /// A rank that has finished without coming to meeting `sequence`.
    fn absent(&self, sequence: u64) -> Option<usize> {
        if !self.world.any_finished() {
            return None;
        }
        self.members
            .iter()
            .find(|member| {
                self.world.has_finished(member.world_rank)
                    && member.entered.load(Ordering::Relaxed) <= sequence
            })
            .map(|member| member.world_rank)
    }

    /// The group of `members` (ranks of this one) made by the split at meeting
    /// `sequence`: the first to come makes it, each member comes once.
    pub(crate) fn part(&self, sequence: u64, colour: u64, members: &[usize]) -> Arc<Self> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (sequence, colour);
        let part = parts.entry(key).or_insert_with(|| {
            let world_ranks: Vec<usize> = members
                .iter()
                .map(|&rank| self.members[rank].world_rank)
                .collect();
            Part {
                group: Self::new(&self.world, &world_ranks),
                left: members.len(),
            }
        });
        let group = part.group.clone();
        part.left -= 1;
        if part.left == 0 {
            parts.remove(&key);
        }
        group
    }

    /// Wakes every rank that waits for anything in this group.
    pub(crate) fn ring_all(&self) {
        self.bell.ring();
        for member in &self.members {
            member.board.bell.ring();
            member.inbox.bell.ring();
        }
    }
}
