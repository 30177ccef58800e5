//! Images of byte ranges of a store: what ranks that read and write for others
//! move. The requests of many ranks in one stretch of the file are one access.

use outcore_storage::{ReadRequest, Store, WriteRequest};

use crate::error::Result;
use crate::interrupt;
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
    interrupt::check()?;
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

/// Writes stretches, which ascend in the store, and nothing else. Those who
/// read, change and write back the neighbourhood are kept out meanwhile.
pub(crate) fn write(
    store: &dyn Store,
    stretches: impl Iterator<Item = Stretch> + Clone,
    image: &[u8],
) -> Result<()> {
    let (offset, len) = extent(stretches.clone());
    let _shared = store.lock_shared(offset, len)?;
    write_locked(store, stretches, image)
}

/// Reads stretches, which ascend in the store, lets `change` change the image of
/// them, and writes them back, with all others kept out.
pub(crate) fn update(
    store: &dyn Store,
    stretches: impl Iterator<Item = Stretch> + Clone,
    image: &mut [u8],
    change: impl FnOnce(&mut [u8]),
) -> Result<()> {
    let (offset, len) = extent(stretches.clone());
    let _alone = store.lock(offset, len)?;
    read(store, stretches.clone(), image)?;
    change(image);
    write_locked(store, stretches, image)
}

/// Reads some stretches, lets `change` change the image, and writes others; both
/// ascend. If nothing is read, only those who read, change and write back are
/// kept out meanwhile; else all others are.
pub(crate) fn change(
    store: &dyn Store,
    reads: impl Iterator<Item = Stretch> + Clone,
    writes: impl Iterator<Item = Stretch> + Clone,
    image: &mut [u8],
    change: impl FnOnce(&mut [u8]),
) -> Result<()> {
    let (offset, len) = extent(writes.clone());
    let _held = match reads.clone().next() {
        Some(_) => store.lock(offset, len)?,
        None => store.lock_shared(offset, len)?,
    };
    read(store, reads, image)?;
    change(image);
    write_locked(store, writes, image)
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

/// From the first to the last byte of stretches: where it begins, and its length.
fn extent(mut stretches: impl Iterator<Item = Stretch>) -> (u64, u64) {
    let Some(first) = stretches.next() else {
        return (0, 0);
    };
    let last = stretches.last().unwrap_or(first);
    let end = last.offset + last.len as u64;
    (first.offset, end - first.offset)
}
