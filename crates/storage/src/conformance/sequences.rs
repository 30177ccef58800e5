//! Long sequences of operations: by many threads, at random, and far out.

use std::thread;

use super::batches::{shuffled_pieces, write_and_read_pieces};
use super::expect::*;
use crate::store::Store;

const THREADS: usize = 8;

pub(super) fn many_threads(store: &dyn Store) {
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

pub(super) fn extension_by_many_threads(store: &dyn Store) {
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

pub(super) fn random_operations(store: &dyn Store, seed: u64) {
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

pub(super) fn large_offsets(store: &dyn Store) {
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
