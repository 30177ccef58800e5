//! [`Gathered`]: lines that stand across the file, side by side in memory.
//!
//! Lines along a slow axis have their elements far apart, and one line at a
//! time would use one element of every cache line that it touches. So some
//! neighbouring lines are moved together, in squares that fill whole cache
//! lines on both sides.

/// Neighbouring lines are moved in groups of about so many bytes across.
const ACROSS: usize = 128;

/// The side of the squares in which elements are moved.
const SQUARE: usize = 8;

/// How many neighbouring lines of such elements are moved together.
pub(crate) fn width<T>() -> usize {
    (ACROSS / size_of::<T>()).max(1)
}

/// Some lines, one after the other in memory.
#[derive(Debug)]
pub(crate) struct Gathered<T> {
    lines: Vec<T>,
    /// The length of a line.
    length: usize,
    /// From the start of a line to that of the next: not a power of two, so that
    /// the lines do not compete for the same places of the cache.
    step: usize,
}

impl<T: Copy> Gathered<T> {
    /// Room for [`width`] lines of `length` elements.
    pub(crate) fn new(length: usize, zero: T) -> Self {
        let step = length + SQUARE;
        Self {
            lines: vec![zero; step * width::<T>()],
            length,
            step,
        }
    }

    /// The bytes that it takes.
    pub(crate) fn bytes(length: usize) -> u64 {
        ((length + SQUARE) * width::<T>() * size_of::<T>()) as u64
    }

    /// Takes `count` neighbouring lines, of which the first begins at `from` and
    /// whose elements are `apart`.
    ///
    /// # Safety
    ///
    /// `from` must be valid for reads of `count` elements at every `apart`
    /// elements of a line, and nobody else may change these meanwhile.
    pub(crate) unsafe fn take<S: Copy>(
        &mut self,
        from: *const S,
        apart: usize,
        count: usize,
        convert: impl Fn(S) -> T,
    ) {
        for start in (0..self.length).step_by(SQUARE) {
            let end = self.length.min(start + SQUARE);
            for line in 0..count {
                let into = &mut self.lines[line * self.step + start..line * self.step + end];
                for (at, into) in (start..end).zip(into) {
                    // SAFETY: as the caller promises.
                    *into = convert(unsafe { from.add(at * apart + line).read() });
                }
            }
        }
    }

    /// Puts them where [`take`](Self::take) would find them.
    ///
    /// # Safety
    ///
    /// `into` must be valid for writes of `count` elements at every `apart`
    /// elements of a line, and nobody else may use these meanwhile.
    pub(crate) unsafe fn put(&self, into: *mut T, apart: usize, count: usize) {
        for start in (0..self.length).step_by(SQUARE) {
            for at in start..self.length.min(start + SQUARE) {
                for line in 0..count {
                    let value = self.lines[line * self.step + at];
                    // SAFETY: as the caller promises.
                    unsafe { into.add(at * apart + line).write(value) };
                }
            }
        }
    }

    /// The line of this number.
    pub(crate) fn line(&mut self, number: usize) -> &mut [T] {
        &mut self.lines[number * self.step..][..self.length]
    }
}
