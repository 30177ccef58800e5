//! Direct I/O with memory that needs no copy, beside memory that does, and with
//! several writers of one file.

use std::path::Path;
use std::thread;

use outcore_storage::{
    Access, AlignedBuffer, Batching, DIRECT_ALIGNMENT, Error, FileOptions, FileStore, ReadRequest,
    Store, WriteRequest,
};

/// The file at `path`, new, opened directly; `None` where that is impossible.
fn direct_file(path: &Path, batching: Batching) -> Option<FileStore> {
    let options = FileOptions {
        direct: true,
        batching,
        ..FileOptions::default()
    };
    match FileStore::create_with(path, options) {
        Err(error @ (Error::Open { .. } | Error::Settings { .. })) => {
            eprintln!("skipped: {error}");
            None
        }
        store => Some(store.unwrap()),
    }
}

fn fill(buffer: &mut [u8], salt: usize) {
    for (at, byte) in buffer.iter_mut().enumerate() {
        *byte = (at / 7 + at / 4096 + salt) as u8;
    }
}

#[test]
fn aligned_and_unaligned_memory_and_offsets() {
    const LENGTH: usize = 3 << 20;
    let folder = tempfile::tempdir().unwrap();
    let Some(store) = direct_file(&folder.path().join("file"), Batching::Automatic) else {
        return;
    };
    let mut data = AlignedBuffer::new(LENGTH + 200);
    let mut found = AlignedBuffer::new(LENGTH + 200);
    assert!(data.as_ptr().addr().is_multiple_of(DIRECT_ALIGNMENT));
    // Where the memory begins in a block, where the file does, and the length.
    for (salt, (memory, offset, len)) in [
        (0, 0, LENGTH),
        (0, 0, LENGTH - 1),
        (100, 100, LENGTH),
        (100, 0, LENGTH),
        (0, 100, LENGTH),
        (0, 8192, 4096),
        (7, 8200, 4096),
        (8, 8200, 12_288),
    ]
    .into_iter()
    .enumerate()
    {
        let range = memory..memory + len;
        fill(&mut data[range.clone()], salt);
        store.write_at(offset, &data[range.clone()]).unwrap();
        store.read_at(offset, &mut found[range.clone()]).unwrap();
        assert!(
            found[range.clone()] == data[range],
            "memory {memory}, offset {offset}, {len}"
        );
    }
}

#[test]
fn batches_of_aligned_and_unaligned_requests() {
    const PIECE: usize = 8192;
    let folder = tempfile::tempdir().unwrap();
    for (name, batching) in [("ring", Batching::Ring), ("threads", Batching::Threads)] {
        let Some(store) = direct_file(&folder.path().join(name), batching) else {
            continue;
        };
        let mut data = AlignedBuffer::new(PIECE * 400);
        fill(&mut data, 1);
        // Every third piece is aligned; the others are moved or cut.
        let skew = |index: usize| 100 * (index % 3);
        let offset = |index: usize| (index * PIECE + skew(index)) as u64;
        let pieces = data.chunks(PIECE).enumerate();
        let requests: Vec<_> = pieces
            .map(|(index, piece)| WriteRequest {
                offset: offset(index),
                data: &piece[..PIECE - skew(index)],
            })
            .collect();
        store.write_batch(&requests).unwrap();
        let mut found = AlignedBuffer::new(PIECE * 400);
        let pieces = found.chunks_mut(PIECE).enumerate();
        let mut reads: Vec<_> = pieces
            .map(|(index, piece)| ReadRequest {
                offset: offset(index),
                buffer: &mut piece[..PIECE - skew(index)],
            })
            .collect();
        store.read_batch(&mut reads).unwrap();
        for (read, write) in reads.iter().zip(&requests) {
            assert!(
                *read.buffer == *write.data,
                "{name}, offset {}",
                read.offset
            );
        }
    }
}

#[test]
fn writers_of_neighbouring_bytes_lose_nothing() {
    const PIECE: usize = 5000;
    const WRITERS: usize = 4;
    const ROUNDS: usize = 30;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let Some(store) = direct_file(&path, Batching::Automatic) else {
        return;
    };
    // Each writer has its own store of the file, as another process would.
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let options = FileOptions {
                direct: true,
                ..FileOptions::default()
            };
            let store = FileStore::open_with(&path, options).unwrap();
            scope.spawn(move || {
                let data = [writer as u8 + 1; PIECE];
                let request = |round: usize| WriteRequest {
                    offset: ((round * WRITERS + writer) * PIECE) as u64,
                    data: &data,
                };
                for round in 0..ROUNDS / 2 {
                    store.write_at(request(round).offset, &data).unwrap();
                }
                let requests: Vec<_> = (ROUNDS / 2..ROUNDS).map(request).collect();
                store.write_batch(&requests).unwrap();
            });
        }
    });
    let check = |store: &FileStore| {
        let mut found = vec![0; PIECE * WRITERS * ROUNDS];
        store.read_at(0, &mut found).unwrap();
        for (index, piece) in found.chunks(PIECE).enumerate() {
            let writer = (index % WRITERS) as u8 + 1;
            assert!(piece.iter().all(|&byte| byte == writer), "piece {index}");
        }
    };
    check(&store);
    check(&FileStore::open(&path, Access::ReadOnly).unwrap());
}
