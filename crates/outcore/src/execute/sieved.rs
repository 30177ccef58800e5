//! Carrying out a plan that sieves: batches of accesses through one buffer.
//!
//! The path of the data: as many accesses as the buffer holds are read at
//! once, then the wanted runs are copied out. An access that is one run goes
//! straight between the store and the caller's buffer. For writing, those
//! accesses that have gaps are read first, under a lock that keeps out all other
//! writers, the runs copied in, and all written at once; an access that the
//! section covers completely is not read.
//!
//! What is not in the page cache is asked for before: the next batches come from
//! the device while the runs of this one are copied.

use outcore_storage::{ReadRequest, Store, WriteRequest};

use super::ahead::Ahead;
use super::copy::{gather, scatter, swap_pass};
use crate::error::Result;
use crate::plan::Plan;
use crate::strategy::batch::Batch;
use crate::strategy::sieving::{Access, Accesses, Sieve};

/// Reads the section into `buffer`.
pub(super) fn read(plan: &Plan, sieve: Sieve, store: &dyn Store, buffer: &mut [u8]) -> Result<()> {
    let mut accesses = Accesses::new(&plan.runs, sieve);
    let mut ahead = Ahead::new(plan, store);
    let mut batch = Batch::default();
    let mut staging = vec![0; plan.staging(sieve)];
    while batch.fill(&mut accesses, sieve.buffer) {
        ahead.reach(batch.extent().1);
        // 1. Read: single runs into their place, the others into the staging.
        let mut requests = Vec::with_capacity(batch.accesses.len());
        let mut free = &mut staging[..];
        let end = buffer.len();
        let base = buffer.as_mut_ptr();
        for access in &batch.accesses {
            let piece = match access.single(&batch.copies) {
                Some(pass) => {
                    let range = super::buffer_range(&pass.first, end);
                    // SAFETY: the range lies inside the buffer, which is not
                    // touched otherwise until the requests are done, and runs
                    // are disjoint there.
                    unsafe { std::slice::from_raw_parts_mut(base.add(range.start), range.len()) }
                }
                None => {
                    let (piece, rest) = free.split_at_mut(access.len as usize);
                    free = rest;
                    piece
                }
            };
            requests.push(ReadRequest {
                offset: plan.start + access.offset,
                buffer: piece,
            });
        }
        store.read_batch(&mut requests)?;
        drop(requests);
        // 2. Copy out.
        let mut image = &staging[..];
        for access in &batch.accesses {
            if access.single(&batch.copies).is_some() {
                continue;
            }
            let (piece, rest) = image.split_at(access.len as usize);
            image = rest;
            for pass in &batch.copies[access.copies.clone()] {
                gather(pass, piece, access.offset, buffer);
            }
        }
    }
    Ok(())
}

/// Writes the section from `data`.
pub(super) fn write(plan: &Plan, sieve: Sieve, store: &dyn Store, data: &[u8]) -> Result<()> {
    let mut accesses = Accesses::new(&plan.runs, sieve);
    let mut ahead = Ahead::new(plan, store);
    let mut batch = Batch::default();
    let mut staging = vec![0; plan.staging(sieve)];
    let mut reversed = Vec::new();
    while batch.fill(&mut accesses, sieve.buffer) {
        ahead.reach(batch.extent().1);
        let staged = |access: &&Access| access.single(&batch.copies).is_none();
        // 1. Lock, alone if anything is to be read and written back, and read.
        let gaps = |access: &&Access| access.useful < access.len;
        let (start, end) = batch.extent();
        let lock = match batch.accesses.iter().any(|access| gaps(&access)) {
            true => store.lock(plan.start + start, end - start)?,
            false => store.lock_shared(plan.start + start, end - start)?,
        };
        let mut requests = Vec::new();
        let mut free = &mut staging[..];
        for access in batch.accesses.iter().filter(staged) {
            let (piece, rest) = free.split_at_mut(access.len as usize);
            free = rest;
            if gaps(&access) {
                requests.push(ReadRequest {
                    offset: plan.start + access.offset,
                    buffer: piece,
                });
            }
        }
        store.read_batch(&mut requests)?;
        drop(requests);
        // 2. Copy in.
        let mut image = &mut staging[..];
        for access in batch.accesses.iter().filter(staged) {
            let (piece, rest) = image.split_at_mut(access.len as usize);
            image = rest;
            for pass in &batch.copies[access.copies.clone()] {
                scatter(pass, data, piece, access.offset);
                if let Some(width) = plan.swap {
                    swap_pass(pass, piece, access.offset, width);
                }
            }
        }
        // 3. Write, single runs from where they are.
        let mut requests = Vec::with_capacity(batch.accesses.len());
        let mut singles = Vec::new();
        let mut image = &staging[..];
        for access in &batch.accesses {
            let offset = plan.start + access.offset;
            match access.single(&batch.copies) {
                Some(pass) => {
                    let data = &data[super::buffer_range(&pass.first, data.len())];
                    match plan.swap {
                        None => requests.push(WriteRequest { offset, data }),
                        Some(_) => singles.push(WriteRequest { offset, data }),
                    }
                }
                None => {
                    let (piece, rest) = image.split_at(access.len as usize);
                    image = rest;
                    requests.push(WriteRequest {
                        offset,
                        data: piece,
                    });
                }
            }
        }
        store.write_batch(&requests)?;
        if let Some(width) = plan.swap {
            super::write_swapped(store, &singles, width, &mut reversed)?;
        }
        drop(lock);
    }
    Ok(())
}
