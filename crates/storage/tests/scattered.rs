//! Pieces of a store as one store, against bytes in memory.

use std::sync::Arc;

use outcore_storage::{
    CountedStore, EqualPieces, Fragment, MemoryStore, ReadRequest, ScatteredStore, Store,
    WriteRequest,
};
use proptest::prelude::*;

fn beneath(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// The same pieces as a list.
fn listed(pieces: &EqualPieces) -> Vec<Fragment> {
    (0..pieces.count)
        .map(|number| Fragment {
            start: number * pieces.len,
            len: pieces.len,
            offset: pieces.first + number * pieces.step,
        })
        .collect()
}

proptest! {
    #[test]
    fn equal_pieces_are_what_a_list_of_them_is(
        first in 0u64..50,
        len in 1u64..40,
        gap in 0u64..5000,
        count in 0u64..60,
        transfers in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6),
    ) {
        let pieces = EqualPieces { first, len, step: len + gap, count };
        let content = beneath((first + count * pieces.step + len) as usize);
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::from(content.clone()));
        let equal = ScatteredStore::equal(Arc::clone(&inner), pieces).unwrap();
        let total = (count * len) as usize;
        prop_assert_eq!(equal.len().unwrap(), total as u64);
        let mut whole: Vec<u8> = listed(&pieces)
            .iter()
            .flat_map(|piece| content[piece.offset as usize..][..len as usize].to_vec())
            .collect();
        let ranges: Vec<_> = transfers
            .iter()
            .map(|(a, b)| {
                let (a, b) = (a.index(total + 1), b.index(total + 1));
                a.min(b)..a.max(b)
            })
            .collect();
        for range in &ranges {
            equal.fetch(range.start as u64, range.len() as u64);
            let mut read = vec![0; range.len()];
            equal.read_at(range.start as u64, &mut read).unwrap();
            prop_assert_eq!(&read, &whole[range.clone()]);
        }
        // A batch of all of them, then a write of the first.
        let mut buffers: Vec<Vec<u8>> = ranges.iter().map(|range| vec![0; range.len()]).collect();
        let mut batch: Vec<_> = ranges
            .iter()
            .zip(&mut buffers)
            .map(|(range, buffer)| ReadRequest { offset: range.start as u64, buffer })
            .collect();
        equal.read_batch(&mut batch).unwrap();
        for (range, buffer) in ranges.iter().zip(&buffers) {
            prop_assert_eq!(buffer, &whole[range.clone()]);
        }
        let data = vec![0xa5; ranges[0].len()];
        equal.write_batch(&[WriteRequest { offset: ranges[0].start as u64, data: &data }]).unwrap();
        whole[ranges[0].clone()].copy_from_slice(&data);
        // What a list of the same pieces holds; and nothing between them has changed.
        let list = ScatteredStore::new(Arc::clone(&inner), listed(&pieces), total as u64, vec![]).unwrap();
        let mut read = vec![0; total];
        list.read_at(0, &mut read).unwrap();
        prop_assert_eq!(&read, &whole);
        let mut after = vec![0; content.len()];
        inner.read_at(0, &mut after).unwrap();
        let mut expected = content;
        for (number, piece) in listed(&pieces).iter().enumerate() {
            let from = number * len as usize;
            expected[piece.offset as usize..][..len as usize].copy_from_slice(&whole[from..from + len as usize]);
        }
        prop_assert_eq!(after, expected);
        prop_assert!(equal.read_at(total as u64, &mut [0]).is_err());
        prop_assert!(equal.write_at(total as u64, &[0]).is_err());
    }
}

#[test]
fn millions_of_near_pieces_take_few_requests() {
    let count = 1 << 20;
    let pieces = EqualPieces {
        first: 3,
        len: 4,
        step: 12,
        count,
    };
    let inner = Arc::new(CountedStore::new(MemoryStore::from(beneath(12 << 20))));
    let store = ScatteredStore::equal(inner.clone(), pieces).unwrap();
    let mut read = vec![0; 4 << 20];
    store.read_at(0, &mut read).unwrap();
    let content = beneath(12 << 20);
    let fits = |(number, found): (usize, &[u8])| found == &content[3 + number * 12..][..4];
    assert!(read.chunks(4).enumerate().all(fits));
    assert!(inner.counts().reads < 60, "{}", inner.counts().reads);
}

#[test]
fn pieces_that_cannot_be_are_refused() {
    let make = |first, len, step, count| {
        let pieces = EqualPieces {
            first,
            len,
            step,
            count,
        };
        ScatteredStore::equal(Arc::new(MemoryStore::new()), pieces)
    };
    assert!(make(0, 8, 7, 3).is_err());
    assert!(make(u64::MAX, 8, 8, 3).is_err());
    assert!(make(0, 8, 1 << 40, 1 << 40).is_err());
    assert!(make(0, 1 << 62, 1 << 62, 2).is_err());
    assert_eq!(make(0, 0, 0, u64::MAX).unwrap().len().unwrap(), 0);
    assert_eq!(make(9, 8, 8, 0).unwrap().len().unwrap(), 0);
}
