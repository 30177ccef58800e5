//! Work spread over threads that live as long as one call: the way to overlap
//! requests where the kernel has no io_uring.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Result;

/// Does `work` for every item on up to `threads` threads, the caller's among
/// them. After a failure no further item is begun; one failure is returned.
pub(crate) fn for_each<T: Send>(
    items: impl Iterator<Item = T> + Send,
    threads: usize,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let items = Mutex::new(items);
    let failed = AtomicBool::new(false);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while !failed.load(Ordering::Relaxed)
            && let Some(item) = next()
        {
            work(item).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
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
