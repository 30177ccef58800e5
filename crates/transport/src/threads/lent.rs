//! [`Lent`]: memory of one rank that another rank may read for a while, and
//! [`Joined`]: several pieces of memory read as if joined end to end.

/// A piece of the owner's memory. The owner waits until nobody can read it
/// any more before it lets the memory go; how it knows is up to the place
/// where the piece is kept (`board`, `inbox`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lent {
    start: *const u8,
    len: usize,
}

// SAFETY: a piece stands for a shared borrow of bytes, which may be sent to
// and used by any thread; reading it is an unsafe act that states for how long.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl Lent {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            start: bytes.as_ptr(),
            len: bytes.len(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes themselves.
    ///
    /// # Safety
    ///
    /// The borrow from which the piece was made must last for all of `'a`.
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: start and length come from a slice, which the caller says
        // is still borrowed.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// A reader of pieces that pays no attention to where they were cut.
#[derive(Debug, Default)]
pub(crate) struct Joined<'a> {
    rest: &'a [u8],
    pieces: &'a [Lent],
}

impl<'a> Joined<'a> {
    /// Reads one piece.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            pieces: &[],
        }
    }

    /// Reads lent pieces.
    ///
    /// # Safety
    ///
    /// The borrows from which the pieces were made must last for all of `'a`.
    pub(crate) unsafe fn from_lent(pieces: &'a [Lent]) -> Self {
        Self { rest: &[], pieces }
    }

    /// The number of bytes that are left.
    pub(crate) fn len(&self) -> usize {
        self.rest.len() + self.pieces.iter().map(Lent::len).sum::<usize>()
    }

    /// Copies the next bytes into `target`, all of it if there are as many.
    pub(crate) fn fill(&mut self, mut target: &mut [u8]) {
        while !target.is_empty() {
            if self.rest.is_empty() {
                let Some((next, later)) = self.pieces.split_first() else {
                    return;
                };
                // SAFETY: `from_lent` was promised that it is borrowed for 'a.
                self.rest = unsafe { next.bytes() };
                self.pieces = later;
            }
            let count = target.len().min(self.rest.len());
            let (now, later) = target.split_at_mut(count);
            let (bytes, rest) = self.rest.split_at(count);
            now.copy_from_slice(bytes);
            target = later;
            self.rest = rest;
        }
    }
}
