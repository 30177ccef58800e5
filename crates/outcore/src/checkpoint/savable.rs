//! [`Savable`]: what can be saved in a checkpoint: an array that is divided
//! among the ranks regularly, or values at listed places ([`Scattered`]).

use bytemuck::Pod;
use outcore_transport::Comm;

use crate::array::Array;
use crate::distributed::DistributedArray;
use crate::element::{Element, ElementType};
use crate::error::Result;
use crate::irregular::Schedule;

/// Data of all ranks that together are an array.
///
/// Shape and type are the same on every rank. What the ranks hold of it, and
/// where, is known to the value alone.
pub trait Savable {
    /// The extent of each axis of the whole array.
    fn shape(&self) -> Vec<u64>;

    /// The type of the elements.
    fn element_type(&self) -> ElementType;

    /// Collective: writes all elements to `array`, which is of this shape and
    /// type and holds zeros. All ranks succeed, or all return the same error.
    fn write(&self, comm: &Comm, array: &Array) -> Result<()>;
}

impl<T: Pod + Element> Savable for DistributedArray<T> {
    fn shape(&self) -> Vec<u64> {
        DistributedArray::shape(self).to_vec()
    }

    fn element_type(&self) -> ElementType {
        T::TYPE
    }

    fn write(&self, comm: &Comm, array: &Array) -> Result<()> {
        self.store(comm, array)
    }
}

/// Values of this rank whose places in the whole array are the indices of a
/// schedule. What no rank has an index of is saved as zero.
///
/// ```
/// use outcore::{Checkpoints, Scattered, Schedule, Snapshot};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("run");
/// # let name = name.to_str().unwrap();
/// outcore::run(2, |comm| {
///     // Five points of a mesh on each rank, and the velocity in each of them.
///     let points: &[u32] = [&[0, 4, 5, 2, 1][..], &[7, 8, 6, 9, 3]][comm.rank()];
///     let velocity: Vec<f32> = points.iter().flat_map(|p| [*p as f32, 0.5, -1.0]).collect();
///     let schedule = Schedule::of_shape(comm, &[10], points)?;
///     let state = Scattered::new(&schedule, &velocity).records(&[3]);
///     Checkpoints::open(comm, name)?.save(comm, "mesh", &Snapshot::new().with("velocity", &state))?;
///     Ok::<(), outcore::Error>(())
/// })?;
/// // One rank goes on, with the points in another order.
/// outcore::run(1, |comm| {
///     let points: Vec<u32> = (0..10).rev().collect();
///     let schedule = Schedule::of_shape(comm, &[10], &points)?;
///     let mut velocity = vec![0.0f32; 30];
///     let last = Checkpoints::open(comm, name)?.latest(comm)?.expect("one was saved");
///     last.load_scattered(comm, "velocity", &schedule, &mut velocity)?;
///     assert_eq!(velocity[..6], [9.0, 0.5, -1.0, 8.0, 0.5, -1.0]);
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Scattered<'a, T> {
    schedule: &'a Schedule,
    values: &'a [T],
    record: Vec<u64>,
}

impl<'a, T: Element> Scattered<'a, T> {
    /// One value for each index of this rank.
    pub fn new(schedule: &'a Schedule, values: &'a [T]) -> Self {
        Self {
            schedule,
            values,
            record: Vec::new(),
        }
    }

    /// With a record of this shape for each index; its axes come behind those of
    /// the schedule.
    pub fn records(mut self, shape: &[u64]) -> Self {
        self.record = shape.to_vec();
        self
    }
}

impl<T: Element> Savable for Scattered<'_, T> {
    fn shape(&self) -> Vec<u64> {
        [self.schedule.shape(), &self.record].concat()
    }

    fn element_type(&self) -> ElementType {
        T::TYPE
    }

    fn write(&self, comm: &Comm, array: &Array) -> Result<()> {
        self.schedule.write(comm, array, self.values).map(drop)
    }
}
