//! Work spread over threads that live as long as one call: requests that overlap where
//! the kernel has no io_uring, chunks, blocks of relayouts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{self, Error};

/// Does `work` for every item on up to `threads` threads, the caller's among
/// them. After a failure no further item is begun; one failure is returned.
pub(crate) fn for_each<T: Send>(
    items: impl Iterator<Item = T> + Send,
    threads: usize,
    work: impl Fn(T) -> error::Result<()> + Sync,
) -> error::Result<()> {
    for_each_with(items, threads, || Ok::<_, Error>(()), |(), item| work(item))
}

/// The same where each thread has something of its own, which it makes with `begin`
/// before it takes its first item.
pub fn for_each_with<T: Send, S, E: Send>(
    items: impl Iterator<Item = T> + Send,
    threads: usize,
    begin: impl Fn() -> Result<S, E> + Sync,
    work: impl Fn(&mut S, T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let items = Mutex::new(items);
    let failed = AtomicBool::new(false);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let all = || {
        let mut own = begin()?;
        while !failed.load(Ordering::Relaxed)
            && let Some(item) = next()
        {
            work(&mut own, item)?;
        }
        Ok(())
    };
    let run = || all().inspect_err(|_| failed.store(true, Ordering::Relaxed));
    thread::scope(|scope| {
        // A thread that the system refuses is one less: the others do its work.
        let others: Vec<_> = (1..threads)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok())
            .collect();
        let mut result = run();
        for other in others {
            let theirs = other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(theirs);
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_something_of_its_own() {
        let (begun, done) = (Mutex::new(0), Mutex::new(0));
        let begin = || {
            *begun.lock().unwrap() += 1;
            Ok::<_, String>(0)
        };
        let work = |own: &mut u64, item: u64| {
            *own += item;
            *done.lock().unwrap() += item;
            match *own {
                own if own >= item => Ok(()),
                _ => Err(format!("{own} after {item}")),
            }
        };
        for_each_with(1..=1000, 4, begin, work).unwrap();
        assert_eq!(*done.lock().unwrap(), 500_500);
        assert_eq!(*begun.lock().unwrap(), 4);
    }

    #[test]
    fn nothing_is_begun_after_a_failure() {
        let count = Mutex::new(0);
        let failure = for_each_with(
            0..1_000_000,
            3,
            || Ok(()),
            |(), item| {
                *count.lock().unwrap() += 1;
                if item == 5 { Err("five") } else { Ok(()) }
            },
        );
        assert_eq!(failure, Err("five"));
        assert!(*count.lock().unwrap() < 1_000_000);
        let failure = for_each_with(0..3, 2, || Err::<(), _>("no room"), |(), _| Ok(()));
        assert_eq!(failure, Err("no room"));
    }

    /// Stacks of so many bytes are refused by the system.
    const TOO_LARGE: &str = "100000000000000";

    /// The test runs itself in a process that gets no threads.
    #[test]
    fn the_caller_does_the_work_of_threads_that_are_refused() {
        if std::env::var("RUST_MIN_STACK").is_ok_and(|set| set == TOO_LARGE) {
            assert!(thread::Builder::new().spawn(|| ()).is_err());
            let done = Mutex::new(0);
            let work = |(): &mut (), item: u64| {
                *done.lock().unwrap() += item;
                Ok::<_, String>(())
            };
            for_each_with(1..=100, 8, || Ok(()), work).unwrap();
            assert_eq!(*done.lock().unwrap(), 5050);
            return;
        }
        let name = "threads::tests::the_caller_does_the_work_of_threads_that_are_refused";
        let own = std::env::current_exe().unwrap();
        let output = std::process::Command::new(own)
            .args(["--exact", name, "--test-threads=1"])
            .env("RUST_MIN_STACK", TOO_LARGE)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}");
        assert!(told.contains("1 passed"), "{told}");
    }
}
