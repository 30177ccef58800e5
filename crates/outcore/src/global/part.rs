//! [`Part`]: one rank's part of a global array as another rank of its node
//! reaches it, with the locks that make accumulating atomic.
//!
//! The shared memory of a rank begins with its locks, one in each line of the
//! cache; the elements follow, dense, the last axis fastest. A lock stands for a
//! stretch of bytes, whose length is a power of two of [`LEAST_GUARDED`] at
//! least, so that no element belongs to two. Whoever accumulates holds one lock
//! at a time, for a stretch at most, so nobody can wait in a circle.
//!
//! Gets and puts take no lock. An element that is written meanwhile is read as
//! before or after; of several elements, or of one that has 16 bytes, some may
//! be old and some new. Any mixture of the bytes of two values of an element
//! type is a value of it.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use super::arithmetic::{Arithmetic, add_scaled};
use super::nest::{Loop, Nest};
use super::patience::{Limits, Patience};
use crate::element::Element;
use crate::error::{Error, Result};

/// The bytes that one lock stands for: at least, and in parts that are not huge
/// at most.
const LEAST_GUARDED: usize = 1 << 10;
const MOST_GUARDED: usize = 1 << 16;

/// The locks of a part, unless its stretches would be too short or too long.
const LOCKS: usize = 64;

/// The most locks of a part.
const MOST_LOCKS: usize = 1024;

/// The bytes from one lock to the next.
const LINE: usize = 64;

/// How the memory of a part is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartLayout {
    /// The bytes of the elements.
    bytes: usize,
    /// The binary logarithm of the bytes that a lock stands for.
    shift: u32,
}

impl PartLayout {
    /// For so many elements of `size` bytes; `None` if they are too many.
    pub(super) fn new(count: u64, size: usize) -> Option<Self> {
        let bytes = usize::try_from(count).ok()?.checked_mul(size)?;
        if bytes > isize::MAX as usize / 2 {
            return None;
        }
        let guarded = (bytes / LOCKS).next_power_of_two();
        let guarded = guarded.clamp(LEAST_GUARDED, MOST_GUARDED);
        let guarded = guarded.max((bytes / MOST_LOCKS).next_power_of_two());
        Some(Self {
            bytes,
            shift: guarded.trailing_zeros(),
        })
    }

    fn locks(&self) -> usize {
        (self.bytes >> self.shift) + 1
    }

    /// The bytes of the part with its locks.
    pub(super) fn total(&self) -> usize {
        self.locks() * LINE + self.bytes
    }
}

/// One rank's part, where this rank reaches it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<T> {
    locks: *const u8,
    elements: *mut T,
    shift: u32,
}

// SAFETY: it stands for shared memory, whose users see to it themselves that
// they do not disturb one another.
unsafe impl<T: Send> Send for Part<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Part<T> {}

impl<T: Element> Part<T> {
    /// A part that is out of reach.
    pub(super) const OUT_OF_REACH: Self = Self {
        locks: ptr::null(),
        elements: ptr::null_mut(),
        shift: 0,
    };

    /// The part in the shared memory from `start`.
    ///
    /// # Safety
    ///
    /// [`PartLayout::total`] bytes from `start` can be read and written, and were
    /// zero when the first rank did so. `start` is aligned as a line of the cache.
    pub(super) unsafe fn new(start: *mut u8, layout: PartLayout) -> Self {
        Self {
            locks: start,
            elements: start.wrapping_add(layout.locks() * LINE).cast(),
            shift: layout.shift,
        }
    }

    /// Elements that no other rank knows of, without locks.
    pub(super) fn plain(elements: *mut T) -> Self {
        Self {
            elements,
            ..Self::OUT_OF_REACH
        }
    }

    /// The same part of elements that are called by another name.
    pub(super) fn cast<U: Element>(&self) -> Part<U> {
        debug_assert_eq!(T::TYPE, U::TYPE);
        Part {
            locks: self.locks,
            elements: self.elements.cast(),
            shift: self.shift,
        }
    }

    #[inline(always)]
    pub(super) fn is_in_reach(&self) -> bool {
        !self.elements.is_null()
    }

    /// The elements.
    pub(super) fn elements(&self) -> *mut T {
        self.elements
    }

    /// Copies elements of the part into a buffer.
    ///
    /// # Safety
    ///
    /// All places of `nest` lie in the part, and in the buffer, which is
    /// aligned and nobody else's.
    #[inline]
    pub(super) unsafe fn read(&self, nest: &Nest, buffer: *mut T) {
        let done: Result<()> = nest.each(|part, place, inner| {
            let (from, to) = (self.elements.wrapping_add(part), buffer.wrapping_add(place));
            // SAFETY: passed on to the caller.
            unsafe { copy(from, inner.part, to, inner.buffer, inner.count) };
            Ok(())
        });
        debug_assert!(done.is_ok());
    }

    /// Copies a buffer into elements of the part.
    ///
    /// # Safety
    ///
    /// As for [`Self::read`]; the buffer is only read.
    #[inline]
    pub(super) unsafe fn write(&self, nest: &Nest, buffer: *const T) {
        let done: Result<()> = nest.each(|part, place, inner| {
            let (from, to) = (buffer.wrapping_add(place), self.elements.wrapping_add(part));
            // SAFETY: passed on to the caller.
            unsafe { copy(from, inner.buffer, to, inner.part, inner.count) };
            Ok(())
        });
        debug_assert!(done.is_ok());
    }

    /// The lock of the stretch in which the element at `place` stands.
    #[inline(always)]
    fn stretch(&self, place: usize) -> usize {
        (place * size_of::<T>()) >> self.shift
    }

    /// Waits for the lock of a stretch.
    #[inline]
    fn lock(&self, stretch: usize, limits: &Limits) -> Result<Held<'_>> {
        // SAFETY: the locks are aligned words that live as long as the part,
        // one for each stretch; all who use them do so atomically.
        let word: &AtomicU32 = unsafe { &*self.locks.add(stretch * LINE).cast() };
        if word
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            wait_for(word, limits)?;
        }
        Ok(Held { word, stretch })
    }

    /// Changes one element, as nobody else does meanwhile who locks, and returns
    /// what it was.
    ///
    /// # Safety
    ///
    /// The element at `place` is one of the part.
    #[inline]
    pub(super) unsafe fn update(
        &self,
        place: usize,
        limits: &Limits,
        change: impl FnOnce(T) -> Option<T>,
    ) -> Result<T> {
        let _held = self.lock(self.stretch(place), limits)?;
        let element = self.elements.wrapping_add(place);
        // SAFETY: passed on to the caller.
        unsafe {
            let before = ptr::read_volatile(element);
            if let Some(after) = change(before) {
                ptr::write_volatile(element, after);
            }
            Ok(before)
        }
    }
}

impl<T: Arithmetic> Part<T> {
    /// Adds `scale` times a buffer to elements of the part.
    ///
    /// # Safety
    ///
    /// As for [`Self::write`].
    #[inline]
    pub(super) unsafe fn accumulate(
        &self,
        nest: &Nest,
        (buffer, scale): (*const T, T),
        limits: &Limits,
    ) -> Result<()> {
        let mut held: Option<Held<'_>> = None;
        nest.each(|part, place, inner| {
            let mut done = 0;
            while done < inner.count {
                let (part, place) = (part + done * inner.part, place + done * inner.buffer);
                let stretch = self.stretch(part);
                if held.as_ref().is_none_or(|held| held.stretch != stretch) {
                    // Given back before the next is waited for.
                    drop(held.take());
                    held = Some(self.lock(stretch, limits)?);
                }
                // As many as stand in the stretch.
                let room = (((stretch + 1) << self.shift) / size_of::<T>()) - part;
                let count = room.div_ceil(inner.part).min(inner.count - done);
                let (target, values) =
                    (self.elements.wrapping_add(part), buffer.wrapping_add(place));
                // SAFETY: passed on to the caller; the lock is held.
                unsafe { add(target, values, scale, &Loop { count, ..*inner }) };
                done += count;
            }
            Ok(())
        })
    }
}

/// A lock that is held; given back when dropped.
struct Held<'a> {
    word: &'a AtomicU32,
    stretch: usize,
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.word.store(0, Ordering::Release);
    }
}

#[cold]
fn wait_for(word: &AtomicU32, limits: &Limits) -> Result<()> {
    let mut patience = Patience::default();
    loop {
        if word.load(Ordering::Relaxed) == 0
            && word
                .compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        {
            return Ok(());
        }
        patience.pause("a lock of a part of a global array", limits)?;
    }
}

/// Copies `count` elements with steps on either side.
///
/// # Safety
///
/// They can be read there and written here, aligned, and do not overlap.
#[inline(always)]
unsafe fn copy<T: Copy>(
    from: *const T,
    from_step: usize,
    to: *mut T,
    to_step: usize,
    count: usize,
) {
    if count == 1 {
        // SAFETY: passed on to the caller. An aligned element is one access.
        return unsafe { ptr::write_volatile(to, ptr::read_volatile(from)) };
    }
    if (from_step, to_step) == (1, 1) {
        // SAFETY: passed on to the caller.
        return unsafe { ptr::copy_nonoverlapping(from, to, count) };
    }
    for at in 0..count {
        // SAFETY: passed on to the caller.
        unsafe { *to.add(at * to_step) = *from.add(at * from_step) };
    }
}

/// Adds `scale` times `values` to `target`.
///
/// # Safety
///
/// As for [`copy`].
#[inline(always)]
unsafe fn add<T: Arithmetic>(target: *mut T, values: *const T, scale: T, inner: &Loop) {
    if inner.count > 1 && (inner.part, inner.buffer) == (1, 1) {
        // SAFETY: passed on to the caller.
        return unsafe { add_scaled(target, values, inner.count, scale) };
    }
    for at in 0..inner.count {
        // SAFETY: passed on to the caller.
        unsafe {
            let target = target.add(at * inner.part);
            *target = (*target).plus(scale.times(*values.add(at * inner.buffer)));
        }
    }
}

/// What is too large for one rank.
pub(super) fn too_large(count: u64) -> Error {
    Error::Invalid(format!("{count} elements do not fit into memory"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn locks_are_neither_few_nor_many() {
        for (bytes, locks) in [(0, 1), (8, 1), (1 << 16, 65), (1 << 22, 65), (1 << 24, 257)] {
            assert_eq!(PartLayout::new(bytes, 1).unwrap().locks(), locks, "{bytes}");
        }
        assert!(PartLayout::new(1 << 40, 8).unwrap().locks() <= MOST_LOCKS + 1);
        assert!(PartLayout::new(1 << 62, 8).is_none());
    }

    #[test]
    fn who_waits_for_a_lock_learns_of_failures_and_loses_patience() {
        let layout = PartLayout::new(4, 8).unwrap();
        let outcome = crate::run(2, |comm| {
            let shared = comm.share(layout.total())?;
            let (start, _) = shared.of(0).expect("threads reach one another");
            // SAFETY: so many bytes are shared, zeroed, for this part only.
            let part = unsafe { Part::<u64>::new(start, layout) };
            let mut limits = Limits {
                comm: comm.clone(),
                longest: None,
            };
            if comm.rank() == 0 {
                // It never gives the lock back, and fails when the other has lost patience.
                std::mem::forget(part.lock(0, &limits)?);
                comm.barrier()?;
                comm.barrier()?;
                return Err(Error::Invalid("deliberate".into()));
            }
            comm.barrier()?;
            limits.longest = Some(Duration::from_millis(5));
            // SAFETY: the part has an element 0.
            let silent = unsafe { part.update(0, &limits, Some) };
            let error = silent.unwrap_err().to_string();
            assert!(error.contains("did not come for 5ms"), "{error}");
            comm.barrier()?;
            limits.longest = None;
            // SAFETY: as above.
            let failed = unsafe { part.update(0, &limits, Some) };
            let error = failed.unwrap_err().to_string();
            assert!(error.contains("deliberate"), "{error}");
            Ok(())
        });
        assert!(outcome.unwrap_err().to_string().contains("deliberate"));
    }
}
