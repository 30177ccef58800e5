//! Medians of 3x3 windows by minimum and maximum alone.
//!
//! Each column of three is sorted into low, middle and high; neighbouring
//! windows share their columns. Then the median of the nine is the median of
//! three: the largest low, the median middle, the smallest high. For four
//! values are certainly not larger, and four certainly not smaller, than the
//! one in the middle of these.

use bytemuck::Zeroable;

use super::key::{Key, Real};
use crate::cpu::vectorised;

/// Columns sorted at a time; three of such blocks stay in the nearest cache.
const BLOCK: usize = 512;

vectorised! {
    /// Writes the medians of the 3x3 windows of three rows, which are two
    /// columns longer than the result.
    pub(super) fn medians_of_nine[T: Real](
        a: &[T::Key],
        b: &[T::Key],
        c: &[T::Key],
        result: &mut [T::Key],
    ) {
        let mut low = [T::Key::zeroed(); BLOCK + 2];
        let mut middle = [T::Key::zeroed(); BLOCK + 2];
        let mut high = [T::Key::zeroed(); BLOCK + 2];
        for (at, result) in result.chunks_mut(BLOCK).enumerate() {
            let columns = result.len() + 2;
            let of = at * BLOCK..at * BLOCK + columns;
            let (a, b, c) = (&a[of.clone()], &b[of.clone()], &c[of]);
            let (low, middle, high) = (&mut low[..columns], &mut middle[..columns], &mut high[..columns]);
            for i in 0..columns {
                let (less, more) = (a[i].min(b[i]), a[i].max(b[i]));
                let (centre, top) = (more.min(c[i]), more.max(c[i]));
                low[i] = less.min(centre);
                middle[i] = less.max(centre);
                high[i] = top;
            }
            let wide = result.len();
            let [low0, low1, low2] = [&low[..wide], &low[1..wide + 1], &low[2..wide + 2]];
            let [mid0, mid1, mid2] = [&middle[..wide], &middle[1..wide + 1], &middle[2..wide + 2]];
            let [high0, high1, high2] = [&high[..wide], &high[1..wide + 1], &high[2..wide + 2]];
            for i in 0..wide {
                let largest_low = low0[i].max(low1[i]).max(low2[i]);
                let median_middle = median_of_three(mid0[i], mid1[i], mid2[i]);
                let smallest_high = high0[i].min(high1[i]).min(high2[i]);
                result[i] = T::flip(median_of_three(largest_low, median_middle, smallest_high));
            }
        }
    }
}

#[inline(always)]
fn median_of_three<K: Key>(a: K, b: K, c: K) -> K {
    a.min(b).max(a.max(b).min(c))
}
