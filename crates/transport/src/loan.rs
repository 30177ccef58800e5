//! Memory that ranks lend one another: [`Loan`], [`Loans`], [`NodeMemory`].

use std::alloc::{self, Layout};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::slice;

use crate::error::{Error, Result};
use crate::large_pages;

/// What a rank lends to its group for the length of one call of
/// [`Comm::lend`](crate::Comm::lend).
#[derive(Debug)]
pub enum Loan<'a> {
    /// The others may read it.
    Read(&'a [u8]),
    /// The others may read and write it.
    Write(&'a mut [u8]),
}

impl Loan<'_> {
    /// Where it is, for whoever can reach it there.
    pub fn reach(&mut self) -> Reach {
        match self {
            Self::Read(bytes) => Reach::Read(bytes.as_ptr(), bytes.len()),
            Self::Write(bytes) => Reach::Write(bytes.as_mut_ptr(), bytes.len()),
        }
    }
}

/// Where a rank reaches what another one lends: the first byte and the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To be read.
    Read(*const u8, usize),
    /// To be read and written.
    Write(*mut u8, usize),
}

impl Reach {
    /// What is reached, to be read.
    pub fn readable(self) -> (*const u8, usize) {
        match self {
            Self::Read(start, len) => (start, len),
            Self::Write(start, len) => (start, len),
        }
    }

    /// What is reached, to be written.
    pub fn writable(self) -> Option<(*mut u8, usize)> {
        match self {
            Self::Read(..) => None,
            Self::Write(start, len) => Some((start, len)),
        }
    }
}

// SAFETY: these are but addresses; using what stands there is an unsafe act.
unsafe impl Send for Reach {}
// SAFETY: as above.
unsafe impl Sync for Reach {}

/// What some ranks lend, valid while the `visit` runs that was given it.
///
/// Several ranks may visit the same memory at once: that no two of them write
/// the same bytes, or one reads what another writes, is for the callers to see
/// to.
#[derive(Debug, Default)]
pub struct Loans {
    /// Ascending by rank; of each its loans, in its order.
    reached: Vec<(usize, Vec<Reach>)>,
}

impl Loans {
    /// What is reached of each rank; the ranks ascend.
    pub fn new(reached: Vec<(usize, Vec<Reach>)>) -> Self {
        Self { reached }
    }

    /// The first that `rank` lends, if it is among those visited.
    pub fn of(&self, rank: usize) -> Option<Reach> {
        self.all_of(rank).first().copied()
    }

    /// All that `rank` lends, in its order; nothing if it is not visited.
    pub fn all_of(&self, rank: usize) -> &[Reach] {
        let found = self.reached.binary_search_by_key(&rank, |(rank, _)| *rank);
        found.map_or(&[], |place| &self.reached[place].1)
    }

    /// The first that `rank` lends, to be read.
    pub fn readable(&self, rank: usize) -> Option<(*const u8, usize)> {
        Some(self.of(rank)?.readable())
    }

    /// The first that `rank` lends, to be written.
    pub fn writable(&self, rank: usize) -> Option<(*mut u8, usize)> {
        self.of(rank)?.writable()
    }
}

/// Zeroed memory of this rank that the ranks of its node can reach when it is
/// lent, made by [`Comm::node_memory`](crate::Comm::node_memory). It is
/// aligned for every element type.
pub struct NodeMemory {
    start: *mut u8,
    len: usize,
    /// Gives the memory back when dropped.
    _keeper: Box<dyn Send + Sync>,
}

// SAFETY: it stands for bytes that it owns.
unsafe impl Send for NodeMemory {}
// SAFETY: as above.
unsafe impl Sync for NodeMemory {}

impl NodeMemory {
    /// The bytes from `start`, which `keeper` gives back when it is dropped.
    ///
    /// # Safety
    ///
    /// They must be initialised, used by nobody else but while lent, and valid
    /// until `keeper` is dropped.
    pub unsafe fn new(start: *mut u8, len: usize, keeper: Box<dyn Send + Sync>) -> Self {
        Self {
            start,
            len,
            _keeper: keeper,
        }
    }

    /// Ordinary memory, which is enough among the ranks of one process.
    pub(crate) fn ordinary(len: usize) -> Result<Self> {
        let memory = Ordinary::new(len)?;
        // SAFETY: zeroed by its allocator, and the keeper is its only owner.
        Ok(unsafe { Self::new(memory.start, len, Box::new(memory)) })
    }
}

impl Deref for NodeMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: by the promise of `new`.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl DerefMut for NodeMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: by the promise of `new`.
        unsafe { slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl fmt::Debug for NodeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeMemory({} bytes)", self.len)
    }
}

/// Zeroed memory of the process.
struct Ordinary {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: it only keeps the memory.
unsafe impl Send for Ordinary {}
// SAFETY: as above.
unsafe impl Sync for Ordinary {}

impl Ordinary {
    /// As allocators align anyway, so that they need not clear fresh pages.
    const ALIGNMENT: usize = 16;

    fn new(len: usize) -> Result<Self> {
        let none = || Error::Invalid(format!("there is no memory for {len} bytes"));
        let layout = Layout::from_size_align(len.max(1), Self::ALIGNMENT).map_err(|_| none())?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        if start.is_null() {
            return Err(none());
        }
        large_pages::prefer(start, len);
        Ok(Self { start, layout })
    }
}

impl Drop for Ordinary {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody has it any more.
        unsafe { alloc::dealloc(self.start, self.layout) }
    }
}
