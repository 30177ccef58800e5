//! What ranks of one node lay down for one another: inboxes and their slots.
//!
//! Each rank has an inbox in memory that all reach. It begins with its
//! [`Head`]; then come words with a bit for each slot, and the slots, equally
//! many for each rank that may call. A slot holds one call. Its state says whose
//! turn it is:
//!
//! ```text
//! FREE -> REQUESTED -> TAKEN -> DONE -> FREE
//!         (caller)    (server) (server) (caller)
//! TAKEN -> ROOM -> FETCH -> TAKEN -> DONE      a long response header
//!        (server) (caller) (server)
//! ```
//!
//! The rest of a slot belongs to who is about to change the state, so nobody
//! reads what is being written.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use outcore_transport::doorbell::wake;

/// The bytes of a slot, and those in it for headers and short data.
const SLOT: usize = 4096;
pub(super) const INLINE: usize = SLOT - 64;

/// How many calls of one rank to another are under way at most; the others
/// wait at the caller. Fewer where there are many ranks.
const MOST_SLOTS: usize = 8;

/// The most memory for the arenas of all ranks, and for that of one.
const ARENAS: usize = 64 << 20;
const MOST_ARENA: usize = 4 << 20;

/// The states of a slot.
pub(super) mod state {
    pub(in super::super) const FREE: u32 = 0;
    pub(in super::super) const REQUESTED: u32 = 1;
    pub(in super::super) const TAKEN: u32 = 2;
    pub(in super::super) const DONE: u32 = 3;
    pub(in super::super) const ROOM: u32 = 4;
    pub(in super::super) const FETCH: u32 = 5;
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Answered,
    Failed,
    Panicked,
    Finished,
}

impl Status {
    pub(super) fn from_code(code: u32) -> Self {
        let all = [Self::Answered, Self::Failed, Self::Panicked];
        all.get(code as usize).copied().unwrap_or(Self::Finished)
    }
}

/// The head of an inbox.
#[repr(C, align(64))]
pub(super) struct Head {
    /// Rung by callers; the server sleeps on it.
    bell: AtomicU32,
    /// Whether the server sleeps, or is about to.
    asleep: AtomicU32,
    /// Whether the server is gone.
    pub(super) closed: AtomicU32,
    /// Whether the server spins, so that answers come at once.
    pub(super) spins: AtomicU32,
    own: Own,
}

/// What concerns the calls that the owner of the inbox has made; apart, as
/// others write to it.
#[repr(C, align(64))]
struct Own {
    /// Answers that have come; who waits for one sleeps on it.
    answers: AtomicU32,
    /// How many sleep, or are about to.
    waiters: AtomicU32,
    /// Ranks for which calls are queued here that nobody may wait for: the
    /// server of the owner posts them when an answer frees a slot.
    queues: AtomicU32,
}

impl Head {
    /// Wakes the server if it sleeps.
    pub(super) fn ring(&self) {
        // Sequentially consistent on both sides: either this sees the sleeper,
        // or the sleeper sees what was done before.
        if self.asleep.load(Ordering::SeqCst) != 0 && self.asleep.swap(0, Ordering::SeqCst) != 0 {
            self.bell.fetch_add(1, Ordering::SeqCst);
            wake(&self.bell, 1);
        }
    }

    /// Sleeps by `sleep` until the next ring, unless there `is_work`.
    pub(super) fn sleep(
        &self,
        is_work: impl FnOnce() -> bool,
        sleep: impl FnOnce(&AtomicU32, u32),
    ) {
        let seen = self.bell.load(Ordering::SeqCst);
        self.asleep.store(1, Ordering::SeqCst);
        if !is_work() {
            sleep(&self.bell, seen);
        }
        self.asleep.store(0, Ordering::SeqCst);
    }

    /// Tells the owner that a call of its has been answered.
    pub(super) fn announce_answer(&self) {
        self.own.answers.fetch_add(1, Ordering::SeqCst);
        if self.own.waiters.load(Ordering::SeqCst) != 0 {
            wake(&self.own.answers, u32::MAX);
        }
        if self.has_queues() {
            self.ring();
        }
    }

    /// Whether calls of the owner are queued.
    pub(super) fn has_queues(&self) -> bool {
        self.own.queues.load(Ordering::SeqCst) != 0
    }

    /// The owner has begun to queue calls for a rank, or has none left.
    pub(super) fn count_queue(&self, some: bool) {
        match some {
            true => self.own.queues.fetch_add(1, Ordering::SeqCst),
            false => self.own.queues.fetch_sub(1, Ordering::SeqCst),
        };
    }

    /// Sleeps by `sleep` until the next answer, unless what is waited for `is_here`.
    pub(super) fn await_answer(
        &self,
        is_here: impl FnOnce() -> bool,
        sleep: impl FnOnce(&AtomicU32, u32),
    ) -> bool {
        self.own.waiters.fetch_add(1, Ordering::SeqCst);
        let seen = self.own.answers.load(Ordering::SeqCst);
        let here = is_here();
        if !here {
            sleep(&self.own.answers, seen);
        }
        self.own.waiters.fetch_sub(1, Ordering::SeqCst);
        here
    }
}

/// One call.
#[repr(C, align(64))]
pub(super) struct Slot {
    pub(super) state: AtomicU32,
    /// Of an answer: how the call ended.
    pub(super) status: AtomicU32,
    pub(super) procedure: AtomicU32,
    /// The number of the call among those of its caller to this rank.
    pub(super) sequence: AtomicU32,
    pub(super) header_len: AtomicU64,
    /// Where the header is: 0 if it is inline, else its address in the caller's
    /// memory, or its place in the caller's arena. So below.
    pub(super) header_at: AtomicU64,
    pub(super) data_len: AtomicU64,
    pub(super) data_at: AtomicU64,
    /// Of a request: the room that the caller has for response data. Of an
    /// answer: the length of the response data.
    pub(super) response_len: AtomicU64,
    pub(super) response_at: AtomicU64,
    inline: UnsafeCell<[u8; INLINE]>,
}

// SAFETY: the inline bytes are used by who has the slot, as its state says.
unsafe impl Sync for Slot {}

impl Slot {
    /// Goes from one state to another; whether it was in the first.
    pub(super) fn turn(&self, from: u32, to: u32) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// Writes `bytes` inline.
    ///
    /// # Safety
    ///
    /// It must be the caller's turn.
    pub(super) unsafe fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= INLINE, "the slot is too small");
        // SAFETY: inside the slot, which is ours by the promise.
        unsafe {
            let place = self.inline.get().cast::<u8>().add(at);
            place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// The inline bytes from `at`.
    ///
    /// # Safety
    ///
    /// It must be the caller's turn for as long as they are used, and nobody
    /// may write them.
    pub(super) unsafe fn bytes(&self, at: usize, len: usize) -> &[u8] {
        assert!(at + len <= INLINE, "more than a slot holds");
        // SAFETY: inside the slot, which is ours by the promise.
        unsafe { std::slice::from_raw_parts(self.inline.get().cast::<u8>().add(at), len) }
    }
}

/// The measures of all inboxes of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measures {
    size: usize,
    /// Slots for each caller.
    pub(super) slots: usize,
    /// The length of the arena behind the slots.
    pub(super) arena: usize,
}

impl Measures {
    /// Servers that use the memory of callers `in_place` need no arenas.
    pub(super) fn new(size: usize, in_place: bool) -> Self {
        Self {
            size,
            slots: (256 / size).clamp(2, MOST_SLOTS),
            arena: match in_place {
                true => 0,
                false => (ARENAS / size).clamp(1 << 18, MOST_ARENA),
            },
        }
    }

    fn words(self) -> usize {
        (self.size * self.slots).div_ceil(64)
    }

    fn slots_at(self) -> usize {
        size_of::<Head>() + (8 * self.words()).next_multiple_of(64)
    }

    fn arena_at(self) -> usize {
        let end = self.slots_at() + self.size * self.slots * size_of::<Slot>();
        end.next_multiple_of(SLOT)
    }

    /// The length of an inbox with the arena of its owner.
    pub(super) fn bytes(self) -> usize {
        self.arena_at() + self.arena
    }
}

/// The inbox of one rank, as another or itself sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inbox {
    start: *mut u8,
    measures: Measures,
}

// SAFETY: all that is reached is atomic, or guarded by the states of slots.
unsafe impl Send for Inbox {}
// SAFETY: as above.
unsafe impl Sync for Inbox {}

impl Inbox {
    /// # Safety
    ///
    /// From `start` there must be as many bytes as the measures say, zeroed at
    /// first, used as inboxes only, and for as long as this is used.
    pub(super) unsafe fn new(start: *mut u8, measures: Measures) -> Self {
        Self { start, measures }
    }

    pub(super) fn head(&self) -> &Head {
        // SAFETY: it is there, aligned, and zeros are a valid head.
        unsafe { &*self.start.cast::<Head>() }
    }

    fn word(&self, word: usize) -> &AtomicU64 {
        debug_assert!(word < self.measures.words());
        // SAFETY: it is there, aligned, and atomic.
        unsafe {
            let words = self.start.add(size_of::<Head>()).cast::<AtomicU64>();
            &*words.add(word)
        }
    }

    /// Slot `index` of all, `caller * slots + k`.
    pub(super) fn slot(&self, index: usize) -> &Slot {
        assert!(index < self.measures.size * self.measures.slots);
        // SAFETY: it is there, aligned, and zeros are a free slot.
        unsafe {
            let slots = self.start.add(self.measures.slots_at()).cast::<Slot>();
            &*slots.add(index)
        }
    }

    /// Where the arena of the owner begins.
    pub(super) fn arena(&self) -> *mut u8 {
        self.start.wrapping_add(self.measures.arena_at())
    }

    /// `len` bytes of the arena, if there are so many at `offset`.
    pub(super) fn in_arena(&self, offset: usize, len: usize) -> Option<*mut u8> {
        let end = offset.checked_add(len)?;
        (end <= self.measures.arena).then(|| self.arena().wrapping_add(offset))
    }

    /// The slots of `caller`.
    pub(super) fn index(&self, caller: usize, slot: usize) -> usize {
        caller * self.measures.slots + slot
    }

    /// Who calls in slot `index`.
    pub(super) fn caller(&self, index: usize) -> usize {
        index / self.measures.slots
    }

    /// All slots.
    pub(super) fn indices(&self) -> std::ops::Range<usize> {
        0..self.measures.size * self.measures.slots
    }

    /// Tells the server that there is something for it in slot `index`.
    pub(super) fn post(&self, index: usize) {
        self.word(index / 64)
            .fetch_or(1 << (index % 64), Ordering::SeqCst);
        self.head().ring();
    }

    /// Whether something was posted.
    pub(super) fn is_posted(&self) -> bool {
        (0..self.measures.words()).any(|word| self.word(word).load(Ordering::SeqCst) != 0)
    }

    /// Gives what was posted to `serve`, the calls of each rank in the order in which
    /// it posted them; whether there was anything. `posted` is memory for that.
    pub(super) fn take_posted(&self, posted: &mut Vec<Mark>, mut serve: impl FnMut(usize)) -> bool {
        posted.clear();
        for word in 0..self.measures.words() {
            let bits = self.word(word);
            if bits.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut marked = bits.swap(0, Ordering::SeqCst);
            while marked != 0 {
                let index = word * 64 + marked.trailing_zeros() as usize;
                let sequence = self.slot(index).sequence.load(Ordering::Relaxed);
                posted.push(Mark { index, sequence });
                marked &= marked - 1;
            }
        }
        if posted.len() > 1 {
            // Numbers of calls that are under way together are near one another.
            posted.sort_by(|a, b| {
                let callers = self.caller(a.index).cmp(&self.caller(b.index));
                callers.then((a.sequence.wrapping_sub(b.sequence) as i32).cmp(&0))
            });
        }
        for mark in &*posted {
            // A slot that has another call by now was posted again.
            if self.slot(mark.index).sequence.load(Ordering::Relaxed) == mark.sequence {
                serve(mark.index);
            }
        }
        !posted.is_empty()
    }
}

/// A slot that was posted, and the number of its call.
#[derive(Debug)]
pub(super) struct Mark {
    index: usize,
    sequence: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inboxes_have_room_for_all_slots() {
        assert_eq!(size_of::<Slot>(), SLOT);
        for size in [1, 2, 3, 7, 16, 64, 500] {
            let measures = Measures::new(size, true);
            assert!(measures.slots >= 2);
            let mut memory = vec![0_u64; measures.bytes() / 8 + 8];
            let start = memory.as_mut_ptr().cast::<u8>();
            let start = start.wrapping_add(start.align_offset(64));
            // SAFETY: there are so many bytes, zeroed, and nobody else has them.
            let inbox = unsafe { Inbox::new(start, measures) };
            for caller in [0, size / 2, size - 1] {
                inbox.post(inbox.index(caller, measures.slots - 1));
            }
            assert!(inbox.is_posted());
            let mut callers = Vec::new();
            let mut posted = Vec::new();
            assert!(inbox.take_posted(&mut posted, |index| callers.push(inbox.caller(index))));
            let mut expected = vec![0, size / 2, size - 1];
            expected.dedup();
            assert_eq!(callers, expected);
            assert!(!inbox.is_posted() && !inbox.take_posted(&mut posted, |_| ()));
            // The calls of one rank, in their order and not in that of the slots.
            for (slot, sequence) in [(1, u32::MAX), (0, 0)] {
                let index = inbox.index(size - 1, slot);
                inbox
                    .slot(index)
                    .sequence
                    .store(sequence, Ordering::Relaxed);
                inbox.post(index);
            }
            let mut order = Vec::new();
            inbox.take_posted(&mut posted, |index| order.push(index));
            assert_eq!(order, [1, 0].map(|slot| inbox.index(size - 1, slot)));
        }
    }
}
