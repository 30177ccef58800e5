//! Properties of the mapping from bytes to disks, and of stores laid out by it.

use std::sync::Arc;

use outcore_storage::{MemoryStore, Store, StripedStore, Striping};
use proptest::prelude::*;

/// Where the bytes of a store of `len` bytes lie, found by counting.
fn counted_shares(disks: usize, unit: u64, len: u64) -> Vec<u64> {
    let mut shares = vec![0; disks];
    for byte in 0..len {
        shares[(byte / unit) as usize % disks] += 1;
    }
    shares
}

#[test]
fn nothing_to_stripe_is_refused() {
    assert!(Striping::new(0, 1).is_err());
    assert!(Striping::new(1, 0).is_err());
    assert!(StripedStore::new(Vec::new(), 4096).is_err());
}

proptest! {
    #[test]
    fn bytes_fill_each_disk_in_order(disks in 1usize..6, unit in 1u64..20) {
        let striping = Striping::new(disks, unit).unwrap();
        let mut next = vec![0; disks];
        for byte in 0..500 {
            let (disk, offset) = striping.locate(byte);
            prop_assert_eq!(disk, striping.disk_of(byte));
            prop_assert_eq!(offset, next[disk]);
            next[disk] += 1;
            // The byte is the last of the least store that reaches it.
            prop_assert_eq!(striping.reach(disk, offset + 1), byte + 1);
        }
    }

    #[test]
    fn shares_add_up(disks in 1usize..6, unit in 1u64..20, len in 0u64..300) {
        let striping = Striping::new(disks, unit).unwrap();
        let shares: Vec<_> = (0..disks).map(|disk| striping.share(disk, len)).collect();
        prop_assert_eq!(&shares, &counted_shares(disks, unit, len));
        let reach = (0..disks).map(|disk| striping.reach(disk, shares[disk])).max();
        prop_assert_eq!(reach, Some(len));
    }

    #[test]
    fn far_offsets_map_back(disks in 1usize..100, unit in 1u64..(1 << 40), byte in 0..i64::MAX as u64) {
        let striping = Striping::new(disks, unit).unwrap();
        let (disk, offset) = striping.locate(byte);
        prop_assert!(offset <= byte);
        prop_assert_eq!(striping.reach(disk, offset + 1), byte + 1);
        prop_assert_eq!(striping.share(disk, byte), offset);
        prop_assert_eq!(striping.share(disk, byte + 1), offset + 1);
    }

    #[test]
    fn pieces_cover_the_request(
        disks in 1usize..6, unit in 1u64..50, offset in 0u64..1000, len in 0usize..500,
    ) {
        let striping = Striping::new(disks, unit).unwrap();
        let mut covered = 0;
        for piece in striping.pieces(offset, len) {
            prop_assert_eq!(piece.start, covered);
            prop_assert!(piece.len > 0);
            for byte in 0..piece.len {
                let place = striping.locate(offset + (covered + byte) as u64);
                prop_assert_eq!(place, (piece.disk, piece.offset + byte as u64));
            }
            covered += piece.len;
        }
        prop_assert_eq!(covered, len);
    }

    #[test]
    fn disks_hold_the_bytes_mapped_to_them(
        disks in 1usize..5, unit in 1u64..40, offset in 0u64..200, len in 1usize..300,
    ) {
        let memories: Vec<_> = (0..disks).map(|_| Arc::new(MemoryStore::new())).collect();
        let stores = memories.iter().map(|disk| disk.clone() as Arc<dyn Store>).collect();
        let store = StripedStore::new(stores, unit).unwrap();
        let data: Vec<u8> = (0..len).map(|at| (at % 255) as u8 + 1).collect();
        store.write_at(offset, &data).unwrap();
        prop_assert_eq!(store.len().unwrap(), offset + len as u64);
        for (at, &byte) in data.iter().enumerate() {
            let (disk, place) = store.striping().unwrap().locate(offset + at as u64);
            prop_assert_eq!(memories[disk].to_vec()[place as usize], byte);
        }
        store.set_len(offset).unwrap();
        let shares: Vec<_> = memories.iter().map(|disk| disk.len().unwrap()).collect();
        prop_assert_eq!(shares, counted_shares(disks, unit, offset));
        prop_assert_eq!(store.len().unwrap(), offset);
    }
}
