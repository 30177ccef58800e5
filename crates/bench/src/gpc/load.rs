//! What else the machine does while rank 0 calls rank 1, and a futex ping-pong
//! between the two under the same load.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use outcore::{Comm, Result};
use outcore_transport::Shared;
use outcore_transport::doorbell::{sleep_on, wake};

/// What rank 1, the target, does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// It sleeps.
    Idle,
    /// It computes all the time.
    Busy,
    /// It computes on as many threads as there are cores.
    AllBusy,
}

impl Load {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Idle => "target idle",
            Self::Busy => "target computes",
            Self::AllBusy => "all cores compute",
        }
    }
}

/// Words of rank 0 that both reach.
pub(super) struct Table(Shared);

impl Table {
    /// Collective.
    pub(super) fn new(comm: &Comm) -> Result<Self> {
        Ok(Self(comm.share(4 * 64)?))
    }

    /// Whether the ranks share memory.
    pub(super) fn is_reached(&self) -> bool {
        self.0.of(0).is_some()
    }

    /// A word with a cache line of its own.
    fn word(&self, place: usize) -> &AtomicU32 {
        let (start, _) = self.0.of(0).expect("only ranks of one node have a table");
        // SAFETY: there are four aligned words, used as atomics only.
        unsafe { AtomicU32::from_ptr(start.add(place * 64).cast()) }
    }

    /// Rank 1: bears the load until rank 0 [lifts](Table::lift) it for the
    /// `turn`-th time.
    pub(super) fn bear(&self, load: Load, turn: u32) {
        let word = self.word(0);
        let is_over = || word.load(Ordering::Relaxed) >= turn;
        match load {
            Load::Idle => {
                while !is_over() {
                    sleep_on(word, turn - 1, Duration::from_millis(100));
                }
            }
            Load::Busy => compute(is_over),
            Load::AllBusy => thread::scope(|scope| {
                let cores = thread::available_parallelism().map_or(1, usize::from);
                (1..cores).for_each(|_| drop(scope.spawn(|| compute(is_over))));
                compute(is_over);
            }),
        }
    }

    /// Rank 0: ends the load of rank 1.
    pub(super) fn lift(&self, turn: u32) {
        self.word(0).store(turn, Ordering::SeqCst);
        wake(self.word(0), u32::MAX);
    }

    /// Rank 0: to the partner and back.
    pub(super) fn ping(&self, ball: &mut u32) {
        *ball = ball.wrapping_add(2) | 1;
        let (there, back) = (self.word(1), self.word(2));
        there.store(*ball, Ordering::SeqCst);
        wake(there, 1);
        loop {
            let seen = back.load(Ordering::SeqCst);
            if seen == *ball {
                return;
            }
            sleep_on(back, seen, Duration::from_secs(1));
        }
    }

    /// A thread of rank 1: plays until `over`.
    pub(super) fn pong(&self, over: &AtomicBool) {
        let (there, back) = (self.word(1), self.word(2));
        let mut seen = 0;
        while !over.load(Ordering::Relaxed) {
            sleep_on(there, seen, Duration::from_millis(200));
            let ball = there.load(Ordering::SeqCst);
            if ball != seen {
                seen = ball;
                back.store(ball, Ordering::SeqCst);
                wake(back, 1);
            }
        }
    }
}

/// Computes until it `is_over`.
fn compute(is_over: impl Fn() -> bool) {
    let mut x = 1.0_f64;
    while !is_over() {
        for _ in 0..1000 {
            x = black_box(x * 1.000_000_1 + 1e-9);
        }
        if x > 1e9 {
            x = 1.0;
        }
    }
}

/// The processor time of this process.
pub(super) fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
