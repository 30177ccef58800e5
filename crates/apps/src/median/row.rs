//! [`medians`]: the medians of one row of windows.
//!
//! Given are the rows that the windows reach, each longer than the result by
//! the window's width less one; the window of result `j` is `j..j + width` of
//! every row. How the median is found depends on the number of values:
//!
//! | window | method |
//! |---|---|
//! | 3 rows of 3 | [`network`]: sorted columns, minimum and maximum only |
//! | up to [`MOST_POOLED`] values | [`pool`]: forgetful selection, many columns at once |
//! | more than [`MOST_POOLED_BYTES`], 8-bit values | [`histogram`]: counts that move along the row |
//! | more | the standard library's selection, one window at a time |
//!
//! [`network`]: super::network
//! [`pool`]: super::pool
//! [`histogram`]: super::histogram

use super::histogram;
use super::key::{Key, Real};
use super::network::medians_of_nine;
use super::pool::{self, LANES};

/// Above this, choosing from a pool takes longer than selecting in one window
/// after the other: its steps grow with the square of the number of values.
const MOST_POOLED: usize = 169;

/// The same for 8-bit values, beside counting.
const MOST_POOLED_BYTES: usize = 81;

/// Writes the medians of the windows of `width` columns of all `rows`, which
/// hold keys; the result are bits of values again.
pub(super) fn medians<T: Real>(
    rows: &[&[T::Key]],
    width: usize,
    result: &mut [T::Key],
    room: &mut Room<T::Key>,
) {
    let values = rows.len() * width;
    if values == 1 {
        let pairs = result.iter_mut().zip(rows[0]);
        return pairs.for_each(|(result, key)| *result = T::flip(*key));
    }
    if let ([a, b, c], 3) = (rows, width) {
        return medians_of_nine::<T>(a, b, c, result);
    }
    if values <= most_pooled::<T::Key>() && result.len() >= LANES {
        return pool::medians::<T>(rows, width, result, &mut room.pool);
    }
    if let (Some(sign), true) = (T::Key::BYTE, values > MOST_POOLED_BYTES) {
        let rows: Vec<&[u8]> = rows.iter().map(|row| bytemuck::cast_slice(row)).collect();
        return histogram::medians(&rows, width, bytemuck::cast_slice_mut(result), sign);
    }
    one_by_one::<T>(rows, width, result, &mut room.window);
}

fn most_pooled<K: Key>() -> usize {
    if K::BYTE.is_some() {
        MOST_POOLED_BYTES
    } else {
        MOST_POOLED
    }
}

/// Memory that is used again from row to row.
#[derive(Debug)]
pub(super) struct Room<K> {
    pool: Vec<[K; LANES]>,
    window: Vec<K>,
}

impl<K> Default for Room<K> {
    fn default() -> Self {
        Self {
            pool: Vec::new(),
            window: Vec::new(),
        }
    }
}

impl<K> Room<K> {
    /// The bytes that windows of so many values need at most.
    pub(super) fn bytes(values: u64) -> u64 {
        let most = values.max(LANES as u64 * values.min(MOST_POOLED as u64));
        most.saturating_mul(size_of::<K>() as u64)
    }
}

fn one_by_one<T: Real>(
    rows: &[&[T::Key]],
    width: usize,
    result: &mut [T::Key],
    window: &mut Vec<T::Key>,
) {
    for (column, median) in result.iter_mut().enumerate() {
        window.clear();
        for row in rows {
            window.extend_from_slice(&row[column..column + width]);
        }
        let middle = window.len() / 2;
        *median = T::flip(*window.select_nth_unstable(middle).1);
    }
}
