//! [`copy_blocks`]: blocks from where they are to where they should be.

use outcore::Result;

use super::blocks::{Blocks, Fetch};
use super::tensor::{BlockTensor, Place};
use crate::matmul::Number;
use crate::resources::Resources;

/// The memory that copying blocks of a tensor takes, in bytes.
pub(super) fn copy_memory<T: Number>(tensor: &BlockTensor) -> u64 {
    2 * tensor.largest() * size_of::<T>() as u64
}

/// Copies the blocks that begin in this stretch of the packed elements; each is
/// fetched while the one before is written.
pub(super) fn copy_blocks<T: Number>(
    tensor: &BlockTensor,
    (start, end): (u64, u64),
    source: &dyn Blocks<T>,
    target: &dyn Blocks<T>,
    resources: &Resources<'_>,
) -> Result<()> {
    let mut buffers = vec![Vec::new(), Vec::new()];
    let mut coming: Option<(Place, Fetch<'_, T>)> = None;
    let blocks = tensor.blocks().map(|(_, place)| place);
    let blocks = blocks.filter(|place| (start..end).contains(&place.start));
    for place in blocks.map(Some).chain([None]) {
        // 1. The next block begins to come ...
        let next = place.map(|place| {
            let mut buffer = buffers.pop().unwrap_or_default();
            buffer.resize(place.len as usize, T::zeroed());
            source.fetch(place, buffer).map(|fetch| (place, fetch))
        });
        // 2. ... while the one before is written.
        if let Some((place, fetch)) = std::mem::replace(&mut coming, next.transpose()?) {
            let values = fetch.wait()?;
            target.store(place, &values)?;
            buffers.push(values);
            resources.tell(place.len * size_of::<T>() as u64);
        }
    }
    Ok(())
}
