//! The product of matrices in memory, by any number of threads.
//!
//! The crate `gemm` multiplies, with any strides. It copies parts of its
//! operands into a form of its own; to bound that memory, and to give several
//! threads something to take turns at, it is handed tiles: [`TILE`] x [`TILE`]
//! elements of the result and [`DEPTH`] of what is summed over. That costs a few
//! percent of the largest speed at most. Threads take the next tile when they
//! are done with one, so one that is held up (by a reader on the same core)
//! holds up nobody else. After a signal they take none.
//!
//! Invariant: tiles of the result are disjoint, and each is one thread's.

use std::sync::atomic::{AtomicUsize, Ordering};

use outcore::{Error, Result};

use super::number::Number;

/// The sides of a tile of the result.
const TILE: usize = 512;

/// How much is summed up in one call.
const DEPTH: usize = 512;

/// A dense matrix in memory, row- or column-major.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<V> {
    /// The elements.
    pub values: V,
    /// The number of rows, and of columns.
    pub shape: (usize, usize),
    /// Whether rows are contiguous; else columns are.
    pub by_rows: bool,
}

impl<V> Matrix<V> {
    /// How far apart the elements of a column stand, and those of a row.
    fn strides(&self) -> (isize, isize) {
        match self.by_rows {
            true => (self.shape.1 as isize, 1),
            false => (1, self.shape.0 as isize),
        }
    }

    /// Whether the values are as many as the shape says.
    fn holds(&self, values: usize) -> bool {
        self.shape.0.checked_mul(self.shape.1) == Some(values)
    }
}

/// What the kernel does with the values that the result has before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// The product replaces them.
    Replaced,
    /// The product is added.
    AddedTo,
}

/// The bytes that the kernel takes besides the operands, for such a result and
/// depth.
pub(crate) fn scratch<T: Number>([m, n, k]: [u64; 3], threads: usize) -> u64 {
    // Parts of both operands, in strips that are padded to some rows.
    let side = |extent: u64| extent.min(TILE as u64).next_multiple_of(32);
    let depth = k.min(DEPTH as u64);
    let elements = depth * (side(m) + side(n));
    (threads as u64)
        .saturating_mul(elements)
        .saturating_mul(size_of::<T>() as u64)
}

/// `c = a b` in memory, by so many threads.
///
/// ```
/// use outcore_apps::matmul::{Matrix, multiply_in_memory};
/// let a = Matrix { values: &[1.0f64, 2.0, 3.0, 4.0][..], shape: (2, 2), by_rows: true };
/// let b = Matrix { values: &[5.0, 6.0][..], shape: (2, 1), by_rows: false };
/// let mut c = [0.0; 2];
/// multiply_in_memory(Matrix { values: &mut c, shape: (2, 1), by_rows: true }, a, b, 1)?;
/// assert_eq!(c, [17.0, 39.0]);
/// # Ok::<(), outcore::Error>(())
/// ```
pub fn multiply_in_memory<T: Number>(
    c: Matrix<&mut [T]>,
    a: Matrix<&[T]>,
    b: Matrix<&[T]>,
    threads: usize,
) -> Result<()> {
    multiply_add(c, a, b, Before::Replaced, threads)
}

/// `c = a b`, or `c = c + a b`, by so many threads.
pub(crate) fn multiply_add<T: Number>(
    c: Matrix<&mut [T]>,
    a: Matrix<&[T]>,
    b: Matrix<&[T]>,
    before: Before,
    threads: usize,
) -> Result<()> {
    let ((m, n), k) = (c.shape, a.shape.1);
    let fit = a.holds(a.values.len()) && b.holds(b.values.len()) && c.holds(c.values.len());
    if !fit || a.shape != (m, k) || b.shape != (k, n) {
        return Err(Error::Invalid(format!(
            "matrices of {:?} and {:?} do not make one of {:?}, or have other numbers of elements",
            a.shape, b.shape, c.shape
        )));
    }
    if k == 0 {
        // Nothing to sum up.
        if before == Before::Replaced {
            c.values.fill(T::zeroed());
        }
        return Ok(());
    }
    // Fewer than a tile for each thread: smaller ones.
    let mut tile = TILE;
    let tiles = |tile: usize| m.div_ceil(tile) * n.div_ceil(tile);
    while tile > 64 && tiles(tile) < 2 * threads {
        tile /= 2;
    }
    let work = Work {
        strides: [c.strides(), a.strides(), b.strides()],
        extents: [m, n, k],
        c: Shared(c.values.as_mut_ptr()),
        a: a.values,
        b: b.values,
        before,
        tile,
        next: AtomicUsize::new(0),
    };
    let helpers = threads.min(tiles(tile)).saturating_sub(1);
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            // Without a thread more the others do it all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, || work.take_tiles());
        }
        work.take_tiles();
    });
    match outcore::interrupted() {
        // Tiles may be missing.
        Some(_) => Err(Error::Interrupted),
        None => Ok(()),
    }
}

/// The result, of which each thread writes tiles of its own.
struct Shared<T>(*mut T);

// SAFETY: threads write disjoint tiles, and nobody reads before all are done.
unsafe impl<T: Send> Sync for Shared<T> {}

struct Work<'a, T> {
    /// Of the result and both operands: between rows, and between columns.
    strides: [(isize, isize); 3],
    extents: [usize; 3],
    c: Shared<T>,
    a: &'a [T],
    b: &'a [T],
    before: Before,
    tile: usize,
    /// The tile that nobody has taken yet.
    next: AtomicUsize,
}

impl<T: Number> Work<'_, T> {
    fn take_tiles(&self) {
        let [m, n, _] = self.extents;
        let across = n.div_ceil(self.tile);
        let tiles = m.div_ceil(self.tile) * across;
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            if at >= tiles || outcore::interrupted().is_some() {
                return;
            }
            self.multiply_tile(at / across * self.tile, at % across * self.tile);
        }
    }

    /// The tile whose first element is at this row and column.
    fn multiply_tile(&self, row: usize, column: usize) {
        let [m, n, k] = self.extents;
        let [(c_down, c_right), (a_down, a_right), (b_down, b_right)] = self.strides;
        let (rows, columns) = (self.tile.min(m - row), self.tile.min(n - column));
        let place = row as isize * c_down + column as isize * c_right;
        for from in (0..k).step_by(DEPTH) {
            if outcore::interrupted().is_some() {
                return;
            }
            let depth = DEPTH.min(k - from);
            let keep = self.before == Before::AddedTo || from > 0;
            // SAFETY: rows `row..row + rows` and columns `column..column +
            // columns` lie in the result, which no other thread touches there;
            // the same rows of `a`, columns of `b` and `from..from + depth` lie
            // in the operands, as `multiply_add` has checked.
            unsafe {
                gemm::gemm(
                    rows,
                    columns,
                    depth,
                    self.c.0.offset(place),
                    c_right,
                    c_down,
                    keep,
                    self.a
                        .as_ptr()
                        .offset(row as isize * a_down + from as isize * a_right),
                    a_right,
                    a_down,
                    self.b
                        .as_ptr()
                        .offset(from as isize * b_down + column as isize * b_right),
                    b_right,
                    b_down,
                    T::ONE,
                    T::ONE,
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers, so that sums are exact in any order.
    fn values(count: usize, seed: usize) -> Vec<f64> {
        (0..count)
            .map(|at| ((at * 7 + seed) % 11) as f64 - 5.0)
            .collect()
    }

    #[test]
    fn any_strides_threads_and_extents() {
        for (m, n, k) in [(1, 1, 1), (3, 5, 0), (70, 65, 300), (600, 530, 40)] {
            let (a, b) = (values(m * k, 1), values(k * n, 2));
            for by_rows in 0..8 {
                let by_rows = [1, 2, 4].map(|bit| by_rows & bit != 0);
                let at = |shape: (usize, usize), by_rows: bool, i: usize, j: usize| match by_rows {
                    true => i * shape.1 + j,
                    false => j * shape.0 + i,
                };
                let mut c = vec![2.0; m * n];
                let result = Matrix {
                    values: &mut c[..],
                    shape: (m, n),
                    by_rows: by_rows[0],
                };
                let left = Matrix {
                    values: &a[..],
                    shape: (m, k),
                    by_rows: by_rows[1],
                };
                let right = Matrix {
                    values: &b[..],
                    shape: (k, n),
                    by_rows: by_rows[2],
                };
                multiply_add(result, left, right, Before::AddedTo, 1 + m % 3).unwrap();
                for (i, j) in [
                    (0, 0),
                    (m - 1, 0),
                    (0, n - 1),
                    (m - 1, n - 1),
                    (m / 2, n / 3),
                ] {
                    let sum: f64 = (0..k)
                        .map(|l| a[at((m, k), by_rows[1], i, l)] * b[at((k, n), by_rows[2], l, j)])
                        .sum();
                    assert_eq!(c[at((m, n), by_rows[0], i, j)], sum + 2.0);
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let a = Matrix {
            values: &[1.0f32; 6][..],
            shape: (2, 3),
            by_rows: true,
        };
        let mut c = [0.0; 4];
        let result = Matrix {
            values: &mut c[..],
            shape: (2, 2),
            by_rows: true,
        };
        assert!(multiply_in_memory(result, a, a, 2).is_err());
    }
}
