//! [`Hall`]: where the ranks of a group that share a node meet, without
//! messages.
//!
//! A segment that all have mapped: a counter of the meetings held, on which
//! ranks sleep, and for each rank a desk on which it lays what it has to say
//! to all. One meeting costs each rank one wait, however many ranks there are.
//!
//! # Why nobody reads what is being written
//!
//! There are two places on each desk, used in turn. What is said at meeting
//! `s` is written before its owner arrives, read between meeting `s` and the
//! reader's arrival at the next, and overwritten for `s + 2` after the owner
//! has left meeting `s + 1`: after all readers of `s` are done. A rank leaves
//! a meeting in another way only when the run has failed, and then it never
//! comes to another one.
//!
//! # Nobody hangs
//!
//! A rank that waits looks for notices now and then, as all waits do. A rank
//! that has ended its part without coming to the meeting never will, and is
//! reported.

use std::cell::Cell;
use std::hint;
use std::mem;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use outcore_transport::doorbell::{sleep_on, wake};
use outcore_transport::{Error, Result};

use crate::all_gather::all_gather;
use crate::group::{Group, Lane};
use crate::segment::{Segment, Ticket};

/// The most bytes that a rank can say at a meeting.
pub(crate) const MOST: usize = 896;

/// How often a waiting rank looks before that, if each has a core of its own.
const SPINS: u32 = 2000;

/// How often a waiting rank gives its core to another before it sleeps.
const YIELDS: u32 = 200;

/// How long a rank sleeps before it looks for notices: at first, and at most.
const NAPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(16)];

/// The head of the segment.
#[repr(C, align(128))]
struct Head {
    /// Meetings held; it wraps around. Ranks sleep on it.
    held: AtomicU32,
    /// Ranks that sleep, or are about to.
    sleepers: AtomicU32,
    /// Ranks that have arrived at the next meeting; apart, as it changes often.
    arrived: Apart,
}

#[repr(C, align(128))]
struct Apart(AtomicU32);

/// What belongs to one rank.
#[repr(C, align(128))]
struct Desk {
    /// Meetings that it has entered.
    entered: AtomicU32,
    /// Whether it may be visiting others' memory; see `lend`.
    visiting: AtomicU32,
    /// Whether what it lends may be visited; see `lend`.
    lending: AtomicU32,
    /// The bytes said at even and at odd meetings: how many, and which.
    lens: [AtomicU32; 2],
    said: [[u8; MOST]; 2],
}

/// The meeting place of one group, as one rank sees it.
#[derive(Debug)]
pub(crate) struct Hall {
    segment: Segment,
    /// The number of the next meeting.
    sequence: Cell<u32>,
    /// Looks of a waiting rank before it gives its core away.
    spins: u32,
}

impl Hall {
    /// Collective: the hall of `group`, if its ranks can have one.
    pub(crate) fn build(group: &Group, lanes: [Lane; 2]) -> Result<Option<Self>> {
        let size = group.members.len();
        // 1. The first rank makes it and tells the others where it is.
        let made = (group.rank == 0 && size > 1)
            .then(|| Segment::create(size_of::<Head>() + size * size_of::<Desk>()))
            .flatten();
        let ticket = Ticket::encode(made.as_ref().map(|&(_, _, ticket)| ticket));
        let tickets = all_gather(group, lanes[0], &ticket)?;
        // 2. The others open it, and all tell whether they could.
        let segment = match &made {
            None => Ticket::decode(&tickets).and_then(Segment::open),
            Some(_) => None,
        };
        let able = segment.is_some() || made.is_some();
        let all = all_gather(group, lanes[1], &[u8::from(able)])?;
        let segment = segment.or(made.map(|(segment, ..)| segment));
        let segment = segment.filter(|_| all.iter().all(|&able| able != 0));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Ok(segment.map(|segment| Self {
            segment,
            sequence: Cell::new(0),
            spins: if size <= cores { SPINS } else { 0 },
        }))
    }

    fn head(&self) -> &Head {
        // SAFETY: the segment begins with it, zeroed, which is a valid head,
        // and all its parts are atomic.
        unsafe { &*self.segment.start().cast::<Head>() }
    }

    fn desk(&self, rank: usize) -> *mut Desk {
        debug_assert!(size_of::<Head>() + (rank + 1) * size_of::<Desk>() <= self.segment.len());
        // SAFETY: the segment has a desk for each rank of the group.
        unsafe {
            let desks = self.segment.start().add(size_of::<Head>()).cast::<Desk>();
            desks.add(rank)
        }
    }

    fn entered(&self, rank: usize) -> &AtomicU32 {
        // SAFETY: the desk is there, zeroed at first, and this part is atomic.
        unsafe { &(*self.desk(rank)).entered }
    }

    fn len(&self, rank: usize, sequence: u32) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &(*self.desk(rank)).lens[(sequence & 1) as usize] }
    }

    fn said(&self, rank: usize, sequence: u32) -> *mut u8 {
        // SAFETY: an address on a desk that is there.
        unsafe { (&raw mut (*self.desk(rank)).said[(sequence & 1) as usize]).cast() }
    }

    /// Whether `rank` may be visiting others' memory.
    pub(crate) fn visiting(&self, rank: usize) -> &AtomicU32 {
        // SAFETY: as `entered`.
        unsafe { &(*self.desk(rank)).visiting }
    }

    /// Whether what `rank` lends may be visited.
    pub(crate) fn lending(&self, rank: usize) -> &AtomicU32 {
        // SAFETY: as `entered`.
        unsafe { &(*self.desk(rank)).lending }
    }

    /// The number of the next meeting.
    pub(crate) fn next(&self) -> u32 {
        self.sequence.get()
    }

    /// Collective: returns when every rank has called it.
    pub(crate) fn meet(&self, group: &Group) -> Result<()> {
        self.say(group, &[])
    }

    /// Collective: a meeting to which this rank brings `bytes`, of which those
    /// beyond [`MOST`] stay behind.
    fn say(&self, group: &Group, bytes: &[u8]) -> Result<()> {
        let (rank, sequence) = (group.rank, self.sequence.get());
        self.sequence.set(sequence.wrapping_add(1));
        let few = &bytes[..bytes.len().min(MOST)];
        // SAFETY: the place is this rank's to write before it arrives.
        unsafe {
            let place = self.said(rank, sequence);
            place.copy_from_nonoverlapping(few.as_ptr(), few.len());
        }
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.len(rank, sequence).store(len, Ordering::Relaxed);
        self.entered(rank)
            .store(sequence.wrapping_add(1), Ordering::Release);
        // Each arrival passes on what the earlier ones did; the last one
        // passes it all to everybody with `held`.
        let head = self.head();
        if head.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == group.members.len() as u32 {
            // Nobody arrives for the next meeting before `held` has changed.
            head.arrived.0.store(0, Ordering::Relaxed);
            // Sequentially consistent on both sides: either this sees the
            // sleeper, or the sleeper sees the new count.
            head.held.store(sequence.wrapping_add(1), Ordering::SeqCst);
            if head.sleepers.load(Ordering::SeqCst) != 0 {
                wake(&head.held, u32::MAX);
            }
            return Ok(());
        }
        self.wait(group, sequence)
    }

    /// Waits until meeting `sequence` has been held.
    fn wait(&self, group: &Group, sequence: u32) -> Result<()> {
        let head = self.head();
        let is_held = |order| head.held.load(order) != sequence;
        for _ in 0..self.spins {
            if is_held(Ordering::Acquire) {
                return Ok(());
            }
            hint::spin_loop();
        }
        for _ in 0..YIELDS {
            if is_held(Ordering::Acquire) {
                return Ok(());
            }
            thread::yield_now();
        }
        let [mut nap, longest] = NAPS;
        loop {
            head.sleepers.fetch_add(1, Ordering::SeqCst);
            if !is_held(Ordering::SeqCst) {
                sleep_on(&head.held, sequence, nap);
            }
            head.sleepers.fetch_sub(1, Ordering::SeqCst);
            if is_held(Ordering::Acquire) {
                return Ok(());
            }
            group.world.check()?;
            self.check_presence(group, sequence)?;
            nap = longest.min(nap * 2);
        }
    }

    /// Fails the run if a rank has ended without coming to meeting `sequence`.
    fn check_presence(&self, group: &Group, sequence: u32) -> Result<()> {
        let world = group.world;
        for (rank, member) in group.members.iter().enumerate() {
            let ended = world.board.ended(member.world_rank).is_some();
            // What it did before it ended is visible here.
            if ended && self.entered(rank).load(Ordering::Acquire) == sequence {
                world.fail_by_absence(member.world_rank);
                return world.check();
            }
        }
        Ok(())
    }

    /// Collective: fills `all` with the bytes of all ranks end to end, of which
    /// rank `p` gives `counts[p]`. `false` on all ranks, with nothing done, if
    /// some rank has too many.
    pub(crate) fn all_gather(
        &self,
        group: &Group,
        own: &[u8],
        counts: &[usize],
        all: &mut [u8],
    ) -> Result<bool> {
        let sequence = self.sequence.get();
        self.say(group, own)?;
        let mut rest = all;
        let mut fits = true;
        for (rank, &count) in counts.iter().enumerate() {
            let len = self.len(rank, sequence).load(Ordering::Relaxed) as usize;
            if len != count.min(u32::MAX as usize) {
                return Err(group.mistake(Error::LengthMismatch {
                    from: rank,
                    to: group.rank,
                    sent: len as u64,
                    expected: count as u64,
                }));
            }
            fits &= count <= MOST;
            if fits {
                let (part, later) = mem::take(&mut rest).split_at_mut(count);
                // SAFETY: the meeting has been held and the next not entered,
                // so nobody writes there.
                part.copy_from_slice(unsafe {
                    slice::from_raw_parts(self.said(rank, sequence), count)
                });
                rest = later;
            }
        }
        Ok(fits)
    }
}
