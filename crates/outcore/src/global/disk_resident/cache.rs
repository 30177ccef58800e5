//! [`BlockCache`]: blocks of bytes in memory, by number, within a budget.
//!
//! Whoever needs a block that is not there claims it, brings it in and is its first
//! visitor; others who need it meanwhile wait, so it is brought in once, and nobody
//! sees it half made. When the budget is used up, blocks go that nobody uses at the
//! moment and nobody has used for long (the clock: a hand goes round, and a block
//! that was used since its last visit is passed by). A block that was changed is
//! written where it belongs before it goes; one that cannot be written stays.
//!
//! The budget may be shared with others who have used it up, and blocks that cannot
//! be written keep their room. Then a visitor goes past the cache: through memory of
//! its own for that one block, which is written at once if it was changed. So a
//! failure to write concerns only those who write.
//!
//! A thread uses one block at a time, so nobody waits for a block while holding
//! another: there is no deadlock, and with room for one block everything works.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use crate::budget::{MemoryBudget, Reservation};
use crate::error::Result;

/// What a block is made of and where it goes.
pub(crate) trait Backing {
    /// The bytes of a block.
    fn bytes(&self, number: u64) -> usize;
    /// Brings the bytes of a block in.
    fn load(&self, number: u64, bytes: &mut [u8]) -> Result<()>;
    /// Takes the bytes of a block that was changed.
    fn store(&self, number: u64, bytes: &[u8]) -> Result<()>;
}

/// What a visitor does to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    /// Looks at it.
    Read,
    /// Changes some of its bytes.
    Change,
    /// Replaces all of its bytes: they need not be brought in.
    Replace,
}

/// How often blocks were found in a cache, and how often not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// The block was there.
    pub hits: u64,
    /// The block was brought in.
    pub misses: u64,
    /// A block that was changed was written.
    pub written: u64,
}

/// Blocks of bytes in memory.
#[derive(Debug)]
pub(crate) struct BlockCache {
    state: Mutex<State>,
    changed: Condvar,
    budget: MemoryBudget,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<u64, Slot>,
    /// The blocks that are there, in the order in which the hand visits them.
    ring: Vec<u64>,
    hand: usize,
    /// The blocks that memory was taken for, those on their way included.
    held: usize,
    counts: CacheCounts,
}

#[derive(Debug)]
enum Slot {
    /// Somebody brings it in, or writes it before it goes.
    Busy,
    Here(Block),
}

#[derive(Debug)]
struct Block {
    bytes: Arc<RwLock<Vec<u8>>>,
    /// How many visitors it has.
    visitors: usize,
    used: bool,
    dirty: bool,
    /// Somebody writes what was changed before.
    cleaned: bool,
    _room: Reservation,
}

impl Block {
    fn is_clean(&self) -> bool {
        !self.dirty && !self.cleaned
    }
}

/// What becomes of somebody who wants a block.
enum Entered<'a> {
    There(Guest<'a>),
    Absent(Claim<'a>),
}

/// A visitor of a block that is there, which stays meanwhile.
struct Guest<'a> {
    cache: &'a BlockCache,
    number: u64,
    bytes: Arc<RwLock<Vec<u8>>>,
    changed: bool,
    /// Whether it writes what was changed before.
    cleans: bool,
}

impl Guest<'_> {
    fn see<R>(mut self, visit: Visit, visitor: impl FnOnce(&mut Seen<'_>) -> R) -> R {
        let bytes = Arc::clone(&self.bytes);
        match visit {
            Visit::Read => visitor(&mut Seen::Shared(
                &bytes.read().unwrap_or_else(PoisonError::into_inner),
            )),
            Visit::Change | Visit::Replace => {
                self.changed = true;
                visitor(&mut Seen::Alone(
                    &mut bytes.write().unwrap_or_else(PoisonError::into_inner),
                ))
            }
        }
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        if let Some(Slot::Here(block)) = self.cache.state().slots.get_mut(&self.number) {
            block.visitors -= 1;
            block.dirty |= self.changed;
            block.cleaned &= !self.cleans;
        }
        self.cache.changed.notify_all();
    }
}

/// The task to bring a block in; whoever else wants it waits. Dropped before it is
/// done, it lets the next one try.
struct Claim<'a> {
    cache: &'a BlockCache,
    number: u64,
    /// The memory of the block; without it goes past the cache.
    room: Option<Reservation>,
}

impl Claim<'_> {
    /// The block is there for others, if it has room.
    fn keep(mut self, bytes: Vec<u8>, dirty: bool) {
        let Some(room) = self.room.take() else {
            return;
        };
        let block = Block {
            bytes: Arc::new(RwLock::new(bytes)),
            visitors: 0,
            used: true,
            dirty,
            cleaned: false,
            _room: room,
        };
        let mut state = self.cache.state();
        state.slots.insert(self.number, Slot::Here(block));
        state.ring.push(self.number);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state();
        if let Some(Slot::Busy) = state.slots.get(&self.number) {
            state.slots.remove(&self.number);
            state.held -= usize::from(self.room.take().is_some());
        }
        drop(state);
        self.cache.changed.notify_all();
    }
}

/// A block that has to go; dropped with it, it stays.
struct Victim<'a> {
    cache: &'a BlockCache,
    number: u64,
    block: Option<Block>,
}

impl Victim<'_> {
    /// Writes the block if it was changed. `false`: it cannot be written, and stays.
    fn go(&mut self, backing: &dyn Backing) -> bool {
        let dirty = self.block.as_ref().filter(|block| block.dirty);
        if let Some(block) = dirty {
            let bytes = block.bytes.read().unwrap_or_else(PoisonError::into_inner);
            if backing.store(self.number, &bytes).is_err() {
                return false;
            }
            self.cache.state().counts.written += 1;
        }
        self.block = None;
        true
    }
}

impl Drop for Victim<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state();
        match self.block.take() {
            // What was not written must not be lost.
            Some(block) => {
                state.slots.insert(self.number, Slot::Here(block));
                state.ring.push(self.number);
            }
            None => {
                state.slots.remove(&self.number);
                state.held -= 1;
            }
        }
        drop(state);
        self.cache.changed.notify_all();
    }
}

impl BlockCache {
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            budget: budget.clone(),
        }
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        self.state().counts
    }

    /// Lets `visitor` see a block, which is brought in before if it is not there.
    pub(crate) fn visit<R>(
        &self,
        number: u64,
        visit: Visit,
        backing: &dyn Backing,
        visitor: impl FnOnce(&mut Seen<'_>) -> R,
    ) -> Result<R> {
        // 1. It is there.
        let mut claim = match self.enter(number, visit) {
            Entered::There(guest) => return Ok(guest.see(visit, visitor)),
            Entered::Absent(claim) => claim,
        };
        // 2. It is brought in; nobody else reaches it before the visit is over.
        let len = backing.bytes(number);
        claim.room = self.make_room(len as u64, backing);
        let mut bytes = vec![0; len];
        if visit != Visit::Replace {
            backing.load(number, &mut bytes)?;
        }
        let changed = visit != Visit::Read;
        let result = match changed {
            true => visitor(&mut Seen::Alone(&mut bytes)),
            false => visitor(&mut Seen::Shared(&bytes)),
        };
        // 3. It stays, if there is room for it.
        match claim.room.is_some() {
            true => claim.keep(bytes, changed),
            false if changed => backing.store(number, &bytes)?,
            false => {}
        }
        Ok(result)
    }

    /// Lets `visitor` change a block if it is there, and says whether it is.
    pub(crate) fn visit_if_there(&self, number: u64, visitor: impl FnOnce(&mut [u8])) -> bool {
        let mut state = self.state();
        let guest = loop {
            match state.slots.get_mut(&number) {
                None => return false,
                Some(Slot::Here(block)) => break self.guest(number, block),
                Some(Slot::Busy) => state = self.wait(state),
            }
        };
        drop(state);
        visitor(&mut guest.bytes.write().unwrap_or_else(PoisonError::into_inner));
        true
    }

    /// The block, or the task to bring it in.
    fn enter(&self, number: u64, visit: Visit) -> Entered<'_> {
        let mut state = self.state();
        loop {
            match state.slots.get_mut(&number) {
                None => break,
                Some(Slot::Here(block)) => {
                    block.used = true;
                    let guest = self.guest(number, block);
                    state.counts.hits += 1;
                    return Entered::There(guest);
                }
                Some(Slot::Busy) => state = self.wait(state),
            }
        }
        state.counts.misses += u64::from(visit != Visit::Replace);
        state.slots.insert(number, Slot::Busy);
        Entered::Absent(Claim {
            cache: self,
            number,
            room: None,
        })
    }

    fn guest(&self, number: u64, block: &mut Block) -> Guest<'_> {
        block.visitors += 1;
        Guest {
            cache: self,
            number,
            bytes: Arc::clone(&block.bytes),
            changed: false,
            cleans: false,
        }
    }

    /// Takes memory from the budget; lets blocks go until there is enough. `None`:
    /// others have it, or what has it cannot be written.
    fn make_room(&self, bytes: u64, backing: &dyn Backing) -> Option<Reservation> {
        let mut state = self.state();
        let mut writable = true;
        loop {
            if let Ok(room) = self.budget.reserve(bytes, "a block of the cache") {
                state.held += 1;
                return Some(room);
            }
            let Some(number) = state.victim(writable) else {
                if state.held == 0 || !writable {
                    return None;
                }
                // All are in use; whoever leaves one makes room.
                state = self.wait(state);
                continue;
            };
            let Some(Slot::Here(block)) = state.slots.insert(number, Slot::Busy) else {
                continue;
            };
            let mut victim = Victim {
                cache: self,
                number,
                block: Some(block),
            };
            drop(state);
            writable = victim.go(backing);
            drop(victim);
            state = self.state();
        }
    }

    /// Writes all blocks that were changed before. They stay. Those that cannot be
    /// written stay changed, and the first failure is returned.
    pub(crate) fn clean(&self, backing: &dyn Backing) -> Result<()> {
        // Those on their way may have been changed, or are being written.
        let mut numbers: Vec<u64> = {
            let state = self.state();
            let settled = |slot: &Slot| matches!(slot, Slot::Here(block) if block.is_clean());
            let slots = state.slots.iter().filter(|(_, slot)| !settled(slot));
            slots.map(|(number, _)| *number).collect()
        };
        numbers.sort_unstable();
        let mut outcome = Ok(());
        for number in numbers {
            let stored = self.clean_one(number, backing);
            outcome = outcome.and(stored);
        }
        outcome
    }

    /// Returns when what a block was before is written.
    fn clean_one(&self, number: u64, backing: &dyn Backing) -> Result<()> {
        let mut state = self.state();
        let mut guest = loop {
            match state.slots.get_mut(&number) {
                // Written and gone.
                None => return Ok(()),
                Some(Slot::Here(block)) if block.is_clean() => return Ok(()),
                Some(Slot::Here(block)) if !block.cleaned => {
                    // Whoever changes it from now on says so when leaving.
                    (block.dirty, block.cleaned) = (false, true);
                    break self.guest(number, block);
                }
                Some(_) => state = self.wait(state),
            }
        };
        drop(state);
        // Changed until it is written, whatever happens.
        (guest.changed, guest.cleans) = (true, true);
        let bytes = guest.bytes.read().unwrap_or_else(PoisonError::into_inner);
        let stored = backing.store(number, &bytes);
        drop(bytes);
        guest.changed = stored.is_err();
        self.state().counts.written += u64::from(stored.is_ok());
        stored
    }

    /// Lets a block go that is not what is in the file any more.
    pub(crate) fn forget(&self, number: u64) {
        let mut state = self.state();
        loop {
            match state.slots.get(&number) {
                None => return,
                Some(Slot::Here(block)) if block.visitors == 0 => break,
                Some(_) => state = self.wait(state),
            }
        }
        state.slots.remove(&number);
        state.held -= 1;
        state.ring.retain(|there| *there != number);
        drop(state);
        self.changed.notify_all();
    }

    /// Lets all blocks go, written or not; nobody may use any.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.slots.clear();
        state.ring.clear();
        state.held = 0;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The block that has not been used for longest, of those without visitors, and of
    /// those that need not be written unless `writable`; it leaves the ring.
    fn victim(&mut self, writable: bool) -> Option<u64> {
        // Twice round: the first time takes the marks away.
        for _ in 0..2 * self.ring.len() {
            if self.hand >= self.ring.len() {
                self.hand = 0;
            }
            let number = self.ring[self.hand];
            if let Some(Slot::Here(block)) = self.slots.get_mut(&number)
                && block.visitors == 0
                && (writable || !block.dirty)
                && !std::mem::take(&mut block.used)
            {
                self.ring.remove(self.hand);
                return Some(number);
            }
            self.hand += 1;
        }
        None
    }
}

/// The bytes of a block as a visitor sees them.
pub(crate) enum Seen<'a> {
    /// To be looked at.
    Shared(&'a [u8]),
    /// To be changed.
    Alone(&'a mut [u8]),
}

impl Seen<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Alone(bytes) => bytes,
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Shared(_) => &mut [],
            Self::Alone(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    #[derive(Default)]
    struct File {
        blocks: Mutex<HashMap<u64, u8>>,
        loads: AtomicU64,
        full: AtomicBool,
    }

    impl Backing for File {
        fn bytes(&self, _: u64) -> usize {
            100
        }

        fn load(&self, number: u64, bytes: &mut [u8]) -> Result<()> {
            self.loads.fetch_add(1, Ordering::Relaxed);
            std::thread::yield_now();
            let blocks = self.blocks.lock().unwrap();
            bytes.fill(blocks.get(&number).copied().unwrap_or(number as u8));
            Ok(())
        }

        fn store(&self, number: u64, bytes: &[u8]) -> Result<()> {
            if self.full.load(Ordering::Relaxed) {
                return Err(crate::error::Error::Invalid("full".into()));
            }
            self.blocks.lock().unwrap().insert(number, bytes[0]);
            Ok(())
        }
    }

    #[test]
    fn a_block_is_brought_in_once() {
        let (file, budget) = (File::default(), MemoryBudget::of(1000));
        let cache = BlockCache::new(&budget);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for number in 0..10 {
                        let seen = cache.visit(number, Visit::Read, &file, |seen| seen.bytes()[5]);
                        assert_eq!(seen.unwrap(), number as u8);
                    }
                });
            }
        });
        assert_eq!(file.loads.load(Ordering::Relaxed), 10);
        assert_eq!(budget.free(), 0);
        let counts = cache.counts();
        assert_eq!((counts.hits, counts.misses), (70, 10));
    }

    #[test]
    fn what_was_changed_is_written_before_it_goes() {
        let (file, budget) = (File::default(), MemoryBudget::of(299));
        let cache = BlockCache::new(&budget);
        let add = |number: u64| {
            cache.visit(number, Visit::Change, &file, |seen| {
                seen.bytes_mut()
                    .iter_mut()
                    .for_each(|byte| *byte = byte.wrapping_add(100));
            })
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..40).for_each(|number| add(number % 20).unwrap()));
            }
        });
        cache.clean(&file).unwrap();
        let blocks = file.blocks.lock().unwrap();
        for number in 0..20u64 {
            assert_eq!(blocks[&number], (number + 400) as u8);
        }
    }

    #[test]
    fn a_full_disk_loses_nothing_and_concerns_only_writers() {
        let (file, budget) = (File::default(), MemoryBudget::of(200));
        let cache = BlockCache::new(&budget);
        let put = |number, value| {
            cache.visit(number, Visit::Replace, &file, |seen| {
                seen.bytes_mut().fill(value);
            })
        };
        let got = |number| cache.visit(number, Visit::Read, &file, |seen| seen.bytes()[9]);
        file.full.store(true, Ordering::Relaxed);
        put(1, 77).unwrap();
        put(2, 78).unwrap();
        // No room, and none can be made: past the cache.
        assert_eq!(got(3).unwrap(), 3);
        assert!(put(3, 79).is_err());
        assert!(cache.clean(&file).is_err());
        assert_eq!(
            (got(1).unwrap(), got(2).unwrap(), got(3).unwrap()),
            (77, 78, 3)
        );
        file.full.store(false, Ordering::Relaxed);
        got(3).unwrap();
        got(4).unwrap();
        assert_eq!(file.blocks.lock().unwrap()[&1], 77);
        assert_eq!(file.blocks.lock().unwrap()[&2], 78);
        cache.forget(3);
        cache.forget(4);
        assert_eq!(budget.free(), 200);
    }

    #[test]
    fn clean_blocks_go_before_one_that_cannot_be_written() {
        let (file, budget) = (File::default(), MemoryBudget::of(200));
        let cache = BlockCache::new(&budget);
        file.full.store(true, Ordering::Relaxed);
        cache
            .visit(1, Visit::Change, &file, |seen| seen.bytes_mut().fill(7))
            .unwrap();
        for number in 2..20 {
            let seen = cache.visit(number, Visit::Read, &file, |seen| seen.bytes()[0]);
            assert_eq!(seen.unwrap(), number as u8);
        }
        let last = cache.counts().hits;
        cache.visit(19, Visit::Read, &file, |_| ()).unwrap();
        assert_eq!(cache.counts().hits, last + 1);
    }

    #[test]
    fn a_budget_that_others_have_used_up_is_gone_past() {
        let (file, budget) = (File::default(), MemoryBudget::of(250));
        let (first, second) = (BlockCache::new(&budget), BlockCache::new(&budget));
        for number in 0..4 {
            first.visit(number, Visit::Read, &file, |_| ()).unwrap();
        }
        for number in 0..4u64 {
            let add = |seen: &mut Seen<'_>| seen.bytes_mut().iter_mut().for_each(|b| *b += 100);
            second.visit(number, Visit::Change, &file, add).unwrap();
            assert_eq!(file.blocks.lock().unwrap()[&number], number as u8 + 100);
        }
        assert!(budget.free() < 100);
    }

    #[test]
    fn nobody_sees_a_block_half_made() {
        let (file, budget) = (File::default(), MemoryBudget::of(100));
        file.blocks.lock().unwrap().insert(1, 5);
        let cache = BlockCache::new(&budget);
        for round in 0..200u64 {
            cache.visit(2, Visit::Read, &file, |_| ()).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let put = |seen: &mut Seen<'_>| {
                        std::thread::yield_now();
                        seen.bytes_mut().fill(5);
                    };
                    cache.visit(1, Visit::Replace, &file, put).unwrap();
                });
                scope.spawn(|| {
                    let seen = cache.visit(1, Visit::Read, &file, |seen| seen.bytes()[0]);
                    assert_eq!(seen.unwrap(), 5, "round {round}");
                });
            });
        }
    }

    #[test]
    fn who_cleans_waits_for_others_who_write() {
        let (file, budget) = (File::default(), MemoryBudget::of(300));
        let cache = BlockCache::new(&budget);
        for round in 0..200u64 {
            let value = round as u8;
            let put = |seen: &mut Seen<'_>| seen.bytes_mut().fill(value);
            cache.visit(1, Visit::Change, &file, put).unwrap();
            std::thread::scope(|scope| {
                // One lets it go, two clean.
                scope.spawn(|| {
                    for other in 2..6 {
                        cache.visit(other, Visit::Read, &file, |_| ()).unwrap();
                    }
                });
                for _ in 0..2 {
                    scope.spawn(|| {
                        cache.clean(&file).unwrap();
                        assert_eq!(file.blocks.lock().unwrap()[&1], value);
                    });
                }
            });
        }
    }

    #[test]
    fn a_panic_lets_the_next_visitor_in() {
        let (file, budget) = (File::default(), MemoryBudget::of(100));
        let cache = BlockCache::new(&budget);
        for there in [false, true] {
            let failing = std::panic::AssertUnwindSafe(|| {
                cache.visit(1, Visit::Read, &file, |_| panic!("on purpose"))
            });
            assert!(std::panic::catch_unwind(failing).is_err());
            let hits = cache.counts().hits;
            cache.visit(1, Visit::Read, &file, |_| ()).unwrap();
            assert_eq!(cache.counts().hits > hits, there);
            cache.visit(1, Visit::Read, &file, |_| ()).unwrap();
        }
        cache.forget(1);
        assert_eq!(budget.free(), 100);
    }
}
