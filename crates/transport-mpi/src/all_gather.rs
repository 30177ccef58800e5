//! Everybody learns a few bytes from everybody, in log2(P) rounds (Bruck et
//! al. 1997, section 5): after each round a rank knows the bytes of twice as
//! many of its successors. With no bytes at all it is a barrier.

use outcore_transport::Result;

use crate::group::{Group, Lane};
use crate::operations::Operations;

/// Collective: the bytes of all ranks of `group`, in the order of the ranks;
/// `own` must have the same length on all of them.
pub(crate) fn all_gather(group: &Group, lane: Lane, own: &[u8]) -> Result<Vec<u8>> {
    let (rank, size, len) = (group.rank, group.members.len(), own.len());
    // 1. `known` holds the bytes of this rank, the next, and so on.
    let mut known = vec![0; size * len];
    known[..len].copy_from_slice(own);
    let mut count = 1;
    while count < size {
        // 2. Give the first of what is known to the rank `count` before, which
        //    misses exactly these; take the same from the rank `count` behind.
        let more = count.min(size - count);
        let (have, rest) = known.split_at_mut(count * len);
        let mut operations = Operations::new(group);
        operations.receive(lane, (rank + count) % size, &mut rest[..more * len])?;
        operations.send(lane, (rank + size - count) % size, &have[..more * len])?;
        operations.wait()?;
        count += more;
    }
    // 3. Rank 0 to the front.
    known.rotate_right(rank * len);
    Ok(known)
}
