//! Words on which ranks sleep: threads of one process, or processes that have
//! mapped the memory in which the word lies.
//!
//! Who waits looks at a word, and if it does not say what is hoped for, sleeps
//! for as long as the word stays the same. Who changes the word wakes the
//! sleepers afterwards. A change between the look and the sleep is never
//! missed, because the kernel compares again.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` is `value`, until woken, or for `longest`. May return
/// earlier.
#[cfg(target_os = "linux")]
pub fn sleep_on(word: &AtomicU32, value: u32, longest: Duration) {
    let longest = libc::timespec {
        tv_sec: libc::time_t::try_from(longest.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    // SAFETY: the kernel only reads the word and the time, which are ours.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            &raw const longest,
        );
    }
}

/// Wakes up to so many of those who sleep on `word`.
#[cfg(target_os = "linux")]
pub fn wake(word: &AtomicU32, how_many: u32) {
    let how_many = i32::try_from(how_many).unwrap_or(i32::MAX);
    // SAFETY: the kernel only uses the address.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, how_many);
    }
}

/// Sleeps for a short while, or for `longest`.
#[cfg(not(target_os = "linux"))]
pub fn sleep_on(word: &AtomicU32, value: u32, longest: Duration) {
    use std::sync::atomic::Ordering;
    if word.load(Ordering::Acquire) == value {
        std::thread::sleep(longest.min(Duration::from_micros(50)));
    }
}

/// Nobody sleeps for long.
#[cfg(not(target_os = "linux"))]
pub fn wake(_: &AtomicU32, _: u32) {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;

    use super::*;

    #[test]
    fn a_sleeper_is_woken() {
        let word = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    sleep_on(&word, 0, Duration::from_secs(3600));
                }
            });
            thread::sleep(Duration::from_millis(5));
            word.store(1, Ordering::Release);
            wake(&word, u32::MAX);
        });
    }

    #[test]
    fn nobody_sleeps_on_another_value_or_for_ever() {
        let word = AtomicU32::new(1);
        sleep_on(&word, 0, Duration::from_secs(3600));
        sleep_on(&word, 1, Duration::from_millis(1));
        wake(&word, 1);
    }
}
