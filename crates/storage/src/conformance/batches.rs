//! Batches of reads and writes.

use super::expect::*;
use crate::store::{ReadRequest, Store, WriteRequest};

/// Cuts `0..total` into pieces of many lengths, shuffled.
pub(super) fn shuffled_pieces(total: usize, longest: usize, seed: u64) -> Vec<(usize, usize)> {
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
pub(super) fn write_and_read_pieces(
    store: &dyn Store,
    offset: u64,
    data: &[u8],
    pieces: &[(usize, usize)],
) {
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

pub(super) fn batches_in_any_order(store: &dyn Store) {
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

pub(super) fn big_batches(store: &dyn Store) {
    let data = pattern(0, 200_000, 2);
    let pieces = shuffled_pieces(data.len(), 60, 2);
    assert!(pieces.len() > 5000);
    write_and_read_pieces(store, 0, &data, &pieces);
    expect_len(store, 200_000);
}

pub(super) fn batches_past_the_end(store: &dyn Store) {
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
