//! [`Ground`]: the file, the elements that this rank owns, and its values.

use std::cell::{Cell, RefCell, RefMut};
use std::fs::File;
use std::os::unix::fs::FileExt;

use bytemuck::Pod;
use outcore::{Array, Comm, DistributedArray, Distribution, Element, Error, Op, Result};

use crate::contest::Contestant;
use crate::files::plain;
use crate::library::mpi_library;
use crate::line::Line;

/// What elements can be.
pub(super) trait Value: Element + Pod + PartialEq {
    /// A value that tells the number.
    fn of(number: u64) -> Self;
    /// The name of the type in descriptions of files.
    const NAME: &'static str;
}

impl Value for f32 {
    fn of(number: u64) -> Self {
        (number & 0xff_ffff) as f32
    }
    const NAME: &'static str = "f32";
}

impl Value for f64 {
    fn of(number: u64) -> Self {
        number as f64
    }
    const NAME: &'static str = "f64";
}

/// What element `index` holds after the write of this number.
pub(super) fn value<T: Value>(index: u64, write: u64) -> T {
    T::of(index * 3 + write)
}

/// In which memory the values of a contestant are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Memory {
    Ordinary,
    /// Memory that other ranks of the node reach.
    Node,
}

/// Elements and values of one rank.
pub(super) struct Ground<'a, T> {
    pub(super) comm: &'a Comm,
    pub(super) elements: u64,
    /// The elements of this rank, in its order.
    pub(super) own: Vec<u32>,
    pub(super) directory: String,
    pub(super) path: String,
    pub(super) array: Array,
    pub(super) file: File,
    ordinary: RefCell<Vec<T>>,
    node: RefCell<Option<DistributedArray<T>>>,
    /// The number of the last write.
    written: Cell<u64>,
}

impl<'a, T: Value> Ground<'a, T> {
    /// Collective: makes the file, and deals the elements out.
    pub(super) fn new(comm: &'a Comm, directory: &str, elements: u32) -> Result<Self> {
        let path = format!("{directory}/elements.bin");
        let bytes = u64::from(elements) * size_of::<T>() as u64;
        let made = match comm.rank() {
            0 => make(&path, bytes),
            _ => Ok(()),
        };
        comm.agree(made)?;
        let name = format!("raw:{path}?shape={elements}&type={}", T::NAME);
        let open = || {
            let file = File::options().read(true).write(true).open(&path);
            Ok::<_, Error>((Array::open_writable(&name)?, file.map_err(plain)?))
        };
        let (array, file) = comm.agree(open())?;
        let own = deal(elements, comm.rank() as u64, comm.size() as u64);
        let node = node_values(comm, own.len())?;
        Ok(Self {
            comm,
            elements: u64::from(elements),
            ordinary: RefCell::new(vec![T::zeroed(); own.len()]),
            node: RefCell::new(node),
            own,
            directory: directory.into(),
            path,
            array,
            file,
            written: Cell::new(0),
        })
    }

    /// Whether values can be in memory of the node, other than any memory.
    pub(super) fn has_node_memory(&self) -> bool {
        self.node.borrow().is_some()
    }

    /// The elements of the file that are this rank's share of a contiguous
    /// transfer.
    pub(super) fn block(&self) -> std::ops::Range<u64> {
        let (rank, ranks) = (self.comm.rank() as u64, self.comm.size() as u64);
        self.elements * rank / ranks..self.elements * (rank + 1) / ranks
    }

    pub(super) fn line(&self, system: &str, op: &'static str, strategy: &str) -> Line {
        Line {
            system: system.into(),
            bench: "irregular",
            case: format!("permutation of {} {}", self.elements, T::NAME),
            op,
            strategy: strategy.into(),
            transport: match outcore::under_launcher() {
                true => mpi_library().into(),
                false => "threads".into(),
            },
            ranks: self.comm.size(),
            useful_bytes: self.elements * size_of::<T>() as u64,
            best_s: 0.0,
            median_s: 0.0,
            ok: false,
        }
    }

    /// A contestant that reads or writes this rank's values.
    pub(super) fn contestant<'b>(
        &'b self,
        line: Line,
        memory: Memory,
        mut work: impl FnMut(&mut [T]) -> Result<()> + 'b,
    ) -> Contestant<'b> {
        let writes = line.op == "write";
        Contestant {
            line,
            prepare: Box::new(move || {
                let mut values = self.values(memory);
                match writes {
                    true => {
                        self.written.set(self.written.get() + 1);
                        for (to, index) in values.iter_mut().zip(&self.own) {
                            *to = value(u64::from(*index), self.written.get());
                        }
                    }
                    false => values.fill(T::zeroed()),
                }
                Ok(())
            }),
            work: Box::new(move || work(&mut self.values(memory))),
            check: Box::new(move || match writes {
                true => self.file_is_right(),
                false => {
                    let values = self.values(memory);
                    let mut pairs = values.iter().zip(&self.own);
                    pairs.all(|(found, index)| {
                        *found == value(u64::from(*index), self.written.get())
                    })
                }
            }),
            batch: 1,
        }
    }

    fn values(&self, memory: Memory) -> RefMut<'_, [T]> {
        match memory {
            Memory::Ordinary => RefMut::map(self.ordinary.borrow_mut(), |values| &mut values[..]),
            Memory::Node => RefMut::map(self.node.borrow_mut(), |values| match values {
                Some(values) => &mut values.local_mut()[..self.own.len()],
                None => &mut [],
            }),
        }
    }

    /// Collective: puts into the file what the last write should have left.
    pub(super) fn settle(&self) -> Result<()> {
        let block = self.block();
        let elements: Vec<T> = block
            .clone()
            .map(|index| value(index, self.written.get()))
            .collect();
        let at = block.start * size_of::<T>() as u64;
        let written = self.file.write_all_at(bytemuck::cast_slice(&elements), at);
        Ok(self.comm.agree(written)?)
    }

    /// Whether this rank's block of the file holds what the last write wrote.
    fn file_is_right(&self) -> bool {
        let block = self.block();
        let mut found = Vec::new();
        found.resize(1 << 16, T::zeroed());
        let mut first = block.start;
        while first < block.end {
            let count = (block.end - first).min(found.len() as u64);
            let part = &mut found[..count as usize];
            let at = first * size_of::<T>() as u64;
            if self.file.read_exact_at(T::bytes_mut(part), at).is_err() {
                return false;
            }
            let mut pairs = (first..).zip(part.iter());
            if !pairs.all(|(index, found)| *found == value(index, self.written.get())) {
                return false;
            }
            first += count;
        }
        true
    }
}

/// Collective: values in memory of the node, as many as the rank with the most
/// has; `None` where ranks reach any memory of one another.
fn node_values<T: Value>(comm: &Comm, count: usize) -> Result<Option<DistributedArray<T>>> {
    if !outcore::under_launcher() {
        return Ok(None);
    }
    let ranks = comm.size() as u64;
    let most = comm.all_reduce(&[count as u64], Op::Max)?[0].max(1);
    let blocks = Distribution::parse("block", &[most * ranks], ranks, None);
    let blocks = blocks.map_err(|error| Error::Invalid(error.to_string()))?;
    DistributedArray::new(comm, blocks).map(Some)
}

/// Makes a file of zeros, and brings it into the page cache in long blocks.
fn make(path: &str, bytes: u64) -> Result<()> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(plain)?;
    let mut block = vec![0; 1 << 20];
    for write in [true, false] {
        let mut at = 0;
        while at < bytes {
            let part = &mut block[..(bytes - at).min(1 << 20) as usize];
            match write {
                true => file.write_all_at(part, at),
                false => file.read_exact_at(part, at),
            }
            .map_err(plain)?;
            at += part.len() as u64;
        }
    }
    Ok(())
}

/// This rank's part of a random permutation, the same as that of
/// `mpiio_irregular.c`.
fn deal(elements: u32, rank: u64, ranks: u64) -> Vec<u32> {
    let mut all: Vec<u32> = (0..elements).collect();
    let mut state: u64 = 88172645463325252;
    for last in (1..all.len()).rev() {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        all.swap(last, (state % (last as u64 + 1)) as usize);
    }
    let bound = |rank: u64| (u64::from(elements) * rank / ranks) as usize;
    all[bound(rank)..bound(rank + 1)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::deal;

    #[test]
    fn every_element_has_one_owner() {
        let mut all: Vec<u32> = (0..3).flat_map(|rank| deal(1000, rank, 3)).collect();
        assert_ne!(all[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
    }
}
