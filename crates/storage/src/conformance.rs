//! What every [`Store`] must do, as a suite that backends and adapters run in
//! their tests.
//!
//! Each check makes fresh, empty stores and panics with a message at the first
//! violation of the contract stated in [`Store`]'s documentation.

use std::thread;

use crate::error::{Error, Result};
use crate::store::{ReadRequest, Store, WriteRequest};

/// Makes a fresh, empty store.
pub type Make<'a> = &'a dyn Fn() -> Box<dyn Store>;

/// Runs the whole suite on stores made by `make`, which are fresh and empty.
/// Some of them become sparse and longer than 4 GiB.
pub fn check(make: Make<'_>) {
    check_in_memory(make);
    large_offsets(&*make());
}

/// Runs all of the suite but its offsets beyond 2 GiB, for stores that hold
/// every byte in memory.
pub fn check_in_memory(make: Make<'_>) {
    empty_store(&*make());
    sizes_and_offsets(make);
    overlapping_writes(&*make());
    extension_with_gap(make);
    reads_past_the_end(&*make());
    lengths(&*make());
    impossible_offsets(&*make());
    batches_in_any_order(&*make());
    big_batches(&*make());
    batches_past_the_end(&*make());
    many_threads(&*make());
    extension_by_many_threads(&*make());
    for seed in 1..=3 {
        random_operations(&*make(), seed);
    }
}

/// A sequence of numbers that looks random and is the same for the same seed
/// (splitmix64).
#[derive(Debug)]
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

/// `len` bytes, none of them zero, that tell where and by whom they were
/// written.
fn pattern(offset: u64, len: usize, writer: u64) -> Vec<u8> {
    let byte = |at: u64| (at.wrapping_mul(31) ^ (at >> 8) ^ writer.wrapping_mul(97)) % 255 + 1;
    (offset..offset + len as u64)
        .map(|at| byte(at) as u8)
        .collect()
}

#[track_caller]
fn expect<T>(what: &str, result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what} failed: {error}"),
    }
}

#[track_caller]
fn expect_write(store: &dyn Store, offset: u64, data: &[u8]) {
    let what = format!("writing {} bytes at {offset}", data.len());
    expect(&what, store.write_at(offset, data));
}

#[track_caller]
fn expect_len(store: &dyn Store, len: u64) {
    assert_eq!(expect("len", store.len()), len, "wrong length");
    assert_eq!(
        expect("is_empty", store.is_empty()),
        len == 0,
        "is_empty contradicts len"
    );
}

#[track_caller]
fn expect_same(found: &[u8], wanted: &[u8], offset: u64) {
    if let Some(at) = found
        .iter()
        .zip(wanted)
        .position(|(found, wanted)| found != wanted)
    {
        let (len, found, wanted) = (wanted.len(), found[at], wanted[at]);
        let at = offset + at as u64;
        panic!("read of {len} bytes at {offset}: byte {at} is {found}, not {wanted}");
    }
}

#[track_caller]
fn expect_bytes(store: &dyn Store, offset: u64, wanted: &[u8]) {
    let mut found = vec![0xa5; wanted.len()];
    let what = format!("reading {} bytes at {offset}", wanted.len());
    expect(&what, store.read_at(offset, &mut found));
    expect_same(&found, wanted, offset);
}

#[track_caller]
fn expect_unexpected_end(what: &str, result: Result<()>) {
    match result {
        Err(Error::UnexpectedEnd { .. }) => {}
        Err(error) => panic!("{what} past the end failed otherwise: {error}"),
        Ok(()) => panic!("{what} past the end succeeded"),
    }
}

fn empty_store(store: &dyn Store) {
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

fn sizes_and_offsets(make: Make<'_>) {
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

fn overlapping_writes(store: &dyn Store) {
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

fn extension_with_gap(make: Make<'_>) {
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

fn reads_past_the_end(store: &dyn Store) {
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

fn lengths(store: &dyn Store) {
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

fn impossible_offsets(store: &dyn Store) {
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

/// Cuts `0..total` into pieces of many lengths, shuffled.
fn shuffled_pieces(total: usize, longest: usize, seed: u64) -> Vec<(usize, usize)> {
    let mut sequence = Sequence(seed);
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < total {
        let len = (sequence.below(longest) + 1).min(total - start);
        pieces.push((start, len));
        start += len;
    }
    for last in (1..pieces.len()).rev() {
        pieces.swap(last, sequence.below(last + 1));
    }
    pieces
}

/// Writes and reads `pieces` of `data`, which begins at `offset`, as batches.
fn write_and_read_pieces(store: &dyn Store, offset: u64, data: &[u8], pieces: &[(usize, usize)]) {
    let write = |&(start, len): &(usize, usize)| WriteRequest {
        offset: offset + start as u64,
        data: &data[start..start + len],
    };
    let requests: Vec<_> = pieces.iter().map(write).collect();
    expect("a write batch", store.write_batch(&requests));
    expect_bytes(store, offset, data);

    let mut buffers: Vec<_> = pieces.iter().map(|&(_, len)| vec![0xa5; len]).collect();
    let read = |(&(start, _), buffer)| ReadRequest {
        offset: offset + start as u64,
        buffer,
    };
    let mut requests: Vec<_> = pieces
        .iter()
        .zip(buffers.iter_mut().map(Vec::as_mut_slice))
        .map(read)
        .collect();
    expect("a read batch", store.read_batch(&mut requests));
    for (&(start, len), buffer) in pieces.iter().zip(&buffers) {
        expect_same(buffer, &data[start..start + len], offset + start as u64);
    }
}

fn batches_in_any_order(store: &dyn Store) {
    for (round, longest) in [20_000, 5000, 300].into_iter().enumerate() {
        let offset = [0, 4096, 333][round];
        let data = pattern(offset, 60_000, round as u64);
        let pieces = shuffled_pieces(data.len(), longest, round as u64);
        write_and_read_pieces(store, offset, &data, &pieces);
    }
    // One request, and some that are longer than any buffer.
    let data = pattern(0, 5 << 20, 9);
    write_and_read_pieces(store, 3, &data[..100], &[(0, 100)]);
    write_and_read_pieces(store, 3, &data, &[(3 << 20, 2 << 20), (0, 3 << 20)]);
    // Reads may overlap, and writes may be empty.
    let (mut first, mut second) = ([0; 50], [0; 50]);
    let mut requests = [
        ReadRequest {
            offset: 103,
            buffer: &mut first,
        },
        ReadRequest {
            offset: 120,
            buffer: &mut [],
        },
        ReadRequest {
            offset: 113,
            buffer: &mut second,
        },
    ];
    expect(
        "a batch of overlapping reads",
        store.read_batch(&mut requests),
    );
    expect_same(&first, &data[100..150], 103);
    expect_same(&second, &data[110..160], 113);
}

fn big_batches(store: &dyn Store) {
    let data = pattern(0, 200_000, 2);
    let pieces = shuffled_pieces(data.len(), 60, 2);
    assert!(pieces.len() > 5000);
    write_and_read_pieces(store, 0, &data, &pieces);
    expect_len(store, 200_000);
}

fn batches_past_the_end(store: &dyn Store) {
    let data = pattern(0, 10_000, 3);
    expect_write(store, 0, &data);
    for bad in [0, 150, 299] {
        let mut buffers = vec![[0; 16]; 300];
        let offset = |index| {
            if index == bad {
                9_990
            } else {
                index as u64 * 30
            }
        };
        let mut requests: Vec<_> = buffers
            .iter_mut()
            .enumerate()
            .map(|(index, buffer)| ReadRequest {
                offset: offset(index),
                buffer,
            })
            .collect();
        expect_unexpected_end("a batch", store.read_batch(&mut requests));
    }
    expect_len(store, 10_000);
    expect_bytes(store, 0, &data);
}

const THREADS: usize = 8;

fn many_threads(store: &dyn Store) {
    // Thread t owns the pieces t, t + THREADS, ...; neighbours share blocks.
    let (piece, rounds) = (1000, 24);
    expect("set_len", store.set_len((THREADS * piece * rounds) as u64));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..rounds {
                    let offset = ((round * THREADS + thread) * piece) as u64;
                    let data = pattern(offset, piece, thread as u64);
                    if round % 2 == 0 {
                        expect_write(store, offset, &data);
                    } else {
                        let pieces = shuffled_pieces(piece, 200, round as u64);
                        write_and_read_pieces(store, offset, &data, &pieces);
                    }
                    expect_bytes(store, offset, &data);
                }
            });
        }
    });
    for index in 0..THREADS * rounds {
        let offset = (index * piece) as u64;
        expect_bytes(
            store,
            offset,
            &pattern(offset, piece, (index % THREADS) as u64),
        );
    }
}

fn extension_by_many_threads(store: &dyn Store) {
    let (piece, rounds) = (777, 20);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..rounds {
                    // Every second piece stays a gap.
                    let offset = ((round * THREADS + thread) * 2 * piece) as u64;
                    let data = pattern(offset, piece, thread as u64);
                    expect_write(store, offset, &data);
                    expect_bytes(store, offset, &data);
                    let len = expect("len", store.len());
                    let end = offset + piece as u64;
                    assert!(len >= end, "the length is {len} after a write up to {end}");
                }
            });
        }
    });
    let pieces = THREADS * rounds;
    expect_len(store, ((2 * pieces - 1) * piece) as u64);
    for index in 0..pieces {
        let offset = (2 * index * piece) as u64;
        expect_bytes(
            store,
            offset,
            &pattern(offset, piece, (index % THREADS) as u64),
        );
        if index + 1 < pieces {
            expect_bytes(store, offset + piece as u64, &vec![0; piece]);
        }
    }
}

fn random_operations(store: &dyn Store, seed: u64) {
    const LONGEST: usize = 40_000;
    let mut sequence = Sequence(seed);
    let mut oracle: Vec<u8> = Vec::new();
    for _ in 0..150 {
        let offset = sequence.below(LONGEST);
        let longest = [10, 600, 9000][sequence.below(3)];
        let len = sequence.below(longest);
        match sequence.below(6) {
            0 => {
                let len = sequence.below(LONGEST);
                expect("set_len", store.set_len(len as u64));
                oracle.resize(len, 0);
            }
            1 | 2 if len > 0 => {
                let data = sequence.bytes(len);
                oracle.resize(oracle.len().max(offset + len), 0);
                oracle[offset..offset + len].copy_from_slice(&data);
                if sequence.below(2) == 0 {
                    expect_write(store, offset as u64, &data);
                } else {
                    let pieces = shuffled_pieces(len, 1000, seed);
                    write_and_read_pieces(store, offset as u64, &data, &pieces);
                }
            }
            _ if offset + len <= oracle.len() => {
                expect_bytes(store, offset as u64, &oracle[offset..offset + len]);
            }
            _ if len > 0 => {
                let mut buffer = vec![0; len];
                let read = store.read_at(offset as u64, &mut buffer);
                expect_unexpected_end("a read", read);
            }
            _ => {}
        }
        expect_len(store, oracle.len() as u64);
    }
    expect_bytes(store, 0, &oracle);
}

fn large_offsets(store: &dyn Store) {
    for boundary in [1 << 31, 1 << 32, (1 << 32) + (1 << 31)] {
        let offset: u64 = boundary - 1000;
        let data = pattern(offset, 5000, boundary);
        expect_write(store, offset, &data);
        expect_len(store, offset + 5000);
        expect_bytes(store, offset, &data);
        expect_bytes(store, offset - 5000, &[0; 5000]);
        let pieces = shuffled_pieces(data.len(), 700, boundary);
        write_and_read_pieces(store, offset, &data, &pieces);
    }
    let len = (1 << 33) + 1;
    expect("set_len", store.set_len(len));
    expect_len(store, len);
    expect_bytes(store, len - 10, &[0; 10]);
    expect_unexpected_end("a read", store.read_at(len - 10, &mut [0; 11]));
    let len = (1 << 32) + 5;
    expect("set_len", store.set_len(len));
    expect_bytes(store, len - 10, &pattern(len - 10, 10, 1 << 32));
}
