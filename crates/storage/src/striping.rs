//! [`Striping`]: how the bytes of one store lie on several disks.
//!
//! The bytes are cut into stripes of one unit each, which go round the disks:
//! byte `b` is in stripe `b / unit`, on disk `stripe % disks`, at offset
//! `(stripe / disks) * unit + b % unit` there, as in the parallel file systems
//! that PASSION ran on (Intel CFS and PFS).

use crate::error::{Error, Result};

/// The round robin placement of stripes on disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Striping {
    disks: usize,
    unit: u64,
}

/// Bytes of a request that lie together on one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The disk.
    pub disk: usize,
    /// Where the bytes begin on it.
    pub offset: u64,
    /// Where they begin in the request.
    pub start: usize,
    /// How many they are.
    pub len: usize,
}

impl Striping {
    /// Stripes of `unit` bytes on `disks` disks; neither may be zero.
    pub fn new(disks: usize, unit: u64) -> Result<Self> {
        let reason = match (disks, unit) {
            (0, _) => "there must be at least one disk",
            (_, 0) => "the stripe unit must be at least one byte",
            _ => return Ok(Striping { disks, unit }),
        };
        Err(Error::Settings {
            store: "striped store",
            reason: reason.to_owned(),
        })
    }

    /// As `new`, for numbers known not to be zero.
    pub(crate) const fn fixed(disks: usize, unit: u64) -> Self {
        assert!(disks > 0 && unit > 0);
        Striping { disks, unit }
    }

    /// The number of disks.
    pub fn disks(&self) -> usize {
        self.disks
    }

    /// The length of a stripe in bytes.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// The disk that holds the byte at `offset`.
    pub fn disk_of(&self, offset: u64) -> usize {
        (offset / self.unit % self.disks as u64) as usize
    }

    /// The disk that holds the byte at `offset`, and its offset there.
    pub fn locate(&self, offset: u64) -> (usize, u64) {
        let round = offset / self.unit / self.disks as u64;
        (self.disk_of(offset), round * self.unit + offset % self.unit)
    }

    /// How many bytes disk `disk` holds of a store of `len` bytes.
    pub fn share(&self, disk: usize, len: u64) -> u64 {
        let (stripes, rest) = (len / self.unit, len % self.unit);
        let (rounds, last) = (stripes / self.disks as u64, stripes % self.disks as u64);
        let disk = disk as u64;
        let partial = match disk.cmp(&last) {
            std::cmp::Ordering::Less => self.unit,
            std::cmp::Ordering::Equal => rest,
            std::cmp::Ordering::Greater => 0,
        };
        rounds * self.unit + partial
    }

    /// The least length of a store of which disk `disk` holds `share` bytes:
    /// one more than the offset of the last of them. Saturates.
    pub fn reach(&self, disk: usize, share: u64) -> u64 {
        let Some(last) = share.checked_sub(1) else {
            return 0;
        };
        let stripe = (last / self.unit)
            .saturating_mul(self.disks as u64)
            .saturating_add(disk as u64);
        stripe
            .saturating_mul(self.unit)
            .saturating_add(last % self.unit + 1)
    }

    /// Cuts `len` bytes at `offset` into pieces, one a stripe, in order.
    pub fn pieces(&self, offset: u64, len: usize) -> impl Iterator<Item = Piece> + use<> {
        let striping = *self;
        let mut start = 0;
        std::iter::from_fn(move || {
            if start == len {
                return None;
            }
            let at = offset + start as u64;
            let (disk, offset) = striping.locate(at);
            let room = striping.unit - at % striping.unit;
            let piece = Piece {
                disk,
                offset,
                start,
                len: room.min((len - start) as u64) as usize,
            };
            start += piece.len;
            Some(piece)
        })
    }
}
