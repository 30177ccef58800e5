//! What only some stores can do, which they must then do right: mappings,
//! residency, locks. A store that cannot passes.

use std::thread;

use super::expect::*;
use crate::error::Error;
use crate::store::Store;

pub(super) fn mappings(store: &dyn Store) {
    let what = "mapping an empty store";
    let mapping = expect(what, store.map());
    assert!(mapping.is_none_or(|mapping| mapping.is_empty()), "{what}");
    let data = pattern(0, 20_000, 1);
    expect_write(store, 0, &data);
    let Some(mapping) = expect("map", store.map()) else {
        return;
    };
    assert_eq!(mapping.len(), 20_000, "a mapping covers the whole store");
    let mut found = vec![0; 20_000];
    let from = expect("readable", mapping.readable(0, 20_000));
    // SAFETY: the mapping has these bytes, and nobody cuts the store.
    unsafe { from.copy_to_nonoverlapping(found.as_mut_ptr(), 20_000) };
    expect_same(&found, &data, 0);
    // A write through the mapping is seen by reads.
    if let Some(to) = expect("writable", mapping.writable(5000, 3)) {
        // SAFETY: as above; no one else reads or writes.
        unsafe { to.copy_from_nonoverlapping(b"new".as_ptr(), 3) };
        expect_bytes(store, 5000, b"new");
        expect_bytes(store, 5003, &data[5003..]);
    }
    // And the other way round.
    expect_write(store, 19_999, b"last");
    // SAFETY: as above.
    let last = unsafe { expect("readable", mapping.readable(19_999, 1)).read() };
    assert_eq!(last, b'l', "a mapping shows what is written");
    // It ends where it ended, and the next one where the store ends now.
    let past = mapping.readable(19_999, 2).map(drop);
    expect_unexpected_end("an access to a mapping", past);
    let next = expect("map", store.map()).expect("what was mapped once");
    assert_eq!(next.len(), 20_003, "a mapping made anew");
    expect("readable", next.readable(19_999, 4));
    expect("set_len", store.set_len(10_000));
    let cut = next.readable(9_999, 2).map(drop);
    expect_unexpected_end("an access to a mapping of a store that was cut", cut);
    let past = expect("writable", next.writable(9_999, 2));
    assert!(past.is_none(), "a mapped write cannot extend a store");
}

pub(super) fn residency(store: &dyn Store) {
    assert_eq!(store.cached(0, 0), None, "no bytes have no share");
    // Asking for bytes is free to do nothing, wherever they are.
    store.fetch(0, 1 << 20);
    store.fetch(u64::MAX, u64::MAX);
    expect_write(store, 0, &[1; 10_000]);
    for (offset, len) in [(0, 10_000), (5000, 1), (9999, u64::MAX)] {
        let share = store.cached(offset, len);
        let possible = share.is_none_or(|share| (0.0..=1.0).contains(&share));
        assert!(possible, "{share:?} is no share of {len} bytes at {offset}");
    }
}

pub(super) fn locks(store: &dyn Store) {
    const THREADS: usize = 4;
    const ROUNDS: u8 = 50;
    let empty = expect("locking nothing", store.lock(5, 0));
    let Some(_empty) = empty else {
        return;
    };
    expect_write(store, 0, &[0; 2 * THREADS]);
    for (offset, len) in [(i64::MAX as u64, 1), (1, u64::MAX)] {
        let locked = store.lock(offset, len).map(drop);
        let refused = matches!(locked, Err(Error::OutOfRange { .. }));
        assert!(refused, "locking {len} bytes at {offset}: {locked:?}");
    }
    // Two locks of neighbours do not wait for each other.
    {
        let _first = expect("lock", store.lock(0, 5));
        thread::scope(|scope| {
            scope.spawn(|| drop(expect("lock", store.lock(5, 5))));
        });
    }
    // Each thread owns two bytes, and writes those of its neighbours, too.
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let start = (2 * thread).saturating_sub(round as usize % 3);
                    let len =
                        (2 * thread + 2 - start + round as usize % 4).min(2 * THREADS - start);
                    let mut bytes = vec![0; len];
                    let _lock = expect("lock", store.lock(start as u64, len as u64));
                    expect("read", store.read_at(start as u64, &mut bytes));
                    thread::yield_now();
                    bytes[2 * thread - start] += 1;
                    bytes[2 * thread - start + 1] += 2;
                    expect_write(store, start as u64, &bytes);
                }
            });
        }
    });
    expect_bytes(store, 0, &[ROUNDS, 2 * ROUNDS].repeat(THREADS));
}

pub(super) fn shared_locks(store: &dyn Store) {
    const THREADS: usize = 4;
    const ROUNDS: u8 = 100;
    let Some(_empty) = expect("sharing nothing", store.lock_shared(5, 0)) else {
        return;
    };
    expect_write(store, 0, &[0; 2 * THREADS]);
    let beyond = store.lock_shared(1, u64::MAX).map(drop);
    assert!(
        matches!(beyond, Err(Error::OutOfRange { .. })),
        "{beyond:?}"
    );
    // Those who share do not wait for each other.
    {
        let _first = expect("share", store.lock_shared(0, 5));
        thread::scope(|scope| {
            scope.spawn(|| drop(expect("share", store.lock_shared(3, 5))));
        });
    }
    // Even threads write their own bytes, odd ones those of all.
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let own = 2 * thread;
                for round in 1..=ROUNDS {
                    if thread % 2 == 0 {
                        let _lock = expect("share", store.lock_shared(0, own as u64 + 2));
                        thread::yield_now();
                        expect_write(store, own as u64, &[round, round]);
                        expect_bytes(store, own as u64, &[round, round]);
                    } else {
                        let _lock = expect("lock", store.lock(0, 2 * THREADS as u64));
                        let mut bytes = [0; 2 * THREADS];
                        expect("read", store.read_at(0, &mut bytes));
                        thread::yield_now();
                        bytes[own] += 1;
                        bytes[own + 1] += 1;
                        expect_write(store, 0, &bytes);
                    }
                }
            });
        }
    });
    expect_bytes(store, 0, &[ROUNDS; 2 * THREADS]);
}
