//! Images of byte ranges of a store: what ranks that read and write for others
//! move. The requests of many ranks in one stretch of the file are one access.

use outcore_storage::{ReadRequest, Store, WriteRequest};

use crate::error::Result;
use crate::strategy::batch::BATCH;

/// A range of a store, and where it stands in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) offset: u64,
    pub(crate) at: usize,
    pub(crate) len: usize,
}

/// Reads stretches, which ascend in the image.
pub(crate) fn read(
    store: &dyn Store,
    stretches: impl Iterator<Item = Stretch>,
    image: &mut [u8],
) -> Result<()> {
    let mut stretches = stretches.peekable();
    let (mut rest, mut done) = (image, 0);
    while stretches.peek().is_some() {
        let mut batch = Vec::new();
        for stretch in stretches.by_ref().take(BATCH) {
            let (_, later) = rest.split_at_mut(stretch.at - done);
            let (buffer, later) = later.split_at_mut(stretch.len);
            (rest, done) = (later, stretch.at + stretch.len);
            batch.push(ReadRequest {
                offset: stretch.offset,
                buffer,
            });
        }
        store.read_batch(&mut batch)?;
    }
    Ok(())
}

/// Writes stretches, between the offsets `extent`, and nothing else. Those who
/// read, change and write back the neighbourhood are kept out meanwhile.
pub(crate) fn write(
    store: &dyn Store,
    extent: (u64, u64),
    stretches: impl Iterator<Item = Stretch>,
    image: &[u8],
) -> Result<()> {
    let _shared = store.lock_shared(extent.0, extent.1 - extent.0)?;
    write_locked(store, stretches, image)
}

/// Reads stretches between the offsets `extent`, lets `change` change the image
/// of them, and writes them back, with all others kept out.
pub(crate) fn update(
    store: &dyn Store,
    extent: (u64, u64),
    stretches: impl Iterator<Item = Stretch> + Clone,
    image: &mut [u8],
    change: impl FnOnce(&mut [u8]),
) -> Result<()> {
    let _alone = store.lock(extent.0, extent.1 - extent.0)?;
    read(store, stretches.clone(), image)?;
    change(image);
    write_locked(store, stretches, image)
}

fn write_locked(
    store: &dyn Store,
    stretches: impl Iterator<Item = Stretch>,
    image: &[u8],
) -> Result<()> {
    let mut stretches = stretches.peekable();
    while stretches.peek().is_some() {
        let batch: Vec<WriteRequest<'_>> = stretches
            .by_ref()
            .take(BATCH)
            .map(|stretch| WriteRequest {
                offset: stretch.offset,
                data: &image[stretch.at..stretch.at + stretch.len],
            })
            .collect();
        store.write_batch(&batch)?;
    }
    Ok(())
}
