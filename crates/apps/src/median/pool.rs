//! Medians by forgetful selection, for many columns at once.
//!
//! Of `n` values (odd) take the first `n / 2 + 2`. The smallest and the
//! largest of these cannot be the median of all: more than half of all values
//! would be above or below. Forget both, take one value more, and go on until
//! one is left. Each step is made of minima and maxima, so that [`LANES`]
//! neighbouring windows go through it together in vector registers.

use super::key::{Key, Real};
use crate::cpu::vectorised;

/// Windows that go through the selection together.
pub(super) const LANES: usize = 32;

vectorised! {
    /// Writes the medians of the windows of `width` columns of all `rows`; the
    /// result has at least [`LANES`] columns.
    pub(super) fn medians[T: Real](
        rows: &[&[T::Key]],
        width: usize,
        result: &mut [T::Key],
        pool: &mut Vec<[T::Key; LANES]>,
    ) {
        let count = rows.len() * width;
        let first = count / 2 + 2;
        let mut column = 0;
        while column < result.len() {
            // The last block overlaps the one before.
            column = column.min(result.len() - LANES);
            let value = |at: usize| {
                let from = column + at % width;
                let lanes = &rows[at / width][from..from + LANES];
                <&[T::Key; LANES]>::try_from(lanes).expect("as long as the lanes")
            };
            pool.clear();
            pool.extend((0..first).map(value));
            for next in first..=count {
                forget_extremes(pool);
                if next < count {
                    pool.push(*value(next));
                }
            }
            result[column..column + LANES].copy_from_slice(&pool[0].map(T::flip));
            column += LANES;
        }
    }
}

/// Removes the smallest and the largest value of the pool, in each lane.
#[inline(always)]
fn forget_extremes<K: Key>(pool: &mut Vec<[K; LANES]>) {
    let count = pool.len();
    // 1. In pairs: smaller ones into the front half, larger ones into the back.
    let (front, back) = pool.split_at_mut(count / 2);
    let back = &mut back[count % 2..];
    for (less, more) in front.iter_mut().zip(back.iter_mut()) {
        exchange(less, more);
    }
    // 2. The smallest of the front, with the middle one if there is one, ends
    //    up first; the largest of the back last.
    let (first, rest) = pool.split_first_mut().expect("a pool of at least two");
    for other in &mut rest[..count.div_ceil(2) - 1] {
        exchange(first, other);
    }
    let (last, rest) = pool.split_last_mut().expect("a pool of at least two");
    for other in &mut rest[count / 2..] {
        exchange(other, last);
    }
    // 3. Both go.
    pool.pop();
    pool.swap_remove(0);
}

/// Puts the smaller value of each lane into `less`, the larger into `more`.
#[inline(always)]
fn exchange<K: Key>(less: &mut [K; LANES], more: &mut [K; LANES]) {
    for lane in 0..LANES {
        let (a, b) = (less[lane], more[lane]);
        less[lane] = a.min(b);
        more[lane] = a.max(b);
    }
}
