//! What the checks of the suite are written with: data that tells its place,
//! and operations that must succeed, or must fail at the end.

use crate::error::{Error, Result};
use crate::store::Store;

/// A sequence of numbers that looks random and is the same for the same seed
/// (splitmix64).
#[derive(Debug)]
pub(super) struct Sequence(pub(super) u64);

impl Sequence {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

/// `len` bytes, none of them zero, that tell where and by whom they were
/// written.
pub(super) fn pattern(offset: u64, len: usize, writer: u64) -> Vec<u8> {
    let byte = |at: u64| (at.wrapping_mul(31) ^ (at >> 8) ^ writer.wrapping_mul(97)) % 255 + 1;
    (offset..offset + len as u64)
        .map(|at| byte(at) as u8)
        .collect()
}

#[track_caller]
pub(super) fn expect<T>(what: &str, result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what} failed: {error}"),
    }
}

#[track_caller]
pub(super) fn expect_write(store: &dyn Store, offset: u64, data: &[u8]) {
    let what = format!("writing {} bytes at {offset}", data.len());
    expect(&what, store.write_at(offset, data));
}

#[track_caller]
pub(super) fn expect_len(store: &dyn Store, len: u64) {
    assert_eq!(expect("len", store.len()), len, "wrong length");
    assert_eq!(
        expect("is_empty", store.is_empty()),
        len == 0,
        "is_empty contradicts len"
    );
}

#[track_caller]
pub(super) fn expect_same(found: &[u8], wanted: &[u8], offset: u64) {
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
pub(super) fn expect_bytes(store: &dyn Store, offset: u64, wanted: &[u8]) {
    let mut found = vec![0xa5; wanted.len()];
    let what = format!("reading {} bytes at {offset}", wanted.len());
    expect(&what, store.read_at(offset, &mut found));
    expect_same(&found, wanted, offset);
}

#[track_caller]
pub(super) fn expect_unexpected_end(what: &str, result: Result<()>) {
    match result {
        Err(Error::UnexpectedEnd { .. }) => {}
        Err(error) => panic!("{what} past the end failed otherwise: {error}"),
        Ok(()) => panic!("{what} past the end succeeded"),
    }
}
