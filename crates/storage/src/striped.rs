//! [`StripedStore`]: one store spread over several disks, so that a large
//! transfer or a batch uses all of them at the same time.
//!
//! [`Striping`] says where each byte lies. A write extends only the disks it
//! touches; the length of the whole is that of the disk that reaches farthest,
//! and a disk that ends before its share reads as zeros there. So extending
//! writes need no agreement among threads or processes, and a store opened
//! again has the length it had.
//!
//! A lock of bytes of the whole is one of the bytes at the same offsets of the
//! first disk, whether or not they lie there: all who open the same disks in
//! the same order meet there, and taking one lock cannot deadlock.

use std::io;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::range_lock::RangeLock;
use crate::store::{ReadRequest, Store, WriteRequest, check_long_range, check_range, read_exactly};
use crate::striping::Striping;
use crate::threads;

/// A batch gets one thread more, up to one a disk, for every so many bytes or
/// pieces: starting a thread takes as long as copying half a megabyte from the
/// page cache (50 to 100 us measured).
const BYTES_FOR_A_THREAD: usize = 1 << 20;
const PIECES_FOR_A_THREAD: usize = 256;

/// Stripes of equal length, round robin on several stores.
#[derive(Debug)]
pub struct StripedStore {
    disks: Vec<Arc<dyn Store>>,
    striping: Striping,
}

impl StripedStore {
    /// Spreads stripes of `unit` bytes over `disks`, which hold nothing else.
    /// The same disks in the same order with the same unit hold the same bytes.
    pub fn new(disks: Vec<Arc<dyn Store>>, unit: u64) -> Result<Self> {
        let striping = Striping::new(disks.len(), unit)?;
        Ok(StripedStore { disks, striping })
    }

    /// The length of a stripe in bytes.
    pub fn stripe_unit(&self) -> u64 {
        self.striping.unit()
    }

    /// The stores that the stripes lie on.
    pub fn disks(&self) -> &[Arc<dyn Store>] {
        &self.disks
    }

    /// The disk that holds the byte at `offset`.
    pub fn disk_of(&self, offset: u64) -> usize {
        self.striping.disk_of(offset)
    }

    /// The first piece of a request: its disk, its offset there, its length.
    fn first_piece(&self, offset: u64, len: usize) -> (&dyn Store, u64, usize) {
        let (disk, at) = self.striping.locate(offset);
        let room = self.striping.unit() - offset % self.striping.unit();
        (&*self.disks[disk], at, room.min(len as u64) as usize)
    }

    /// Serves each disk that has requests, in parallel if it is worth it.
    fn serve<R: Send>(
        &self,
        requests: Vec<Vec<R>>,
        bytes: usize,
        serve: impl Fn(&dyn Store, Vec<R>) -> Result<()> + Sync,
    ) -> Result<()> {
        let pieces: usize = requests.iter().map(Vec::len).sum();
        let used = requests
            .iter()
            .filter(|requests| !requests.is_empty())
            .count();
        let worth = 1 + (bytes / BYTES_FOR_A_THREAD).max(pieces / PIECES_FOR_A_THREAD);
        let work = self
            .disks
            .iter()
            .zip(requests)
            .filter(|(_, requests)| !requests.is_empty());
        threads::for_each(work, worth.min(used), |(disk, requests)| {
            serve(&**disk, requests)
        })
    }

    /// Reads what the disks hold; fails if one ends before its share.
    fn read_from_disks(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        let mut bytes = 0;
        let mut of_disk: Vec<Vec<ReadRequest<'_>>> =
            self.disks.iter().map(|_| Vec::new()).collect();
        for ReadRequest { offset, buffer } in requests {
            bytes += buffer.len();
            let mut rest = &mut **buffer;
            for piece in self.striping.pieces(*offset, rest.len()) {
                let (buffer, after) = rest.split_at_mut(piece.len);
                of_disk[piece.disk].push(ReadRequest {
                    offset: piece.offset,
                    buffer,
                });
                rest = after;
            }
        }
        self.serve(of_disk, bytes, |disk, mut requests| {
            disk.read_batch(&mut requests)
        })
    }
}

impl Store for StripedStore {
    fn striping(&self) -> Option<Striping> {
        Some(self.striping)
    }

    fn name(&self) -> String {
        let names: Vec<_> = self.disks.iter().map(|disk| disk.name()).collect();
        format!("stripes on {}", names.join(", "))
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (disk, at, len) = self.first_piece(offset, buffer.len());
        let buffer = &mut buffer[..len];
        let count = disk.read_some_at(at, buffer)?;
        if count > 0 || len == 0 {
            return Ok(count);
        }
        // The disk ends here; does the store? The disk is asked again after
        // the length is known, or bytes written in between would read as zeros.
        let end = self.len().map_err(io::Error::other)?;
        let count = loop {
            match disk.read_some_at(at, buffer) {
                // Left to the caller, a retry would begin at the first read,
                // and might be interrupted here each time.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        if count > 0 {
            return Ok(count);
        }
        let zeros = end.saturating_sub(offset).min(len as u64) as usize;
        buffer[..zeros].fill(0);
        Ok(zeros)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        let (disk, at, len) = self.first_piece(offset, data.len());
        disk.write_some_at(at, &data[..len])
    }

    fn len(&self) -> Result<u64> {
        let mut len = 0;
        for (index, disk) in self.disks.iter().enumerate() {
            len = len.max(self.striping.reach(index, disk.len()?));
        }
        Ok(len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        for (index, disk) in self.disks.iter().enumerate() {
            disk.set_len(self.striping.share(index, len))?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.disks.iter().try_for_each(|disk| disk.sync())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        check_range(self, offset, buffer.len())?;
        let (disk, at, len) = self.first_piece(offset, buffer.len());
        if len < buffer.len() {
            return self.read_batch(&mut [ReadRequest { offset, buffer }]);
        }
        match disk.read_at(at, buffer) {
            Err(Error::UnexpectedEnd { .. }) => read_exactly(self, offset, buffer, 0),
            result => result,
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        check_range(self, offset, data.len())?;
        let (disk, at, len) = self.first_piece(offset, data.len());
        if len < data.len() {
            return self.write_batch(&[WriteRequest { offset, data }]);
        }
        disk.write_at(at, data)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        for request in requests.iter() {
            check_range(self, request.offset, request.buffer.len())?;
        }
        match self.read_from_disks(requests) {
            // A hole or the end of the store: go piece by piece to tell.
            Err(Error::UnexpectedEnd { .. }) => requests
                .iter_mut()
                .try_for_each(|request| read_exactly(self, request.offset, request.buffer, 0)),
            result => result,
        }
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        let mut bytes = 0;
        let mut of_disk: Vec<Vec<WriteRequest<'_>>> =
            self.disks.iter().map(|_| Vec::new()).collect();
        for &WriteRequest { offset, data } in requests {
            check_range(self, offset, data.len())?;
            bytes += data.len();
            for piece in self.striping.pieces(offset, data.len()) {
                let data = &data[piece.start..piece.start + piece.len];
                of_disk[piece.disk].push(WriteRequest {
                    offset: piece.offset,
                    data,
                });
            }
        }
        self.serve(of_disk, bytes, |disk, requests| disk.write_batch(&requests))
    }

    fn cached(&self, offset: u64, len: u64) -> Option<f64> {
        let end = offset.saturating_add(len).min(self.len().ok()?);
        let (mut cached, mut bytes) = (0.0, 0);
        for (index, disk) in self.disks.iter().enumerate() {
            // The bytes of a range that lie on one disk are a range there, and
            // what a disk does not have of them takes no device.
            let start = self.striping.share(index, offset);
            let len = self.striping.share(index, end).saturating_sub(start);
            let held = len.min(disk.len().ok()?.saturating_sub(start));
            if held > 0 {
                cached += disk.cached(start, held)? * held as f64;
            }
            cached += (len - held) as f64;
            bytes += len;
        }
        (bytes > 0).then(|| cached / bytes as f64)
    }

    fn forget(&self) -> Result<()> {
        self.disks.iter().try_for_each(|disk| disk.forget())
    }

    fn fetch(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        for (index, disk) in self.disks.iter().enumerate() {
            let start = self.striping.share(index, offset);
            let len = self.striping.share(index, end) - start;
            if len > 0 {
                disk.fetch(start, len);
            }
        }
    }

    fn announce_writing(&self) -> Result<()> {
        self.disks
            .iter()
            .try_for_each(|disk| disk.announce_writing())
    }

    fn lock_shared(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        check_long_range(self, offset, len)?;
        self.disks[0].lock_shared(offset, len)
    }

    fn lock(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        check_long_range(self, offset, len)?;
        self.disks[0].lock(offset, len)
    }
}
