//! Batches through io_uring: up to [`DEPTH`] transfers of a batch are in
//! flight at the same time, and one system call starts and reaps many.
//!
//! A ring costs about a hundred microseconds to make, so those made are kept
//! in a pool of the process and used by one batch at a time. A transfer that
//! ends short, interrupted or with an error is finished by the batch itself
//! with ordinary calls (see [`Batch::complete`]).
//!
//! Invariant: no call returns, not even by a panic, while the kernel still
//! holds pointers into the batch; [`Flight`] waits for them when dropped.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use io_uring::{IoUring, opcode, squeue, types};

use crate::batch::{Batch, Direction, Transfer};
use crate::error::Result;

/// How many transfers are in flight at most.
const DEPTH: u32 = 128;

/// The kernel counts in 32 bits; a longer transfer ends short, and is then
/// finished as any short one.
const LONGEST: usize = 1 << 30;

/// A ring and the process that made it: after a fork the child must not touch
/// its parent's.
struct Ring {
    queues: IoUring,
    maker: u32,
}

/// Rings not in use.
static IDLE: Mutex<Vec<Ring>> = Mutex::new(Vec::new());

/// Set once the kernel has said that it has no io_uring for this process.
static REFUSED: AtomicBool = AtomicBool::new(false);

fn idle() -> MutexGuard<'static, Vec<Ring>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A ring from the pool, or a new one; `None` where there are none.
fn take() -> Option<Ring> {
    let process = process::id();
    while let Some(ring) = idle().pop() {
        if ring.maker == process {
            return Some(ring);
        }
        // Its memory is not mapped in this process: there is nothing to free.
        std::mem::forget(ring);
    }
    if REFUSED.load(Ordering::Relaxed) {
        return None;
    }
    match IoUring::new(DEPTH) {
        Ok(queues) => Some(Ring {
            queues,
            maker: process,
        }),
        Err(error) => {
            if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) {
                REFUSED.store(true, Ordering::Relaxed);
            }
            None
        }
    }
}

/// Whether this process may use io_uring.
pub(crate) fn is_available() -> bool {
    let ring = take();
    let available = ring.is_some();
    idle().extend(ring);
    available
}

/// Performs all transfers of the batch; `None`, with nothing done, where there
/// is no ring to be had.
pub(crate) fn run(file: &File, batch: &mut impl Batch) -> Option<Result<()>> {
    let mut ring = take()?;
    let result = Flight {
        ring: &mut ring.queues,
        aloft: 0,
    }
    .run(file, batch);
    idle().push(ring);
    Some(result)
}

/// The transfers that the kernel has been given and has not completed.
struct Flight<'a> {
    ring: &'a mut IoUring,
    aloft: usize,
}

impl Flight<'_> {
    fn run(mut self, file: &File, batch: &mut impl Batch) -> Result<()> {
        let file = types::Fd(file.as_raw_fd());
        let mut next = 0;
        loop {
            // 1. Fill the submission queue.
            let mut queue = self.ring.submission();
            while next < batch.len() && self.aloft < DEPTH as usize {
                let entry = entry(file, batch.transfer(next)).user_data(next as u64);
                // SAFETY: by the contract of `Batch` the memory stays valid
                // while the transfer is aloft, and no transfer is aloft once
                // `self` is dropped.
                unsafe { queue.push(&entry) }
                    .expect("the queue holds DEPTH entries, all that are aloft");
                next += 1;
                self.aloft += 1;
            }
            drop(queue);
            if self.aloft == 0 {
                return Ok(());
            }
            // 2. Start them, and wait until at least one is complete.
            self.wait();
            // 3. Hand all completions to the batch.
            for completion in self.ring.completion() {
                self.aloft -= 1;
                let done = usize::try_from(completion.result()).unwrap_or(0);
                batch.complete(completion.user_data() as usize, done)?;
            }
        }
    }

    fn wait(&mut self) {
        if let Err(error) = self.ring.submit_and_wait(1) {
            match error.raw_os_error() {
                // Signals and passing shortages: reap what there is, try again.
                Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => thread::yield_now(),
                _ => abandon(&error),
            }
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        while self.aloft > 0 {
            self.wait();
            self.aloft -= self.ring.completion().count();
        }
    }
}

/// Ends the process: the kernel can no longer be asked when it stops writing
/// to the batch's memory. The other errors of `io_uring_enter` are for rings
/// and descriptors that do not exist.
fn abandon(error: &io::Error) -> ! {
    eprintln!("outcore: io_uring failed with transfers in flight: {error}");
    process::abort()
}

fn entry(file: types::Fd, transfer: Transfer) -> squeue::Entry {
    let Transfer {
        direction,
        offset,
        memory,
        len,
    } = transfer;
    let len = len.min(LONGEST) as u32;
    match direction {
        Direction::Read => opcode::Read::new(file, memory, len).offset(offset).build(),
        Direction::Write => opcode::Write::new(file, memory, len).offset(offset).build(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::error::Error;

    /// Reads bytes one by one; some transfers ask for nothing, as if they had
    /// failed, and the completion of `bad` fails.
    struct Bytes<'a> {
        file: &'a File,
        bytes: &'a mut [u8],
        bad: Option<usize>,
        completed: usize,
    }

    // SAFETY: the bytes are borrowed for longer than the batch lives, and each
    // is used again only when its transfer is complete.
    unsafe impl Batch for Bytes<'_> {
        fn len(&self) -> usize {
            self.bytes.len()
        }

        fn transfer(&mut self, index: usize) -> Transfer {
            let memory = &raw mut self.bytes[index];
            let len = usize::from(!index.is_multiple_of(3));
            Transfer {
                direction: Direction::Read,
                offset: index as u64,
                memory,
                len,
            }
        }

        fn complete(&mut self, index: usize, done: usize) -> Result<()> {
            self.completed += 1;
            assert_eq!(done, usize::from(!index.is_multiple_of(3)));
            if self.bad == Some(index) {
                let source = io::ErrorKind::Other.into();
                return Err(Error::read("bytes", index as u64, source));
            }
            let byte = &mut self.bytes[index..=index];
            self.file
                .read_exact_at(&mut byte[done..], index as u64)
                .unwrap();
            Ok(())
        }
    }

    #[test]
    fn short_transfers_are_finished_and_failures_leave_nothing_in_flight() {
        if !is_available() {
            return eprintln!("skipped: no io_uring");
        }
        let file = tempfile::tempfile().unwrap();
        let wanted: Vec<u8> = (0..1000).map(|at| (at % 251) as u8).collect();
        file.write_all_at(&wanted, 0).unwrap();
        for bad in [Some(0), None, Some(500), Some(999), None] {
            let mut bytes = vec![255; wanted.len()];
            let mut batch = Bytes {
                file: &file,
                bytes: &mut bytes,
                bad,
                completed: 0,
            };
            let result = run(&file, &mut batch).expect("there are rings");
            let completed = batch.completed;
            assert_eq!(result.is_err(), bad.is_some());
            if bad.is_none() {
                assert_eq!(completed, wanted.len());
                assert_eq!(bytes, wanted);
            }
        }
        // Every ring that was used is idle, with nothing left in its queues.
        for ring in idle().iter_mut() {
            assert!(ring.queues.submission().is_empty());
            assert!(ring.queues.completion().is_empty());
        }
    }
}
