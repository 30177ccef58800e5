//! Checksums of blocks: flipped bytes are found and located, writers of one block
//! do not spoil it for one another, and what a failed write leaves is told apart
//! from damage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use outcore_storage::{
    Access, BlockFault, CheckedStore, CountedStore, Error, Fault, FaultyStore, FileStore,
    MemoryStore, Operation, ReadRequest, Store, WriteRequest, conformance,
};
use proptest::prelude::*;

const BLOCK: u64 = 64;

/// A checked store, and the two beneath it.
fn in_memory(block: u64) -> (CheckedStore, Arc<MemoryStore>, Arc<MemoryStore>) {
    let (data, sums) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    let store = CheckedStore::new(data.clone(), sums.clone(), block).unwrap();
    (store, data, sums)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 64 + 1) as u8).collect()
}

/// All blocks that are wrong.
fn faults(store: &CheckedStore) -> Vec<(u64, BlockFault)> {
    let mut found = Vec::new();
    let blocks = 0..store.blocks().unwrap().count();
    let see = &mut |block, fault| found.push((block, fault));
    store.examine(blocks, see).unwrap();
    found
}

fn flip(store: &dyn Store, at: u64, mask: u8) {
    let mut byte = [0];
    store.read_at(at, &mut byte).unwrap();
    store.write_at(at, &[byte[0] ^ mask]).unwrap();
}

/// The block that a read complains about.
fn complaint(store: &CheckedStore, offset: u64, len: usize) -> Option<(u64, BlockFault)> {
    match store.read_at(offset, &mut vec![0; len]) {
        Ok(()) => None,
        Err(Error::Block { block, fault, .. }) => Some((block, fault)),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn conforms_in_memory() {
    for block in [100, 4096, 1 << 20] {
        conformance::check_in_memory(&|| Box::new(in_memory(block).0));
    }
}

#[test]
fn conforms_over_files() {
    let folder = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    let file = || {
        count.set(count.get() + 1);
        let path = folder.path().join(format!("store-{}", count.get()));
        Arc::new(FileStore::create(path).unwrap())
    };
    conformance::check(&|| Box::new(CheckedStore::new(file(), file(), 64 << 10).unwrap()));
}

#[test]
fn conforms_over_stores_that_fall_short() {
    conformance::check_in_memory(&|| {
        let short = || {
            let store = FaultyStore::new(MemoryStore::new());
            store.fail_from(Operation::Read, 0, Fault::Short);
            store.fail_from(Operation::Write, 0, Fault::Short);
            store.fail_from(Operation::Write, 1, Fault::Interrupted);
            Arc::new(store)
        };
        Box::new(CheckedStore::new(short(), short(), 1000).unwrap())
    });
}

/// Of a long block only what is written is read before, and yet damage anywhere in it
/// is not forgotten.
#[test]
fn a_part_of_a_long_block_is_written() {
    const LONG: u64 = 64 << 10;
    let data = Arc::new(CountedStore::new(MemoryStore::new()));
    let store = CheckedStore::new(data.clone(), Arc::new(MemoryStore::new()), LONG).unwrap();
    let mut expected = pattern(3 * LONG as usize - 100);
    store.write_at(0, &expected).unwrap();
    let parts: Vec<u64> = (0..12).map(|at| 1000 + at * 13_000).collect();
    let requests: Vec<WriteRequest<'_>> = parts
        .iter()
        .map(|at| WriteRequest {
            offset: *at,
            data: b"seven b",
        })
        .collect();
    store.write_batch(&requests).unwrap();
    assert_eq!(data.counts().bytes_read, 12 * 7);
    for at in parts {
        expected[at as usize..][..7].copy_from_slice(b"seven b");
    }
    // Behind the end there were zeros.
    let end = expected.len() as u64;
    store.write_at(end - 3, b"a new end").unwrap();
    expected.truncate(expected.len() - 3);
    expected.extend_from_slice(b"a new end");
    assert_eq!(faults(&store), []);
    let mut found = vec![0; expected.len()];
    store.read_at(0, &mut found).unwrap();
    assert!(found == expected);
    for (damaged, written) in [(LONG + 5, LONG + 5000), (LONG + 5, LONG)] {
        flip(&*data, damaged, 4);
        store.write_at(written, b"seven b").unwrap();
        assert_eq!(faults(&store), [(1, BlockFault::Damaged)]);
        store.accept(1).unwrap();
        assert_eq!(faults(&store), []);
    }
}

#[test]
fn every_flipped_byte_is_found_and_located() {
    let (store, data, sums) = in_memory(BLOCK);
    let len = 5 * BLOCK as usize + 10;
    store.write_at(0, &pattern(len)).unwrap();
    for at in 0..len as u64 {
        flip(&*data, at, 1 << (at % 8));
        let block = at / BLOCK;
        let damaged = (block, BlockFault::Damaged);
        assert_eq!(faults(&store), [damaged], "byte {at}");
        // Whatever of the block is read, and nothing else.
        let start = block * BLOCK;
        let end = (start + BLOCK).min(len as u64);
        assert_eq!(complaint(&store, start, 1), Some(damaged));
        assert_eq!(complaint(&store, end - 1, 1), Some(damaged));
        assert_eq!(complaint(&store, 0, len), Some(damaged));
        assert_eq!(complaint(&store, end, (len as u64 - end) as usize), None);
        assert_eq!(complaint(&store, 0, start as usize), None);
        flip(&*data, at, 1 << (at % 8));
    }
    // A damaged checksum is as bad.
    for at in 0..sums.len().unwrap() {
        for bit in 0..8 {
            flip(&*sums, at, 1 << bit);
            let found = faults(&store);
            assert_eq!(found.len(), 1, "byte {at} bit {bit} of the checksums");
            assert_eq!(found[0].0, at / 8);
            flip(&*sums, at, 1 << bit);
        }
    }
    assert_eq!(faults(&store), []);
}

#[test]
fn errors_say_which_bytes_and_what_they_are() {
    let (store, data, _) = in_memory(BLOCK);
    let store = store.with_meaning(|bytes| format!("words {} on", bytes.start / 2));
    store.write_at(0, &pattern(200)).unwrap();
    flip(&*data, 70, 1);
    let text = store.read_at(100, &mut [0; 3]).unwrap_err().to_string();
    for part in ["block 1", "bytes 64 to 127", "words 32 on", "repair-report"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn zeros_need_no_checksums() {
    let (store, data, sums) = in_memory(BLOCK);
    store.set_len(1000).unwrap();
    assert_eq!(faults(&store), []);
    assert_eq!(sums.len().unwrap(), 16 * 8);
    flip(&*data, 999, 4);
    assert_eq!(faults(&store), [(15, BlockFault::Damaged)]);
}

#[test]
fn missing_checksums_do_not_pass_for_sound() {
    let (store, _, sums) = in_memory(BLOCK);
    store.write_at(0, &pattern(1000)).unwrap();
    // A part of an entry is no entry.
    for len in [8 * 10, 8 * 9 + 3, 0] {
        sums.set_len(len).unwrap();
        let first = len / 8;
        let expected: Vec<_> = (first..16).map(|at| (at, BlockFault::Damaged)).collect();
        assert_eq!(faults(&store), expected, "{len}");
    }
}

#[test]
fn a_write_makes_a_block_sound_only_if_it_covers_it() {
    let (store, data, _) = in_memory(BLOCK);
    store.write_at(0, &pattern(4 * BLOCK as usize)).unwrap();
    flip(&*data, BLOCK + 5, 1);
    let damaged = [(1, BlockFault::Damaged)];
    // Not even where the flipped byte is written.
    store.write_at(BLOCK + 5, &[1]).unwrap();
    assert_eq!(faults(&store), damaged);
    // In two pieces, each of them in part.
    store.write_at(BLOCK, &[1; 32]).unwrap();
    store.write_at(BLOCK + 32, &[1; 32]).unwrap();
    assert_eq!(faults(&store), damaged);
    // In two pieces of one batch, or at once.
    let pieces = [(BLOCK + 32, [2; 32]), (BLOCK, [2; 32])];
    let requests = pieces.each_ref().map(|(offset, data)| WriteRequest {
        offset: *offset,
        data,
    });
    store.write_batch(&requests).unwrap();
    assert_eq!(faults(&store), []);
    flip(&*data, BLOCK + 5, 1);
    store.write_at(BLOCK - 1, &[3; 66]).unwrap();
    assert_eq!(faults(&store), []);
    // Or taken as it is.
    flip(&*data, 0, 1);
    assert_eq!(faults(&store), [(0, BlockFault::Damaged)]);
    store.accept(0).unwrap();
    assert_eq!(faults(&store), []);
}

#[test]
fn a_failed_write_is_an_interrupted_one() {
    let data = Arc::new(FaultyStore::new(MemoryStore::new()));
    let sums = Arc::new(FaultyStore::new(MemoryStore::new()));
    let store = CheckedStore::new(data.clone(), sums.clone(), BLOCK).unwrap();
    store.write_at(0, &pattern(640)).unwrap();

    // No room for the mark: nothing has changed.
    sums.fail_once(Operation::Write, 0, Fault::NoSpace);
    assert!(store.write_at(0, &[9; 128]).is_err());
    let mut now = vec![0; 640];
    store.read_at(0, &mut now).unwrap();
    assert_eq!(now, pattern(640));

    // No room for the data, or for the new checksums.
    for faulty in [&data, &sums] {
        let pass = u64::from(Arc::ptr_eq(faulty, &sums));
        faulty.fail_once(Operation::Write, pass, Fault::NoSpace);
        assert!(store.write_at(100, &[9; 100]).is_err());
        let interrupted: Vec<_> = (1..4).map(|at| (at, BlockFault::Interrupted)).collect();
        assert_eq!(faults(&store), interrupted);
        assert_eq!(complaint(&store, 190, 1), Some(interrupted[1]));
        assert_eq!(complaint(&store, 0, 64), None);
        assert_eq!(complaint(&store, 256, 384), None);
        // Tried again, what is covered is sound.
        store.write_at(100, &[9; 100]).unwrap();
        assert_eq!(faults(&store), [interrupted[0], interrupted[2]]);
        store.accept(1).unwrap();
        store.write_at(192, &[9; 64]).unwrap();
        assert_eq!(faults(&store), []);
    }
}

#[test]
fn long_transfers_cost_few_requests() {
    let block = 64 << 10;
    let data = Arc::new(CountedStore::new(MemoryStore::new()));
    let sums = Arc::new(CountedStore::new(MemoryStore::new()));
    let store = CheckedStore::new(data.clone(), sums.clone(), block).unwrap();
    let bytes = pattern(8 << 20);
    store.write_at(0, &bytes).unwrap();
    // A request for each MiB, and a mark and a sum; nothing is read.
    let (of_data, of_sums) = (data.counts(), sums.counts());
    assert_eq!((of_data.writes, of_data.reads), (8, 0));
    assert_eq!((of_sums.writes, of_sums.reads), (16, 0));
    data.reset();
    sums.reset();
    store.read_at(0, &mut vec![0; 8 << 20]).unwrap();
    assert_eq!(data.counts().reads, 8);
    assert_eq!(sums.counts().reads, 8);
    assert_eq!(data.counts().bytes_read, 8 << 20);
    // Many small ones of one block are one read of it, and one of its entry.
    data.reset();
    sums.reset();
    let mut pieces = vec![[0; 4]; 256];
    let mut requests: Vec<_> = (0..)
        .zip(&mut pieces)
        .map(|(at, buffer)| ReadRequest {
            offset: block + 100 * at,
            buffer,
        })
        .collect();
    store.read_batch(&mut requests).unwrap();
    assert_eq!((data.counts().reads, sums.counts().reads), (1, 1));
    assert_eq!(data.counts().bytes_read, block);
    // Written, the block is read once, and the pieces are all that is written.
    data.reset();
    sums.reset();
    let requests: Vec<_> = (0..256)
        .map(|at| WriteRequest {
            offset: block + 100 * at,
            data: &[5; 4],
        })
        .collect();
    store.write_batch(&requests).unwrap();
    let counts = data.counts();
    assert_eq!((counts.reads, counts.bytes_read), (1, block));
    assert_eq!(counts.bytes_written, 1024);
    assert_eq!((sums.counts().reads, sums.counts().writes), (1, 2));
    assert_eq!(faults(&store), []);
}

#[test]
fn readers_beside_writers_find_nothing_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["data", "sums"].map(|name| folder.path().join(name));
    for path in &paths {
        FileStore::create(path).unwrap();
    }
    // Each has opened the files by itself, as another program has.
    let open = |access| {
        let [data, sums] = paths
            .each_ref()
            .map(|path| Arc::new(FileStore::open(path, access).unwrap()));
        CheckedStore::new(data, sums, 256).unwrap()
    };
    open(Access::ReadWrite).set_len(4096).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = open(Access::ReadWrite);
                scope.spawn(move || {
                    for round in 0..60u64 {
                        // Every fourth element is a writer's own.
                        let value = [(writer * 61 + round + 1) as u8; 8];
                        let requests: Vec<_> = (0..128)
                            .map(|at| WriteRequest {
                                offset: (4 * at + writer) * 8,
                                data: &value,
                            })
                            .collect();
                        store.write_batch(&requests).unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            let store = open(Access::ReadOnly);
            let done = &done;
            scope.spawn(move || {
                let mut bytes = vec![0; 4096];
                while !done.load(Ordering::Relaxed) {
                    store.read_at(0, &mut bytes).unwrap();
                    store.read_at(1001, &mut bytes[..3]).unwrap();
                    assert_eq!(faults(&store), []);
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let store = open(Access::ReadOnly);
    let mut bytes = vec![0; 4096];
    store.read_at(0, &mut bytes).unwrap();
    for (at, element) in bytes.chunks(8).enumerate() {
        assert_eq!(element, [((at as u64 % 4) * 61 + 60) as u8; 8]);
    }
}

#[test]
fn bad_lengths_of_blocks_are_refused() {
    for block in [0, 63, (16 << 20) + 1, u64::MAX] {
        let store = || Arc::new(MemoryStore::new());
        let refused = CheckedStore::new(store(), store(), block).unwrap_err();
        assert!(refused.to_string().contains("64 to"), "{refused}");
    }
}

/// A batch of writes that do not overlap: gaps and lengths.
fn batches() -> impl Strategy<Value = Vec<(u8, Vec<(u8, u8)>)>> {
    let pieces = prop::collection::vec((0u8..90, 0u8..120), 1..12);
    prop::collection::vec((any::<u8>(), pieces), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any batches give what a vector gives, the checksums are right, and one
    /// flipped bit is found where it is.
    #[test]
    fn batches_match_a_vector(
        batches in batches(),
        block in 64u64..200,
        flipped in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let (store, data, _) = in_memory(block);
        let mut oracle = Vec::new();
        for (seed, pieces) in batches {
            let mut at = usize::from(seed);
            let mut owned = Vec::new();
            for (gap, len) in pieces {
                at += usize::from(gap);
                let bytes: Vec<u8> = (0..len).map(|i| i ^ seed).collect();
                owned.push((at, bytes));
                at += usize::from(len);
            }
            for (at, bytes) in &owned {
                let end = if bytes.is_empty() { 0 } else { at + bytes.len() };
                oracle.resize(oracle.len().max(end), 0);
                if !bytes.is_empty() {
                    oracle[*at..end].copy_from_slice(bytes);
                }
            }
            let mut requests: Vec<_> = owned
                .iter()
                .map(|(at, bytes)| WriteRequest { offset: *at as u64, data: bytes })
                .collect();
            requests.reverse();
            store.write_batch(&requests).unwrap();
        }
        prop_assert_eq!(store.len().unwrap(), oracle.len() as u64);
        prop_assert_eq!(faults(&store), []);
        let mut found = vec![0; oracle.len()];
        let (first, second) = found.split_at_mut(oracle.len() / 3);
        let offset = first.len() as u64;
        store.read_batch(&mut [
            ReadRequest { offset, buffer: second },
            ReadRequest { offset: 0, buffer: first },
        ]).unwrap();
        prop_assert_eq!(&found, &oracle);
        if !oracle.is_empty() {
            let at = flipped.index(oracle.len()) as u64;
            flip(&*data, at, 1 << bit);
            prop_assert_eq!(faults(&store), [(at / block, BlockFault::Damaged)]);
            prop_assert!(complaint(&store, at, 1).is_some());
        }
    }
}
