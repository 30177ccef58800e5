//! Single reads and writes, lengths and ends.

use super::Make;
use super::expect::*;
use crate::store::{ReadRequest, Store, WriteRequest};

pub(super) fn empty_store(store: &dyn Store) {
    assert!(!store.name().is_empty(), "a store needs a name");
    expect_len(store, 0);
    expect_bytes(store, 0, &[]);
    expect_bytes(store, 100, &[]);
    expect_write(store, 100, &[]);
    expect("an empty read batch", store.read_batch(&mut []));
    expect("an empty write batch", store.write_batch(&[]));
    let empty = WriteRequest {
        offset: 100,
        data: &[],
    };
    expect(
        "a batch of empty writes",
        store.write_batch(&[empty, empty]),
    );
    expect_len(store, 0);
    expect("sync", store.sync());
}

pub(super) fn sizes_and_offsets(make: Make<'_>) {
    for size in [1, 2, 7, 64, 511, 512, 4095, 4096, 4097, 70_000] {
        let store = make();
        let mut oracle = Vec::new();
        for offset in [0, 1, 63, 511, 4096, 5000, 12_288] {
            let data = pattern(offset, size, offset);
            let end = offset as usize + size;
            oracle.resize(oracle.len().max(end), 0);
            oracle[offset as usize..end].copy_from_slice(&data);
            expect_write(&*store, offset, &data);
            expect_bytes(&*store, offset, &data);
        }
        expect_len(&*store, oracle.len() as u64);
        expect_bytes(&*store, 0, &oracle);
        expect_bytes(&*store, oracle.len() as u64, &[]);
        expect("sync", store.sync());
        expect_bytes(&*store, 1, &oracle[1..]);
    }
    // Longer than any buffer a backend is likely to work with.
    let store = make();
    let data = pattern(0, (5 << 20) + 123, 5);
    expect_write(&*store, 77, &data);
    expect_bytes(&*store, 77, &data);
    expect_bytes(&*store, 4096, &data[4096 - 77..]);
}

pub(super) fn overlapping_writes(store: &dyn Store) {
    let mut oracle = vec![0; 20_000];
    expect_write(store, 0, &oracle);
    for (writer, (offset, len)) in [
        (0, 20_000),
        (100, 50),
        (120, 9000),
        (4096, 4096),
        (19_999, 1),
        (0, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let data = pattern(offset, len, writer as u64);
        oracle[offset as usize..offset as usize + len].copy_from_slice(&data);
        expect_write(store, offset, &data);
        expect_bytes(store, 0, &oracle);
    }
    expect_len(store, 20_000);
}

pub(super) fn extension_with_gap(make: Make<'_>) {
    for gap in [1, 100, 4096, 300_000] {
        let store = make();
        expect_write(&*store, 0, b"begin");
        expect_write(&*store, 5 + gap, b"end");
        expect_len(&*store, 8 + gap);
        let mut oracle = vec![0; 8 + gap as usize];
        oracle[..5].copy_from_slice(b"begin");
        oracle[5 + gap as usize..].copy_from_slice(b"end");
        expect_bytes(&*store, 0, &oracle);
        expect_bytes(&*store, 5, &vec![0; gap as usize]);
    }
    let store = make();
    expect_write(&*store, 10_000, b"x");
    expect_bytes(&*store, 0, &[0; 10_000]);
}

pub(super) fn reads_past_the_end(store: &dyn Store) {
    let mut buffer = vec![0; 10_000];
    expect_unexpected_end("a read", store.read_at(0, &mut buffer[..1]));
    let data = pattern(0, 5000, 1);
    expect_write(store, 0, &data);
    for (offset, len) in [
        (5000, 1),
        (4999, 2),
        (0, 5001),
        (4096, 905),
        (4096, 4096),
        (1 << 20, 10),
        (100, 10_000),
    ] {
        expect_unexpected_end("a read", store.read_at(offset, &mut buffer[..len]));
        expect_len(store, 5000);
    }
    expect_bytes(store, 0, &data);
}

pub(super) fn lengths(store: &dyn Store) {
    let data = pattern(0, 10_000, 1);
    expect_write(store, 0, &data);
    for len in [10_000, 9999, 8192, 4097, 100, 99] {
        expect("set_len", store.set_len(len as u64));
        expect_len(store, len as u64);
        expect_bytes(store, 0, &data[..len]);
        let read = store.read_at(len as u64 - 1, &mut [0; 2]);
        expect_unexpected_end("after a cut, a read", read);
    }
    // What was cut off does not come back.
    let mut oracle = data[..99].to_vec();
    for len in [100, 4096, 9000, 200_001] {
        expect("set_len", store.set_len(len as u64));
        oracle.resize(len, 0);
        expect_len(store, len as u64);
        expect_bytes(store, 0, &oracle);
    }
    expect("set_len", store.set_len(0));
    expect_len(store, 0);
    for len in 1..40 {
        expect("set_len", store.set_len(len));
        expect_len(store, len);
        expect_bytes(store, 0, &vec![0; len as usize]);
    }
}

pub(super) fn impossible_offsets(store: &dyn Store) {
    expect_write(store, 0, b"bytes");
    let mut buffer = [0; 100];
    for offset in [
        i64::MAX as u64 - 99,
        i64::MAX as u64,
        u64::MAX - 99,
        u64::MAX,
    ] {
        let requests = [WriteRequest {
            offset,
            data: &buffer,
        }; 2];
        assert!(
            store.write_at(offset, &buffer).is_err(),
            "a write at {offset} succeeded"
        );
        assert!(
            store.write_batch(&requests).is_err(),
            "a write batch at {offset} succeeded"
        );
        assert!(
            store.read_at(offset, &mut buffer).is_err(),
            "a read at {offset} succeeded"
        );
        let (first, second) = buffer.split_at_mut(50);
        let mut requests = [
            ReadRequest {
                offset: 0,
                buffer: &mut first[..5],
            },
            ReadRequest {
                offset,
                buffer: second,
            },
        ];
        assert!(
            store.read_batch(&mut requests).is_err(),
            "a read batch at {offset} succeeded"
        );
    }
    expect_len(store, 5);
    expect_bytes(store, 0, b"bytes");
}
