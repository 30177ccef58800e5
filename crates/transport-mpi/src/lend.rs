//! Memory that the ranks of a node lend one another.
//!
//! [`node_memory`] gives each rank a segment that all others of the group map,
//! too; what lies in one can be lent. [`lend`] tells everybody where in which
//! segment, lets the ranks visit, and meets again when all have.
//!
//! # Nobody visits memory that is not lent any more
//!
//! A rank that leaves the call early, because the run has failed, takes its
//! loan down and waits until nobody may be visiting. Visitors say so before
//! they come to the first meeting and look after it whether the loans are
//! still up. So either a visitor sees that a loan was taken down, or the owner
//! sees the visitor and waits. Visitors wait for nobody.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use outcore_transport::{Error, Loan, Loans, NodeMemory, Reach, Result};

use crate::group::Group;
use crate::hall::Hall;
use crate::operations::GRACE;
use crate::pause::Pause;
use crate::segment::{Segment, Ticket};

/// The node memory of a group.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    /// How many there have been.
    made: u64,
    there: Vec<Arc<Memory>>,
}

impl Memories {
    /// Whether `bytes` can be lent.
    pub(crate) fn reach(&self, bytes: &[u8]) -> bool {
        let loan = Reach::Read(bytes.as_ptr(), bytes.len());
        Offer::new(self, loan).kind != Kind::OutOfReach
    }
}

/// What one call of [`node_memory`] has made.
#[derive(Debug)]
struct Memory {
    number: u64,
    rank: usize,
    /// How many bytes this rank has there.
    len: usize,
    /// The segments of all ranks; `None` once its owner has dropped it.
    segments: Mutex<Vec<Option<Segment>>>,
}

/// A segment begins with a page that says whether its owner has dropped it.
fn is_dropped(segment: &Segment) -> &AtomicU32 {
    // SAFETY: the segment has at least that page, which begins with zeros.
    unsafe { &*segment.start().cast::<AtomicU32>() }
}

/// The bytes begin on the next page.
fn page() -> usize {
    // SAFETY: only asks.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).unwrap_or(1 << 16)
}

impl Memory {
    /// Unmaps what has been dropped by its owner; whether anything is left.
    fn tidy(&self) -> bool {
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        for place in segments.iter_mut() {
            place.take_if(|segment| is_dropped(segment).load(Ordering::Acquire) != 0);
        }
        segments.iter().any(Option::is_some)
    }

    /// The first byte of `rank`, at `offset`.
    fn start(&self, rank: usize, offset: usize) -> Option<*mut u8> {
        let segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        let segment = segments.get(rank)?.as_ref()?;
        Some(segment.start().wrapping_add(page() + offset))
    }
}

/// Drops the node memory of this rank.
struct Keeper(Arc<Memory>);

impl Drop for Keeper {
    fn drop(&mut self) {
        let memory = &self.0;
        let segments = memory.segments.lock();
        let segments = segments.unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(segment)) = segments.get(memory.rank) {
            segment.give_back(page());
            is_dropped(segment).store(1, Ordering::Release);
        }
    }
}

/// Collective: memory of this rank that all others of the group have mapped;
/// `None` on all ranks if that cannot be.
pub(crate) fn node_memory(
    group: &Group,
    hall: &Hall,
    memories: &mut Memories,
    bytes: usize,
) -> Result<Option<NodeMemory>> {
    let size = group.members.len();
    memories.there.retain(|memory| memory.tidy());
    // 1. Make it, and tell the others where it is.
    let made = page().checked_add(bytes).and_then(Segment::create);
    let ticket = Ticket::encode(made.as_ref().map(|&(_, _, ticket)| ticket));
    let mut tickets = vec![0; size * Ticket::BYTES];
    hall.all_gather(group, &ticket, &vec![Ticket::BYTES; size], &mut tickets)?;
    // 2. Map that of the others, and tell whether all could be.
    let (own, _file) = match made {
        Some((segment, file, _)) => (Some(segment), Some(file)),
        None => (None, None),
    };
    let own_start = own.as_ref().map(Segment::start);
    let open = |ticket| Ticket::decode(ticket).and_then(Segment::open);
    let mut segments: Vec<_> = tickets.chunks(Ticket::BYTES).map(open).collect();
    segments[group.rank] = own;
    let able = segments.iter().all(Option::is_some);
    let mut all = vec![0; size];
    hall.all_gather(group, &[u8::from(able)], &vec![1; size], &mut all)?;
    let number = memories.made;
    memories.made += 1;
    let Some(start) = own_start.filter(|_| all.iter().all(|&able| able != 0)) else {
        return Ok(None);
    };
    // 3. Keep it.
    let start = start.wrapping_add(page());
    let memory = Arc::new(Memory {
        number,
        rank: group.rank,
        len: bytes,
        segments: Mutex::new(segments),
    });
    memories.there.push(memory.clone());
    let keeper = Box::new(Keeper(memory));
    // SAFETY: the segment is zeroed, its owner is this rank, others touch it
    // only while it is lent, and it is mapped until the keeper has dropped it.
    Ok(Some(unsafe { NodeMemory::new(start, bytes, keeper) }))
}

/// What a rank says about its loan.
#[derive(Debug, Clone, Copy)]
struct Offer {
    kind: Kind,
    /// Which memory of its, and where in it.
    number: u64,
    offset: u64,
    len: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    OutOfReach,
    Read,
    Write,
}

impl Offer {
    const BYTES: usize = 32;

    /// Looks for `loan` among the memory of this rank.
    fn new(memories: &Memories, loan: Reach) -> Self {
        let (kind, start, len) = match loan {
            Reach::Read(start, len) => (Kind::Read, start as usize, len),
            Reach::Write(start, len) => (Kind::Write, start as usize, len),
        };
        let place = memories.there.iter().find_map(|memory| {
            let first = memory.start(memory.rank, 0)? as usize;
            let offset = start.checked_sub(first)?;
            let inside = offset <= memory.len && len <= memory.len - offset;
            inside.then_some((memory.number, offset as u64))
        });
        // Nothing is everywhere.
        let place = place.or((len == 0).then_some((0, 0)));
        let (number, offset) = place.unwrap_or_default();
        Self {
            kind: if place.is_some() {
                kind
            } else {
                Kind::OutOfReach
            },
            number,
            offset,
            len: len as u64,
        }
    }

    fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let words = [self.kind as u64, self.number, self.offset, self.len];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            let word = bytes.get(8 * at..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |&word| u64::from_ne_bytes(word))
        };
        let kinds = [Kind::OutOfReach, Kind::Read, Kind::Write];
        Self {
            kind: kinds
                .get(word(0) as usize)
                .map_or(Kind::OutOfReach, |&kind| kind),
            number: word(1),
            offset: word(2),
            len: word(3),
        }
    }

    /// Where this rank reaches what `rank` offers.
    fn reach(&self, memories: &Memories, rank: usize) -> Option<Reach> {
        let len = self.len as usize;
        let start = match len {
            0 => std::ptr::dangling_mut(),
            _ => {
                let mut there = memories.there.iter();
                let memory = there.find(|memory| memory.number == self.number)?;
                memory.start(rank, self.offset as usize)?
            }
        };
        Some(match self.kind {
            Kind::Write => Reach::Write(start, len),
            _ => Reach::Read(start, len),
        })
    }
}

/// Collective: lends `own` while all visit; `false` on all ranks if some loan
/// does not lie in node memory of this group, or there are too many.
pub(crate) fn lend(
    group: &Group,
    hall: &Hall,
    memories: &Memories,
    own: &mut [Loan<'_>],
    from: &[usize],
    visit: &mut dyn FnMut(&Loans),
) -> Result<bool> {
    let size = group.members.len();
    let mut from = from.to_vec();
    from.sort_unstable();
    from.dedup();
    if let Some(&peer) = from.last() {
        group.member(peer)?;
    }
    // 1. Everybody tells everybody.
    let each = own.len() * Offer::BYTES;
    let own: Vec<u8> = own
        .iter_mut()
        .flat_map(|loan| Offer::new(memories, loan.reach()).encode())
        .collect();
    let mut offers = vec![0; size * each];
    let mut up = Up::new(group, hall);
    let told = hall.all_gather(group, &own, &vec![each; size], &mut offers)?;
    let offers: Vec<Offer> = offers.chunks(Offer::BYTES).map(Offer::decode).collect();
    if !told || offers.iter().any(|offer| offer.kind == Kind::OutOfReach) {
        up.over = true;
        return Ok(false);
    }
    let of = |peer: usize| &offers[peer * (each / Offer::BYTES)..][..each / Offer::BYTES];
    // 2. Visit those whose loans are still up.
    let reach = |&peer: &usize| {
        let is_up = hall.lending(peer).load(Ordering::SeqCst) != 0;
        let reached = of(peer).iter().map(|offer| offer.reach(memories, peer));
        let reached = reached.collect::<Option<Vec<_>>>()?;
        is_up.then_some((peer, reached))
    };
    let reached: Option<Vec<_>> = from.iter().map(reach).collect();
    let complete = reached.is_some();
    if let Some(reached) = reached {
        visit(&Loans::new(reached));
    }
    hall.visiting(group.rank).store(0, Ordering::SeqCst);
    // 3. Stay until all visits are over.
    hall.meet(group)?;
    up.over = true;
    if complete {
        return Ok(true);
    }
    // Only a rank that leaves a failed run takes its loan down early; the
    // notice of the failure is on its way.
    let mut pause = Pause::new();
    while pause.elapsed() < GRACE {
        group.world.check()?;
        pause.pause();
    }
    Err(group.mistake(Error::Invalid("a loan was taken down early".into())))
}

/// A loan that is up, and a visitor that may visit.
struct Up<'a> {
    group: &'a Group,
    hall: &'a Hall,
    /// Whether all visits are over.
    over: bool,
}

impl<'a> Up<'a> {
    fn new(group: &'a Group, hall: &'a Hall) -> Self {
        hall.lending(group.rank).store(1, Ordering::SeqCst);
        hall.visiting(group.rank).store(1, Ordering::SeqCst);
        Self {
            group,
            hall,
            over: false,
        }
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        let (group, hall) = (self.group, self.hall);
        hall.lending(group.rank).store(0, Ordering::SeqCst);
        hall.visiting(group.rank).store(0, Ordering::SeqCst);
        let mut pause = Pause::new();
        let visited =
            || (0..group.members.len()).any(|rank| hall.visiting(rank).load(Ordering::SeqCst) != 0);
        while !self.over && visited() {
            // The run has failed; this helps its notices along.
            let _ = group.world.check();
            pause.pause();
        }
    }
}
