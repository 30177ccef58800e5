//! [`BlockCache`]: blocks of bytes in memory, by number, within a budget.
//!
//! Whoever needs a block that is not there brings it in; others who need it
//! meanwhile wait, so it is brought in once. When the budget is used up, blocks go
//! that nobody uses at the moment and nobody has used for long (the clock: a hand
//! goes round, and a block that was used since its last visit is passed by). A block
//! that was changed is written where it belongs before it goes.
//!
//! A thread uses one block at a time, so nobody waits for a block while holding
//! another: there is no deadlock, and with room for one block everything works.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use crate::budget::{MemoryBudget, Reservation};
use crate::error::{Error, Result};

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
    _room: Reservation,
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
        let bytes = self.enter(number, visit, backing)?;
        Ok(self.inside(number, &bytes, visit, visitor))
    }

    /// Lets `visitor` change a block if it is there, and says whether it is.
    pub(crate) fn visit_if_there(&self, number: u64, visitor: impl FnOnce(&mut [u8])) -> bool {
        let mut state = self.state();
        let bytes = loop {
            match state.slots.get_mut(&number) {
                None => return false,
                Some(Slot::Here(block)) => {
                    block.visitors += 1;
                    break Arc::clone(&block.bytes);
                }
                Some(Slot::Busy) => state = self.wait(state),
            }
        };
        drop(state);
        visitor(&mut bytes.write().unwrap_or_else(PoisonError::into_inner));
        self.leave(number, false);
        true
    }

    fn inside<R>(
        &self,
        number: u64,
        bytes: &RwLock<Vec<u8>>,
        visit: Visit,
        visitor: impl FnOnce(&mut Seen<'_>) -> R,
    ) -> R {
        let result = match visit {
            Visit::Read => visitor(&mut Seen::Shared(
                &bytes.read().unwrap_or_else(PoisonError::into_inner),
            )),
            Visit::Change | Visit::Replace => visitor(&mut Seen::Alone(
                &mut bytes.write().unwrap_or_else(PoisonError::into_inner),
            )),
        };
        self.leave(number, visit != Visit::Read);
        result
    }

    fn leave(&self, number: u64, changed: bool) {
        let mut state = self.state();
        if let Some(Slot::Here(block)) = state.slots.get_mut(&number) {
            block.visitors -= 1;
            block.dirty |= changed;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The block, which stays until [`leave`](Self::leave).
    fn enter(
        &self,
        number: u64,
        visit: Visit,
        backing: &dyn Backing,
    ) -> Result<Arc<RwLock<Vec<u8>>>> {
        let mut state = self.state();
        loop {
            match state.slots.get_mut(&number) {
                None => break,
                Some(Slot::Here(block)) => {
                    (block.used, block.visitors) = (true, block.visitors + 1);
                    let bytes = Arc::clone(&block.bytes);
                    state.counts.hits += 1;
                    return Ok(bytes);
                }
                Some(Slot::Busy) => state = self.wait(state),
            }
        }
        state.counts.misses += u64::from(visit != Visit::Replace);
        state.slots.insert(number, Slot::Busy);
        drop(state);
        let brought = self.bring(number, visit, backing);
        let mut state = self.state();
        let outcome = match brought {
            Ok((bytes, room)) => {
                let bytes = Arc::new(RwLock::new(bytes));
                let block = Block {
                    bytes: Arc::clone(&bytes),
                    visitors: 1,
                    used: true,
                    dirty: false,
                    _room: room,
                };
                state.slots.insert(number, Slot::Here(block));
                state.ring.push(number);
                Ok(bytes)
            }
            Err((error, held)) => {
                state.slots.remove(&number);
                state.held -= usize::from(held);
                Err(error)
            }
        };
        drop(state);
        self.changed.notify_all();
        outcome
    }

    /// The bytes of a block and the memory that was taken for them; or why there
    /// are none, and whether memory had been taken.
    fn bring(
        &self,
        number: u64,
        visit: Visit,
        backing: &dyn Backing,
    ) -> Result<(Vec<u8>, Reservation), (Error, bool)> {
        let len = backing.bytes(number);
        let room = self.make_room(len as u64, backing);
        let room = room.map_err(|error| (error, false))?;
        let mut bytes = vec![0; len];
        if visit != Visit::Replace {
            let loaded = backing.load(number, &mut bytes);
            loaded.map_err(|error| (error, true))?;
        }
        Ok((bytes, room))
    }

    /// Takes memory from the budget; lets blocks go until there is enough.
    fn make_room(&self, bytes: u64, backing: &dyn Backing) -> Result<Reservation> {
        let mut state = self.state();
        loop {
            let lacking = match self.budget.reserve(bytes, "a block of the cache") {
                Ok(room) => {
                    state.held += 1;
                    return Ok(room);
                }
                Err(error) => error,
            };
            if state.held == 0 {
                return Err(lacking);
            }
            let Some(victim) = state.victim() else {
                // All are in use; whoever leaves one makes room.
                state = self.wait(state);
                continue;
            };
            let slot = state.slots.insert(victim, Slot::Busy);
            let Some(Slot::Here(block)) = slot else {
                continue;
            };
            if block.dirty {
                drop(state);
                let stored = backing.store(
                    victim,
                    &block.bytes.read().unwrap_or_else(PoisonError::into_inner),
                );
                state = self.state();
                if let Err(error) = stored {
                    // What was not written must not be lost.
                    state.slots.insert(victim, Slot::Here(block));
                    state.ring.push(victim);
                    self.changed.notify_all();
                    return Err(error);
                }
                state.counts.written += 1;
            }
            state.slots.remove(&victim);
            state.held -= 1;
            self.changed.notify_all();
        }
    }

    /// Writes all blocks that were changed. They stay. Those that cannot be
    /// written stay changed, and the first failure is returned.
    pub(crate) fn clean(&self, backing: &dyn Backing) -> Result<()> {
        let mut dirty: Vec<u64> = {
            let state = self.state();
            let blocks = state.slots.iter();
            let is_dirty = |slot: &Slot| matches!(slot, Slot::Here(block) if block.dirty);
            blocks
                .filter(|(_, slot)| is_dirty(slot))
                .map(|(number, _)| *number)
                .collect()
        };
        dirty.sort_unstable();
        let mut outcome = Ok(());
        for number in dirty {
            let mut state = self.state();
            let Some(Slot::Here(block)) = state.slots.get_mut(&number) else {
                continue; // Written and gone meanwhile.
            };
            // Whoever changes it from now on says so when leaving.
            (block.dirty, block.visitors) = (false, block.visitors + 1);
            let bytes = Arc::clone(&block.bytes);
            drop(state);
            let stored = backing.store(
                number,
                &bytes.read().unwrap_or_else(PoisonError::into_inner),
            );
            self.state().counts.written += u64::from(stored.is_ok());
            self.leave(number, stored.is_err());
            if outcome.is_ok() {
                outcome = stored;
            }
        }
        outcome
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
    /// The block that has not been used for longest, of those without visitors;
    /// it leaves the ring.
    fn victim(&mut self) -> Option<u64> {
        // Twice round: the first time takes the marks away.
        for _ in 0..2 * self.ring.len() {
            if self.hand >= self.ring.len() {
                self.hand = 0;
            }
            let number = self.ring[self.hand];
            if let Some(Slot::Here(block)) = self.slots.get_mut(&number)
                && block.visitors == 0
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
                return Err(Error::Invalid("full".into()));
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
    fn a_full_disk_loses_nothing() {
        let (file, budget) = (File::default(), MemoryBudget::of(100));
        let cache = BlockCache::new(&budget);
        file.full.store(true, Ordering::Relaxed);
        cache
            .visit(1, Visit::Replace, &file, |seen| seen.bytes_mut().fill(77))
            .unwrap();
        assert!(cache.visit(2, Visit::Read, &file, |_| ()).is_err());
        assert!(cache.clean(&file).is_err());
        file.full.store(false, Ordering::Relaxed);
        cache.visit(2, Visit::Read, &file, |_| ()).unwrap();
        assert_eq!(file.blocks.lock().unwrap()[&1], 77);
        cache.forget(2);
        assert_eq!(budget.free(), 100);
    }

    #[test]
    fn a_budget_below_one_block_is_an_error() {
        let cache = BlockCache::new(&MemoryBudget::of(99));
        assert!(
            cache
                .visit(1, Visit::Read, &File::default(), |_| ())
                .is_err()
        );
    }
}
