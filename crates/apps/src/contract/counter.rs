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

/// Far beyond the last task, and far from overflow.
const STOPPED: u64 = u64::MAX / 2;

/// A counter that all ranks share: an element of a global array.
#[derive(Debug)]
pub struct TaskCounter {
    counter: GlobalArray<u64>,
    tasks: u64,
}

impl TaskCounter {
    /// Collective: a counter of so many groups. Ranks of different nodes need
    /// `procedures` of the same group.
    pub fn new(comm: &Comm, procedures: Option<&Procedures>, tasks: u64) -> Result<Self> {
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
        // If it cannot be told, others work in vain, but come to an end.
        drop(self.counter.put_one(&COUNTER, STOPPED));
    }
}
