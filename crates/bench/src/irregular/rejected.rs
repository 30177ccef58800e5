//! What No et al. 1998 (section 2.3) reject, for comparison: a file a rank and one
//! sequential program that sorts it into global order; and staging, in which some
//! ranks read and write for all while the others wait.

use std::cell::RefCell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use bytemuck::{cast_slice, cast_slice_mut};
use outcore::{Comm, Exchange, Result};

use super::ground::{Ground, Memory, Value};
use crate::contest::Contestant;
use crate::files::plain;

/// Both ways, planned.
pub(super) struct Rejected<T> {
    files: RefCell<FileEach<T>>,
    staging: RefCell<Staging<T>>,
}

/// A file a rank, of its values in its own order, beside one of its indices.
struct FileEach<T> {
    values: File,
    /// What the sequential program keeps in memory: the files of all ranks, and
    /// all elements.
    all: Vec<(File, File, usize)>,
    part: (Vec<u32>, Vec<T>),
    whole: Vec<T>,
}

impl<T: Value> FileEach<T> {
    fn new(ground: &Ground<'_, T>) -> Result<Self> {
        let comm = ground.comm;
        let open = |rank: usize, kind: &str| {
            let path = format!("{}/{kind}-{rank}.bin", ground.directory);
            let mut options = File::options();
            let options = options.read(true).write(true).create(true);
            options.truncate(false).open(path).map_err(plain)
        };
        let own = || Ok((open(comm.rank(), "values")?, open(comm.rank(), "indices")?));
        let (values, indices) = comm.agree::<_, outcore::Error>(own())?;
        let zeros = vec![T::zeroed(); ground.own.len()];
        let written = indices
            .write_all_at(cast_slice(&ground.own), 0)
            .and_then(|()| values.write_all_at(cast_slice(&zeros), 0));
        comm.agree(written)?;
        let counts = comm.all_gather(&[ground.own.len() as u64])?;
        let (mut all, mut whole) = (Vec::new(), Vec::new());
        if comm.rank() == 0 {
            whole = vec![T::zeroed(); ground.elements as usize];
            for (rank, count) in counts.iter().enumerate() {
                all.push((
                    open(rank, "values")?,
                    open(rank, "indices")?,
                    *count as usize,
                ));
            }
        }
        let most = counts.iter().copied().max().unwrap_or(0) as usize;
        Ok(Self {
            values,
            part: match comm.rank() {
                0 => (vec![0; most], vec![T::zeroed(); most]),
                _ => Default::default(),
            },
            all,
            whole,
        })
    }

    fn write(&mut self, ground: &Ground<'_, T>, values: &[T]) -> Result<()> {
        let written = self.values.write_all_at(cast_slice(values), 0);
        ground.comm.agree(written)?;
        let mut sort = || {
            let (indices, values) = (&mut self.part.0, &mut self.part.1);
            for (from, numbers, count) in &self.all {
                numbers.read_exact_at(cast_slice_mut(&mut indices[..*count]), 0)?;
                from.read_exact_at(cast_slice_mut(&mut values[..*count]), 0)?;
                for (index, value) in indices[..*count].iter().zip(&*values) {
                    self.whole[*index as usize] = *value;
                }
            }
            match self.all.is_empty() {
                true => Ok(()),
                false => ground.file.write_all_at(cast_slice(&self.whole), 0),
            }
        };
        Ok(ground.comm.agree::<_, std::io::Error>(sort())?)
    }

    fn read(&mut self, ground: &Ground<'_, T>, into: &mut [T]) -> Result<()> {
        let mut divide = || {
            if !self.all.is_empty() {
                ground
                    .file
                    .read_exact_at(cast_slice_mut(&mut self.whole), 0)?;
            }
            let (indices, values) = (&mut self.part.0, &mut self.part.1);
            for (to, numbers, count) in &self.all {
                numbers.read_exact_at(cast_slice_mut(&mut indices[..*count]), 0)?;
                for (index, value) in indices[..*count].iter().zip(values.iter_mut()) {
                    *value = self.whole[*index as usize];
                }
                to.write_all_at(cast_slice(&values[..*count]), 0)?;
            }
            Ok(())
        };
        ground.comm.agree::<_, std::io::Error>(divide())?;
        self.values
            .read_exact_at(cast_slice_mut(into), 0)
            .map_err(plain)
    }
}

/// The first half of the ranks read and write a block each.
struct Staging<T> {
    /// Where each of this rank's elements is in the messages.
    slots: Vec<u32>,
    /// The elements that go to each rank, and that come from each.
    sends: Vec<Range<usize>>,
    receives: Vec<Range<usize>>,
    /// The block of this rank, and which of its elements come in which order.
    block: Range<u64>,
    places: Vec<u32>,
    mail: (Vec<T>, Vec<T>),
    image: Vec<T>,
}

/// How many ranks of so many read and write.
fn stagers(ranks: usize) -> usize {
    ranks.div_ceil(2)
}

impl<T: Value> Staging<T> {
    fn new(ground: &Ground<'_, T>) -> Result<Self> {
        let (comm, own) = (ground.comm, &ground.own);
        let ranks = comm.size();
        let each = ground.elements.div_ceil(stagers(ranks) as u64).max(1);
        let to = |index: &u32| (u64::from(*index) / each) as usize;
        let mut counts = vec![0; ranks];
        own.iter().for_each(|index| counts[to(index)] += 1);
        let sends = ranges(&counts);
        let mut next: Vec<usize> = sends.iter().map(|range| range.start).collect();
        let (mut slots, mut sorted) = (vec![0; own.len()], vec![0u32; own.len()]);
        for (slot, index) in slots.iter_mut().zip(own) {
            let place = &mut next[to(index)];
            *slot = *place as u32;
            sorted[*place] = *index;
            *place += 1;
        }
        let told: Vec<Vec<u64>> = counts.iter().map(|count| vec![*count as u64]).collect();
        let heard = comm.all_to_allv(&told)?;
        let counts: Vec<usize> = heard.iter().map(|count| count[0] as usize).collect();
        let receives = ranges(&counts);
        let start = (comm.rank() as u64 * each).min(ground.elements);
        let block = match comm.rank() < stagers(ranks) {
            true => start..(start + each).min(ground.elements),
            false => 0..0,
        };
        let expected = counts.iter().sum();
        let mut places = vec![0u32; expected];
        send(comm, (&sorted, &sends), (&mut places, &receives))?;
        for place in &mut places {
            *place -= block.start as u32;
        }
        Ok(Self {
            mail: (vec![T::zeroed(); own.len()], vec![T::zeroed(); expected]),
            image: vec![T::zeroed(); (block.end - block.start) as usize],
            slots,
            sends,
            receives,
            block,
            places,
        })
    }

    fn write(&mut self, ground: &Ground<'_, T>, values: &[T]) -> Result<()> {
        for (slot, value) in self.slots.iter().zip(values) {
            self.mail.0[*slot as usize] = *value;
        }
        let (to, from) = (&self.sends, &self.receives);
        send(ground.comm, (&self.mail.0, to), (&mut self.mail.1, from))?;
        for (place, value) in self.places.iter().zip(&self.mail.1) {
            self.image[*place as usize] = *value;
        }
        let at = self.block.start * size_of::<T>() as u64;
        let written = ground.file.write_all_at(cast_slice(&self.image), at);
        written.map_err(plain)
    }

    fn read(&mut self, ground: &Ground<'_, T>, values: &mut [T]) -> Result<()> {
        let at = self.block.start * size_of::<T>() as u64;
        let read = ground
            .file
            .read_exact_at(cast_slice_mut(&mut self.image), at);
        read.map_err(plain)?;
        for (place, value) in self.places.iter().zip(&mut self.mail.1) {
            *value = self.image[*place as usize];
        }
        let (to, from) = (&self.receives, &self.sends);
        send(ground.comm, (&self.mail.1, to), (&mut self.mail.0, from))?;
        for (slot, value) in self.slots.iter().zip(values) {
            *value = self.mail.0[*slot as usize];
        }
        Ok(())
    }
}

fn ranges(counts: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0;
    let range = |count: &usize| {
        let start = end;
        end += count;
        start..end
    };
    counts.iter().map(range).collect()
}

/// Sends each rank its range, and receives one from each.
fn send<E: bytemuck::Pod>(
    comm: &Comm,
    (from, sends): (&[E], &[Range<usize>]),
    (mut into, receives): (&mut [E], &[Range<usize>]),
) -> Result<()> {
    let mut exchange = Exchange::new();
    for (rank, range) in sends.iter().enumerate() {
        exchange.send(rank, cast_slice(&from[range.clone()]));
    }
    for (rank, range) in receives.iter().enumerate() {
        let (piece, rest) = into.split_at_mut(range.len());
        exchange.receive(rank, cast_slice_mut(piece));
        into = rest;
    }
    Ok(comm.exchange(&mut exchange)?)
}

impl<T: Value> Ground<'_, T> {
    /// Collective: plans both.
    pub(super) fn rejected(&self) -> Result<Rejected<T>> {
        Ok(Rejected {
            files: RefCell::new(FileEach::new(self)?),
            staging: RefCell::new(Staging::new(self)?),
        })
    }
}

impl<T: Value> Rejected<T> {
    /// The contestants of `read` or `write`.
    pub(super) fn contestants<'b>(
        &'b self,
        ground: &'b Ground<'_, T>,
        op: &'static str,
    ) -> Vec<Contestant<'b>> {
        let writes = op == "write";
        let line = ground.line("rejected", op, "file a rank and a sequential sort");
        let files = ground.contestant(line, Memory::Ordinary, move |values| {
            let mut files = self.files.borrow_mut();
            match writes {
                true => files.write(ground, values),
                false => files.read(ground, values),
            }
        });
        let stagers = stagers(ground.comm.size());
        let line = ground.line("rejected", op, &format!("staging by {stagers} reused"));
        let staging = ground.contestant(line, Memory::Ordinary, move |values| {
            let mut staging = self.staging.borrow_mut();
            match writes {
                true => staging.write(ground, values),
                false => staging.read(ground, values),
            }
        });
        vec![files, staging]
    }
}
