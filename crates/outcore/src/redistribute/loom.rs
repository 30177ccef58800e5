//! [`Loom`]: pieces that come round again and again, copied in the order of
//! memory.
//!
//! A thread is a piece of one length that stands at even distances on both
//! sides, once a round; the threads of a round are in ascending order on every
//! part. Three ways, the quickest that is possible:
//!
//! - *Wide*: if the pieces of every part that is written follow one another
//!   without a gap, each is copied with as many bytes as the longest has. What
//!   is too much stands where the next piece will be written. So a piece costs a
//!   few moves of registers, and its length does not matter. The last rounds,
//!   behind which the memory may belong to others, are copied exactly.
//! - *Long* pieces round by round.
//! - *Short* ones so many rounds at a time, thread by thread, as make a short way
//!   through memory: that saves turns of the loops, and both sides are still gone
//!   through in order, as caches expect it.

use std::ptr;

use crate::execute::copy::{once, stream, strided};

/// The bytes that are gone through thread by thread.
const NEAR: usize = 2560;

/// From this length on pieces are copied round by round.
const LONG: usize = 40;

/// Pieces up to this length are copied wide.
const WIDEST: usize = 128;

/// Pieces of this length are copied past the caches, if much moves in all.
const STREAM: usize = 1 << 10;

/// Pieces of one length at even distances on both sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thread {
    /// Where the first is read, and how far the next is from there.
    pub(super) from: (*mut u8, usize),
    /// The same where they are written.
    pub(super) to: (*mut u8, usize),
    /// Which part is written.
    pub(super) part: usize,
    /// The bytes of a piece.
    pub(super) len: usize,
}

/// The threads of one line; kept from line to line.
#[derive(Debug, Default)]
pub(super) struct Loom {
    threads: Vec<Thread>,
    /// For each part that is written, where its pieces of a round begin and end.
    spans: Vec<(*mut u8, *mut u8)>,
}

impl Loom {
    /// Takes the threads of the last line away.
    pub(super) fn clear(&mut self) {
        self.threads.clear();
    }

    /// Adds a thread, which stands behind the earlier ones of its parts.
    pub(super) fn add(&mut self, thread: Thread) {
        self.threads.push(thread);
    }

    /// Copies `rounds` rounds of all threads; past the caches if `much` moves.
    ///
    /// # Safety
    ///
    /// All pieces lie in memory that may be read from, or written to, and no
    /// piece of the one overlaps with one of the other. Nobody else uses what is
    /// written.
    pub(super) unsafe fn weave(&mut self, rounds: usize, much: bool) {
        let moved: usize = self.threads.iter().map(|thread| thread.len).sum();
        if moved == 0 {
            return;
        }
        // What is one stretch of memory in every round is one altogether.
        if let [thread] = &self.threads[..]
            && (thread.from.1, thread.to.1) == (thread.len, thread.len)
        {
            let bytes = rounds * thread.len;
            // SAFETY: passed on to the caller.
            return unsafe { piece(thread.from.0.cast_const(), thread.to.0, bytes, much) };
        }
        // SAFETY: passed on to the caller.
        let mut round = unsafe { self.wide(rounds) };
        let together = match moved / self.threads.len() >= LONG {
            true => 1,
            false => (NEAR / moved).max(1),
        };
        while round < rounds {
            let count = together.min(rounds - round);
            for thread in &self.threads {
                let from = thread.from.0.wrapping_add(round * thread.from.1);
                let to = thread.to.0.wrapping_add(round * thread.to.1);
                let (from, to) = ((from.cast_const(), thread.from.1), (to, thread.to.1));
                // SAFETY: passed on to the caller.
                unsafe {
                    match count {
                        1 => piece(from.0, to.0, thread.len, much),
                        _ => strided(from, to, (count, thread.len)),
                    }
                }
            }
            round += count;
        }
    }

    /// Copies the first rounds wide, if that is possible; how many.
    ///
    /// # Safety
    ///
    /// As [`Loom::weave`].
    unsafe fn wide(&mut self, rounds: usize) -> usize {
        let longest = self.threads.iter().map(|thread| thread.len).max();
        let width = longest.unwrap_or(0).next_multiple_of(16);
        let [from, to] = [self.threads[0].from.1, self.threads[0].to.1];
        if width > WIDEST || from == 0 || to == 0 {
            return 0;
        }
        // A round that is followed by these has so much memory behind it.
        let exact = width.div_ceil(from.min(to));
        if rounds <= exact || !self.is_gapless([from, to]) {
            return 0;
        }
        let rounds = rounds - exact;
        macro_rules! of_width {
            ($($width:literal)*) => {
                match width {
                    // SAFETY: no piece is longer than the width. What is read and
                    // written behind it is memory of the same thread's pieces
                    // of later rounds, or before them; all that is written there
                    // is written again, since pieces have no gaps, later.
                    $($width => unsafe { wide_rounds::<$width>(&self.threads, rounds, [from, to]) },)*
                    _ => return 0,
                }
            };
        }
        of_width!(16 32 48 64 80 96 112 128);
        rounds
    }

    /// Whether all threads have these distances between rounds, and the pieces
    /// of each part that is written follow one another without a gap.
    fn is_gapless(&mut self, advances: [usize; 2]) -> bool {
        self.spans.clear();
        for thread in &self.threads {
            if [thread.from.1, thread.to.1] != advances {
                return false;
            }
            if self.spans.len() <= thread.part {
                self.spans
                    .resize(thread.part + 1, (ptr::null_mut(), ptr::null_mut()));
            }
            let (first, end) = &mut self.spans[thread.part];
            if first.is_null() {
                (*first, *end) = (thread.to.0, thread.to.0);
            }
            if *end != thread.to.0 {
                return false;
            }
            *end = end.wrapping_add(thread.len);
        }
        let spans = self.spans.iter();
        let mut spans = spans.filter(|(first, _)| !first.is_null());
        spans.all(|(first, end)| first.wrapping_add(advances[1]) == *end)
    }
}

/// Copies one piece.
///
/// # Safety
///
/// It may be read from, or written to, and the one does not overlap with the
/// other.
#[inline(always)]
pub(super) unsafe fn piece(from: *const u8, to: *mut u8, len: usize, much: bool) {
    // SAFETY: passed on to the caller.
    unsafe {
        match much && len >= STREAM {
            true => stream(from, to, len),
            false => once(from, to, len),
        }
    }
}

/// Copies `WIDTH` bytes for each piece of so many rounds.
///
/// # Safety
///
/// So many bytes behind the beginning of each piece can be read, or written.
unsafe fn wide_rounds<const WIDTH: usize>(threads: &[Thread], rounds: usize, advances: [usize; 2]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has it; the rest is the caller's.
        return unsafe { wide_rounds_avx2::<WIDTH>(threads, rounds, advances) };
    }
    // SAFETY: passed on to the caller.
    unsafe { wide_loop::<WIDTH>(threads, rounds, advances) }
}

/// The same with longer registers.
///
/// # Safety
///
/// As [`wide_rounds`], on a processor that has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn wide_rounds_avx2<const WIDTH: usize>(
    threads: &[Thread],
    rounds: usize,
    advances: [usize; 2],
) {
    // SAFETY: passed on to the caller.
    unsafe { wide_loop::<WIDTH>(threads, rounds, advances) }
}

/// # Safety
///
/// As [`wide_rounds`].
#[inline(always)]
unsafe fn wide_loop<const WIDTH: usize>(
    threads: &[Thread],
    rounds: usize,
    [from_advance, to_advance]: [usize; 2],
) {
    for round in 0..rounds {
        let (before, after) = (round * from_advance, round * to_advance);
        for thread in threads {
            let from = thread.from.0.wrapping_add(before).cast_const();
            let to = thread.to.0.wrapping_add(after);
            // SAFETY: passed on to the caller.
            unsafe { ptr::copy_nonoverlapping(from, to, WIDTH) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deals `rounds` rounds of pieces of these lengths out to two parts in
    /// turn, with so many bytes between the pieces of a part.
    fn dealt(lens: &[usize], rounds: usize, gap: usize) {
        let round: usize = lens.iter().sum();
        let from: Vec<u8> = (0..round * rounds).map(|at| (at % 251) as u8).collect();
        let mut source = from.clone();
        let mut parts = [0, 1].map(|_| vec![0xee; (round + lens.len() * gap) * rounds + 64]);
        let mut expected = parts.clone();
        let mut before = [0, 0];
        let advance: Vec<usize> = (0..2)
            .map(|part| lens.iter().skip(part).step_by(2).map(|len| len + gap).sum())
            .collect();
        let mut loom = Loom::default();
        let mut start = 0;
        for (number, len) in lens.iter().enumerate() {
            let part = number % 2;
            loom.add(Thread {
                from: (source[start..].as_mut_ptr(), round),
                to: (parts[part][before[part]..].as_mut_ptr(), advance[part]),
                part,
                len: *len,
            });
            before[part] += len + gap;
            start += len;
        }
        // The oracle: piece after piece.
        let mut ends = [0, 0];
        let mut start = 0;
        for _ in 0..rounds {
            for (number, len) in lens.iter().enumerate() {
                let part = number % 2;
                let end = &mut ends[part];
                expected[part][*end..*end + len].copy_from_slice(&from[start..start + len]);
                *end += len + gap;
                start += len;
            }
        }
        // SAFETY: all pieces lie in these vectors.
        unsafe { loom.weave(rounds, false) };
        assert!(parts == expected, "{lens:?} {rounds} {gap}");
    }

    #[test]
    fn pieces_come_to_their_places_and_nowhere_else() {
        for rounds in [1, 2, 3, 17] {
            for gap in [0, 1, 24] {
                dealt(&[8, 8], rounds, gap);
                dealt(&[8, 16, 24, 8, 16, 24], rounds, gap);
                dealt(&[80, 40, 40, 80], rounds, gap);
                dealt(&[1, 128], rounds, gap);
                dealt(&[3, 5, 129, 2], rounds, gap);
            }
        }
    }
}
