//! Reductions and scans against a loop over the ranks, to the last bit.

use std::fmt::Debug;

use bytemuck::Pod;

use super::expect::{equal, same, some_ranks, wrong};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::op::{Element, Op};

const FLOAT_OPS: [Op; 4] = [Op::Sum, Op::Product, Op::Min, Op::Max];
const BIT_OPS: [Op; 2] = [Op::BitAnd, Op::BitOr];

pub(super) fn check(comm: &Comm) -> Result<()> {
    // So many values that they are combined chunk by chunk.
    let long = (24 << 10) / comm.size() + 1;
    for length in [0, 1, 5, long] {
        // Sums and products that wrap round, and that are rounded.
        let bytes = |rank, i| (rank * 91 + i * 7) as u8;
        let wide = |rank, i| (rank as i64 - 2).wrapping_mul(0x1234_5678_9abc_def1) ^ i as i64;
        let real = |rank, i| (rank as f64 - 1.3) / (i as f64 + 3.0);
        for op in FLOAT_OPS.into_iter().chain(BIT_OPS) {
            by_op(comm, op, length, bytes)?;
            by_op(comm, op, length / 8, wide)?;
        }
        for op in FLOAT_OPS {
            by_op(comm, op, length / 8, real)?;
        }
        // Neither commutative nor associative.
        by_function(comm, length / 8, |a: u64, b| {
            a.wrapping_mul(31) ^ b.rotate_left(5)
        })?;
        joined(comm, length / 8)?;
    }
    for op in BIT_OPS {
        let outcome = comm.all_reduce_one(1.0, op);
        if !matches!(outcome, Err(Error::Invalid(_))) {
            return Err(wrong(comm, &format!("{op:?} of floats gave {outcome:?}")));
        }
    }
    Ok(())
}

/// Maps `x -> factor * x + summand` of all ranks, one after the other: joining
/// them is associative, but not commutative.
fn joined(comm: &Comm, length: usize) -> Result<()> {
    let map = |rank: usize, i: usize| [rank as u64 * 4 + 3, (rank * 1000 + i) as u64];
    let after = |first: [u64; 2], then: [u64; 2]| {
        let [factor, summand] = first.map(|number| number.wrapping_mul(then[0]));
        [factor, summand.wrapping_add(then[1])]
    };
    let values: Vec<[u64; 2]> = (0..length).map(|i| map(comm.rank(), i)).collect();
    let found = comm.all_join(&values, |first, then| {
        for (first, then) in first.iter_mut().zip(then) {
            *first = after(*first, *then);
        }
    })?;
    let expected = combined(comm.size(), length, map, after);
    same(comm, "all_join", &found, &expected)
}

/// The values of the first `ranks` ranks, combined one after the other.
fn combined<T: Pod>(
    ranks: usize,
    length: usize,
    value: impl Fn(usize, usize) -> T,
    op: impl Fn(T, T) -> T,
) -> Vec<T> {
    (0..length)
        .map(|i| (1..ranks).fold(value(0, i), |sum, rank| op(sum, value(rank, i))))
        .collect()
}

fn by_op<T: Element + PartialEq + Debug>(
    comm: &Comm,
    op: Op,
    length: usize,
    value: impl Fn(usize, usize) -> T,
) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let what = |call: &str| format!("{call} by {op:?}");
    let combine = T::combine(op).ok_or_else(|| wrong(comm, "no such operation"))?;
    let two = |a, b| {
        let mut pair = [a];
        combine(&mut pair, &[b]);
        pair[0]
    };
    let values: Vec<T> = (0..length).map(|i| value(rank, i)).collect();
    let expected = combined(size, length, &value, two);
    same(
        comm,
        &what("all_reduce"),
        &comm.all_reduce(&values, op)?,
        &expected,
    )?;
    let root = length % size;
    let reduced = comm.reduce(root, &values, op)?;
    equal(comm, "who reduces", &reduced.is_some(), &(rank == root))?;
    if let Some(reduced) = reduced {
        same(comm, &what("reduce"), &reduced, &expected)?;
    }
    let expected = combined(rank + 1, length, &value, two);
    same(comm, &what("scan"), &comm.scan(&values, op)?, &expected)?;
    let expected = match rank {
        0 => vec![T::identity(op); length],
        _ => combined(rank, length, &value, two),
    };
    let found = comm.exclusive_scan(&values, op)?;
    same(comm, &what("exclusive_scan"), &found, &expected)
}

fn by_function(comm: &Comm, length: usize, op: impl Fn(u64, u64) -> u64 + Copy) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let value = |rank: usize, i: usize| ((rank as u64) << 40) + i as u64 * 3 + 1;
    let values: Vec<u64> = (0..length).map(|i| value(rank, i)).collect();
    let expected = combined(size, length, value, op);
    let found = comm.all_reduce_with(&values, op)?;
    same(comm, "all_reduce_with", &found, &expected)?;
    for root in some_ranks(comm) {
        if let Some(found) = comm.reduce_with(root, &values, op)? {
            equal(comm, "who reduces", &rank, &root)?;
            same(comm, "reduce_with", &found, &expected)?;
        }
    }
    let found = comm.scan_with(&values, op)?;
    same(
        comm,
        "scan_with",
        &found,
        &combined(rank + 1, length, value, op),
    )?;
    let found = comm.exclusive_scan_with(&values, 42, op)?;
    let expected = match rank {
        0 => vec![42; length],
        _ => combined(rank, length, value, op),
    };
    same(comm, "exclusive_scan_with", &found, &expected)
}
