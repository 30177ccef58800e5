//! [`NodeArray`]: one copy of an array for all ranks of a node, in the memory
//! that they share (the paper's SMP arrays).
//!
//! The copy is cut into blocks. The first rank that needs a block fetches it from
//! the array that is copied; others that need it meanwhile wait for that one
//! block; afterwards all ranks of the node read it as their own memory. Nothing is
//! agreed on between nodes, and nothing among the ranks of one, but when the copy
//! is renewed.
//!
//! Invariants: a block is empty, being fetched by one rank, or full, and is
//! written only while it is being fetched. A rank that fails to fetch leaves the
//! block empty, and keeps the error to itself.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outcore_geometry::{AxisDistribution, AxisSection, Distribution, Section};
use outcore_transport::{Comm, Shared, doorbell};

use super::agreement::same_on_all;
use super::global_array::GlobalArray;
use super::part::{Part, too_large};
use super::places::{Places, dense, each_nest};
use crate::element::Element;
use crate::error::{Error, Result};

const NAME: &str = "a node array";

/// What a block is.
const EMPTY: u32 = 0;
const FETCHED: u32 = 1;
const FULL: u32 = 2;

/// Between two looks at whether the run has failed, of one who waits for a block.
const NAP: Duration = Duration::from_millis(1);

/// The bytes of a line of the cache.
const LINE: usize = 64;

/// Where blocks of a node array come from.
pub trait BlockSource<T> {
    /// Reads `section` into `values`, dense, the last axis fastest.
    fn fetch(&self, section: &Section, values: &mut [T]) -> Result<()>;
}

impl<T: Element> BlockSource<T> for GlobalArray<T> {
    fn fetch(&self, section: &Section, values: &mut [T]) -> Result<()> {
        self.get(section, values)
    }
}

impl<T, F: Fn(&Section, &mut [T]) -> Result<()>> BlockSource<T> for F {
    fn fetch(&self, section: &Section, values: &mut [T]) -> Result<()> {
        self(section, values)
    }
}

/// One copy of an array for all ranks of a node, fetched block by block when it
/// is needed, or all at once.
///
/// ```
/// use outcore::{Comm, Distribution, GlobalArray, NodeArray};
/// outcore::run(4, |comm: &Comm| {
///     let distribution = Distribution::parse("block,*", &[64, 8], 4, None).expect("it fits");
///     let array = GlobalArray::<f64>::new(comm, None, distribution)?;
///     array.fill_with(comm, |index| index[0] as f64)?;
///     let copy = NodeArray::new(comm, array.shape(), &[16, 8])?;
///     let mut column = [0.0; 64];
///     copy.get(&array, &array.section(":, 3")?, &mut column)?;
///     assert_eq!(column[63], 63.0);
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug)]
pub struct NodeArray<T> {
    node: Comm,
    shape: Vec<u64>,
    /// The extents of a block, and how many there are along each axis.
    block: Vec<u64>,
    blocks: Vec<u64>,
    places: Places,
    /// A word for each block, after the number of full ones.
    words: *const AtomicU32,
    elements: Part<T>,
    count: usize,
    /// Keeps the memory.
    _shared: Shared,
}

// SAFETY: it stands for shared memory, in which elements are written by one rank
// before all others read them, and words are atomic.
unsafe impl<T: Send> Send for NodeArray<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for NodeArray<T> {}

impl<T: Element> NodeArray<T> {
    /// Collective: an empty copy, on each node, of an array of `shape`, in blocks
    /// of `block`.
    pub fn new(comm: &Comm, shape: &[u64], block: &[u64]) -> Result<Self> {
        // Who reaches whom is on one node.
        let reach = comm.share(1)?;
        let first = (0..comm.size()).find(|rank| reach.of(*rank).is_some());
        let node = comm.split(Some(first.unwrap_or(comm.rank()) as u64), 0)?;
        let node = node.expect("every rank has a colour");
        Self::of_node(&node, shape, block)
    }

    /// Collective among the ranks of `node`, who all reach one another's memory:
    /// an empty copy for them.
    pub fn of_node(node: &Comm, shape: &[u64], block: &[u64]) -> Result<Self> {
        let differ = "the ranks of a node give its array different shapes or element types";
        same_on_all(node, (shape, block, T::TYPE), differ)?;
        if shape.len() != block.len() || block.contains(&0) {
            return Err(Error::Invalid(format!(
                "blocks of {block:?} do not cut an array of {shape:?}"
            )));
        }
        // To one rank, all of it: row by row.
        let kinds = vec![AxisDistribution::Collapsed; shape.len()];
        let plain = Distribution::new(shape, &kinds, &vec![1; shape.len()]);
        let plain = plain.map_err(Error::geometry(NAME))?;
        let count = plain.local_count(0);
        let blocks: Vec<u64> = shape
            .iter()
            .zip(block)
            .map(|(n, b)| n.div_ceil(*b))
            .collect();
        let words = (blocks.iter().product::<u64>() as usize + 1) * size_of::<AtomicU32>();
        let words = words.next_multiple_of(LINE);
        let bytes = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(size_of::<T>()));
        let bytes = bytes.and_then(|bytes| bytes.checked_add(words));
        let bytes = bytes.ok_or_else(|| too_large(count))?;
        let shared = node.share(if node.rank() == 0 { bytes } else { 0 })?;
        let start = shared.of(0).map(|(start, _)| start);
        let reached =
            start.ok_or_else(|| Error::Invalid("the ranks of a node array share no memory".into()));
        let start = node.agree(reached)?;
        Ok(Self {
            node: node.clone(),
            shape: shape.into(),
            block: block.into(),
            blocks,
            places: Places::new(&plain)?,
            words: start.cast(),
            elements: Part::plain(start.wrapping_add(words).cast()),
            count: count as usize,
            _shared: shared,
        })
    }

    /// The ranks of this node.
    pub fn node(&self) -> &Comm {
        &self.node
    }

    /// The shape of the array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many blocks are full.
    pub fn full_blocks(&self) -> usize {
        self.word(0).load(Ordering::Acquire) as usize
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.blocks.iter().product::<u64>() as usize
    }

    /// Reads `section` into `values`; blocks that are not there yet are fetched
    /// from `source`, which must be the same array for all.
    pub fn get(
        &self,
        source: &impl BlockSource<T>,
        section: &Section,
        values: &mut [T],
    ) -> Result<()> {
        if section.count() != values.len() as u64 {
            return Err(Error::BufferLength {
                array: NAME.into(),
                section: section.to_string(),
                expected: section.count(),
                found: values.len() as u64,
            });
        }
        section
            .check_within(&self.shape)
            .map_err(Error::geometry(NAME))?;
        if self.full_blocks() < self.blocks() {
            self.each_block(section, |block| self.bring(source, block))?;
        }
        let buffer = values.as_mut_ptr();
        if let Some((_, nest)) = self.places.single(section) {
            // SAFETY: the places lie in the array, whose blocks are full there and
            // not written any more; the buffer is as large as the section.
            unsafe { self.elements.read(&nest, buffer) };
            return Ok(());
        }
        let steps = dense(&section.shape());
        for share in self.places.shares(section) {
            // SAFETY: as above.
            each_nest(&share.axes, (self.places.steps(0), &steps), |nest| unsafe {
                self.elements.read(nest, buffer);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Fetches all blocks that are not there yet, together with whichever ranks of
    /// the node do the same, and returns the whole array: dense, the last axis
    /// fastest.
    pub fn fill(&self, source: &impl BlockSource<T>) -> Result<&[T]> {
        let blocks = self.blocks();
        let share = |rank: usize| blocks * rank / self.node.size();
        let first = share(self.node.rank());
        // Those that nobody fetches, beginning at a place of one's own; then those
        // that others have not finished.
        for at in 0..blocks {
            let block = (first + at) % blocks;
            if self.word(1 + block).load(Ordering::Relaxed) == EMPTY {
                self.fetch(source, block)?;
            }
        }
        for block in 0..blocks {
            self.bring(source, block)?;
        }
        Ok(self.view().expect("all blocks have been seen full"))
    }

    /// The whole array, if all blocks are there.
    pub fn view(&self) -> Option<&[T]> {
        let full = self.full_blocks() == self.blocks();
        // SAFETY: full blocks are values, and are not written while somebody has
        // the array, which `renew` has mutably on all ranks of the node.
        full.then(|| unsafe { std::slice::from_raw_parts(self.elements.elements(), self.count) })
    }

    /// Collective among the ranks of the node: forgets all blocks, so that they
    /// are fetched anew.
    pub fn renew(&mut self) -> Result<()> {
        self.node.barrier()?;
        if self.node.rank() == 0 {
            for at in 0..=self.blocks() {
                self.word(at).store(EMPTY, Ordering::Release);
            }
        }
        Ok(self.node.barrier()?)
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at <= self.blocks());
        // SAFETY: the words stand at the beginning of the memory, as many as
        // blocks and one, aligned, and all ranks use them as atomics.
        unsafe { &*self.words.add(at) }
    }

    /// Returns when a block is full.
    fn bring(&self, source: &impl BlockSource<T>, block: usize) -> Result<()> {
        let word = self.word(1 + block);
        loop {
            match word.load(Ordering::Acquire) {
                FULL => return Ok(()),
                EMPTY => self.fetch(source, block)?,
                being => {
                    doorbell::sleep_on(word, being, NAP);
                    self.node.check()?;
                }
            }
        }
    }

    /// Fetches a block, unless somebody else has begun to.
    fn fetch(&self, source: &impl BlockSource<T>, block: usize) -> Result<()> {
        let word = self.word(1 + block);
        let begun = word.compare_exchange(EMPTY, FETCHED, Ordering::Acquire, Ordering::Relaxed);
        if begun.is_err() {
            return Ok(());
        }
        let mut claim = Claim { word, then: EMPTY };
        let section = self.section(block);
        let mut values = vec![T::zeroed(); section.count() as usize];
        source.fetch(&section, &mut values)?;
        if let Some(share) = self.places.shares(&section).first() {
            let steps = (self.places.steps(0), &*dense(&section.shape()));
            // SAFETY: the places lie in the array, in a block that only this rank
            // writes and nobody reads; there are as many values.
            each_nest(&share.axes, steps, |nest| unsafe {
                self.elements.write(nest, values.as_ptr());
                Ok(())
            })?;
        }
        // Counted first: who sees all blocks full sees as many.
        self.word(0).fetch_add(1, Ordering::AcqRel);
        claim.then = FULL;
        Ok(())
    }

    /// Where a block stands.
    fn section(&self, block: usize) -> Section {
        let mut rest = block as u64;
        let mut axes = Vec::with_capacity(self.shape.len());
        for axis in (0..self.shape.len()).rev() {
            let first = rest % self.blocks[axis] * self.block[axis];
            rest /= self.blocks[axis];
            axes.push(AxisSection::span(
                first,
                (first + self.block[axis]).min(self.shape[axis]),
            ));
        }
        axes.reverse();
        Section::new(axes).expect("a block has at most as many elements as the array")
    }

    /// Calls `visit` with each block that `section` touches.
    fn each_block(
        &self,
        section: &Section,
        mut visit: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        let mut touched = vec![0];
        for (axis, taken) in section.axes().iter().enumerate() {
            let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
                return Ok(());
            };
            let size = self.block[axis];
            let along: Vec<u64> = match taken.stride() {
                Some(stride) if stride <= size => (first / size..=last / size).collect(),
                _ => {
                    let mut along: Vec<u64> = (0..taken.count())
                        .map(|at| taken.index(at) / size)
                        .collect();
                    along.dedup();
                    along
                }
            };
            let extended = |before: &u64| {
                let before = before * self.blocks[axis];
                along.iter().map(move |at| before + at)
            };
            touched = touched.iter().flat_map(extended).collect();
        }
        touched
            .into_iter()
            .try_for_each(|block| visit(block as usize))
    }
}

/// A block that this rank fetches; what it is afterwards, also after a failure or
/// a panic.
struct Claim<'a> {
    word: &'a AtomicU32,
    then: u32,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.word.store(self.then, Ordering::Release);
        doorbell::wake(self.word, u32::MAX);
    }
}
