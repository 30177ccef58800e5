//! [`Shelf`]: the blocks of the factors that a rank holds in memory: those that it
//! multiplies, those that are on their way, and those that it may need again.
//!
//! Buffers are used again and again, since new memory costs about as much as the
//! copy that fills it. Blocks that nobody uses stay until their buffer is wanted,
//! the one that was used last the longest.
//!
//! Invariant: the buffers of all blocks and those that wait for one hold no more
//! than `limit` elements together, and no buffer holds more than the largest block.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use outcore::{Error, Result};

use super::blocks::{Blocks, Fetch};
use super::tensor::Place;

/// A buffer may be so many times as long as its block before another is preferred.
const LOOSE: usize = 2;

/// Which factor, and where its block begins.
pub(super) type Key = (usize, u64);

/// The blocks in the memory of a rank.
pub(super) struct Shelf<'a, T> {
    /// The blocks of the left and the right factor.
    sources: [&'a dyn Blocks<T>; 2],
    limit: usize,
    /// The elements of all buffers.
    held: usize,
    /// The elements of the buffers that are in use.
    busy: usize,
    blocks: HashMap<Key, Block<'a, T>>,
    /// The blocks that nobody uses, by when they were used last.
    idle: BTreeMap<u64, Key>,
    /// Buffers without a block, by their capacity.
    empty: BTreeMap<usize, Vec<Vec<T>>>,
    clock: u64,
    pub(super) fetched: u64,
    pub(super) waited: Duration,
}

struct Block<'a, T> {
    state: State<'a, T>,
    capacity: usize,
    /// How many steps want it.
    users: usize,
    used: u64,
}

enum State<'a, T> {
    Coming(Fetch<'a, T>),
    Here(Vec<T>),
    /// Its reading failed, or is being waited for.
    Gone,
}

impl<'a, T: Pod> Shelf<'a, T> {
    /// A shelf for blocks of these sources, with memory for so many elements.
    pub(super) fn new(sources: [&'a dyn Blocks<T>; 2], limit: usize) -> Self {
        Self {
            sources,
            limit,
            held: 0,
            busy: 0,
            blocks: HashMap::new(),
            idle: BTreeMap::new(),
            empty: BTreeMap::new(),
            clock: 0,
            fetched: 0,
            waited: Duration::ZERO,
        }
    }

    /// The elements that may still come into use.
    pub(super) fn room(&self) -> usize {
        self.limit - self.busy
    }

    /// Whether a block is here or on its way.
    pub(super) fn has(&self, key: Key) -> bool {
        self.blocks.contains_key(&key)
    }

    /// Begins to fetch a block unless it is there, and keeps it for one more user;
    /// `false` if there is no room.
    pub(super) fn want(&mut self, side: usize, place: Place) -> Result<bool> {
        let key = (side, place.start);
        if let Some(block) = self.blocks.get_mut(&key) {
            if block.users == 0 {
                self.idle.remove(&block.used);
                self.busy += block.capacity;
            }
            block.users += 1;
            return Ok(true);
        }
        let Some(mut buffer) = self.buffer(place.len as usize) else {
            return Ok(false);
        };
        let capacity = buffer.capacity();
        buffer.resize(place.len as usize, T::zeroed());
        let fetch = self.sources[side].fetch(place, buffer)?;
        self.fetched += place.len;
        self.busy += capacity;
        let block = Block {
            state: State::Coming(fetch),
            capacity,
            users: 1,
            used: 0,
        };
        self.blocks.insert(key, block);
        Ok(true)
    }

    /// Waits for a block that is wanted; `arrived` sees it once, when it is there.
    pub(super) fn wait(&mut self, key: Key, arrived: impl FnOnce(&mut Vec<T>)) -> Result<()> {
        let Some(block) = self.blocks.get_mut(&key) else {
            return Ok(());
        };
        match std::mem::replace(&mut block.state, State::Gone) {
            State::Coming(fetch) => {
                let start = Instant::now();
                let mut values = fetch.wait()?;
                self.waited += start.elapsed();
                arrived(&mut values);
                // It may have come, or been left, in another buffer.
                self.held = self.held + values.capacity() - block.capacity;
                self.busy = self.busy + values.capacity() - block.capacity;
                block.capacity = values.capacity();
                block.state = State::Here(values);
            }
            state => block.state = state,
        }
        Ok(())
    }

    /// A block that was waited for.
    pub(super) fn values(&self, key: Key) -> Result<&[T]> {
        match self.blocks.get(&key).map(|block| &block.state) {
            Some(State::Here(values)) => Ok(values),
            _ => Err(Error::Invalid(format!(
                "the block from element {} on of factor {} is not in memory: it was not waited \
                 for, or could not be read",
                key.1, key.0
            ))),
        }
    }

    /// One user of a block needs it no more.
    pub(super) fn release(&mut self, key: Key) {
        let Some(block) = self.blocks.get_mut(&key) else {
            return;
        };
        block.users -= 1;
        if block.users == 0 {
            self.clock += 1;
            block.used = self.clock;
            self.busy -= block.capacity;
            self.idle.insert(self.clock, key);
        }
    }

    /// A buffer for so many elements, if those in use leave room for it.
    fn buffer(&mut self, len: usize) -> Option<Vec<T>> {
        if self.busy + len > self.limit {
            return None;
        }
        loop {
            // 1. One that fits.
            let fits = self
                .empty
                .range(len..)
                .next()
                .map(|(capacity, _)| *capacity);
            if let Some(capacity) = fits.filter(|capacity| *capacity <= len.saturating_mul(LOOSE)) {
                return self.take_empty(capacity);
            }
            // 2. A new one.
            if self.held + len <= self.limit {
                let buffer = vec![T::zeroed(); len];
                self.held += buffer.capacity();
                return Some(buffer);
            }
            // 3. Room from buffers that nobody wanted, then from idle blocks.
            if let Some((capacity, _)) = self.empty.last_key_value() {
                let capacity = *capacity;
                self.take_empty(capacity);
                self.held -= capacity;
                continue;
            }
            let (_, key) = self.idle.pop_first()?;
            let block = self.blocks.remove(&key)?;
            match block.state {
                State::Here(values) => {
                    let capacity = values.capacity();
                    self.empty.entry(capacity).or_default().push(values);
                }
                _ => self.held -= block.capacity,
            }
        }
    }

    fn take_empty(&mut self, capacity: usize) -> Option<Vec<T>> {
        let alike = self.empty.get_mut(&capacity)?;
        let buffer = alike.pop();
        if alike.is_empty() {
            self.empty.remove(&capacity);
        }
        buffer
    }
}
