//! What the machine allows: the permutation alone, in memory, by as many threads,
//! and the file alone, in contiguous blocks; and one after the other.

use std::cell::UnsafeCell;
use std::os::unix::fs::FileExt;

use outcore::Result;

use super::ground::{Ground, Memory, Value};
use crate::contest::Contestant;
use crate::files::plain;

/// All elements in memory that the threads share. Each of them writes elements
/// that no other one has to do with, until all meet.
pub(super) struct Board<T>(Vec<UnsafeCell<T>>);

// SAFETY: who uses it keeps to that; see the functions.
unsafe impl<T: Value> Sync for Board<T> {}

impl<T: Value> Board<T> {
    pub(super) fn new(elements: usize) -> Self {
        Self((0..elements).map(|_| UnsafeCell::new(T::of(1))).collect())
    }

    /// The elements of a block that no other thread has to do with until it is
    /// given back.
    #[expect(clippy::mut_from_ref, reason = "threads have blocks of their own")]
    unsafe fn block(&self, range: std::ops::Range<u64>) -> &mut [T] {
        let cells = &self.0[range.start as usize..range.end as usize];
        // SAFETY: passed on to the caller; a cell is laid out as what it holds.
        unsafe { std::slice::from_raw_parts_mut(cells.as_ptr().cast_mut().cast(), cells.len()) }
    }

    fn scatter(&self, own: &[u32], values: &[T]) {
        for (index, value) in own.iter().zip(values) {
            // SAFETY: each element is owned by one thread.
            unsafe { *self.0[*index as usize].get() = *value };
        }
    }

    fn gather(&self, own: &[u32], values: &mut [T]) {
        for (index, value) in own.iter().zip(values) {
            // SAFETY: nobody writes elements while they are gathered.
            *value = unsafe { *self.0[*index as usize].get() };
        }
    }
}

impl<T: Value> Ground<'_, T> {
    fn write_block(&self, board: &Board<T>) -> Result<()> {
        let block = self.block();
        let at = block.start * size_of::<T>() as u64;
        // SAFETY: blocks of ranks are disjoint, and all have met.
        let elements = unsafe { board.block(block) };
        self.file
            .write_all_at(T::bytes_mut(elements), at)
            .map_err(plain)
    }

    fn read_block(&self, board: &Board<T>) -> Result<()> {
        let block = self.block();
        let at = block.start * size_of::<T>() as u64;
        // SAFETY: blocks of ranks are disjoint, and all have met.
        let elements = unsafe { board.block(block) };
        self.file
            .read_exact_at(T::bytes_mut(elements), at)
            .map_err(plain)
    }

    /// The contestants of `read` or `write`.
    pub(super) fn limits<'b>(
        &'b self,
        board: &'b Board<T>,
        op: &'static str,
    ) -> Vec<Contestant<'b>> {
        let ordinary = Memory::Ordinary;
        let mut all = Vec::new();
        let (memory, file) = match op {
            "write" => {
                let line = self.line("memory+file", op, "scatter then pwrite");
                all.push(self.contestant(line, ordinary, move |values| {
                    board.scatter(&self.own, values);
                    self.comm.barrier()?;
                    self.write_block(board)
                }));
                let line = self.line("memory", op, "scatter");
                let memory = self.contestant(line, ordinary, move |values| {
                    board.scatter(&self.own, values);
                    Ok(())
                });
                let line = self.line("pwrite", op, "contiguous");
                let file = self.contestant(line, ordinary, move |_| self.write_block(board));
                (memory, file)
            }
            _ => {
                let line = self.line("memory+file", op, "pread then gather");
                all.push(self.contestant(line, ordinary, move |values| {
                    self.read_block(board)?;
                    self.comm.barrier()?;
                    board.gather(&self.own, values);
                    Ok(())
                }));
                let line = self.line("memory", op, "gather");
                let memory = self.contestant(line, ordinary, move |values| {
                    board.gather(&self.own, values);
                    Ok(())
                });
                let line = self.line("pread", op, "contiguous");
                let file = self.contestant(line, ordinary, move |_| self.read_block(board));
                (memory, file)
            }
        };
        // They do one half of the work.
        for mut half in [memory, file] {
            half.prepare = Box::new(|| Ok(()));
            half.check = Box::new(|| true);
            all.push(half);
        }
        all
    }
}
