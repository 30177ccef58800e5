//! Packets in ordinary memory of processes of one node: the kernel copies what
//! a window needs of them, and of the lists, to where the window is
//! ([`Transport::copy_from`]), and elements that were read back.
//!
//! Nothing is made that a schedule keeps, no page that processes share, and no
//! message but the addresses: so this is how a schedule is carried out for the
//! first time, and the only time for many. What is copied stays in a processor's
//! cache, as the window does.
//!
//! [`Transport::copy_from`]: outcore_transport::Transport::copy_from

use std::mem::ManuallyDrop;

use outcore_transport::Comm;

use super::call::Irregular;
use super::lists::packet;
use super::schedule::Schedule;
use super::variable::Buffer;
use super::window::{Deed, Part, Segment, WindowWork};
use crate::error::{Error, Result};
use crate::fresh;
use crate::strategy::Direction;

/// Where another process has its packet and its lists.
struct Source {
    rank: usize,
    packet: u64,
    offsets: u64,
    lengths: u64,
}

/// What is copied of one rank for one window.
#[derive(Default)]
struct Fetched {
    offsets: Vec<u32>,
    lengths: Vec<u32>,
    /// Of each variable its elements.
    values: Vec<Vec<u8>>,
    /// Where these begin, or where they stand in this rank's own packet.
    starts: Vec<*mut u8>,
}

impl Irregular<'_> {
    /// Collective: carries the schedule out so; `None` on all ranks, with nothing
    /// done, if the kernel does not copy between them.
    pub(super) fn by_kernel(
        &self,
        comm: &Comm,
        buffers: &mut [Buffer<'_>],
        parts: &[Part],
        (deed, work): (Deed, &mut WindowWork),
    ) -> Result<Option<Result<()>>> {
        let schedule = self.schedule;
        // 1. Whether it can be done; the first time, ranks find out together.
        if comm.transport().shares_memory() || comm.size() == 1 {
            return Ok(None);
        }
        if !copies(comm)? {
            drop(comm.share(0)?);
        }
        let able = copies(comm)?;
        // 2. This rank's elements in the order of its lists. If the run fails
        //    from here on, others may still copy from and to this memory: then
        //    it stays.
        let records: Vec<usize> = buffers.iter().map(|buffer| buffer.record).collect();
        let bytes = match able {
            true => schedule.count() * records.iter().sum::<usize>(),
            false => 0,
        };
        let mut own = ManuallyDrop::new(fresh::zeroed::<u8>(bytes));
        if able && deed.direction() == Direction::Write {
            work.moved.copy += self.pack_all(&mut own, buffers, Direction::Write);
        }
        // 3. All tell where it is.
        let lists = schedule.list_bytes().as_ptr() as u64;
        let told = comm.all_gather(&[u64::from(able), own.as_mut_ptr() as u64, lists])?;
        let all: Vec<&[u64]> = told.chunks_exact(3).collect();
        if all.iter().any(|told| told[0] == 0) {
            drop(ManuallyDrop::into_inner(own));
            return Ok(None);
        }
        // 4. The windows of this rank.
        let sources = self.wanting().into_iter().map(|rank| {
            let incoming = &schedule.incoming[rank];
            let entry = if incoming.runs { 8 } else { 4 };
            let offsets = all[rank][2] + (entry * incoming.entries) as u64;
            Source {
                rank,
                packet: all[rank][1],
                offsets,
                lengths: offsets + 4 * incoming.entries as u64,
            }
        });
        let sources: Vec<Source> = sources.collect();
        let outcome = self.fetch_windows(comm, &sources, &records, (parts, deed, work));
        // 5. When all are through, elements that were read come to their places.
        comm.barrier()?;
        if deed.direction() == Direction::Read {
            work.moved.copy += self.pack_all(&mut own, buffers, Direction::Read);
        }
        drop(ManuallyDrop::into_inner(own));
        Ok(Some(outcome))
    }

    /// Goes through the windows of this rank with what all who want something of
    /// them have in their packets.
    fn fetch_windows(
        &self,
        comm: &Comm,
        sources: &[Source],
        records: &[usize],
        (parts, deed, work): (&[Part], Deed, &mut WindowWork),
    ) -> Result<()> {
        let schedule = self.schedule;
        let mut fetched: Vec<Fetched> = Vec::new();
        fetched.resize_with(sources.len(), Fetched::default);
        for k in 0..schedule.domains.count(schedule.rank) {
            let window = schedule
                .windows
                .range(schedule.domains.window(schedule.rank, k));
            for (source, fetched) in sources.iter().zip(&mut fetched) {
                source.fetch(comm, (schedule, k), records, (deed, fetched))?;
            }
            let mut segments = Vec::with_capacity(sources.len());
            for (source, fetched) in sources.iter().zip(&fetched) {
                let incoming = &schedule.incoming[source.rank];
                let elements = incoming.wanted[k as usize].elements();
                if elements > 0 {
                    let lengths = incoming.runs.then_some(&fetched.lengths[..]);
                    segments.push(Segment {
                        points: packet(&fetched.offsets, lengths, 0..fetched.offsets.len()),
                        elements,
                        values: &fetched.starts,
                        packed: 0,
                    });
                }
            }
            for part in parts {
                // SAFETY: the entries of lists lie in their windows, and there
                // is room for the elements of all of them.
                unsafe {
                    work.visit(
                        part,
                        (&window, &schedule.filled[k as usize]),
                        &segments,
                        deed,
                    )?;
                }
            }
            if deed.direction() == Direction::Read {
                for (source, fetched) in sources.iter().zip(&fetched) {
                    source.give(comm, (schedule, k), records, fetched)?;
                }
            }
        }
        Ok(())
    }
}

impl Source {
    /// Where the elements of a window begin in the packet, of each variable, and
    /// how many bytes they are.
    fn places(&self, schedule: &Schedule, k: u64, records: &[usize]) -> Vec<(u64, usize)> {
        let incoming = &schedule.incoming[self.rank];
        let wanted = incoming.wanted[k as usize];
        let mut before = self.packet;
        let places = records.iter().map(|record| {
            let at = before + wanted.first_element * *record as u64;
            before += incoming.elements * *record as u64;
            (at, wanted.elements() as usize * record)
        });
        places.collect()
    }

    /// Copies what is needed of it for a window.
    fn fetch(
        &self,
        comm: &Comm,
        (schedule, k): (&Schedule, u64),
        records: &[usize],
        (deed, into): (Deed, &mut Fetched),
    ) -> Result<()> {
        let incoming = &schedule.incoming[self.rank];
        let wanted = incoming.wanted[k as usize];
        let entries = wanted.entries().len();
        into.offsets.resize(entries, 0);
        let first = 4 * wanted.first_entry;
        self.copy(
            comm,
            self.offsets + first,
            bytemuck::cast_slice_mut(&mut into.offsets),
        )?;
        if incoming.runs {
            into.lengths.resize(entries, 0);
            self.copy(
                comm,
                self.lengths + first,
                bytemuck::cast_slice_mut(&mut into.lengths),
            )?;
        }
        into.starts.clear();
        into.values.resize_with(records.len(), Vec::new);
        let places = self.places(schedule, k, records);
        for ((at, len), values) in places.into_iter().zip(&mut into.values) {
            if self.rank == schedule.rank {
                into.starts.push(at as *mut u8);
                continue;
            }
            values.resize(len, 0);
            if deed.direction() == Direction::Write {
                self.copy(comm, at, values)?;
            }
            into.starts.push(values.as_mut_ptr());
        }
        Ok(())
    }

    /// Copies the elements of a window that were read back into the packet.
    fn give(
        &self,
        comm: &Comm,
        (schedule, k): (&Schedule, u64),
        records: &[usize],
        fetched: &Fetched,
    ) -> Result<()> {
        if self.rank == schedule.rank {
            return Ok(());
        }
        let places = self.places(schedule, k, records);
        for ((at, _), values) in places.into_iter().zip(&fetched.values) {
            // SAFETY: the packet has room for the elements of all windows, and
            // these are of this rank's windows. Its owner waits, and keeps the
            // memory if it does not.
            let copied = unsafe { comm.transport().copy_to(self.rank, at, values)? };
            if !copied {
                return Err(self.refused());
            }
        }
        Ok(())
    }

    fn copy(&self, comm: &Comm, address: u64, into: &mut [u8]) -> Result<()> {
        if into.is_empty() {
            return Ok(());
        }
        // SAFETY: lists and packets are so long, and their owner writes neither
        // before all are through.
        match unsafe { comm.transport().copy_from(self.rank, address, into)? } {
            true => Ok(()),
            false => Err(self.refused()),
        }
    }

    fn refused(&self) -> Error {
        Error::Invalid(format!(
            "the system does not copy the memory of rank {} any more",
            self.rank
        ))
    }
}

/// Whether the kernel copies from the memory of all others.
fn copies(comm: &Comm) -> Result<bool> {
    for rank in (0..comm.size()).filter(|rank| *rank != comm.rank()) {
        // SAFETY: no byte is read.
        if !unsafe { comm.transport().copy_from(rank, 0, &mut [])? } {
            return Ok(false);
        }
    }
    Ok(true)
}
