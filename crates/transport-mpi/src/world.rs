//! [`World`]: what all groups of this process share.
//!
//! MPI is initialised once, and four duplicates of `MPI_COMM_WORLD` carry
//! everything: messages between two ranks of a group, messages of collective
//! calls, letters, and notices. No other communicator is ever made, because making one
//! blocks inside MPI, where a failure of another rank could not be noticed.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mpi::ffi;
use outcore_transport::{Error, Result};

use crate::board::Board;
use crate::closing;
use crate::communicator::{Communicator, return_errors};
use crate::contexts::Contexts;
use crate::library::{check, library_version};
use crate::notice::{NOTICE_TAG, Notice};
use crate::outbox::Outbox;

/// How often calls look for notices, in microseconds.
const LOOK_MICROS: u64 = 100;

/// The state of this process among the others.
#[derive(Debug)]
pub(crate) struct World {
    /// This rank.
    pub(crate) rank: usize,
    /// The number of ranks.
    pub(crate) size: usize,
    /// Messages from one rank to another.
    pub(crate) point: Communicator,
    /// Messages of collective calls.
    pub(crate) internal: Communicator,
    /// Letters.
    pub(crate) letters: Communicator,
    /// Notices.
    pub(crate) control: Communicator,
    /// What the notices said.
    pub(crate) board: Board,
    /// Sends that nobody waits for.
    pub(crate) outbox: Outbox,
    /// The numbers of this rank's groups.
    pub(crate) contexts: Contexts,
    /// Data messages sent to each rank.
    sent: Vec<AtomicU64>,
    /// Data messages received from each rank.
    received: Vec<AtomicU64>,
    /// When to look for notices again, in microseconds since `began`.
    next_look: AtomicU64,
    began: Instant,
    /// The number of the run that is going on, or 0.
    pub(crate) run: AtomicU64,
}

static WORLD: OnceLock<Result<World>> = OnceLock::new();

impl World {
    /// The world of this process; the first call initialises MPI and is
    /// collective over all processes.
    pub(crate) fn get() -> Result<&'static Self> {
        WORLD
            .get_or_init(Self::initialise)
            .as_ref()
            .map_err(Clone::clone)
    }

    /// The world, if it has been initialised.
    pub(crate) fn existing() -> Option<&'static Self> {
        WORLD.get()?.as_ref().ok()
    }

    fn initialise() -> Result<Self> {
        // 1. MPI itself, unless the program has done so.
        initialise_mpi()?;
        // 2. Errors come back. Some MPI libraries report those of requests
        //    through the predefined communicators, so set these as well.
        // SAFETY: both exist once MPI is initialised.
        unsafe {
            return_errors(ffi::RSMPI_COMM_WORLD)?;
            return_errors(ffi::RSMPI_COMM_SELF)?;
        }
        // 3. Who are we?
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: the world exists and the out parameters are ours.
        unsafe {
            check(
                "MPI_Comm_rank",
                ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut rank),
            )?;
            check(
                "MPI_Comm_size",
                ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut size),
            )?;
        }
        let (rank, size) = (rank as usize, size as usize);
        let counters = || (0..size).map(|_| AtomicU64::new(0)).collect();
        // 4. Our own communicators. A group's number stands in a tag above the
        //    16 bits of the caller's tag.
        Ok(Self {
            rank,
            size,
            point: Communicator::duplicate_world()?,
            internal: Communicator::duplicate_world()?,
            letters: Communicator::duplicate_world()?,
            control: Communicator::duplicate_world()?,
            board: Board::new(size),
            outbox: Outbox::default(),
            contexts: Contexts::new(largest_context()?),
            sent: counters(),
            received: counters(),
            next_look: AtomicU64::new(0),
            began: Instant::now(),
            run: AtomicU64::new(0),
        })
    }

    /// Sends a notice to `to`. An error is ignored: there is no better way
    /// left to tell that rank anything.
    pub(crate) fn notify(&self, to: usize, notice: &Notice) {
        let bytes = notice.encode().into_boxed_slice();
        let _ = self.outbox.post(bytes, |bytes| {
            // SAFETY: the outbox keeps the bytes until the request is complete.
            unsafe { self.control.start_send(bytes, to, NOTICE_TAG) }
        });
    }

    /// All ranks but this one, beginning with the next.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (rank, size) = (self.rank, self.size);
        (1..size).map(move |distance| (rank + distance) % size)
    }

    /// Declares that `rank` has failed, to everybody, unless a failure is
    /// known already.
    pub(crate) fn fail(&self, rank: usize, cause: &str) {
        if self.board.record_failure(rank, cause) {
            let cause = cause.to_string();
            let notice = Notice::Failed { rank, cause };
            self.others().for_each(|to| self.notify(to, &notice));
        }
    }

    /// Fails the run because this rank waits for `rank`, which has ended.
    pub(crate) fn fail_by_absence(&self, rank: usize) {
        let waiter = self.rank;
        let cause = format!("it has already finished, but rank {waiter} is waiting for it");
        self.fail(rank, &cause);
    }

    /// Counts a data message sent to `to`.
    pub(crate) fn count_sent(&self, to: usize) {
        self.sent[to].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a data message received from `from`.
    pub(crate) fn count_received(&self, from: usize) {
        self.received[from].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of data messages sent to `to`.
    pub(crate) fn messages_to(&self, to: usize) -> u64 {
        self.sent[to].load(Ordering::Relaxed)
    }

    /// The number of data messages received from `from`.
    pub(crate) fn messages_from(&self, from: usize) -> u64 {
        self.received[from].load(Ordering::Relaxed)
    }

    /// Reads the notices that have arrived.
    pub(crate) fn read_notices(&self) -> Result<()> {
        while let Some((from, bytes)) = self.control.take(None, Some(NOTICE_TAG))? {
            if let Some(notice) = Notice::decode(&bytes) {
                self.board.record(from, notice);
            }
        }
        Ok(())
    }

    /// The failure of the run if there is one. Looks for notices only now and
    /// then, as that costs about as much as a short message. In a failed run
    /// this also takes and drops the data that others have sent here, because
    /// they wait for that.
    pub(crate) fn check(&self) -> Result<()> {
        let now = self.began.elapsed().as_micros() as u64;
        if now >= self.next_look.load(Ordering::Relaxed) {
            self.next_look.store(now + LOOK_MICROS, Ordering::Relaxed);
            self.read_notices()
                .inspect_err(|error| self.fail(self.rank, &error.to_string()))?;
        }
        match self.board.failure() {
            None => Ok(()),
            Some(failure) => {
                self.drain()?;
                Err(failure)
            }
        }
    }

    /// Takes and drops the data messages that have arrived.
    pub(crate) fn drain(&self) -> Result<()> {
        for communicator in [&self.point, &self.internal, &self.letters] {
            while let Some((from, _)) = communicator.take(None, None)? {
                self.count_received(from);
            }
        }
        Ok(())
    }
}

/// Initialises MPI for any number of threads, unless the program has done so;
/// then it is for the program to finalise it, too.
fn initialise_mpi() -> Result<()> {
    let (mut initialised, mut provided): (c_int, c_int) = (0, 0);
    // SAFETY: `MPI_Initialized` may be called at any time; the other two are
    // called when it allows them, and all write to our variables only.
    unsafe {
        check("MPI_Initialized", ffi::MPI_Initialized(&mut initialised))?;
        if initialised == 0 {
            let wanted = ffi::RSMPI_THREAD_MULTIPLE;
            let code =
                ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), wanted, &mut provided);
            check("MPI_Init_thread", code)?;
            closing::finalise_at_exit();
        } else {
            check("MPI_Query_thread", ffi::MPI_Query_thread(&mut provided))?;
        }
        if provided < ffi::RSMPI_THREAD_MULTIPLE {
            return Err(Error::Launch(format!(
                "{} does not allow several threads to communicate (MPI_THREAD_MULTIPLE)",
                library_version()
            )));
        }
    }
    Ok(())
}

/// The largest number of a group that fits into a tag.
fn largest_context() -> Result<u32> {
    let mut largest_tag: *mut c_int = ptr::null_mut();
    let mut found: c_int = 0;
    // SAFETY: for this attribute MPI stores a pointer to an integer of its
    // own, which stays valid until MPI is finalised.
    let largest_tag = unsafe {
        let code = ffi::MPI_Comm_get_attr(
            ffi::RSMPI_COMM_WORLD,
            ffi::MPI_TAG_UB as c_int,
            (&raw mut largest_tag).cast::<c_void>(),
            &mut found,
        );
        check("MPI_Comm_get_attr", code)?;
        if found == 0 { 0 } else { *largest_tag }
    };
    match (largest_tag as u32 + 1) >> u16::BITS {
        0 => Err(Error::Launch(format!(
            "{} has too few message tags ({largest_tag})",
            library_version()
        ))),
        groups => Ok(groups - 1),
    }
}
