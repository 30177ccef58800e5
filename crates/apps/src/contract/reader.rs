//! [`Reader`]: a thread that reads blocks while its rank multiplies others.
//!
//! Only what is not in memory yet goes to it: what the page cache holds is copied
//! sooner by who wants it than handed from thread to thread.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use outcore::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

/// A thread that does what it is given, in order; it ends with the value.
#[derive(Debug)]
pub(super) struct Reader {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub(super) fn start() -> Result<Self> {
        let (jobs, given) = channel::<Job>();
        let work = move || given.into_iter().for_each(|job| job());
        let thread = std::thread::Builder::new()
            .name("block reader".into())
            .spawn(work);
        let thread = thread.map_err(|error| {
            Error::Invalid(format!("cannot start a thread that reads blocks: {error}"))
        })?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Hands over something to do, and returns where its result arrives.
    pub(super) fn give<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Receiver<R> {
        let (answer, arrives) = channel();
        let job = move || drop(answer.send(work()));
        if let Some(jobs) = &self.jobs {
            // If the thread is gone, the answer is missing where it is awaited.
            drop(jobs.send(Box::new(job)));
        }
        arrives
    }
}

/// What a reader has been given to do, when it is done.
pub(super) fn result_of<R>(arrives: &Receiver<Result<R>>) -> Result<R> {
    arrives.recv().unwrap_or_else(|_| {
        Err(Error::Invalid(
            "the thread that reads blocks has ended".into(),
        ))
    })
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
