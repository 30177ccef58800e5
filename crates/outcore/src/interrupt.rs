//! Stopping a program from outside: a signal sets a flag, and whoever is about to
//! move bytes of an array looks at it and fails.
//!
//! So an interruption is a failure like any other: it reaches all ranks, what is
//! unfinished is removed, and a [`RelayoutJob`](crate::RelayoutJob) keeps what can be
//! continued. A second signal ends the process at once.
//!
//! Nothing of this happens in a program that has not called [`stop_on_signals`].

use std::sync::atomic::{AtomicI32, Ordering};

use crate::error::{Error, Result};

/// The signal that came, or 0.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// From now on the first SIGINT, SIGTERM or SIGHUP makes calls fail with
/// [`Error::Interrupted`], and the second ends the process. A SIGHUP that is ignored, as
/// under `nohup`, stays so.
pub fn stop_on_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        if signal == libc::SIGHUP && is_ignored(signal) {
            continue;
        }
        // SAFETY: zeros are a valid sigaction: no flags, no blocked signals.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // Calls that were interrupted go on; what they move is complete.
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the handler only touches an atomic and calls _exit, which a
        // handler may do.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: zeros are a valid sigaction, which the call replaces by the present one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed; `action` lives through the call.
    unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    action.sa_sigaction == libc::SIG_IGN
}

extern "C" fn on_signal(signal: libc::c_int) {
    if SIGNAL.swap(signal, Ordering::Relaxed) != 0 {
        // SAFETY: it ends the process, without running anything of it.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// The signal that this process was told to stop with, if one came.
pub fn interrupted() -> Option<i32> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// Fails after a signal.
pub(crate) fn check() -> Result<()> {
    match interrupted() {
        None => Ok(()),
        Some(_) => Err(Error::Interrupted),
    }
}
