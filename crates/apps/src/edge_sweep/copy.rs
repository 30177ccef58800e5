//! [`copy_nodes`]: the values of all nodes from array to array.

use std::ops::Range;

use outcore::{Array, AxisSection, Comm, ElementType, Error, Result, Section, reorder};

use super::problem::check_nodes;
use super::room::Room;
use crate::file_order::check_alike;
use crate::float::Float;
use crate::resources::Resources;

/// Collective: `target` gets the values of `source`, of the same shape and type,
/// whatever the layouts.
pub fn copy_nodes(
    comm: &Comm,
    source: &Array,
    target: &Array,
    resources: &Resources<'_>,
) -> Result<()> {
    check_nodes(source)?;
    check_alike(source, target)?;
    let room = Room::of(comm, (source, &[target]), resources)?;
    match source.element_type() {
        ElementType::F32 => copy::<f32>(comm, (source, target), room.piece),
        _ => copy::<f64>(comm, (source, target), room.piece),
    }
}

/// Collective: the same within so many bytes.
pub(super) fn copy<T: Float>(
    comm: &Comm,
    (source, target): (&Array, &Array),
    room: u64,
) -> Result<()> {
    let own = share(source.shape()[0], comm);
    Ok(comm.agree(copy_part::<T>((source, target), own, room))?)
}

/// This rank's share of `count` things.
pub(super) fn share(count: u64, comm: &Comm) -> Range<u64> {
    let end = |rank| (u128::from(count) * rank as u128 / comm.size() as u128) as u64;
    end(comm.rank())..end(comm.rank() + 1)
}

fn copy_part<T: Float>(
    (source, target): (&Array, &Array),
    nodes: Range<u64>,
    room: u64,
) -> Result<()> {
    let [from, to] = [source, target].map(|array| array.layout().slowest_first());
    let components: u64 = source.shape()[1..].iter().product();
    let buffers = if from == to { 1 } else { 2 };
    let record = (components * size_of::<T>() as u64).max(1);
    let most = (room / (buffers * record)).max(1);
    let (mut values, mut ordered) = (Vec::new(), Vec::new());
    let mut start = nodes.start;
    while start < nodes.end {
        let end = nodes.end.min(start + most);
        let rest = source.shape()[1..].iter();
        let axes = std::iter::once(AxisSection::span(start, end))
            .chain(rest.map(|extent| AxisSection::span(0, *extent)));
        let section =
            Section::new(axes.collect()).map_err(|error| Error::Invalid(error.to_string()))?;
        values.resize(section.count() as usize, T::of(0.0));
        source.read_into(&section, &mut values)?;
        if from == to {
            target.write(&section, &values)?;
        } else {
            ordered.resize(values.len(), T::of(0.0));
            let into = bytemuck::cast_slice_mut(&mut ordered);
            let values = bytemuck::cast_slice(&values);
            reorder(&section.shape(), (values, from), (into, to));
            target.write(&section, &ordered)?;
        }
        start = end;
    }
    Ok(())
}
