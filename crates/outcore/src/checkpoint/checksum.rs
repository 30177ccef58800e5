//! Checksums of files, block by block, by all ranks.
//!
//! A file is cut into blocks of equal length, of which only the last may be
//! shorter: 1 MiB, and more where that would make too many. The checksum of a
//! block is the CRC32C of its bytes as they are in the file. The blocks of all
//! files are numbered through, and each rank takes the same share of them,
//! adjacent ones; so it reads long stretches, whatever the sizes of the files.

use std::ops::Range;

use outcore_storage::{Blocks, Store};
use outcore_transport::Comm;

use crate::error::Result;
use crate::interrupt;

/// The shortest block.
const LEAST: u64 = 1 << 20;

/// The most blocks of one file: what a manifest says of them stays small.
const MOST: u64 = 1 << 14;

/// The memory of a rank.
const BUFFER: u64 = 1 << 20;

/// How files of this length are cut.
pub(super) fn cut(bytes: u64) -> Blocks {
    let block = bytes.div_ceil(MOST).max(LEAST).next_power_of_two();
    Blocks { bytes, block }
}

/// Collective: the checksums of all blocks of each file, for every rank.
/// `progress` gets the bytes as they are read by this rank.
pub(super) fn checksums(
    comm: &Comm,
    files: &[(&dyn Store, Blocks)],
    progress: &dyn Fn(u64),
) -> Result<Vec<Vec<u32>>> {
    let total: u64 = files.iter().map(|(_, blocks)| blocks.count()).sum();
    let own = comm.agree(of_share(files, share(comm, total), progress))?;
    let mut all = comm.all_gatherv(&own)?.concat();
    let mut of_files = Vec::with_capacity(files.len());
    for (_, blocks) in files {
        let later = all.split_off(blocks.count() as usize);
        of_files.push(std::mem::replace(&mut all, later));
    }
    Ok(of_files)
}

/// This rank's share of `total` blocks.
pub(crate) fn share(comm: &Comm, total: u64) -> Range<u64> {
    let end = |rank| (u128::from(total) * rank as u128 / comm.size() as u128) as u64;
    end(comm.rank())..end(comm.rank() + 1)
}

/// The checksums of those blocks, of all numbered through, that are in `share`.
fn of_share(
    files: &[(&dyn Store, Blocks)],
    share: Range<u64>,
    progress: &dyn Fn(u64),
) -> Result<Vec<u32>> {
    let mut sums = Vec::with_capacity((share.end - share.start) as usize);
    let longest = files
        .iter()
        .map(|(_, blocks)| blocks.block.min(blocks.bytes));
    let mut buffer = vec![0; longest.max().unwrap_or(0).min(BUFFER) as usize];
    let mut first = 0;
    for (store, blocks) in files {
        let next = first + blocks.count();
        let own = share.start.max(first)..share.end.min(next);
        for block in own.start..own.end.max(own.start) {
            interrupt::check()?;
            let bytes = blocks.range(block - first..block - first + 1);
            sums.push(of_bytes(*store, bytes.clone(), &mut buffer)?);
            progress(bytes.end - bytes.start);
        }
        first = next;
    }
    Ok(sums)
}

/// The checksum of a stretch of a file.
fn of_bytes(store: &dyn Store, bytes: Range<u64>, buffer: &mut [u8]) -> Result<u32> {
    let (mut at, mut sum) = (bytes.start, 0);
    while at < bytes.end {
        let len = (bytes.end - at).min(buffer.len() as u64);
        let piece = &mut buffer[..len as usize];
        store.read_at(at, piece)?;
        sum = crc32c::crc32c_append(sum, piece);
        at += len;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use outcore_storage::MemoryStore;

    use super::*;

    #[test]
    fn blocks_cover_a_file_and_are_not_too_many() {
        for bytes in [
            0,
            1,
            LEAST - 1,
            LEAST,
            LEAST + 1,
            3 << 30,
            1 << 40,
            i64::MAX as u64,
        ] {
            let blocks = cut(bytes);
            assert!(blocks.count() <= MOST, "{bytes}");
            assert_eq!(blocks.range(0..blocks.count()), 0..bytes);
        }
    }

    #[test]
    fn any_number_of_ranks_finds_the_same() {
        let lengths: [u64; 4] = [1000, 0, 7, 129];
        let stores: Vec<MemoryStore> = lengths.iter().map(|_| MemoryStore::new()).collect();
        for (store, len) in stores.iter().zip(lengths) {
            let bytes: Vec<u8> = (0..len).map(|at| (at * at + len) as u8).collect();
            store.write_at(0, &bytes).unwrap();
        }
        let files: Vec<(&dyn Store, Blocks)> = stores
            .iter()
            .zip(lengths)
            .map(|(store, bytes)| (store as &dyn Store, Blocks { bytes, block: 64 }))
            .collect();
        let expected = of_share(&files, 0..20, &|_| ()).unwrap();
        assert_eq!(expected.len(), 16 + 1 + 3);
        let mut first = [0; 64];
        stores[0].read_at(0, &mut first).unwrap();
        assert_eq!(expected[0], crc32c::crc32c(&first));
        for ranks in [1, 2, 3, 7, 30] {
            crate::run(ranks, |comm| {
                let found = checksums(comm, &files, &|_| ())?;
                let counts: Vec<usize> = found.iter().map(Vec::len).collect();
                assert_eq!(counts, [16, 0, 1, 3]);
                assert_eq!(found.concat(), expected);
                Ok::<(), crate::Error>(())
            })
            .unwrap();
        }
    }

    #[test]
    fn a_long_block_takes_no_more_memory_than_the_buffer() {
        let store = MemoryStore::new();
        let bytes: Vec<u8> = (0..1000).map(|at| (at % 251) as u8).collect();
        store.write_at(0, &bytes).unwrap();
        let sum = of_bytes(&store, 10..990, &mut [0; 64]).unwrap();
        assert_eq!(sum, crc32c::crc32c(&bytes[10..990]));
    }
}
