//! Whole global arrays at once: fill, copy, scale, add, dot, transpose, matmul.
//!
//! All are collective, and begin and end with a [`GlobalArray::sync`]; in between
//! nobody else may use the array that is written. Each rank does its own part of
//! the result, piece by piece: what it needs of arrays with another distribution
//! it gets.

use std::ptr;

use outcore_geometry::{Pieces, Section, shape_text};
use outcore_transport::Comm;

use super::arithmetic::{Arithmetic, add_scaled, multiply};
use super::global_array::GlobalArray;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::reorder::{Step, permute};

/// The elements of a piece.
const PIECE: u64 = 1 << 18;

/// The sides of a tile of a matrix, and how much of a product is summed up at
/// once.
const TILE: u64 = 1024;
const DEPTH: u64 = 512;

impl<T: Element> GlobalArray<T> {
    /// Collective: sets every element to `value`.
    pub fn fill(&self, comm: &Comm, value: T) -> Result<()> {
        self.each_own(comm, |own| own.fill(value))
    }

    /// Collective: sets every element to a value of its place in the whole array.
    pub fn fill_with(&self, comm: &Comm, mut value: impl FnMut(&[u64]) -> T) -> Result<()> {
        self.sync(comm)?;
        let (own, _) = self.own();
        let mut index = vec![0; self.shape().len()];
        let done = self.pieces(PIECE, |start, globals| {
            let shape = globals.shape();
            for at in 0..globals.count() {
                let mut rest = at;
                for axis in (0..shape.len()).rev() {
                    index[axis] = globals.axes()[axis].index(rest % shape[axis]);
                    rest /= shape[axis];
                }
                // SAFETY: the piece lies in the own part.
                unsafe { own.add(start + at as usize).write(value(&index)) };
            }
            Ok(())
        });
        comm.agree(done)?;
        self.sync(comm)
    }

    /// Collective: `self = other`, of the same shape and any distribution.
    pub fn copy_from(&self, comm: &Comm, other: &Self) -> Result<()> {
        self.check_shape(other.shape(), "copied from")?;
        self.sync(comm)?;
        let ((own, count), (source, _)) = (self.own(), other.own());
        let done = match self.distribution() == other.distribution() {
            true => {
                // SAFETY: both parts have as many elements; they may be the same.
                unsafe { ptr::copy(source, own, count) };
                Ok(())
            }
            false => self.pieces(PIECE, |start, globals| {
                // SAFETY: the piece lies in the own part, which nobody else uses
                // in between.
                let piece = unsafe { slice_mut(own.add(start), globals) };
                other.get(globals, piece)
            }),
        };
        comm.agree(done)?;
        self.sync(comm)
    }

    /// Collective: `self[j, i] = other[i, j]`, of two axes and any distributions; `other`
    /// must be another array.
    pub fn transpose_from(&self, comm: &Comm, other: &Self) -> Result<()> {
        let turned: Vec<u64> = other.shape().iter().rev().copied().collect();
        if turned.len() != 2 {
            return Err(Error::Invalid(format!(
                "an array of {} is no matrix, which has two axes",
                shape_text(other.shape())
            )));
        }
        self.check_shape(&turned, "transposed from")?;
        if self.is(other) {
            return Err(Error::Invalid(
                "a global array cannot be transposed from itself: another one is needed".into(),
            ));
        }
        self.sync(comm)?;
        let (own, size) = (self.own().0.cast::<u8>(), size_of::<T>());
        let width = self.local_shape()[1] as usize;
        let mut tile = Vec::new();
        let done = self.tiles(|[first, right], globals| {
            let turned = globals.axes().iter().rev().cloned().collect();
            let turned = Section::new(turned).map_err(Error::geometry("a global array"))?;
            tile.resize(turned.count() as usize, T::zeroed());
            other.get(&turned, &mut tile)?;
            let [rows, columns] = [0, 1].map(|axis| globals.axes()[axis].count() as usize);
            let steps = [
                Step {
                    count: rows,
                    from: size,
                    to: width * size,
                },
                Step {
                    count: columns,
                    from: rows * size,
                    to: size,
                },
            ];
            let start = own.wrapping_add((first * width + right) * size);
            // SAFETY: the tile lies in the own part, and its elements in `tile`,
            // which has as many.
            unsafe { permute(&steps, size, tile.as_ptr().cast(), start) };
            Ok(())
        });
        comm.agree(done)?;
        self.sync(comm)
    }

    /// Collective: does something to the own part of each rank.
    fn each_own(&self, comm: &Comm, change: impl FnOnce(&mut [T])) -> Result<()> {
        self.sync(comm)?;
        // SAFETY: between the two calls of sync everybody uses its own part only.
        change(unsafe { self.local_mut() });
        self.sync(comm)
    }

    fn check_shape(&self, expected: &[u64], what: &str) -> Result<()> {
        match self.shape() == expected {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "a global array of {} cannot be {what} one that makes {}",
                shape_text(self.shape()),
                shape_text(expected)
            ))),
        }
    }

    /// The own part in pieces of so many elements at most, which are contiguous
    /// there: where each begins, and where it stands in the whole array.
    fn pieces(
        &self,
        most: u64,
        mut visit: impl FnMut(usize, &Section) -> Result<()>,
    ) -> Result<()> {
        let shape = self.local_shape();
        let whole = Section::whole(&shape).map_err(Error::geometry("a global array"))?;
        if self.own().1 == 0 {
            return Ok(());
        }
        let order: Vec<usize> = (0..shape.len()).collect();
        let mut start = 0;
        for local in Pieces::new(&whole, &order, most) {
            visit(start, &self.globals(&local)?)?;
            start += local.count() as usize;
        }
        Ok(())
    }

    /// The own part of a matrix in tiles: the row and the column where each
    /// begins there, and where it stands in the whole matrix.
    fn tiles(&self, mut visit: impl FnMut([usize; 2], &Section) -> Result<()>) -> Result<()> {
        let whole =
            Section::whole(&self.local_shape()).map_err(Error::geometry("a global array"))?;
        for local in Pieces::of_shape(&whole, &[0, 1], &[TILE, TILE]) {
            let first = [0, 1].map(|axis| local.axes()[axis].bounds().0 as usize);
            visit(first, &self.globals(&local)?)?;
        }
        Ok(())
    }

    /// Where a box of the own part stands in the whole array.
    fn globals(&self, local: &Section) -> Result<Section> {
        let distribution = self.distribution();
        let coordinates = distribution
            .coordinates(self.rank() as u64)
            .unwrap_or_default();
        let axes = distribution
            .axes()
            .iter()
            .zip(coordinates)
            .zip(local.axes());
        let axes = axes.map(|((axis, at), taken)| {
            let (lower, upper) = taken.bounds();
            axis.globals(at, lower, upper)
        });
        Section::new(axes.collect()).map_err(Error::geometry("a global array"))
    }
}

/// The elements of a piece.
///
/// # Safety
///
/// As many as it has can be used from `start` on, by nobody else.
unsafe fn slice_mut<'a, T>(start: *mut T, piece: &Section) -> &'a mut [T] {
    // SAFETY: passed on to the caller.
    unsafe { std::slice::from_raw_parts_mut(start, piece.count() as usize) }
}

impl<T: Arithmetic> GlobalArray<T> {
    /// Collective: multiplies every element by `factor`.
    pub fn scale(&self, comm: &Comm, factor: T) -> Result<()> {
        self.each_own(comm, |own| {
            // SAFETY: the elements are borrowed mutably.
            unsafe { multiply(own.as_mut_ptr(), own.len(), factor) }
        })
    }

    /// Collective: `self = alpha a + beta b`, of the same shape and any
    /// distributions. `self` may be one of them.
    pub fn add(&self, comm: &Comm, (alpha, a): (T, &Self), (beta, b): (T, &Self)) -> Result<()> {
        self.check_shape(a.shape(), "the sum of")?;
        self.check_shape(b.shape(), "the sum of")?;
        self.sync(comm)?;
        let (own, _) = self.own();
        let (mut room, mut sum) = (Vec::new(), Vec::new());
        let done = self.pieces(PIECE, |start, globals| {
            let count = globals.count() as usize;
            sum.resize(count, T::zeroed());
            let (left, _) = self.beside(a, (start, globals), &mut room)?;
            // SAFETY: both have as many elements as the piece.
            unsafe { ptr::copy_nonoverlapping(left, sum.as_mut_ptr(), count) };
            // SAFETY: as above.
            unsafe { multiply(sum.as_mut_ptr(), count, alpha) };
            let (right, _) = self.beside(b, (start, globals), &mut room)?;
            // SAFETY: as above, and the piece lies in the own part.
            unsafe {
                add_scaled(sum.as_mut_ptr(), right, count, beta);
                ptr::copy_nonoverlapping(sum.as_ptr(), own.add(start), count);
            }
            Ok(())
        });
        comm.agree(done)?;
        self.sync(comm)
    }

    /// Collective: the sum of the products of the elements (complex ones are not
    /// conjugated), the same on all ranks.
    pub fn dot(&self, comm: &Comm, other: &Self) -> Result<T> {
        self.check_shape(other.shape(), "multiplied with")?;
        self.sync(comm)?;
        let (own, _) = self.own();
        let (mut room, mut sum) = (Vec::new(), T::zeroed());
        let done = self.pieces(PIECE, |start, globals| {
            let (right, count) = self.beside(other, (start, globals), &mut room)?;
            // SAFETY: the piece lies in the own part; as many stand beside it.
            sum = sum.plus(unsafe { product(own.add(start), right, count) });
            Ok(())
        });
        comm.agree(done)?;
        let sums: Vec<u8> = comm.all_gather(bytemuck::bytes_of(&sum))?;
        let mut values = vec![T::zeroed(); comm.size()];
        T::bytes_mut(&mut values).copy_from_slice(&sums);
        Ok(values.into_iter().fold(T::zeroed(), T::plus))
    }

    /// A piece of the own part in `other`: where it stands there, or copied into
    /// `room` if `other` is distributed otherwise.
    fn beside(
        &self,
        other: &Self,
        (start, globals): (usize, &Section),
        room: &mut Vec<T>,
    ) -> Result<(*const T, usize)> {
        let count = globals.count() as usize;
        if self.distribution() == other.distribution() {
            return Ok((other.own().0.wrapping_add(start), count));
        }
        room.resize(count, T::zeroed());
        other.get(globals, room)?;
        Ok((room.as_ptr(), count))
    }

    /// Collective: `self = a b`, of matrices of any distributions.
    pub fn matmul(&self, comm: &Comm, a: &Self, b: &Self) -> Result<()> {
        self.matmul_add(comm, (T::ONE, a, b), T::zeroed())
    }

    /// Collective: `self = alpha a b + beta self`, of matrices of any
    /// distributions; what is multiplied by 0 is not looked at.
    pub fn matmul_add(&self, comm: &Comm, (alpha, a, b): (T, &Self, &Self), beta: T) -> Result<()> {
        let fit = match (a.shape(), b.shape()) {
            ([m, k], [l, n]) if k == l => self.shape() == [*m, *n],
            _ => false,
        };
        if !fit || self.is(a) || self.is(b) {
            return Err(Error::Invalid(format!(
                "global arrays of {} and {} do not make one of {}, which must be another one",
                shape_text(a.shape()),
                shape_text(b.shape()),
                shape_text(self.shape())
            )));
        }
        self.sync(comm)?;
        let (own, _) = self.own();
        let (width, depth) = (self.local_shape()[1] as usize, a.shape()[1]);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let done = self.tiles(|[first, column], globals| {
            let [rows, columns] = [0, 1].map(|axis| globals.axes()[axis].clone());
            let [m, n] = [rows.count() as usize, columns.count() as usize];
            let target = own.wrapping_add(first * width + column);
            if depth == 0 || alpha == T::zeroed() {
                // SAFETY: the tile lies in the own part.
                unsafe { scale_tile(target, [m, n], width, beta) };
                return Ok(());
            }
            for from in (0..depth).step_by(DEPTH as usize) {
                let between = outcore_geometry::AxisSection::span(from, (from + DEPTH).min(depth));
                let k = between.count() as usize;
                let piece = |axes| Section::new(axes).map_err(Error::geometry("a global array"));
                left.resize(m * k, T::zeroed());
                a.get(&piece(vec![rows.clone(), between.clone()])?, &mut left)?;
                right.resize(k * n, T::zeroed());
                b.get(&piece(vec![between, columns.clone()])?, &mut right)?;
                let keep = if from == 0 { beta } else { T::ONE };
                // SAFETY: the tile lies in the own part, which nobody else uses;
                // the operands have the elements of their sections.
                unsafe {
                    let operands = (left.as_ptr(), right.as_ptr());
                    multiply_tile((target, width), operands, [m, n, k], (keep, alpha));
                }
            }
            Ok(())
        });
        comm.agree(done)?;
        self.sync(comm)
    }
}

/// The sum of `left[i] * right[i]`.
///
/// # Safety
///
/// `count` elements of both can be read.
unsafe fn product<T: Arithmetic>(left: *const T, right: *const T, count: usize) -> T {
    // Several sums at a time, so that additions need not wait for one another.
    let mut sums = [T::zeroed(); 8];
    for at in 0..count {
        // SAFETY: passed on to the caller.
        let term = unsafe { (*left.add(at)).times(*right.add(at)) };
        sums[at % 8] = sums[at % 8].plus(term);
    }
    sums.into_iter().fold(T::zeroed(), T::plus)
}

/// Multiplies a tile by `beta`; 0 makes it 0, whatever stands there.
///
/// # Safety
///
/// Its rows, which are `width` apart, can be written by nobody else.
unsafe fn scale_tile<T: Arithmetic>(tile: *mut T, [m, n]: [usize; 2], width: usize, beta: T) {
    for row in 0..m {
        // SAFETY: passed on to the caller.
        let row = unsafe { std::slice::from_raw_parts_mut(tile.add(row * width), n) };
        match beta == T::zeroed() {
            true => row.fill(T::zeroed()),
            false => row.iter_mut().for_each(|value| *value = value.times(beta)),
        }
    }
}

/// `tile = keep tile + alpha a b` of dense operands of `m x k` and `k x n`.
///
/// # Safety
///
/// The rows of the tile, which are `width` apart, can be written by nobody else;
/// the operands have their elements.
unsafe fn multiply_tile<T: Arithmetic>(
    (tile, width): (*mut T, usize),
    (a, b): (*const T, *const T),
    [m, n, k]: [usize; 3],
    (keep, alpha): (T, T),
) {
    if T::GEMM {
        // SAFETY: passed on to the caller; strides are those of dense rows.
        return unsafe {
            gemm::gemm(
                m,
                n,
                k,
                tile,
                1,
                width as isize,
                keep != T::zeroed(),
                a,
                1,
                k as isize,
                b,
                1,
                n as isize,
                keep,
                alpha,
                false,
                false,
                false,
                gemm::Parallelism::None,
            )
        };
    }
    if keep != T::ONE {
        // SAFETY: passed on to the caller.
        unsafe { scale_tile(tile, [m, n], width, keep) };
    }
    for row in 0..m {
        for at in 0..k {
            // SAFETY: passed on to the caller.
            unsafe {
                let factor = alpha.times(*a.add(row * k + at));
                add_scaled(tile.add(row * width), b.add(at * n), n, factor);
            }
        }
    }
}
