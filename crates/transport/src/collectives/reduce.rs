//! The values of all ranks combined, elementwise: reductions and scans.
//!
//! Always `op(op(op(v0, v1), v2), ...)` in the order of the ranks, for every
//! transport and every length: results are the same to the last bit, and the
//! operation need be neither commutative nor associative.
//!
//! Few values are gathered where they are wanted and combined there. Of many,
//! rank `c` combines the `c`-th chunk for everybody: one exchange to bring
//! the chunks together, one to hand the results out, so that no rank sends,
//! receives or holds more than a few times its own values.

use std::ops::Range;

use bytemuck::Pod;

use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::op::{Combine, Element, Op};
use crate::transport::Exchange;

/// Up to so many bytes from all ranks together are combined where they are
/// wanted.
const FEW: usize = 16 * 1024;

/// Which ranks' values are wanted where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// All, on one rank.
    By(usize),
    /// All, on every rank.
    ByAll,
    /// On every rank those up to its own.
    UpToOwn,
    /// On every rank those before its own.
    BeforeOwn,
}

impl Wanted {
    /// How many ranks' values (the first ones) are combined on `rank`.
    fn ranks(self, rank: usize, size: usize) -> usize {
        match self {
            Self::By(root) if root != rank => 0,
            Self::By(_) | Self::ByAll => size,
            Self::UpToOwn => rank + 1,
            Self::BeforeOwn => rank,
        }
    }
}

impl Comm {
    /// Collective: gives rank `root` the values of all ranks combined by `op`,
    /// elementwise.
    pub fn reduce<T: Element>(&self, root: usize, values: &[T], op: Op) -> Result<Option<Vec<T>>> {
        self.check_root(root)?;
        self.combine(values, Wanted::By(root), combination(op)?)
    }

    /// The same with any operation.
    pub fn reduce_with<T: Pod>(
        &self,
        root: usize,
        values: &[T],
        op: impl Fn(T, T) -> T,
    ) -> Result<Option<Vec<T>>> {
        self.check_root(root)?;
        self.combine(values, Wanted::By(root), elementwise(op))
    }

    /// Collective: gives every rank the values of all ranks combined by `op`,
    /// elementwise.
    pub fn all_reduce<T: Element>(&self, values: &[T], op: Op) -> Result<Vec<T>> {
        let combined = self.combine(values, Wanted::ByAll, combination(op)?)?;
        Ok(combined.unwrap_or_default())
    }

    /// The same with any operation.
    pub fn all_reduce_with<T: Pod>(&self, values: &[T], op: impl Fn(T, T) -> T) -> Result<Vec<T>> {
        let combined = self.combine(values, Wanted::ByAll, elementwise(op))?;
        Ok(combined.unwrap_or_default())
    }

    /// Collective: one value of every rank, combined by `op`, for every rank.
    pub fn all_reduce_one<T: Element>(&self, value: T, op: Op) -> Result<T> {
        Ok(self.all_reduce(&[value], op)?[0])
    }

    /// Collective: gives every rank the values of the ranks up to itself
    /// combined by `op`, elementwise.
    pub fn scan<T: Element>(&self, values: &[T], op: Op) -> Result<Vec<T>> {
        let combined = self.combine(values, Wanted::UpToOwn, combination(op)?)?;
        Ok(combined.unwrap_or_default())
    }

    /// The same with any operation.
    pub fn scan_with<T: Pod>(&self, values: &[T], op: impl Fn(T, T) -> T) -> Result<Vec<T>> {
        let combined = self.combine(values, Wanted::UpToOwn, elementwise(op))?;
        Ok(combined.unwrap_or_default())
    }

    /// Collective: gives every rank the values of the ranks before it combined
    /// by `op`, elementwise; on rank 0 what changes nothing (0 for a sum).
    pub fn exclusive_scan<T: Element>(&self, values: &[T], op: Op) -> Result<Vec<T>> {
        let combined = self.combine(values, Wanted::BeforeOwn, combination(op)?)?;
        Ok(combined.unwrap_or_else(|| vec![T::identity(op); values.len()]))
    }

    /// The same with any operation; rank 0 gets copies of `first`.
    pub fn exclusive_scan_with<T: Pod>(
        &self,
        values: &[T],
        first: T,
        op: impl Fn(T, T) -> T,
    ) -> Result<Vec<T>> {
        let combined = self.combine(values, Wanted::BeforeOwn, elementwise(op))?;
        Ok(combined.unwrap_or_else(|| vec![first; values.len()]))
    }

    /// The values of all or of the first ranks combined, where they are
    /// wanted.
    fn combine<T: Pod>(
        &self,
        values: &[T],
        wanted: Wanted,
        combine: impl Fn(&mut [T], &[T]),
    ) -> Result<Option<Vec<T>>> {
        let ranks = wanted.ranks(self.rank(), self.size());
        if size_of_val(values).saturating_mul(self.size()) > FEW {
            let combined = self.combine_by_chunks(values, wanted, combine)?;
            return Ok((ranks > 0).then_some(combined));
        }
        let all = match wanted {
            Wanted::By(root) => self.gather(root, values)?.unwrap_or_default(),
            _ => self.all_gather(values)?,
        };
        if ranks == 0 {
            return Ok(None);
        }
        let len = values.len();
        let mut combined = all[..len].to_vec();
        for next in all[..len * ranks].chunks_exact(len.max(1)).skip(1) {
            combine(&mut combined, next);
        }
        Ok(Some(combined))
    }

    /// One exchange: a part to each rank, and one from each.
    fn swap<'a, T: Pod>(
        &self,
        sends: impl Iterator<Item = &'a [T]>,
        receives: impl Iterator<Item = &'a mut [T]>,
    ) -> Result<()> {
        let mut exchange = Exchange::with_capacity(self.size(), self.size());
        for (peer, part) in sends.enumerate() {
            exchange.send(peer, bytemuck::cast_slice(part));
        }
        for (peer, part) in receives.enumerate() {
            exchange.receive(peer, bytemuck::cast_slice_mut(part));
        }
        self.exchange(&mut exchange)
    }

    fn combine_by_chunks<T: Pod>(
        &self,
        values: &[T],
        wanted: Wanted,
        combine: impl Fn(&mut [T], &[T]),
    ) -> Result<Vec<T>> {
        let (rank, size, len) = (self.rank(), self.size(), values.len());
        let chunk = |owner: usize| -> Range<usize> {
            // In 128 bits, as the product may not fit in fewer.
            let at = |owner| (len as u128 * owner as u128 / size as u128) as usize;
            at(owner)..at(owner + 1)
        };
        // 1. Bring together this rank's chunk of all ranks' values.
        let own = chunk(rank).len();
        let mut all = vec![T::zeroed(); own * size];
        self.swap(
            (0..size).map(|owner| &values[chunk(owner)]),
            all.chunks_exact_mut(own.max(1)),
        )?;
        // 2. Combine it; for scans, keep what each rank wants on the way.
        let mut combined = all[..own].to_vec();
        let mut before = combined.clone();
        for next in all.chunks_exact_mut(own.max(1)).skip(1) {
            before.copy_from_slice(&combined);
            combine(&mut combined, next);
            match wanted {
                Wanted::By(_) | Wanted::ByAll => {}
                Wanted::UpToOwn => next.copy_from_slice(&combined),
                Wanted::BeforeOwn => next.copy_from_slice(&before),
            }
        }
        // 3. Hand it out.
        let gets = |rank: usize| wanted.ranks(rank, size) > 0;
        let mut result = vec![T::zeroed(); if gets(rank) { len } else { 0 }];
        let mut exchange = Exchange::with_capacity(size, size);
        for peer in (0..size).filter(|&peer| gets(peer)) {
            let part = match wanted {
                Wanted::By(_) | Wanted::ByAll => &combined[..],
                Wanted::UpToOwn | Wanted::BeforeOwn => &all[own * peer..][..own],
            };
            exchange.send(peer, bytemuck::cast_slice(part));
        }
        if gets(rank) {
            let mut rest = result.as_mut_slice();
            for owner in 0..size {
                let (part, later) = rest.split_at_mut(chunk(owner).len());
                rest = later;
                exchange.receive(owner, bytemuck::cast_slice_mut(part));
            }
        }
        self.exchange(&mut exchange)?;
        Ok(result)
    }
}

/// How `op` combines, if it does.
fn combination<T: Element>(op: Op) -> Result<Combine<T>> {
    T::combine(op).ok_or_else(|| {
        let name = std::any::type_name::<T>();
        Error::Invalid(format!("{op:?} does not combine values of type {name}"))
    })
}

/// Combines element by element.
fn elementwise<T: Pod>(op: impl Fn(T, T) -> T) -> impl Fn(&mut [T], &[T]) {
    move |combined, next| {
        for (left, &right) in combined.iter_mut().zip(next) {
            *left = op(*left, right);
        }
    }
}
