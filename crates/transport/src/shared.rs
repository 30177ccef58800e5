//! [`Shared`]: memory of all ranks that they reach for as long as they like.

use std::alloc::{self, Layout};
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Memory that each rank of a group has made for the others, by
/// [`Comm::share`](crate::Comm::share), and where this rank reaches it.
///
/// Unlike what is lent it stays there: for a rank, until it drops its own
/// `Shared` and the clones of it, whatever the others do with theirs. All begin
/// as zeros, at a cache line.
///
/// What stands here is but addresses. All ranks may read and write all of it at
/// any time; that no two of them touch the same bytes in ways that hurt is for
/// the callers to see to, who use atomics or some order among themselves.
#[derive(Clone)]
pub struct Shared {
    rank: usize,
    parts: Arc<[Option<Part>]>,
    /// Keeps the memory.
    _keeper: Arc<dyn Send + Sync>,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    start: *mut u8,
    len: usize,
}

// SAFETY: these are but addresses; using what stands there is an unsafe act.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

impl Shared {
    /// What rank `rank` reaches of each rank's memory: the first byte and the
    /// length. Its own must be there.
    ///
    /// # Safety
    ///
    /// All must have begun as zeros, begin at multiples of 64, and be readable
    /// and writable until `keeper` is dropped.
    pub unsafe fn new(
        rank: usize,
        parts: &[Option<(*mut u8, usize)>],
        keeper: Arc<dyn Send + Sync>,
    ) -> Self {
        debug_assert!(parts[rank].is_some(), "a rank reaches its own memory");
        let part = |&(start, len): &(*mut u8, usize)| Part { start, len };
        Self {
            rank,
            parts: parts.iter().map(|place| place.as_ref().map(part)).collect(),
            _keeper: keeper,
        }
    }

    /// Memory of this rank that nobody else reaches.
    pub fn alone(rank: usize, size: usize, bytes: usize) -> Result<Self> {
        let memory = Zeroed::new(bytes)?;
        let mut parts = vec![None; size];
        parts[rank] = Some((memory.start(), bytes));
        // SAFETY: fresh memory, which the keeper gives back.
        Ok(unsafe { Self::new(rank, &parts, Arc::new(memory)) })
    }

    /// Where this rank reaches the memory of `rank`: the first byte and the
    /// length. `None` if that is on another node, or there is no such rank.
    pub fn of(&self, rank: usize) -> Option<(*mut u8, usize)> {
        let part = self.parts.get(rank)?.as_ref()?;
        Some((part.start, part.len))
    }

    /// This rank's own memory.
    pub fn own(&self) -> (*mut u8, usize) {
        self.of(self.rank)
            .expect("a rank reaches its own memory, by the promise of `new`")
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reached = self.parts.iter().flatten().count();
        let ranks = self.parts.len();
        write!(f, "Shared(memory of {reached} of {ranks} ranks)")
    }
}

/// Zeroed memory of the process that begins at a cache line.
pub(crate) struct Zeroed {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: it only keeps the memory.
unsafe impl Send for Zeroed {}
// SAFETY: as above.
unsafe impl Sync for Zeroed {}

impl Zeroed {
    const LINE: usize = 64;

    /// As allocators align anyway, so that they need not clear fresh pages.
    const ALIGNMENT: usize = 16;

    pub(crate) fn new(len: usize) -> Result<Self> {
        let none = || Error::Invalid(format!("there is no memory for {len} bytes"));
        let more = len.checked_add(Self::LINE).ok_or_else(none)?;
        let layout = Layout::from_size_align(more, Self::ALIGNMENT).map_err(|_| none())?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        match start.is_null() {
            true => Err(none()),
            false => Ok(Self { start, layout }),
        }
    }

    /// The first byte, at a cache line.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.wrapping_add(self.start.align_offset(Self::LINE))
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody has it any more.
        unsafe { alloc::dealloc(self.start, self.layout) }
    }
}
