//! [`TaskCounter`]: a counter that all ranks share, which gives each group of tasks to
//! one.
//!
//! Groups are given out one at a time, the largest first, and a rank asks for the
//! next one before it is done with its last; so neither chunks nor a pool that
//! calls back would serve.

use outcore::{AxisDistribution, Comm, Distribution, Error, GlobalArray, Procedures, Result};

use super::execute::Tasks;

/// Where the counter stands.
const COUNTER: [u64; 1] = [0];

/// Far beyond the last task, and far from overflow though every rank may add it.
const STOPPED: u64 = 1 << 48;

/// A counter that all ranks share: an element of a global array. It serves for one
/// contraction.
#[derive(Debug)]
pub struct TaskCounter {
    counter: GlobalArray<u64>,
    tasks: u64,
}

impl TaskCounter {
    /// Collective: a counter of so many groups. Ranks of different nodes need
    /// `procedures` of the same group.
    pub fn new(comm: &Comm, procedures: Option<&Procedures>, tasks: u64) -> Result<Self> {
        if tasks >= STOPPED {
            return Err(Error::Invalid(format!(
                "{tasks} groups of tasks are too many to be counted"
            )));
        }
        let ranks = comm.size() as u64;
        let axis = [AxisDistribution::BlockSize(1)];
        let one_each = Distribution::new(&[ranks], &axis, &[ranks]);
        let one_each = one_each.map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Self {
            counter: GlobalArray::new(comm, procedures, one_each)?,
            tasks,
        })
    }
}

impl Tasks for TaskCounter {
    fn next(&self) -> Result<Option<u64>> {
        let number = self.counter.read_increment(&COUNTER, 1)?;
        Ok((number < self.tasks).then_some(number))
    }

    fn stop(&self) {
        // Added, as a number that is put may be lost between the halves of an increment.
        // If it cannot be told, others work in vain, but come to an end.
        drop(self.counter.read_increment(&COUNTER, STOPPED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_was_stopped_stays_so() {
        outcore::run(2, |comm| {
            let counter = TaskCounter::new(comm, None, 1000)?;
            assert!(counter.next()?.is_some());
            comm.barrier()?;
            for _ in 0..5 {
                counter.stop();
                for _ in 0..3 {
                    assert_eq!(counter.next()?, None);
                }
            }
            assert!(TaskCounter::new(comm, None, u64::MAX).is_err());
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}
