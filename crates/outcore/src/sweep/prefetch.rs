//! [`Prefetch`]: one section read in the background: start, test, wait
//! (`PASSION_read_prefetch` and `PASSION_prefetch_wait` of Thakur 1995, table
//! 5.1).

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use outcore_geometry::Section;
use outcore_storage::Store;

use crate::array::Array;
use crate::budget::{MemoryBudget, Reservation};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::strategy::Direction;

/// A section that is being read in the background. Dropping it waits until
/// the read is over.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("grid.oc");
/// # let name = name.to_str().unwrap();
/// let array = Array::create(name, &ArrayDescriptor::new(&[100, 100], ElementType::F64))?;
/// let next = array.prefetch::<f64>(&array.section("50:60, :")?, &MemoryBudget::of(1 << 20))?;
/// // ... compute on something else ...
/// let values = next.wait()?;
/// assert_eq!(values.len(), 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Prefetch<T> {
    outcome: Receiver<Outcome<T>>,
    arrived: Option<Outcome<T>>,
    thread: Option<JoinHandle<()>>,
    /// The store whose clock is the caller's.
    store: Arc<dyn Store>,
    _memory: Reservation,
}

/// What came of it, and at which virtual time.
type Outcome<T> = (Result<Vec<T>>, Option<Duration>);

impl Array {
    /// Begins to read a section in the background. Its memory counts to the
    /// budget until the values are handed out.
    pub fn prefetch<T: Element>(
        &self,
        section: &Section,
        budget: &MemoryBudget,
    ) -> Result<Prefetch<T>> {
        self.check_access(T::TYPE, Direction::Read)?;
        self.plan(section, Direction::Read)?;
        let bytes = section.count().saturating_mul(self.layout().element_size());
        let memory = budget.reserve(bytes, "the prefetch")?;
        let (array, section) = (self.in_background(), section.clone());
        let (done, outcome) = mpsc::channel();
        let read = move || {
            let values = array.read(&section);
            // Whoever asked may have lost interest.
            let _ = done.send((values, array.store().time()));
        };
        // In virtual time a read takes no time, only its clock goes on.
        let thread = match self.store().time() {
            None => Some(super::in_background("prefetching", read)?),
            Some(_) => {
                read();
                None
            }
        };
        Ok(Prefetch {
            outcome,
            arrived: None,
            thread,
            store: Arc::clone(self.store()),
            _memory: memory,
        })
    }
}

impl<T: Element> Prefetch<T> {
    /// Whether [`wait`](Self::wait) would return at once.
    pub fn is_ready(&mut self) -> bool {
        if self.arrived.is_none() {
            self.arrived = match self.outcome.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            };
        }
        let at = self.arrived.as_ref().and_then(|(_, at)| *at);
        at <= self.store.time()
    }

    /// Waits for the values.
    pub fn wait(mut self) -> Result<Vec<T>> {
        let ended = || Error::Invalid("the thread that prefetches has ended early".into());
        let (values, at) = match self.arrived.take() {
            Some(outcome) => outcome,
            None => self.outcome.recv().map_err(|_| ended())?,
        };
        if let Some(at) = at {
            self.store.wait_until(at);
        }
        values
    }
}

impl<T> Drop for Prefetch<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
