//! The GAXPY form (Thakur and Choudhary 1996, section 2.1): column `j` of `C` is
//! the sum over `k` of `b_kj` times column `k` of `A`.
//!
//! Rank `p` of `P` has the `p`-th part of what is summed over: of some rows of
//! `A` these columns, so that the sub-blocks of all ranks span entire rows; of
//! some columns of `B` these rows, so that they span entire columns. Its product
//! is one term of the sub-block of `C`; the ranks exchange the terms, each sums up
//! a share of the sub-block, and all write together. Sub-blocks of `A` stay until
//! those of all columns of `B` have passed; then come the next rows.
//!
//! With `R` sub-blocks of rows, `k (m + n R)` elements are read. All reads and
//! writes are collective, since the sub-blocks of the ranks interleave in the file.
//!
//! Invariant: one sub-block of each matrix is in memory, and the terms of a share.

use outcore::{Comm, Exchange, MemoryBudget, Op, Result};

use super::blocked::{by_rows, piece, section, within, zeros};
use super::kernel::{Before, Matrix, multiply_add, scratch};
use super::number::Number;
use super::product::Product;
use crate::cores::threads_of_rank;
use crate::fit::largest;
use crate::resources::Resources;

/// What memory is needed for.
const PURPOSE: &str = "the GAXPY product";

/// Sub-blocks of `C` have at most so many columns: more would not be faster.
const GOOD: u64 = 512;

/// What moving sub-blocks may take, as far as there is so much.
const STAGING: u64 = 2 << 20;

/// How large sub-blocks are: the same on all ranks.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    extents: [u64; 3],
    ranks: u64,
    threads: usize,
    /// Whether buffers of `C` have contiguous rows.
    by_rows: bool,
    /// The least that collective calls need.
    staging: u64,
}

/// The rows and columns of a sub-block of `C`.
type SubBlock = (u64, u64);

impl Sizes {
    /// The largest share of a sub-block that one rank sums up.
    fn share(&self, (rows, columns): SubBlock) -> u64 {
        match self.by_rows {
            true => rows.div_ceil(self.ranks).saturating_mul(columns),
            false => columns.div_ceil(self.ranks).saturating_mul(rows),
        }
    }

    /// The bytes of a rank, without staging.
    fn buffers<T: Number>(&self, block: SubBlock) -> u64 {
        let (rows, columns) = block;
        let depth = self.extents[2].div_ceil(self.ranks);
        let elements = [
            rows.saturating_mul(depth),
            depth.saturating_mul(columns),
            rows.saturating_mul(columns),
            self.share(block).saturating_mul(self.ranks - 1),
        ];
        let elements = elements.into_iter().fold(0, u64::saturating_add);
        elements
            .saturating_mul(size_of::<T>() as u64)
            .saturating_add(scratch::<T>([rows, columns, depth], self.threads))
    }

    fn need<T: Number>(&self, block: SubBlock) -> u64 {
        self.buffers::<T>(block).saturating_add(self.staging)
    }

    /// The sub-blocks that fit with which the least is read and computed; the
    /// smallest if none fits.
    fn choose<T: Number>(&self, limit: u64) -> SubBlock {
        let [m, n, _] = self.extents;
        let columns = (0..).map(|e| GOOD >> e).take_while(|columns| *columns > 0);
        let candidates = columns.filter_map(|columns| {
            let columns = columns.min(n.max(1));
            let need = |rows: u64| self.need::<T>((rows, columns));
            Some((largest(m.max(1), limit, need)?, columns))
        });
        let start = |extent: u64| 1.0 + 32.0 / extent.clamp(1, GOOD) as f64;
        let cost = |(rows, columns): &SubBlock| {
            let read = m as f64 + n as f64 * m.div_ceil(*rows) as f64;
            read * start(*rows) * start(*columns)
        };
        candidates
            .min_by(|one, other| cost(one).total_cmp(&cost(other)))
            .unwrap_or((1, 1))
    }
}

/// Collective: multiplies.
pub(super) fn multiply<T: Number>(
    comm: &Comm,
    product: &Product<'_>,
    resources: &Resources<'_>,
) -> Result<()> {
    // 1. How large sub-blocks are, with the least memory of all ranks.
    let threads = threads_of_rank(comm)?;
    let ranks = comm.size() as u64;
    let limit = resources.budget.for_rank(comm).limit();
    let sizes = Sizes {
        extents: product.extents(),
        ranks,
        threads: comm.all_reduce(&[threads as u64], Op::Max)?[0] as usize,
        by_rows: by_rows(product.c),
        staging: [product.a, product.b, product.c]
            .into_iter()
            .fold(0, |most, array| {
                let least = array.collective().least_memory(comm.size());
                most.max((2 * least).saturating_sub(array.decoded_bytes()))
            }),
    };
    let limit = comm.all_reduce(&[limit], Op::Min)?[0];
    let block = sizes.choose::<T>(limit);
    let budget = resources.enough(comm, PURPOSE, |_| sizes.need::<T>(block))?;
    let buffers = sizes.buffers::<T>(block);
    let _memory = comm.agree(budget.reserve(buffers, PURPOSE))?;
    let staging = STAGING.min(limit / 8).max(sizes.staging);
    let staging = staging.min(limit - buffers);
    let team = Team {
        comm,
        product,
        sizes,
        threads,
        staging: match comm.transport().shares_memory() {
            true => MemoryBudget::of(staging.saturating_mul(ranks)),
            false => MemoryBudget::of(staging),
        },
    };
    team.multiply::<T>(block, resources)
}

/// One rank among all.
struct Team<'a> {
    comm: &'a Comm,
    product: &'a Product<'a>,
    sizes: Sizes,
    threads: usize,
    /// The memory of collective calls.
    staging: MemoryBudget,
}

impl Team<'_> {
    fn multiply<T: Number>(&self, block: SubBlock, resources: &Resources<'_>) -> Result<()> {
        let ([m, n, k], ranks) = (self.sizes.extents, self.sizes.ranks);
        let rank = self.comm.rank();
        let [a, b, c] = [self.product.a, self.product.b, self.product.c].map(within);
        let mine = piece(k, ranks, rank as u64);
        let depth = k.div_ceil(ranks);
        let made = |elements: u64| self.comm.agree(zeros::<T>(elements as usize));
        let mut left = made(block.0 * depth)?;
        let mut right = made(depth * block.1)?;
        let mut term = made(block.0 * block.1)?;
        let mut mail = made(self.sizes.share(block) * (ranks - 1))?;
        let (down, across) = (m.div_ceil(block.0), n.div_ceil(block.1));
        // 2. Rows of A stay while columns of B pass.
        for rows in (0..down).map(|i| piece(m, down, i)) {
            let own = section(&rows, &mine)?;
            let left = &mut left[..own.count() as usize];
            let together = a.collective().budget(&self.staging);
            together.read_into(self.comm, &own, left)?;
            let left = Matrix {
                values: &*left,
                shape: (
                    (rows.end - rows.start) as usize,
                    (mine.end - mine.start) as usize,
                ),
                by_rows: by_rows(&a),
            };
            for columns in (0..across).map(|j| piece(n, across, j)) {
                let own = section(&mine, &columns)?;
                let right = &mut right[..own.count() as usize];
                let together = b.collective().budget(&self.staging);
                together.read_into(self.comm, &own, right)?;
                // 3. This rank's term of the sub-block.
                let shape = (left.shape.0, (columns.end - columns.start) as usize);
                let term = &mut term[..shape.0 * shape.1];
                let result = Matrix {
                    values: &mut *term,
                    shape,
                    by_rows: by_rows(&c),
                };
                let right = Matrix {
                    values: &*right,
                    shape: (left.shape.1, shape.1),
                    by_rows: by_rows(&b),
                };
                let multiplied = multiply_add(result, left, right, Before::Replaced, self.threads);
                self.comm.agree(multiplied)?;
                // 4. The sum of all terms, of which each rank has a share.
                let own = self.sum(term, shape, &mut mail)?;
                // 5. All write together.
                let share = self.share(shape, rank as u64);
                let (rows, columns) = match by_rows(&c) {
                    true => (rows.start + share.start..rows.start + share.end, columns),
                    false => {
                        let start = columns.start;
                        (rows.clone(), start + share.start..start + share.end)
                    }
                };
                let together = c.collective().budget(&self.staging);
                together.write(self.comm, &section(&rows, &columns)?, own)?;
                resources.tell(size_of_val(own) as u64);
            }
        }
        Ok(())
    }

    /// A rank's share of a sub-block: indices along its slow axis.
    fn share(&self, shape: (usize, usize), rank: u64) -> std::ops::Range<u64> {
        let slow = if self.sizes.by_rows { shape.0 } else { shape.1 };
        piece(slow as u64, self.sizes.ranks, rank)
    }

    /// Collective: sends every rank the terms of its share, and adds what the
    /// others send to the own one.
    fn sum<'a, T: Number>(
        &self,
        term: &'a mut [T],
        shape: (usize, usize),
        mail: &mut [T],
    ) -> Result<&'a [T]> {
        let fast = if self.sizes.by_rows { shape.1 } else { shape.0 };
        let stretch = |rank: usize| {
            let share = self.share(shape, rank as u64);
            share.start as usize * fast..share.end as usize * fast
        };
        let (me, ranks) = (self.comm.rank(), self.comm.size());
        let others = || (0..ranks).filter(move |rank| *rank != me);
        let own = stretch(me);
        if ranks > 1 && !term.is_empty() {
            let mut exchange = Exchange::with_capacity(ranks, ranks);
            for rank in others().filter(|rank| !stretch(*rank).is_empty()) {
                exchange.send(rank, bytemuck::cast_slice(&term[stretch(rank)]));
            }
            if !own.is_empty() {
                let parts = mail.chunks_exact_mut(own.len());
                for (rank, part) in others().zip(parts) {
                    exchange.receive(rank, bytemuck::cast_slice_mut(part));
                }
            }
            self.comm.exchange(&mut exchange)?;
        }
        let sum = &mut term[own.clone()];
        if !own.is_empty() {
            for part in mail.chunks_exact(own.len()).take(ranks - 1) {
                let pairs = sum.iter_mut().zip(part);
                pairs.for_each(|(sum, other)| *sum += *other);
            }
        }
        Ok(sum)
    }
}
