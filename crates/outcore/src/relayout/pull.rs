//! [`pull`]: a file into the page cache, from one end to the other, by all ranks.
//!
//! Blocks take short pieces from all over a source that the page cache can hold.
//! Of one that is not there yet, each first touch would wait for the device. Read
//! in order instead, a gibibyte takes 0.4 s where blocks alone take 1 to 3.5 s
//! (two cores, ext4 on a virtual disk).

use outcore_transport::Comm;

use crate::array::Array;
use crate::error::Result;

/// The bytes of a read.
const PIECE: u64 = 1 << 20;

/// Reads this rank's share of the file of `array`, with memory of `room` bytes.
pub(super) fn pull(comm: &Comm, array: &Array, room: u64) -> Result<()> {
    let (rank, ranks) = (comm.rank() as u128, comm.size() as u128);
    let len = array.layout().byte_len();
    let share = |rank: u128| (u128::from(len) * rank / ranks) as u64;
    let (mut at, end) = (share(rank), share(rank + 1));
    let mut bytes = vec![0; PIECE.min(room).min(end - at).max(1) as usize];
    while at < end {
        let piece = (end - at).min(bytes.len() as u64) as usize;
        array
            .store()
            .read_at(array.data_offset() + at, &mut bytes[..piece])?;
        at += piece as u64;
    }
    Ok(())
}
