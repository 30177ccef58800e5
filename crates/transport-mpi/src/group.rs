//! [`Group`]: some ranks of the world, numbered from 0.

use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock};

use outcore_transport::{Error, Result};

use crate::communicator::Communicator;
use crate::hall::Hall;
use crate::lend::Memories;
use crate::letters::Letterbox;
use crate::stage::Stage;
use crate::world::World;

/// Which communicator a message takes that its receiver expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// From one rank to another, with the caller's tag.
    Point(u16),
    /// Part of a collective call, with its number in the group (it wraps
    /// around). All ranks make these calls in the same order, so they agree
    /// on the number; it keeps a message that nobody expected from being
    /// taken for one of a later call.
    Internal(u16),
}

/// A group of ranks of one run.
#[derive(Debug)]
pub(crate) struct Group {
    /// What the group shares with all others.
    pub(crate) world: &'static World,
    /// The run in which it was made; in any other it is refused.
    run: u64,
    /// This rank's place in `members`.
    pub(crate) rank: usize,
    /// In the order of their ranks in the group.
    pub(crate) members: Vec<Member>,
    /// Held during a collective call, so that a rank is in one of them at a
    /// time even if several threads use its handle.
    pub(crate) turn: Mutex<Turn>,
    /// The processes of those ranks between whose memory and this rank's the
    /// kernel copies; known once the group has shared memory.
    pub(crate) processes: OnceLock<Vec<Option<u32>>>,
    /// Letters that have begun to arrive.
    pub(crate) letterbox: Letterbox,
}

/// What a rank keeps from one collective call to the next.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The number of the next call that sends messages.
    number: u16,
    /// Where the group meets; looked for at the first call that needs it, as
    /// all ranks must do that together.
    hall: Option<Option<Hall>>,
    /// What its ranks can lend.
    memories: Memories,
    /// Where they lay what they have for one another; made when first needed.
    stage: Option<Option<Stage>>,
}

impl Turn {
    /// The lane of the next messages.
    pub(crate) fn lane(&mut self) -> Lane {
        let lane = Lane::Internal(self.number);
        self.number = self.number.wrapping_add(1);
        lane
    }

    /// What this rank can lend.
    pub(crate) fn memories(&self) -> &Memories {
        &self.memories
    }

    /// Collective: where `group` meets, if its ranks share a node, and what
    /// they can lend there.
    pub(crate) fn hall(&mut self, group: &Group) -> Result<Option<(&Hall, &mut Memories)>> {
        if self.hall.is_none() {
            let lanes = [self.lane(), self.lane()];
            self.hall = Some(Hall::build(group, lanes)?);
        }
        let hall = self.hall.as_ref().and_then(Option::as_ref);
        Ok(hall.map(|hall| (hall, &mut self.memories)))
    }

    /// Collective: the hall and the stage of `group`, if its ranks share a node.
    pub(crate) fn stage(&mut self, group: &Group) -> Result<Option<(&Hall, &Stage)>> {
        if self.stage.is_none() {
            self.stage = Some(match self.hall(group)? {
                Some((hall, _)) => Stage::build(group, hall)?,
                None => None,
            });
        }
        let hall = self.hall.as_ref().and_then(Option::as_ref);
        let stage = self.stage.as_ref().and_then(Option::as_ref);
        Ok(hall.zip(stage))
    }
}

/// One rank of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    /// Its rank in the world.
    pub(crate) world_rank: usize,
    /// The number that it gave to the group.
    pub(crate) context: u32,
}

impl Group {
    /// The group of `members`, of which this rank is number `rank`. The group
    /// owns the context of that member and gives it back when dropped.
    pub(crate) fn new(world: &'static World, rank: usize, members: Vec<Member>) -> Self {
        Self {
            world,
            run: world.run.load(Ordering::Acquire),
            rank,
            members,
            turn: Mutex::default(),
            processes: OnceLock::new(),
            letterbox: Letterbox::default(),
        }
    }

    /// Begins a call: an error if the run is over or has failed.
    pub(crate) fn enter(&self) -> Result<()> {
        if self.run == 0 || self.run != self.world.run.load(Ordering::Acquire) {
            return Err(Error::Invalid(
                "the run to which this group of ranks belonged is over".into(),
            ));
        }
        self.world.check()
    }

    /// The member `rank`. Asking for one that does not exist fails the run.
    pub(crate) fn member(&self, rank: usize) -> Result<Member> {
        let member = self.members.get(rank).copied();
        let size = self.members.len();
        member.ok_or_else(|| self.mistake(Error::NoSuchRank { rank, size }))
    }

    /// Fails the run with an error of this rank, which is handed back. All
    /// other ranks get its text.
    pub(crate) fn mistake(&self, error: Error) -> Error {
        self.world.fail(self.world.rank, &error.to_string());
        error
    }

    /// Where messages of `lane` go, and the tag of those to `receiver`.
    pub(crate) fn route(&self, lane: Lane, receiver: Member) -> (&'static Communicator, c_int) {
        let (communicator, low) = match lane {
            Lane::Point(tag) => (&self.world.point, tag),
            Lane::Internal(number) => (&self.world.internal, number),
        };
        let tag = receiver.context << u16::BITS | u32::from(low);
        (communicator, tag as c_int)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let own = self.members[self.rank];
        self.world.contexts.release(own.context);
    }
}
